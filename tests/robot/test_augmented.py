"""Networks in the functions of a robot: identities of dynamics, gradients, and that silence changes nothing."""

from __future__ import annotations

import copy

import torch
from tests.gradients import check_gradients
from tests.robot.test_learnable_gradients import check_parameters, state

import costate as cs


def augmented() -> cs.Robot:
    robot = cs.load_robot("pendulum2").double()
    robot.augment("joint_torque", on="joint_2", inputs=["speed", "position", "load", "speed:joint_1"], hidden=(3,))
    robot.augment("drag", on="link_2", constraints="dissipative", hidden=(3,))
    return robot


def disturb(robot: cs.Robot) -> cs.Robot:
    random = torch.Generator().manual_seed(0)
    for network in robot.networks.values():
        network.set_vector(network.vector().detach() + torch.randn(network.size, generator=random, dtype=torch.float64))
    return robot


def test_zero_weights_change_nothing() -> None:
    robot, plain = augmented(), cs.load_robot("pendulum2")
    for network in robot.networks.values():
        network.set_vector(torch.zeros(network.size, dtype=torch.float64))
    q, v, x = state(robot, 4)
    for function in ("inverse_dynamics", "forward_dynamics"):  # but rounding: the code is another one
        found, expected = (getattr(r, function)(q, v, x) for r in (robot, plain))
        assert torch.allclose(found, expected, rtol=1e-13, atol=1e-14)
    assert torch.allclose(robot.bias_forces(q, v), plain.bias_forces(q, v), rtol=1e-13, atol=1e-14)


def test_dynamics_agree_with_each_other_and_with_torch() -> None:
    robot, plain = disturb(augmented()), cs.load_robot("pendulum2")
    q, v, x = state(robot, 4)
    torque = robot.inverse_dynamics(q, v, x)
    assert torch.allclose(robot.forward_dynamics(q, v, torque), x, atol=1e-10)
    M = robot.mass_matrix(q)
    assert torch.allclose((M @ x[..., None])[..., 0] + robot.bias_forces(q, v), torque, atol=1e-10)
    friction, water = robot.networks.values()
    load = -plain.bias_forces(q, v)
    push = friction(torch.stack([v[..., 1], q[..., 1], load[..., 1], v[..., 0]], -1))
    R = plain.forward_kinematics(q, "link_2").rotation
    J = plain.jacobian(q, "link_2")
    com = R @ torch.tensor(plain.model.links[2].inertia.com)
    at_com = J[..., :3, :] - torch.linalg.cross(com[..., None].expand_as(J[..., 3:, :]), J[..., 3:, :], dim=-2)
    velocity = R.mT @ at_com @ v[..., None]
    force = (R @ water(velocity[..., 0], velocity[..., 0])[..., None]).mT @ at_com
    total = force[..., 0, :] + torch.cat([torch.zeros_like(push), push], -1)
    assert torch.allclose(plain.inverse_dynamics(q, v, x) - total, torque, atol=1e-10)


def test_gradients_of_weights_and_state() -> None:
    robot = disturb(augmented())
    q, v, x = state(robot, 3)
    check_parameters(robot, lambda r, t: r.forward_dynamics(q.to(t), v.to(t), x.to(t)))
    robots = {kind: copy.deepcopy(robot).to(kind) for kind in (torch.float64, torch.float32)}
    check_gradients(lambda q, v, t: robots[q.dtype].forward_dynamics(q, v, t), (q, v, x), names=("q", "v", "tau"))
    check_gradients(lambda q, v, a: robots[q.dtype].inverse_dynamics(q, v, a), (q, v, x), names=("q", "v", "a"))


def test_a_robot_that_learns_a_parameter_and_has_a_network() -> None:
    robot = disturb(augmented())
    q, v, x = state(robot, 3)
    before = robot.forward_dynamics(q, v, x)
    robot.learn("link_2", "mass", cs.params.Positive())
    assert torch.allclose(robot.forward_dynamics(q, v, x), before, rtol=1e-12)
    robot.forward_dynamics(q, v, x).square().sum().backward()
    assert all(p.grad is not None and bool((p.grad != 0).any()) for p in robot.parameters())
