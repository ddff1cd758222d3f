"""The benchmark of smoke measures what it says."""

from __future__ import annotations

import torch

from benchmarks.bench_fluid import STEPS, measured, plume


def test_a_row() -> None:
    name, kind, iterations, forward, backward = measured((12, 12), torch.float64, 1)
    assert (name, kind) == ("12 x 12", "float64")
    assert 3 < float(iterations) < 30
    assert float(forward) > 0 and float(backward) > 0
    run, model = plume((12, 12), torch.float64)
    assert model.steps == STEPS and float(run().smoke[-1].sum()) > 0
