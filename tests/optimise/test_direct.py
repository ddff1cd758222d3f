"""Direct optimal control against closed forms."""

from __future__ import annotations

import math
from dataclasses import replace

import casadi as ca
import pytest
import torch
from tests.optimise.cart import cart_world

import costate as cs
from costate.optimise import Cost, DirectOptions, direct

F64 = torch.float64


@pytest.fixture(scope="module")
def cart() -> cs.World:
    return cart_world(effort=2.0)


def test_minimum_time_of_a_double_integrator(cart: cs.World) -> None:
    """The solution is bang-bang, full force forward and then backward, and takes 2 sqrt(distance / acceleration)."""
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
    """Accelerating to the speed limit v, cruising and braking takes distance / v + v / acceleration."""
    limits = [float("inf"), 1.0]
    options = DirectOptions(minimum_time=True, state_bounds=([-x for x in limits], limits), duration=3.0)
    goal = torch.tensor([3.0, 0.0], dtype=F64)
    found = direct(cart, None, torch.zeros(2, dtype=F64), torch.zeros(28, 1, dtype=F64), options, final_state=goal)
    assert found.extra["duration"] == pytest.approx(3.0 / 1.0 + 1.0 / 2.0, rel=1e-6)


def test_least_effort_with_a_free_end(cart: cs.World) -> None:
    """Reaching x = 1 at t = 1 with any final speed and the least integral of u^2 takes u = 3 (1 - t); x' ends at 1.5."""
    steps = 40
    cost = Cost(cart, lambda s: s.u)
    goal = torch.tensor([0.6, float("nan")], dtype=F64)
    options = DirectOptions(duration=1.0)
    found = direct(cart, cost, torch.zeros(2, dtype=F64), torch.zeros(steps, 1, dtype=F64), options, final_state=goal)
    middle = (torch.arange(steps, dtype=F64) + 0.5) / steps
    assert torch.allclose(found.x[:, 0], 0.6 * 3 * (1 - middle), atol=1e-3)
    assert float(found.extra["states"][-1, 1]) == pytest.approx(0.9, abs=1e-3)


def test_collocation_is_a_motion_of_the_pendulum() -> None:
    """A fine roll-out of the same controls by RK4 ends where the collocated motion ends."""
    options = {"robots": [cs.load_robot("pendulum1")], "contact": None, "integrator": "rk4"}
    world = cs.World(**options, dt=0.05, substeps=10)
    cost = Cost(world, lambda s: 0.1 * s.u, lambda s: ca.vertcat(5 * (s.q - 2), s.v))
    start = world.initial_state()
    found = direct(world, cost, start, torch.zeros(20, 1, dtype=F64))
    assert found.converged
    assert torch.allclose(found.extra["states"], world.rollout(start, found.x), atol=1e-4)


def test_accelerations_as_unknowns_find_the_same_minimum_time(cart: cs.World) -> None:
    goal = torch.tensor([3.0, 0.0], dtype=F64)
    options = DirectOptions(minimum_time=True, method="inverse")
    found = direct(cart, None, torch.zeros(2, dtype=F64), torch.zeros(20, 1, dtype=F64), options, final_state=goal)
    assert found.extra["duration"] == pytest.approx(2 * (3 / 2) ** 0.5, rel=1e-6)
    assert torch.allclose(found.x[:, 0], torch.tensor([2.0] * 10 + [-2.0] * 10, dtype=F64), atol=1e-4)


def test_minimum_time_with_limits_of_acceleration_and_jerk(cart: cs.World) -> None:
    """At most A forward, then backward, with a jerk of J in between: the distance is A t^2 / 4 - A^3 / (3 J^2)."""
    goal, A, J = torch.tensor([3.0, 0.0], dtype=F64), 1.0, 2.0
    options = DirectOptions(minimum_time=True, method="inverse", acceleration_limit=A, jerk_limit=J)
    start, idle = torch.zeros(2, dtype=F64), torch.zeros(40, 1, dtype=F64)
    found = direct(cart, None, start, idle, options, final_state=goal)
    assert found.extra["duration"] == pytest.approx(2 * (3 / A + A**2 / (3 * J**2)) ** 0.5, rel=1e-3)
    with pytest.raises(ValueError, match="'collocation' knows no limits of acceleration"):
        direct(cart, None, start, idle, replace(options, method="collocation"), final_state=goal)


def test_minimum_time_of_a_servo() -> None:
    """A cart that follows commands u of at most U with a lag s goes full speed forward, then backward.

    From s v' = u - v follow U (t1 - t2) = distance and exp(t2 / s) = 2 - exp(-t1 / s). The world's own servo moves the cart in the
    same way under these commands.
    """
    distance, fastest, gain = 0.5, 1.5, 4.0  # the cart weighs 1 kg: s is 0.25 s
    t2 = 0.0
    for _ in range(200):
        t2 = math.log(2 - math.exp(-gain * (t2 + distance / fastest))) / gain
    world = cart_world(actuator=cs.VelocityServo(gain=gain), dt=1e-3)
    options = DirectOptions(minimum_time=True, method="inverse", duration=1.0, bounds=(-fastest, fastest))
    goal = torch.tensor([distance, 0.0], dtype=F64)
    found = direct(world, None, torch.zeros(2, dtype=F64), torch.zeros(40, 1, dtype=F64), options, final_state=goal)
    assert found.extra["duration"] == pytest.approx(2 * t2 + distance / fastest, rel=1e-3)
    ticks = torch.arange(0, found.extra["duration"], world.dt, dtype=F64)
    now = torch.searchsorted(found.extra["times"], ticks, right=True).clamp(max=40) - 1
    assert torch.allclose(world.rollout(torch.zeros(2, dtype=F64), found.x[now])[-1], goal, atol=5e-3)


def test_phases_and_limits(cart: cs.World) -> None:
    """With a speed of at most 1, the cart goes to x = 5 and back to a target that moves from 1 at a speed of 0.5."""
    limits = [
        (lambda s: 5 - s.q, range(2, 3)),
        (lambda s: s.q - (s["start"] + 0.5 * s["time"]), range(5, 6)),
    ]
    fast = [float("inf"), 1.0]
    options = DirectOptions(
        minimum_time=True, method="kinematic", phases=(2, 3), duration=4.0, state_bounds=([-x for x in fast], fast)
    )
    start, idle = torch.zeros(2, dtype=F64), torch.zeros(5, 1, dtype=F64)
    found = direct(cart, None, start, idle, options, limits=limits, inputs={"start": torch.tensor([1.0])})
    assert found.extra["times"][2] == pytest.approx(5.0, rel=1e-6)
    assert found.extra["duration"] == pytest.approx(6.0, rel=1e-6)  # 5 - (t - 5) = 1 + t / 2
    with pytest.raises(ValueError, match=r"phases are \(2, 2\); expected positive numbers that add up to 5 steps"):
        direct(cart, None, start, idle, DirectOptions(minimum_time=True, phases=(2, 2)))
    with pytest.raises(ValueError, match="a limit holds at times"):
        direct(cart, None, start, idle, DirectOptions(minimum_time=True), limits=[(lambda s: s.q, range(5, 8))])


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
    with pytest.raises(ValueError, match="needs a smooth world, but this one has Hard contact"):
        direct(hard, None, start, u0, DirectOptions(minimum_time=True))
