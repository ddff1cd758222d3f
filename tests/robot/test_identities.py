"""What must hold of any robot, on compiled code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.physics.strategies import random_rotation
from tests.robot.reference import random_states

import costate as cs
from costate.model import Transform

TOLERANCE = 1e-9
ROBOTS = ["ur5", "panda", "laikago"]
"""An arm, one with a mimic joint and friction, and a floating base."""


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> cs.Robot:
    return cs.load_robot(request.param)


def assert_close(found: torch.Tensor, expected: torch.Tensor, tolerance: float = TOLERANCE) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(1.0, float(expected.abs().max())))


def test_inverse_dynamics_undoes_forward_dynamics(robot: cs.Robot) -> None:
    x = random_states(robot.model, 16)
    push = {robot.link_names[-1]: x["wrench"]}
    a = robot.forward_dynamics(x["q"], x["v"], x["tau"], push)
    assert_close(robot.inverse_dynamics(x["q"], x["v"], a, push), x["tau"])


def test_equation_of_motion(robot: cs.Robot) -> None:
    """M a + h = tau + J^T f."""
    x = random_states(robot.model, 16)
    tip = robot.link_names[-1]
    J = robot.jacobian(x["q"], tip)
    tau = robot.inverse_dynamics(x["q"], x["v"], x["a"], {tip: x["wrench"]})
    left = torch.einsum("bij,bj->bi", robot.mass_matrix(x["q"]), x["a"]) + robot.bias_forces(x["q"], x["v"])
    assert_close(left, tau + torch.einsum("bij,bi->bj", J, x["wrench"]))


def test_velocities_and_accelerations_are_jacobians_times_those_of_joints(robot: cs.Robot) -> None:
    x = random_states(robot.model, 16)
    q, v, a, tip = x["q"], x["v"], x["a"], robot.link_names[-1]
    J, J_dot = robot.jacobian(q, tip), robot.jacobian_dot(q, v, tip)
    assert_close(robot.link_velocity(q, v, tip), (J @ v[..., None])[..., 0])
    assert_close(robot.link_acceleration(q, v, a, tip), (J @ a[..., None] + J_dot @ v[..., None])[..., 0])


def test_energy_momentum_and_mass_matrix_agree(robot: cs.Robot) -> None:
    x = random_states(robot.model, 16)
    q, v = x["q"], x["v"]
    M = robot.mass_matrix(q)
    assert_close(M, M.mT, 0.0)
    assert bool((torch.linalg.eigvalsh(M) > 0).all())
    assert_close(robot.kinetic_energy(q, v), torch.einsum("bi,bij,bj->b", v, M, v) / 2)
    A = robot.momentum_matrix(q)
    assert_close(robot.momentum(q, v), (A @ v[..., None])[..., 0])
    mass = sum(link.inertia.mass for link in moving_links(robot))
    assert_close(A[:, :3], mass * robot.com_jacobian(q))


def moving_links(robot: cs.Robot) -> list:
    """Links that a joint with coordinates stands between and the root."""
    moving: set[str] = set()
    for joint in robot.model.joints:
        if joint.kind != "fixed" or joint.parent in moving:
            moving.add(joint.child)
    return [link for link in robot.model.links if link.name in moving]


def tangent(robot: cs.Robot, fn, q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """d fn / dt along the motion with velocity v."""
    zero = torch.zeros((), dtype=torch.float64)
    return torch.func.jvp(lambda t: fn(robot.integrate(q, v * t)), (zero,), (torch.ones_like(zero),))[1]


def test_rate_of_the_mass_matrix() -> None:
    """dM/dt = C + C^T, with C of Christoffel symbols, which exist for joints with one coordinate each: c = C v."""
    robot = cs.load_robot("ur5")
    x = {k: value[0] for k, value in random_states(robot.model, 1).items()}
    q, v = x["q"], x["v"]
    dM = torch.func.jacfwd(robot.mass_matrix)(q)  # (i, j, k): d M_ij / d q_k
    C = 0.5 * (dM + dM.permute(0, 2, 1) - dM.permute(2, 1, 0)) @ v
    assert_close(C + C.T, tangent(robot, robot.mass_matrix, q, v))
    coriolis = robot.bias_forces(q, v) - robot.bias_forces(q, torch.zeros_like(v))
    assert_close(coriolis, C @ v)


def test_gravity_torques_are_the_slope_of_the_potential(robot: cs.Robot) -> None:
    x = {k: value[0] for k, value in random_states(robot.model, 1).items()}
    slope = tangent(robot, robot.potential_energy, x["q"], x["v"])
    springs = robot.bias_forces(x["q"], torch.zeros_like(x["v"]))  # at rest: gravity and springs
    assert_close(slope, (springs * x["v"]).sum())


def test_power_balance(robot: cs.Robot) -> None:
    """What flows in through torques and wrenches, less what passive joints take, is the rate of the energy."""
    x = {k: value[0] for k, value in random_states(robot.model, 1).items()}
    q, v, tau, tip = x["q"], x["v"], x["tau"], robot.link_names[-1]
    a = robot.forward_dynamics(q, v, tau, {tip: x["wrench"]})

    def energy(t: torch.Tensor) -> torch.Tensor:
        there = robot.integrate(q, v * t)
        return robot.kinetic_energy(there, v + a * t) + robot.potential_energy(there)

    zero = torch.zeros((), dtype=torch.float64)
    rate = torch.func.jvp(energy, (zero,), (torch.ones_like(zero),))[1]
    lossless = robot.kernel("bias_forces", passive=None).apply([q, v])[0]
    springs = robot.bias_forces(q, torch.zeros_like(v)) - robot.gravity_torques(q)
    lost = ((robot.bias_forces(q, v) - lossless - springs) * v).sum()
    power = (tau * v).sum() + (x["wrench"] * robot.link_velocity(q, v, tip)).sum()
    assert float(lost) >= 0
    assert_close(rate, power - lost, 1e-8)


def test_the_world_may_be_turned() -> None:
    """Turning the robot's foot and gravity together changes no torque."""
    robot = cs.load_robot("ur5")
    R = random_rotation(np.random.default_rng(2))
    first, *others = robot.model.joints
    turned_foot = replace(first, origin=Transform(R @ first.origin.rotation, R @ first.origin.translation))
    turned = cs.Robot(replace(robot.model, joints=(turned_foot, *others)).with_gravity(R @ robot.model.gravity))
    x = random_states(robot.model, 8)
    for name in ("inverse_dynamics", "forward_dynamics"):
        assert_close(getattr(turned, name)(x["q"], x["v"], x["a"]), getattr(robot, name)(x["q"], x["v"], x["a"]))


def test_a_free_robot_may_be_moved() -> None:
    """Where a floating base stands and which way it heads changes no acceleration."""
    robot = cs.load_robot("laikago")
    x = random_states(robot.model, 8)
    moved = x["q"].clone()
    s = torch.tensor(0.6, dtype=torch.float64)
    cos, sin = s.cos(), s.sin()  # half the angle of a turn about z
    px, py, pz, qx, qy, qz, qw = x["q"][:, :7].unbind(-1)
    turn = torch.stack([cos * qx - sin * qy, cos * qy + sin * qx, cos * qz + sin * qw, cos * qw - sin * qz], -1)
    moved[:, :7] = torch.cat([torch.stack([px + 3, py - 2, pz + 5], -1), turn], -1)
    assert_close(robot.forward_dynamics(moved, x["v"], x["tau"]), robot.forward_dynamics(x["q"], x["v"], x["tau"]))
