"""Iterative LQR against Riccati equations, IPOPT and the gradient of a rollout."""

from __future__ import annotations

import casadi as ca
import pytest
import torch
from casadi import SX
from scipy.linalg import solve_discrete_are
from tests.optimise.cart import LAST, A, B, Q, R, cart_cost, cart_world

import costate as cs
from costate.kernel import Kernel
from costate.optimise import Cost, DirectOptions, ILQROptions, direct, ilqr
from costate.physics.integrate import integrate

F64 = torch.float64
ORIGIN = {"goal": torch.zeros(1, dtype=F64)}
EXACT = ILQROptions(regularization=0.0, tolerance=1e-12)


@pytest.fixture(scope="module")
def cart() -> cs.World:
    return cart_world()


@pytest.fixture(scope="module")
def cost(cart: cs.World) -> Cost:
    return cart_cost(cart)


@pytest.fixture(scope="module")
def pendulum() -> cs.World:
    return cs.World(robots=[cs.load_robot("pendulum1")], contact=None, dt=0.05)


@pytest.fixture(scope="module")
def swing(pendulum: cs.World) -> Cost:
    return Cost(
        pendulum, lambda s: ca.vertcat(0.1 * s.u, 0.05 * s.v), lambda s: ca.vertcat(20 * (s.q - ca.pi), 5 * s.v)
    )


def test_linear_quadratic_problem_is_solved_in_one_iteration(cart: cs.World, cost: Cost) -> None:
    """Far from the end the gains are those of the algebraic Riccati equation, and the cost is x P x / 2."""
    x0 = torch.tensor([1.0, -0.5], dtype=F64)
    found = ilqr(cart, cost, x0, torch.randn(400, 1, dtype=F64), EXACT, inputs=ORIGIN)
    assert found.converged and found.history[1].loss == pytest.approx(float(found.loss), rel=1e-12)
    P = torch.tensor(solve_discrete_are(A, B, Q, R))
    K = -torch.linalg.solve(torch.tensor(R + B.T @ P.numpy() @ B), torch.tensor(B.T @ P.numpy() @ A))
    assert torch.allclose(found.extra["gains"][0], K, rtol=1e-9)
    assert float(found.loss) == pytest.approx(float(x0 @ P @ x0 / 2), rel=1e-9)


def test_gains_of_a_short_horizon(cart: cs.World, cost: Cost) -> None:
    found = ilqr(cart, cost, torch.ones(2, dtype=F64), torch.zeros(3, 1, dtype=F64), EXACT, inputs=ORIGIN)
    P = torch.tensor(LAST)
    a, b, q, r = (torch.tensor(x) for x in (A, B, Q, R))
    for t in reversed(range(3)):
        K = -torch.linalg.solve(r + b.T @ P @ b, b.T @ P @ a)
        P = q + a.T @ P @ (a + b @ K)
        assert torch.allclose(found.extra["gains"][t], K, rtol=1e-9)


def test_infeasible_guess_of_a_linear_problem_closes_in_one_iteration(cart: cs.World, cost: Cost) -> None:
    x0, u0 = torch.tensor([1.0, 0.3], dtype=F64), torch.zeros(30, 1, dtype=F64)
    guess = torch.randn(31, 2, dtype=F64)
    shot = ilqr(cart, cost, x0, u0, EXACT, inputs=ORIGIN, states0=guess)
    single = ilqr(cart, cost, x0, u0, EXACT, inputs=ORIGIN)
    assert shot.history[1].detail["gap"] < 1e-12
    assert torch.allclose(shot.x, single.x, atol=1e-9)
    assert torch.allclose(shot.extra["states"], cart.rollout(x0, shot.x), atol=1e-12)


@pytest.mark.parametrize("bound", [0.6, 0.2])
def test_bounds_agree_with_ipopt(cart: cs.World, cost: Cost, bound: float) -> None:
    x0, u0 = torch.zeros(2, dtype=F64), torch.zeros(20, 1, dtype=F64)
    inputs = {"goal": torch.ones(1, dtype=F64)}
    box = (-bound, bound)
    ours = ilqr(cart, cost, x0, u0, ILQROptions(bounds=box, tolerance=1e-13), inputs=inputs)
    theirs = direct(cart, cost, x0, u0, DirectOptions(method="shooting", bounds=box, tolerance=1e-10), inputs=inputs)
    assert ours.converged and theirs.converged
    assert ours.x.abs().max() <= bound
    # IPOPT's barrier keeps it 1e-8 inside of the bounds.
    assert torch.allclose(ours.x, theirs.x, atol=1e-5)
    assert float(ours.loss) == pytest.approx(float(theirs.loss), rel=1e-7)


def test_effort_limits_are_bounds() -> None:
    world = cart_world(effort=0.3)
    found = ilqr(world, cart_cost(world), torch.ones(2, dtype=F64), torch.zeros(20, 1, dtype=F64), inputs=ORIGIN)
    assert found.converged
    assert float(found.x.abs().max()) == pytest.approx(0.3, rel=1e-6)


def test_nonlinear_problems_side_by_side(pendulum: cs.World, swing: Cost) -> None:
    """Problems are solved together as alone and keep to bounds; the cost's gradient vanishes for free controls."""
    x0 = pendulum.initial_state(3)
    x0[:, 0] += torch.tensor([0.0, 0.2, -0.3])
    u0 = torch.zeros(60, 3, 1, dtype=F64)
    options = ILQROptions(iterations=400, tolerance=1e-8, bounds=(-2.0, 2.0))
    found = ilqr(pendulum, swing, x0, u0, options)
    assert found.converged and found.x.abs().max() <= 2.0
    alone = ilqr(pendulum, swing, x0[1], u0[:, 1], options)
    assert torch.allclose(alone.x, found.x[:, 1], atol=1e-9)

    def gradient(controls: torch.Tensor) -> torch.Tensor:
        u = controls.clone().requires_grad_()
        states = pendulum.rollout(x0, u).movedim(0, 1)
        return torch.autograd.grad(swing.value(states, u.movedim(0, 1), {}).sum(), u)[0]

    inside = found.x.abs() < 2 - 1e-6
    assert inside.any() and (gradient(found.x) * inside).norm() < 1e-3 * gradient(u0).norm()


def test_infeasible_guess_of_a_swing_up(pendulum: cs.World, swing: Cost) -> None:
    guess = torch.zeros(61, 2, dtype=F64)
    guess[:, 0] = torch.linspace(0, torch.pi, 61)
    x0 = pendulum.initial_state()
    found = ilqr(pendulum, swing, x0, torch.zeros(60, 1, dtype=F64), ILQROptions(iterations=200), states0=guess)
    assert found.converged and found.extra["gap"] < 1e-9
    assert torch.allclose(found.extra["states"], pendulum.rollout(x0, found.x), atol=1e-9)
    assert abs(found.extra["states"][-1, 0] - torch.pi) < 0.01


def test_gains_hold_a_disturbed_motion(pendulum: cs.World, swing: Cost) -> None:
    found = ilqr(pendulum, swing, pendulum.initial_state(), torch.zeros(60, 1, dtype=F64), ILQROptions(iterations=200))
    states, gains = found.extra["states"], found.extra["gains"]
    start = pendulum.initial_state() + torch.tensor([0.05, 0.0])
    held = pendulum.rollout(start, lambda x, t: found.x[t] + gains[t] @ (x - states[t]), steps=60)
    left = pendulum.rollout(start, found.x)
    assert (held[-1, 0] - torch.pi).abs() < 0.1 * (left[-1, 0] - torch.pi).abs()


def test_expansion_of_a_cost_in_the_tangent_space() -> None:
    """Gradient and Hessian of cost(integrate(q, d)) at d = 0, for a free body, match torch's own derivatives."""
    world = cs.World(bodies=[cs.Body("box", [cs.shapes.sphere(0.1)], mass=1.0)], contact=None)
    cost = Cost(
        world,
        lambda s: (
            s.rotation("box/body")[0, 2] + ca.sumsqr(s.position("box/body") - 1) + ca.sumsqr(s.velocity("box/body"))
        ),
        least_squares=False,
    )
    x, d = SX.sym("x", world.nx), SX.sym("d", 2 * world.nv)
    moved = ca.vertcat(integrate(world.setup.scene.model, x[:7], d[:6]), x[7:] + d[6:])
    retract = Kernel("retract", {"x": x, "d": d}, {"moved": moved})
    state = world.initial_state()
    state[3:7] = torch.nn.functional.normalize(torch.tensor([0.3, -0.2, 0.5, 0.7], dtype=F64), dim=0)
    state[7:] = torch.linspace(-1, 1, 6)
    no_control = torch.zeros(0, dtype=F64)

    def value(d: torch.Tensor) -> torch.Tensor:
        after = retract(x=state, d=d).moved
        return cost.stage.value([after, no_control] if world.nu else [after])

    zero = torch.zeros(12, dtype=F64)
    gradient, hessian = cost.stage.expansion([state])
    assert torch.allclose(gradient, torch.func.jacrev(value)(zero), atol=1e-10)
    assert torch.allclose(hessian, torch.func.hessian(value)(zero), atol=1e-9)


def test_errors(cart: cs.World, cost: Cost) -> None:
    x0, u0 = torch.zeros(2, dtype=F64), torch.zeros(5, 1, dtype=F64)
    with pytest.raises(ValueError, match=r"state0 has shape \(3,\); expected \(2,\)"):
        ilqr(cart, cost, torch.zeros(3, dtype=F64), u0)
    with pytest.raises(ValueError, match=r"controls0 has shape \(5, 1\); expected \(T, B, 1\)"):
        ilqr(cart, cost, x0[None], u0)
    with pytest.raises(ValueError, match="one state more than controls"):
        ilqr(cart, cost, x0, u0, states0=torch.zeros(5, 2, dtype=F64))
    with pytest.raises(ValueError, match="given none, expected goal"):
        ilqr(cart, cost, x0, u0)
    with pytest.raises(ValueError, match="lowest controls"):
        ilqr(cart, cost, x0, u0, ILQROptions(bounds=(1.0, -1.0)), inputs=ORIGIN)
    with pytest.raises(ValueError, match="a column of residuals"):
        Cost(cart, lambda s: ca.horzcat(s.q, s.v))
    with pytest.raises(KeyError, match="no input 'aim'"):
        Cost(cart, lambda s: s["aim"])
