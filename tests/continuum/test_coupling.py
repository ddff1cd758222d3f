"""A robot among points on springs: one program, against a loop of the world's own steps and torch."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import uniform
from torch import Tensor

import costate as cs
from costate.continuum.coupling import POSE, WorldLinks, point_velocity, wrench_at
from costate.kernel import Kernel
from costate.kernel.fields import OWN, TOTAL, FieldBuilder

POINTS, STEPS, DT, REACH = 37, 8, 5e-3, 0.6


def worlds() -> dict[str, cs.World]:
    ur5 = cs.load_robot("ur5")
    floor = cs.Static("floor", cs.shapes.plane())
    return {
        "free": cs.World([ur5], actuators=cs.Torque(), contact=None, dt=DT),
        "hard": cs.World([ur5], scenery=[floor], actuators=cs.Torque(), contact=cs.Hard(), dt=DT),
    }


def push(x: ca.SX, v: ca.SX, anchor: ca.SX, pose: ca.SX, k: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """A point on a spring, pushed away from the origin of the link, and dragged along by it."""
    away = x - pose[:3]
    near = ca.exp(-ca.dot(away, away) / REACH**2)
    force = near * (k[1] * away - k[2] * (v - point_velocity(pose, x)))
    after = v + DT * (k[0] * (anchor - x) + force)
    return x + DT * after, after, wrench_at(pose, x, -force)


def kernel(world: cs.World) -> Kernel:
    links = WorldLinks(world, ("ur5/tool0",))
    f = FieldBuilder("step")
    points = f.entities("points", POINTS)
    (state,) = f.inputs(world.nx)
    x, v = f.carried(points, 3), f.carried(points, 3)
    (control,) = f.inputs(world.nu)
    anchor = f.carried(points, 3)
    (k,) = f.inputs(3)
    (pose,) = links.poses(f, state)
    new_x, new_v, wrench = f.for_each(points, push, [x, v, anchor, pose, k], [OWN, OWN, TOTAL])
    body = f.program(links.step(f, state, control, [wrench]), new_x.var, new_v.var)
    g = FieldBuilder("robot among points")
    state = g.input("state", world.nx)
    x, v, anchor = g.field("x", points, 3), g.field("v", points, 3), g.field("anchor", points, 3)
    control, k = g.input("control", (STEPS, world.nu)), g.input("k", 3)
    final, _, _ = g.scan(body, STEPS, [state, x.var, v.var], [control], [anchor.var, k])
    g.output("state", final[0])
    g.field_output("x", g.as_field(final[1], points, 3))
    return g.kernel()


def looped(world: cs.World, state: Tensor, x: Tensor, v: Tensor, control: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    anchor, robot = x, cs.load_robot("ur5")
    for u in control:
        q, qd = state[: world.nq], state[world.nq :]
        p, _ = world.link_pose(state, "ur5/tool0")
        J = robot.jacobian(q, "tool0")
        twist = J @ qd
        away = x - p
        near = torch.exp(-(away**2).sum(-1, keepdim=True) / REACH**2)
        point = twist[:3] + torch.linalg.cross(twist[3:].expand_as(away), away)
        force = near * (k[1] * away - k[2] * (v - point))
        v = v + DT * (k[0] * (anchor - x) + force)
        wrench = -torch.cat([force.sum(0), torch.linalg.cross(away, force).sum(0)])
        state = world.step(state, u, wrenches={"ur5/tool0": wrench})
        x = x + DT * v
    return state, x


@pytest.mark.parametrize("name", ["free", pytest.param("hard", marks=pytest.mark.study)])
def test_both_ways(name: str) -> None:
    """States, points and gradients: of the robot with respect to the points, and of the points with respect to the controls."""
    world = worlds()[name]
    compiled = kernel(world)
    q = torch.tensor([0.3, -1.0, 1.2, 0.4, 0.5, 0.1], dtype=torch.float64)
    state = torch.cat([q, uniform(-0.5, 0.5, 6, seed=1)])
    tool, _ = world.link_pose(state, "ur5/tool0")
    x = tool + uniform(-0.3, 0.3, POINTS, 3, seed=2)
    v, control = uniform(-0.2, 0.2, POINTS, 3, seed=3), uniform(-0.02, 0.02, STEPS, 6, seed=4)
    k = torch.tensor([30.0, 0.5, 0.05], dtype=torch.float64)

    def run(state: Tensor, x: Tensor, v: Tensor, control: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        return tuple(compiled(state=state, x=x, v=v, anchor=x, control=control, k=k))

    check_gradients(run, (state, x, v, control, k), reference=lambda *a: looped(world, *a), directions=1)
    left = [t.clone().requires_grad_() for t in (state, x, v, control, k)]
    right = [t.clone().requires_grad_() for t in (state, x, v, control, k)]
    weights = uniform(-1, 1, world.nx, seed=5), uniform(-1, 1, POINTS, 3, seed=6)
    for inputs, outs in ((left, run(*left)), (right, looped(world, *right))):
        ((outs[0] * weights[0]).sum() + (outs[1] * weights[1]).sum()).backward()
        assert all(t.grad is not None and t.grad.abs().max() > 0 for t in inputs)
    for a, b in zip(left, right, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-9, atol=1e-9)


def test_a_pose_has_what_it_says() -> None:
    world = worlds()["free"]
    f = FieldBuilder("pose")
    x = f.input("x", world.nx)
    f.output("pose", WorldLinks(world, ("ur5/tool0",)).poses(f, x)[0])
    state = uniform(-1, 1, world.nx, seed=9)
    pose = f.kernel()(x=state).pose
    p, R = world.link_pose(state, "ur5/tool0")
    assert pose.shape == (POSE,)
    np.testing.assert_allclose(pose[:3], p, atol=1e-14)
    np.testing.assert_allclose(pose[3:12].reshape(3, 3), R, atol=1e-14)
