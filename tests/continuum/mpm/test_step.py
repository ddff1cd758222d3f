"""Steps against an independent implementation in NumPy, with singular values instead of series."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.continuum.mpm import numpy_mpm
from tests.continuum.mpm.scenes import block, moving

SAME = 1e-11
"""Largest difference of positions [m] and velocities [m/s]: rounding, and series that end below 1e-12."""
KINKS = 100
"""Factor for sand: loose grains are at the kink between no stress and some, where rounding decides."""
CASES = [(m, 2, "quadratic") for m in numpy_mpm.LAWS] + [(m, 3, "quadratic") for m in numpy_mpm.LAWS]
CASES += [("neo_hookean", 2, "cubic"), ("neo_hookean", 3, "cubic")]


@pytest.mark.parametrize(("material", "dim", "spline"), CASES)
def test_forty_steps_equal_numpy(material: str, dim: int, spline: str) -> None:
    parameters = {"viscosity": 2.0} if material == "liquid" else {"yield": 100.0} if material == "plasticine" else {}
    model = block(material, dim, spline, parameters=parameters, dt=1e-3, substeps=1)
    start, steps = moving(model), 40
    found = model.run(steps, start).final
    body = model.bodies[0]
    state = (
        start.x.numpy(),
        start.v.numpy(),
        np.zeros((body.count, dim, dim)),
        numpy_mpm.rest(material, body.count, dim),
    )
    for _ in range(steps):
        state = numpy_mpm.step(
            state,
            material,
            body.values(),
            model.grid.shape,
            model.grid.dx,
            model.h,
            body.volume,
            model.gravity,
            0.4,
            spline,
        )
    assert np.abs(state[0][:, -1] - start.x.numpy()[:, -1]).min() > 0.01  # it has moved, and met the floor
    assert state[1][:, -1].max() > -1.0
    same = SAME * (KINKS if material == "sand" else 1)
    assert np.abs(found.x.numpy() - state[0]).max() < same
    assert np.abs(found.v.numpy() - state[1]).max() < 100 * same
    assert np.abs(found.C.numpy().reshape(-1, dim, dim) - state[2]).max() < 1e4 * same


def test_float32_follows_float64() -> None:
    model = block("neo_hookean")
    start = moving(model)
    single = model.start(start.x.float(), start.v.float())
    found, want = model.run(40, single).final.x, model.run(40, start).final.x
    assert found.dtype == torch.float32
    assert (found - want).abs().max() < 1e-4
