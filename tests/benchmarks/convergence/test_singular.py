"""Corrections of overlap near a singularity."""

from __future__ import annotations

import torch

import costate as cs
from benchmarks.convergence.singular import chain, gains


def test_corrections_do_no_more_work_than_impulses_take() -> None:
    """Legs of two links, almost straight, with their feet in the floor: half of them are pushed out, some jam, and without a bound
    one step in a few thousand gains up to a joule."""
    leg = chain(2)
    states = leg.states(leg.world(cs.Hard()), 2048, torch.Generator().manual_seed(0))
    found = gains(leg.world, states, cs.Hard())
    assert (found.pushed > 1e-9).mean() > 0.2 and found.taken.max() > 1e-3
    assert found.largest < 1e-14
