"""Shapes that are apart and do not move sideways feel no friction, in their gradient neither."""

from __future__ import annotations

import pytest
import torch

import costate as cs

DT = 0.01


@pytest.mark.parametrize("cone", ["pyramid", "cone"])
def test_a_ball_that_floats_above_the_ground(cone: str) -> None:
    """Closed form: x' = x + dt v', v' = v, whatever the contact model has prepared for a landing."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    ground = cs.Static("ground", cs.shapes.plane())
    contact = cs.PGS(cone=cone, sweeps=5)
    world = cs.World(bodies=[ball], scenery=[ground], contact=contact, gravity=(0, 0, 0), dt=DT)
    state = world.initial_state()
    state[2] = 0.5
    A, _ = world.linearize(state)
    eye = torch.eye(6, dtype=state.dtype)
    expected = torch.cat([torch.cat([eye, DT * eye], 1), torch.cat([0 * eye, eye], 1)])
    torch.testing.assert_close(A, expected, rtol=0, atol=1e-12)
