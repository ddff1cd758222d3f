"""Residual torques: where they enter, and that they can be learnt."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from tests.gradients import check_gradients
from tests.robot.test_learnable_gradients import check_parameters, state
from torch import nn

import costate as cs


def augmented() -> cs.Robot:
    robot = cs.load_robot("pendulum2")
    for module in (cs.residual.JointFriction(2, hidden=4), cs.residual.TorqueNetwork(2, 2, hidden=(5,))):
        robot.augment(module)
    return robot


def disturb(robot: cs.Robot) -> cs.Robot:
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in robot.parameters():
            p += 0.3 * torch.randn(p.shape, generator=random, dtype=p.dtype)
    return robot


def test_a_residual_starts_at_zero() -> None:
    robot, plain = augmented(), cs.load_robot("pendulum2")
    q, v, x = state(robot, 4)
    assert torch.equal(robot.inverse_dynamics(q, v, x), plain.inverse_dynamics(q, v, x))
    assert torch.allclose(robot.forward_dynamics(q, v, x), plain.forward_dynamics(q, v, x))


def test_dynamics_agree_with_each_other() -> None:
    robot = disturb(augmented())
    q, v, x = state(robot, 4)
    torque = robot.inverse_dynamics(q, v, x)
    assert not torch.allclose(torque, cs.load_robot("pendulum2").inverse_dynamics(q, v, x))
    assert torch.allclose(robot.forward_dynamics(q, v, torque), x, atol=1e-10)
    M = robot.mass_matrix(q)
    assert torch.allclose((M @ x[..., None])[..., 0] + robot.bias_forces(q, v), torque, atol=1e-10)


def test_gradients_of_networks_and_state() -> None:
    robot = disturb(augmented())
    q, v, x = state(robot, 3)
    check_parameters(robot, lambda r, t: r.forward_dynamics(q.to(t), v.to(t), x.to(t)))
    robots = {kind: copy.deepcopy(robot).to(kind) for kind in (torch.float64, torch.float32)}
    check_gradients(
        lambda q, v, a: robots[q.dtype].inverse_dynamics(q, v, a), (q, v, x), names=("q", "v", "a"), step=5e-3
    )


def test_as_any_module() -> None:
    robot, other = disturb(augmented()), augmented()
    other.load_state_dict(robot.state_dict())
    q, v, x = state(robot, 3)
    assert torch.equal(robot.inverse_dynamics(q, v, x), other.inverse_dynamics(q, v, x))
    assert other.float().inverse_dynamics(q.float(), v.float(), x.float()).dtype == torch.float32


def test_friction_of_any_shape_is_learnt() -> None:
    """Stribeck friction, from torques of a robot that has it."""
    robot = cs.load_robot("pendulum2")
    robot.augment(cs.residual.JointFriction(2))
    random = torch.Generator().manual_seed(0)
    q, v, a = (2 * torch.randn(500, 2, generator=random, dtype=torch.float64) for _ in range(3))
    true = torch.tanh(20 * v) * (0.5 + 0.5 * torch.exp(-((v / 0.3) ** 2))) + 0.2 * v
    target = robot.inverse_dynamics(q, v, a).detach() + true
    optimizer = torch.optim.Adam(robot.parameters(), lr=2e-2)
    for _ in range(400):
        optimizer.zero_grad()
        loss = ((robot.inverse_dynamics(q, v, a) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-2 * float((true**2).mean())


def test_what_is_refused(tmp_path: Path) -> None:
    robot = cs.load_robot("pendulum2")
    with pytest.raises(ValueError, match=r"q, v, a by these names.*input"):
        robot.augment(nn.Linear(2, 2))

    class OfAcceleration(nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            return a

    robot.augment(OfAcceleration())
    q, v, x = state(robot, 2)
    robot.inverse_dynamics(q, v, x)
    with pytest.raises(ValueError, match="depends on accelerations"):
        robot.forward_dynamics(q, v, x)
    with pytest.warns(UserWarning, match="state_dict"):
        robot.save_urdf(tmp_path / "x.urdf")
