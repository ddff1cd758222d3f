"""Things placed in a world: the state of what floats is its pose in the world, however it was placed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.gradients import Tolerances, check_gradients

import costate as cs
from costate.model import Inertia, Joint, Link, Model

D = torch.float64
POSITION, RPY = (0.3, -0.2, 1.0), (0.4, -0.3, 0.5)
QUATERNION = Rotation.from_euler("xyz", RPY).as_quat()
PLACED = cs.Transform.at(POSITION, RPY)
CONTACTS = {
    "hard": cs.Hard(),
    "sweeps": cs.PGS(sweeps=200),
    "newton": cs.Newton(cone="elliptic"),  # a pyramid has edges, which do not turn with the scene
    "soft": cs.Compliant(),
}


def box(name: str = "box", **where: Any) -> cs.Body:
    return cs.Body(
        name, [cs.shapes.box((0.2, 0.3, 0.1))], 1.5, com=(0.01, 0.02, 0.0), inertia=1e-2 * np.eye(3), **where
    )


def floating_arm() -> cs.Robot:
    """A ball with a pendulum."""
    ball = Link("ball", Inertia(1.0, np.zeros(3), 4e-3 * np.eye(3)), collisions=(cs.shapes.sphere(0.1),))
    bob = Link("bob", Inertia(0.3, np.array([0.1, 0.0, -0.2]), 1e-3 * np.eye(3)))
    free = Joint("free", "floating", "world", "ball", cs.Transform.at((0, 0, 0.02), (0.1, 0, 0)))
    hinge = Joint("hinge", "revolute", "ball", "bob", axis=np.array([0.0, 1.0, 0.0]))
    return cs.Robot(Model("arm", (Link("world"), ball, bob), (free, hinge)))


def test_the_height_of_a_body_at_height_one() -> None:
    world = cs.World(bodies=[box(position=(0, 0, 1))])
    assert world.initial_state().tolist() == [0, 0, 1, 0, 0, 0, 1, *[0] * 6]
    assert world.step(world.initial_state())[2] == pytest.approx(1 - 9.81 * 0.01**2, abs=1e-4)


@pytest.mark.parametrize("where", [{"rpy": RPY}, {"quaternion": QUATERNION}, {"quaternion": -2 * QUATERNION}])
def test_a_turned_body(where: dict[str, Any]) -> None:
    q = cs.World(bodies=[box(position=POSITION, **where)]).initial_state()[:7].numpy()
    np.testing.assert_allclose(q, [*POSITION, *QUATERNION], rtol=0, atol=1e-15)
    assert cs.World(bodies=[replace(box(), pose=(POSITION, QUATERNION))]).initial_state()[:3].tolist() == [*POSITION]


def test_a_body_that_does_not_float_moves_from_its_pose() -> None:
    """Its joint has coordinates of its own, which are zero there."""
    world = cs.World(bodies=[box(joint="prismatic", position=POSITION, rpy=RPY)], contact=None)
    assert world.initial_state().tolist() == [0, 0]
    R, axis = PLACED.rotation, world.setup.scene.model.joints[0].axis
    assert float(world.step(world.initial_state())[1]) == pytest.approx(-9.81 * 0.01 * float((R @ axis)[2]), rel=1e-12)


def test_robots() -> None:
    """A robot that floats starts where its home is, seen from its pose; one that does not stands at its pose."""
    dog = cs.load_robot("laikago")
    world = cs.World(
        [dog, dog, cs.load_robot("two_link")], poses=[(1, 2, 0), ((0, 3, 0.1), (0, 0, np.pi / 2)), (0, 0, 1)]
    )
    state, home = world.initial_state(), dog.model.home
    assert home is not None
    first, second = (state[world.coordinates(name)[0]].numpy() for name in ("laikago", "laikago_2"))
    np.testing.assert_allclose(first[:7], [1, 2, home[2], 0, 0, 0, 1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(second[:7], [0, 3, home[2] + 0.1, 0, 0, 0.5**0.5, 0.5**0.5], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(first[7:], home[7:])
    seen = dog.forward_kinematics(torch.tensor(second), "toeFL").position.numpy()  # the robot's own functions agree
    own = dog.forward_kinematics(torch.tensor(home), "toeFL").position.numpy()
    np.testing.assert_allclose(seen, [-own[1], 3 + own[0], 0.1 + own[2]], rtol=0, atol=1e-14)


URDF = """<robot name="one"><link name="{root}"/><link name="base"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="free" type="{kind}"><origin xyz="0.3 -0.2 1" rpy="0.4 -0.3 0.5"/><parent link="{root}"/><child link="base"/></joint>
</robot>"""
MJCF = """<mujoco><compiler angle="radian" eulerseq="XYZ"/><worldbody><body pos="0.3 -0.2 1" euler="0.4 -0.3 0.5" name="base">
  {joint}<geom size="0.1"/></body></worldbody></mujoco>"""
FILES = {
    "urdf": (URDF.format(root="ground", kind="floating"), None),
    "urdf that is let go": (URDF.format(root="world", kind="fixed"), True),
    "mjcf": (MJCF.format(joint="<freejoint/>"), None),
    "mjcf that is let go": (MJCF.format(joint=""), True),
}


@pytest.mark.parametrize("kind", FILES)
def test_floating_bases_of_files(kind: str, tmp_path: Path) -> None:
    """The pose that the file gives is where it starts, not where its coordinates are zero."""
    text, floats = FILES[kind]
    path = tmp_path / ("robot.urdf" if "urdf" in kind else "robot.xml")
    path.write_text(text)
    robot = cs.load_robot(path, floating_base=floats)
    assert robot.neutral().tolist() == [0, 0, 0, 0, 0, 0, 1]
    pose = robot.forward_kinematics(robot.neutral(), "base")
    assert pose.position.abs().max() == 0 and torch.equal(pose.rotation, torch.eye(3, dtype=D))
    q = cs.World([robot]).initial_state()[:7].numpy()
    np.testing.assert_allclose(q, [*POSITION, *QUATERNION], rtol=0, atol=1e-8)  # digits of the files' angles
    moved = cs.World([robot], poses=[((1, 0, 0), (0, 0, np.pi / 2))]).initial_state()[:7].numpy()
    np.testing.assert_allclose(moved[:3], [1.2, 0.3, 1.0], rtol=0, atol=1e-12)


# --- the same motion, however it was placed -------------------------------------------------------------------------


OBLIQUE = (2.0, -1.0, -9.0)


def scene(contact: str, at: cs.Transform, by_hand: bool = False) -> tuple[cs.World, torch.Tensor]:
    """Return a world with a robot that floats and a capsule on the ground, seen from a frame, and its start: the poses are given
    to the parts, or put into the state. Where pairs are solved by themselves, there is only the capsule."""
    robots = {} if contact == "pairwise" else {"arm": floating_arm()}
    poses = {"arm": at @ cs.Transform.at((0, 0.6, 0.075), (0.2, 0.1, 0.3))} if robots else {}
    block = at @ cs.Transform.at((0, 0, 0.05), (0, 0, 0.3))
    world = cs.World(
        robots,
        [replace(box(pose=None if by_hand else block), shapes=[cs.shapes.capsule(0.05, 0.2, rpy=(0, np.pi / 2, 0))])],
        [cs.Static("ground", cs.shapes.plane(), at)],
        poses={} if by_hand else poses,
        contact=CONTACTS[contact],
        gravity=tuple(at.rotation @ OBLIQUE),
        dt=2e-3,
    )
    state = world.initial_state()
    if by_hand:
        own = floating_arm().model.joints[0].origin
        for name, pose in {"box": block, **{name: pose @ own for name, pose in poses.items()}}.items():
            first = world.coordinates(name)[0].start
            state[first : first + 7] = torch.as_tensor(pose.coordinates)
    state[world.nq :] = 0.5 * torch.sin(torch.arange(world.nv, dtype=D))  # velocities are in the axes of the bodies
    state[world.coordinates("box")[1].start + 2] = -0.5
    return world, state


@pytest.mark.parametrize("contact", CONTACTS)
def test_a_scene_moves_the_same_wherever_it_is_put(contact: str) -> None:
    """Ground, bodies, robot and gravity turned and moved together: the motion turns and moves with them. Poses written into the
    state by hand give the same motion as poses of the parts."""
    motions = []
    for at, by_hand in ((cs.Transform(), False), (PLACED, False), (PLACED, True)):
        world, state = scene(contact, at, by_hand)
        motions.append(world.rollout(state, torch.zeros(30, world.nu, dtype=D)))
        assert world.gaps(motions[-1]).min() < 1e-4, "it should touch the ground"
    plain, placed, hand = motions
    torch.testing.assert_close(placed, hand, rtol=0, atol=1e-12)
    torch.testing.assert_close(placed[:, world.nq :], plain[:, world.nq :], rtol=0, atol=1e-6)  # velocities
    for name in ("box",) if contact == "pairwise" else ("box", "arm"):
        first = world.coordinates(name)[0].start
        for here, there in zip(plain[::10, first : first + 7], placed[::10, first : first + 7], strict=True):
            expected = PLACED @ cs.Transform.at(here[:3], quaternion=here[3:])
            found = cs.Transform.at(there[:3], quaternion=there[3:])
            np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-8)


def test_springs_of_floating_joints_rest_where_they_did() -> None:
    """A link on an isotropic spring, placed by its joint: the world moves it as the robot itself says."""
    link = Link("bob", Inertia(1.2, np.array([0.0, 0.01, 0.02]), 0.02 * np.eye(3)))
    joint = Joint("spring", "floating", "world", "bob", PLACED, stiffness=30.0)
    robot = cs.Robot(Model("bob", (Link("world"), link), (joint,)))
    world = cs.World([robot], poses=[((0.5, 0, 0), (0, 0, 0.3))], gravity=(0, 0, 0), contact=None, dt=1e-6)
    assert world.step(world.initial_state())[7:].abs().max() < 1e-18
    small, still = cs.Transform.at((0.02, -0.03, 0.01), (0.1, -0.2, 0.15)), torch.zeros(6, dtype=D)
    X = cs.Transform.at((0.5, 0, 0), (0, 0, 0.3)) @ PLACED @ small
    found = world.step(torch.cat([torch.tensor(X.coordinates), still]))[7:] / 1e-6
    weightless = cs.Robot(robot.model.with_gravity(np.zeros(3)))
    expected = weightless.forward_dynamics(torch.tensor(small.coordinates), still, still)
    assert expected.abs().min() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


# --- derivatives ----------------------------------------------------------------------------------------------------


def test_gradients_in_the_pose_of_a_body() -> None:
    """Ten steps of a turned box that slides on a slope, in its position and quaternion."""
    slope = cs.Static("slope", cs.shapes.plane(), rpy=(0.2, -0.1, 0))
    R = slope.pose.rotation
    where = cs.Transform(R, R @ np.array([0.1, 0.2, 0.0495])) @ cs.Transform.at(rpy=(0, 0, 0.7))
    world = cs.World(bodies=[box(pose=where)], scenery=[slope], contact=cs.Compliant(), dt=1e-3)
    state = world.initial_state()
    state[7:] = torch.tensor([0.5, 0.2, 0.0, 0.1, 0.2, 0.3])

    def final(position: torch.Tensor, quaternion: torch.Tensor) -> torch.Tensor:
        start = torch.cat([position, quaternion, state[7:].to(position.dtype)])
        return world.rollout(start, torch.zeros(10, 0, dtype=position.dtype))[-1]

    inputs = (state[:3].clone(), state[3:7].clone())
    stiff = Tolerances(finite_difference=1e-5, float32=1.0)
    check_gradients(final, inputs, names=("position", "quaternion"), step=1e-5, float32=False, tolerances=stiff)


@pytest.mark.parametrize("kind", ["translation", "rotation"])
def test_the_pose_of_what_floats_is_no_parameter(kind: str) -> None:
    with pytest.raises(ValueError, match=r"the joint floats: write it into the state.*coordinates\('box'\)"):
        cs.World(bodies=[box()], parameters=[f"{kind}:box/joint"])
    assert cs.World(bodies=[box(joint="revolute")], parameters=[f"{kind}:box/joint"]).nq == 1
