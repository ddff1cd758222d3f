"""The longest substep that is stable, and the segments of a roll-out that fit into memory."""

from __future__ import annotations

import numpy as np

from costate.continuum.mpm.body import SoftBody
from costate.kernel.ops.checkpoints import bytes_of

SHARE = 0.5
"""Share of the longest substep that is taken, if none is given."""
SHORTEST = 16
"""Steps of a segment at least: beginning one costs about as much as a step."""
KEPT = 2
"""Copies of the state that the end of a segment costs: itself, positions and velocities in the history, and gradients."""


def wave_speed(body: SoftBody, values: dict[str, float]) -> float:
    """Return the speed of waves of pressure in a body [m/s]."""
    return float(np.sqrt(body.law.stiffness(values) / values["density"]))


def longest_substep(body: SoftBody, values: dict[str, float], dx: float) -> float:
    """Return the longest substep [s]: a wave of pressure crosses one cell in it, and shear spreads over less than one."""
    found = dx / wave_speed(body, values)
    viscosity = values.get("viscosity", 0.0)
    return min(found, dx * dx * values["density"] / (2 * body.dim * viscosity)) if viscosity else found


def segment_steps(steps: int, substeps: int, state: int, grid: int, memory: str | float, size: int = 8) -> int:
    """Return how many steps a segment has, such that the states between segments take half of the memory of a gradient: as few as
    possible. The other half is for the states of one segment while it is differentiated (see `scan_bytes`).

    state: Numbers of a state. grid: Numbers of the grid.
    """
    allowed = bytes_of(memory) / 2
    scan_bytes(substeps, state, grid, memory, size)

    def needed(n: int) -> float:
        return KEPT * -(-steps // n) * state * size

    for exact in (True, False):
        for n in range(min(SHORTEST, steps), steps + 1):
            if needed(n) <= allowed and (steps % n == 0 or not exact):
                return n
    raise ValueError(_too_little(memory, 2 * needed(steps)))


def scan_bytes(substeps: int, state: int, grid: int, memory: str | float, size: int = 8) -> float:
    """Return the bytes that the states of a segment may take while it is differentiated: half of the memory, without the states and
    grids of one step if it is divided."""
    inner = (substeps + 1) * (state + grid) * size if substeps > 1 else 0
    left = bytes_of(memory) / 2 - inner
    if left < SHORTEST * state * size:
        raise ValueError(_too_little(memory, 2 * (inner + SHORTEST * state * size)))
    return left


def _too_little(memory: str | float, needed: float) -> str:
    return f"memory is {memory!r}, but a gradient takes {needed / 1e6:.0f} MB at least: allow more"
