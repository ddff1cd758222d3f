"""What mistakes are answered with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.continuum.fluid.grid import Grid, border
from costate.continuum.fluid.model import FluidModel

GRID = Grid((8, 8), 0.1, border((8, 8)))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Grid((8,), 0.1), "two or three"),
        (lambda: Grid((8, 3), 0.1), "4 or more"),
        (lambda: Grid((8, 8), 0.0), "cell is 0.0"),
        (lambda: Grid((8, 8), 0.1, np.ones((8, 8), bool)), "no cell is fluid"),
        (lambda: Grid((8, 8), 0.1, np.ones((8, 8))), "truth values"),
        (lambda: FluidModel(GRID, 0.1, 0), "steps is 0"),
        (lambda: FluidModel(GRID, 0.1, 5, "mac_cormack"), "did you mean 'maccormack'"),
        (lambda: FluidModel(GRID, 0.1, 5).run(torch.zeros(8, 8, 2)), "expected .*2, 8, 8"),
        (lambda: FluidModel(GRID, 0.1, 5).run(patterns=torch.zeros(1, 2, 8, 8)), "0 patterns"),
        (lambda: FluidModel(GRID, 0.1, 5, patterns=1).run(), "none were"),
        (lambda: FluidModel(GRID, 0.1, 5).run(resistance=torch.zeros(8, 8)), "porous=True"),
        (lambda: FluidModel(GRID, 0.1, 5).run(viscosity=0.05), "take a shorter dt"),
        (lambda: FluidModel(GRID, 0.1, 5).run(buoyancy=(0, 0, 1)), "an acceleration"),
    ],
)
def test_mistakes(make, says: str) -> None:
    """Each says what was given and what to do."""
    with pytest.raises(ValueError, match=says):
        make()


def test_inflow_without_outflow() -> None:
    """A wall that blows into a closed box has no solution."""
    blow = torch.zeros(2, 8, 8, dtype=torch.float64)
    blow[1, 3, 1] = 1.0
    with pytest.raises(ValueError, match=r"step 0 of 2, 0\.1 m\^2/s flow into a fluid that has nowhere to go"):
        FluidModel(GRID, 0.1, 2).run(given=blow)


def test_flow_that_is_too_fast_for_fluxes() -> None:
    """The error says which dt would do."""
    with pytest.raises(FloatingPointError, match=r"may cross 2 cells.*take dt = 0\.04 s"):
        FluidModel(Grid((8, 8), 0.1), 0.1, 2, conserve=True).run(torch.ones(2, 8, 8, dtype=torch.float64))


def test_numbers_that_are_not_finite() -> None:
    """A NaN is told in the step in which it appears."""
    with pytest.raises(FloatingPointError, match="step 0 of 3"):
        FluidModel(GRID, 0.1, 3).run(torch.full((2, 8, 8), torch.nan, dtype=torch.float64))


def test_too_few_iterations() -> None:
    """The error tells what is left."""
    u = torch.rand(2, 8, 8, dtype=torch.float64)
    with pytest.raises(FloatingPointError, match="after 2 iterations; raise limit"):
        FluidModel(GRID, 0.1, 3, limit=2).run(u)
