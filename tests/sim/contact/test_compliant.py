"""Soft contact: the bound on the slope of friction."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import costate as cs

MASS, G, MU, SLOPE = 2.0, 9.81, 0.5, 30.0


def sliding(dt: float, **friction: Any) -> cs.World:
    """A ball that rests on the ground and slides: it cannot turn."""
    body = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=MASS, inertia=1e6 * torch.eye(3).numpy(), position=(0, 0, 0.1))
    contact = cs.Compliant(stiffness=1e5, friction=MU, **friction)
    ground = cs.Static("ground", cs.shapes.plane())
    return cs.World(bodies=[body], scenery=[ground], contact=contact, dt=dt, integrator="explicit")


def settled(world: cs.World, speed: float) -> torch.Tensor:
    """A state of rest in height, with a sliding speed."""
    state = world.rollout(world.initial_state(), steps=round(1.0 / world.dt))[-1]
    state = state.clone()
    state[7:] = 0
    state[7] = speed
    return state


@pytest.mark.parametrize("dt", [4e-4, 2e-4, 1e-4])
def test_slow_sliding_decays_as_the_slope_says(dt):
    """At a speed far below mu m g / slope, friction is -slope v, so that v = v0 exp(-slope t / m), and dv/dv0 the same."""
    world = sliding(dt, friction_speed=1e-6, friction_slope=SLOPE)
    state = settled(world, 1e-3)
    time = 0.04
    speed = state[7].clone().requires_grad_()
    start = torch.cat([state[:7], speed[None], state[8:]])
    end = world.rollout(start, steps=round(time / dt))[-1, 7]
    (slope,) = torch.autograd.grad(end, speed)
    expected = math.exp(-SLOPE * time / MASS)
    assert float(end.detach()) / 1e-3 == pytest.approx(expected, rel=6 * dt)  # Euler's error: rate^2 time dt / 2
    assert float(slope) == pytest.approx(expected, rel=6 * dt)


def test_fast_sliding_is_coulomb_friction_as_before():
    """Far above mu m g / slope, the bound changes nothing: the deceleration is mu g."""
    world = sliding(1e-4, friction_speed=1e-4, friction_slope=1e4)
    state = settled(world, 2.0)
    end = world.rollout(state, steps=1000)[-1, 7]
    assert float(end) == pytest.approx(2.0 - MU * G * 0.1, rel=1e-3)


def test_gradients_of_a_foot_that_is_pressed_hard_do_not_grow():
    """Where the slope times the step over the mass is beyond 2, a step multiplies a change of speed by less than -1."""
    growth = {}
    for name, options in {"free": {}, "bounded": {"friction_slope": MASS / 1e-3}}.items():
        world = sliding(1e-3, friction_speed=1e-3, **options)
        state = settled(world, 0.0)
        state[2] -= 5e-3  # pressed: 50 times its weight
        start = state.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(world.step(start, torch.zeros(0))[7], start)
        growth[name] = float(gradient[7])
    assert growth["free"] < -10
    assert -1e-6 < growth["bounded"] < 1


def test_the_cause_is_named_and_the_advice_holds():
    world = sliding(1e-3, friction_speed=1e-3)
    state = settled(world, 0.0)
    state[2] -= 5e-3
    found = cs.diagnose(world, world.rollout(state, steps=5))
    assert "friction_slope=" in str(found)
    calm = sliding(1e-3, friction_speed=1e-3, friction_slope=MASS / 1e-3)
    assert "friction_slope=" not in str(cs.diagnose(calm, calm.rollout(state, steps=5)))
