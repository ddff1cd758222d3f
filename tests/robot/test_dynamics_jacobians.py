"""Jacobians of dynamics as functions of tensors."""

from __future__ import annotations

import pytest
import torch
from tests.physics.strategies import tree_of
from tests.robot.reference import random_states

import costate as cs

TOLERANCE = 1e-10
"""Relative to the largest entry: rounding, times the condition of small mass matrices."""


@pytest.fixture(scope="module")
def robot() -> cs.Robot:
    return cs.Robot(tree_of("floating", "revolute", "prismatic"))


def assert_close(found: torch.Tensor, expected: torch.Tensor, tolerance: float = TOLERANCE) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * float(expected.abs().max()))


def test_forward_dynamics(robot: cs.Robot) -> None:
    """Those of torch.func, in the tangent space, for any batch and with a push."""
    x = random_states(robot.model, 6)
    q, v, tau = (x[k].reshape(2, 3, -1) for k in ("q", "v", "tau"))
    push = {"link2": x["wrench"].reshape(2, 3, 6)}
    found = robot.forward_dynamics_jacobians(q, v, tau, push)
    assert_close(found.a, robot.forward_dynamics(q, v, tau, push))
    i = 1, 2
    zero, one = torch.zeros(robot.nv), {"link2": push["link2"][i]}
    moved = torch.func.jacrev(
        lambda d, v, tau: robot.forward_dynamics(robot.integrate(q[i], d), v, tau, one), argnums=(0, 1, 2)
    )(zero.double(), v[i], tau[i])
    for mine, theirs in zip(found[1:], moved, strict=True):
        assert mine.shape == (2, 3, robot.nv, robot.nv)
        assert_close(mine[i], theirs)


def test_inverse_dynamics(robot: cs.Robot) -> None:
    """They undo those of forward dynamics: dtau/da is M, and M da/dq = -dtau/dq."""
    x = random_states(robot.model, 5)
    forward = robot.forward_dynamics_jacobians(x["q"], x["v"], x["tau"])
    back = robot.inverse_dynamics_jacobians(x["q"], x["v"], forward.a)
    assert_close(back.dtau_da, robot.mass_matrix(x["q"]))
    assert_close(back.dtau_da @ forward.da_dq, -back.dtau_dq)
    assert_close(back.dtau_da @ forward.da_dv, -back.dtau_dv)
    assert_close(back.dtau_da @ forward.da_dtau, torch.eye(robot.nv).double().expand(5, -1, -1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_one_sample_has_the_bits_of_a_batch(robot: cs.Robot, dtype: torch.dtype) -> None:
    """It is computed by shorter vectors."""
    x = random_states(robot.model, 4)
    q, v, tau = (x[k].to(dtype) for k in ("q", "v", "tau"))
    batch = robot.forward_dynamics_jacobians(q, v, tau)
    for one in (
        robot.forward_dynamics_jacobians(q[2], v[2], tau[2]),
        robot.forward_dynamics_jacobians(q[2:3], v[2:3], tau[2:3]),
    ):
        for a, b in zip(one, batch, strict=True):
            assert a.dtype is dtype and torch.equal(a.reshape(b[2].shape), b[2])


def test_learnable_parameters_and_second_derivatives(robot: cs.Robot) -> None:
    """Jacobians follow a parameter that is learnt, and can be differentiated in it and in q."""
    learner = cs.Robot(robot.model)
    mass = learner.learn("link2", "mass", cs.params.Positive())
    x = random_states(robot.model, 3)
    q, v, tau = x["q"].requires_grad_(), x["v"], x["tau"]
    sum_of = learner.forward_dynamics_jacobians(q, v, tau).da_dv.square().sum()
    parameter = next(mass.parameters())
    by_q, by_mass = torch.autograd.grad(sum_of, [q, parameter])

    def shifted(dq: torch.Tensor, dp: float) -> torch.Tensor:
        with torch.no_grad():
            parameter.add_(dp)
            found = learner.forward_dynamics_jacobians(q + dq, v, tau).da_dv.square().sum()
            parameter.sub_(dp)
        return found

    h, way = 1e-6, torch.randn_like(q)
    slope = (shifted(h * way, 0.0) - shifted(-h * way, 0.0)) / (2 * h)
    torch.testing.assert_close(slope, (by_q * way).sum(), rtol=1e-5, atol=1e-5 * float(by_q.abs().max()))
    slope = (shifted(torch.zeros_like(q), h) - shifted(torch.zeros_like(q), -h)) / (2 * h)
    torch.testing.assert_close(slope, by_mass.sum(), rtol=1e-5, atol=1e-5 * float(by_mass.abs().max()))


def test_one_joint_keeps_its_matrix() -> None:
    robot = cs.Robot(tree_of("revolute"))
    x = random_states(robot.model, 2)
    found = robot.forward_dynamics_jacobians(x["q"], x["v"], x["tau"])
    assert found.a.shape == (2, 1) and all(J.shape == (2, 1, 1) for J in found[1:])


def test_networks_are_refused() -> None:
    robot = cs.Robot(tree_of("revolute"))
    robot.augment(cs.residual.JointFriction(1, hidden=2))
    with pytest.raises(ValueError, match="networks that `augment` added"):
        robot.forward_dynamics_jacobians(torch.zeros(1), torch.zeros(1), torch.zeros(1))
    robot = cs.Robot(tree_of("revolute"))
    robot.learn("joint0", "friction", cs.params.OfState(torch.nn.Linear(2, 1)))
    with pytest.raises(ValueError, match="learnable friction of 'joint0' depends on the state"):
        robot.inverse_dynamics_jacobians(torch.zeros(1), torch.zeros(1), torch.zeros(1))
