"""Poses of links and bodies in a world."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.model import Transform
from costate.model.rotation import from_rpy
from costate.sim import World


def test_poses_of_links_and_bodies() -> None:
    """Against the robot's own kinematics where it stands, and against the gap of a ball above the ground."""
    turned = Transform(from_rpy((0.3, -0.2, 0.5)), np.array([0.1, 0.2, 0.3]))
    robot = cs.load_robot("two_link")
    ground = cs.Static("ground", cs.shapes.plane())
    thrown = cs.Body("thrown", [cs.shapes.sphere(0.1)], 1.0, pose=Transform(np.eye(3), np.array([0.5, 0.6, 0.7])))
    world = World([robot], [thrown], [ground], poses={"two_link": turned}, collide=[("thrown", "ground")])
    state = world.initial_state((2, 3))
    q, _ = world.coordinates("two_link")
    state[..., q] = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(0))
    state[..., world.coordinates("thrown")[1]] = torch.tensor([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    state = world.rollout(state, steps=3)[-1]
    R, p = torch.tensor(turned.rotation), torch.tensor(turned.translation)
    for link in ("arm1", "endEffector"):
        own = robot.forward_kinematics(state[..., q], link)
        for name in (link, f"two_link/{link}"):
            pose = world.link_pose(state, name)
            torch.testing.assert_close(pose.position, own.position @ R.T + p)
            torch.testing.assert_close(pose.rotation, R @ own.rotation)
    pose = world.body_pose(state, "thrown")
    assert pose.position.shape == (2, 3, 3) and pose.quaternion.shape == (2, 3, 4)
    torch.testing.assert_close(pose.position[..., 2] - 0.1, world.gaps(state).squeeze(-1))
    assert torch.equal(pose.rotation, world.link_pose(state, "thrown/body").rotation)
    start = world.body_pose(world.initial_state(), "thrown")
    torch.testing.assert_close(start.position, torch.tensor([0.5, 0.6, 0.7]))
    check_gradients(lambda x: tuple(world.link_pose(x, "arm2")), (state,), names=("state",))
    check_gradients(lambda x: tuple(world.body_pose(x, "thrown")), (state,), names=("state",))


def test_poses_with_learnt_parameters() -> None:
    """A joint's place that is learnt moves the links after it, and gets its gradient."""
    robot = cs.load_robot("two_link")
    joint = robot.model.joints[-1]
    place = robot.learn(joint.name, "translation")
    world = World([robot], contact=None)
    pose = world.link_pose(world.initial_state(), joint.child)
    torch.testing.assert_close(pose.position, robot.forward_kinematics(robot.neutral(), joint.child).position)
    pose.position.square().sum().backward()
    (raw,) = place.parameters()
    parent = robot.forward_kinematics(robot.neutral(), joint.parent).rotation
    torch.testing.assert_close(raw.grad, 2 * parent.T @ pose.position.detach())
    twins = World({"a": robot, "b": robot}, contact=None)
    with pytest.raises(ValueError, match=f"links of that name are a/{joint.child}, b/{joint.child}"):
        twins.link_pose(twins.initial_state(), joint.child)
