"""Direct optimal control against closed forms."""

from __future__ import annotations

import casadi as ca
import pytest
import torch
from tests.learn.cart import cart_world

import costate as cs
from costate.learn import Cost, DirectOptions, direct

F64 = torch.float64


@pytest.fixture(scope="module")
def cart() -> cs.World:
    return cart_world(effort=2.0)


def test_minimum_time_of_a_double_integrator(cart: cs.World) -> None:
    """Bang-bang: 2 sqrt(distance / acceleration), full force forward, then backward."""
    goal = torch.tensor([3.0, 0.0], dtype=F64)
    start, u0 = torch.zeros(2, dtype=F64), torch.zeros(20, 1, dtype=F64)
    found = direct(cart, None, start, u0, DirectOptions(minimum_time=True), final_state=goal)
    assert found.converged
    assert found.extra["duration"] == pytest.approx(2 * (3 / 2) ** 0.5, rel=1e-6)
    assert torch.allclose(found.x[:, 0], torch.tensor([2.0] * 10 + [-2.0] * 10, dtype=F64), atol=1e-4)
    assert torch.allclose(found.extra["states"][-1], goal, atol=1e-8)
    assert found.extra["times"][-1] == found.extra["duration"]
    assert len(found.history) == found.iterations + 1 and found.history[-1].detail["defect"] < 1e-8


def test_speed_limit_makes_minimum_time_longer(cart: cs.World) -> None:
    """Up to the speed limit v, along, and down again: distance / v + v / acceleration."""
    limits = [float("inf"), 1.0]
    options = DirectOptions(minimum_time=True, state_bounds=([-x for x in limits], limits), duration=3.0)
    goal = torch.tensor([3.0, 0.0], dtype=F64)
    found = direct(cart, None, torch.zeros(2, dtype=F64), torch.zeros(28, 1, dtype=F64), options, final_state=goal)
    assert found.extra["duration"] == pytest.approx(3.0 / 1.0 + 1.0 / 2.0, rel=1e-6)


def test_least_effort_with_a_free_end(cart: cs.World) -> None:
    """To x = 1 in the time 1 with any speed at the end, minimising the integral of u^2: u = 3 (1 - t), x' at the end 1.5."""
    steps = 40
    cost = Cost(cart, lambda s: s.u)
    goal = torch.tensor([0.6, float("nan")], dtype=F64)
    options = DirectOptions(duration=1.0)
    found = direct(cart, cost, torch.zeros(2, dtype=F64), torch.zeros(steps, 1, dtype=F64), options, final_state=goal)
    middle = (torch.arange(steps, dtype=F64) + 0.5) / steps
    assert torch.allclose(found.x[:, 0], 0.6 * 3 * (1 - middle), atol=1e-3)
    assert float(found.extra["states"][-1, 1]) == pytest.approx(0.9, abs=1e-3)


def test_collocation_is_a_motion_of_the_pendulum() -> None:
    """A fine rollout of the same controls by RK4 ends where the collocated motion says."""
    options = {"robots": [cs.load_robot("pendulum1")], "contact": None, "integrator": "rk4"}
    world = cs.World(**options, dt=0.05, substeps=10)
    cost = Cost(world, lambda s: 0.1 * s.u, lambda s: ca.vertcat(5 * (s.q - 2), s.v))
    start = world.initial_state()
    found = direct(world, cost, start, torch.zeros(20, 1, dtype=F64))
    assert found.converged
    assert torch.allclose(found.extra["states"], world.rollout(start, found.x), atol=1e-4)


def test_errors(cart: cs.World) -> None:
    start, u0 = torch.zeros(2, dtype=F64), torch.zeros(5, 1, dtype=F64)
    with pytest.raises(ValueError, match="nothing to minimise"):
        direct(cart, None, start, u0)
    with pytest.raises(ValueError, match="use method='collocation'"):
        direct(cart, None, start, u0, DirectOptions(method="shooting", minimum_time=True))
    with pytest.raises(ValueError, match="unknown method 'magic'"):
        direct(cart, None, start, u0, DirectOptions(method="magic"))
    with pytest.raises(ValueError, match=r"expected \(2,\) and \(T, 1\)"):
        direct(cart, None, start[None], u0, DirectOptions(minimum_time=True))
    hard = cs.World(robots=[cs.load_robot("pendulum1")])
    with pytest.raises(ValueError, match="needs a smooth world, but this one has PGS contact"):
        direct(hard, None, start, u0, DirectOptions(minimum_time=True))
