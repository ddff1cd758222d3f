"""The longest substep of compliant contact: closed forms, and motions that settle below it and not far above."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.model import Transform
from costate.sim import SimulationError, longest_substep

D = torch.float64
SOFT = cs.Compliant(stiffness=1e4, damping=0.0, smoothing=1e-4, friction=0.0)
GROUND = cs.Static("ground", cs.shapes.plane())


def barbell(dt: float) -> cs.World:
    """A light bar that is heavy in its middle only, and touches the ground with a ball 0.5 m from there: it turns rather than
    rises."""
    balls = [cs.shapes.sphere(0.05, (0.5, 0, 0)), cs.shapes.sphere(0.05, (-0.5, 0, 0))]
    pose = Transform(np.eye(3), np.array([0, 0, 0.049]))
    body = cs.Body("bar", balls, 1.0, inertia=np.diag([1e-3, 2e-3, 2e-3]), pose=pose)
    return cs.World([], [body], [GROUND], contact=SOFT, dt=dt)


def ball(dt: float, mu: float = 0.8) -> cs.World:
    """A ball that slides into rolling on the ground."""
    one = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0, pose=Transform(np.eye(3), np.array([0, 0, 0.1 - 9.81e-4])))
    contact = cs.Compliant(stiffness=1e4, smoothing=1e-4, friction=mu, friction_speed=1e-2)
    return cs.World([], [one], [GROUND], contact=contact, dt=dt)


def test_a_lever_shortens_it() -> None:
    """Two points with levers of 0.5 m: the bar turns about y with 2 k r^2 / I, and rises with 2 k / m."""
    world = barbell(1e-3)
    expected = 0.2 / np.sqrt(2 * 1e4 * 0.5**2 / 2e-3)
    assert float(longest_substep(world, world.initial_state())) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("dt", "settles"), [("bound", True), ("mass alone", False)])
def test_a_bar_on_its_ends(dt: str, settles: bool) -> None:
    """It rocks a little. At the bound it goes on to do so; at a fifth of sqrt(m / k), without levers, it flies apart."""
    world = barbell(1e-3)
    bound = {"bound": float(longest_substep(world, world.initial_state())), "mass alone": 0.2 * np.sqrt(1.0 / 1e4)}[dt]
    world = barbell(bound)
    state = world.initial_state()
    state[11] = 0.02
    start = world.energy(state)
    try:
        states = world.rollout(state, torch.zeros(400, 0, dtype=D))
    except SimulationError:
        assert not settles
        return
    gained = float((world.energy(states) - start).max())
    assert (gained < 0.02) == settles  # the springs of the contacts hold 0.01 J at the start


def test_friction_of_a_rolling_ball() -> None:
    """1 / m_t = 1 / m + r^2 / I = 3.5 / m for a solid ball: it sticks, below friction_speed / (3.5 mu g)."""
    world = ball(1e-3)
    expected = 1e-2 / (0.8 * 9.81 * 3.5)
    assert float(longest_substep(world, world.initial_state())) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("dt", "settles"), [("bound", True), ("mass alone", False)])
def test_a_ball_that_begins_to_roll(dt: str, settles: bool) -> None:
    """Sliding at 0.1 m/s, it ends rolling: v = omega r. With the step for a mass that cannot turn it chatters."""
    bound = {"bound": 1e-2 / (0.8 * 9.81 * 3.5), "mass alone": 1e-2 / (0.8 * 9.81)}[dt]
    world = ball(bound)
    state = world.initial_state()
    state[7] = 0.1
    end = world.rollout(state, torch.zeros(int(0.3 / bound), 0, dtype=D))[-8:]
    turned = end[:, 3:7]
    assert turned.isfinite().all()
    pole = world.contacts(end)
    slip = pole.friction.norm(dim=-1).squeeze(-1)
    assert (float(slip.max()) < 0.05) == settles


def test_nothing_touches() -> None:
    world = ball(1e-3)
    state = world.initial_state()
    state[2] += 1.0
    assert float(longest_substep(world, state)) > 10.0


def test_other_models() -> None:
    world = cs.World([], [cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)], [GROUND], contact=cs.Hard())
    with pytest.raises(ValueError, match="longest_substep is for Compliant"):
        longest_substep(world, world.initial_state())
