"""Starts of tosses from several poses."""

from __future__ import annotations

import torch
from tests.identify.tosses.throws import BOX, DT, TRUTH, thrown

from costate.identify.tosses.start import estimated_start
from costate.identify.tosses.thrown import parameter

PARAMS = {parameter(name): torch.tensor(value, dtype=torch.float64) for name, value in TRUTH.items()}


def test_exact_poses_give_the_exact_start_whatever_the_logged_velocities() -> None:
    _, states = thrown(rows=8)
    world = BOX.world("hard", DT, 1, tuple(TRUTH))
    rows = states.clone()
    rows[0, :, 7:] += 0.05
    # The weak trust in the logged velocities is the error that is left.
    found = estimated_start(world, rows, 0.05, PARAMS, iterations=6)
    assert (found - states[0]).abs().max() < 2e-4


def test_several_noisy_poses_tell_velocities_better_than_two() -> None:
    noise = 2e-5
    tosses, states = thrown(rows=8, noise=noise)
    world = BOX.world("hard", DT, 1, tuple(TRUTH))
    rows = tosses.windows(torch.arange(12).numpy(), 0, 8)
    errors = {k: (estimated_start(world, rows[:k], 0.05, PARAMS) - states[0])[:, 7:10].square().mean() for k in (2, 8)}
    # Least squares: the variance of a slope falls as k (k^2 - 1), 6 and 504; noise of single samples leaves room.
    assert errors[8] < errors[2] / 20
