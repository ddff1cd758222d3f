"""The longest substep that is stable, and the segments of a roll-out that fit into memory."""

from __future__ import annotations

import numpy as np

from costate.continuum.mpm.body import SoftBody
from costate.kernel.ops.checkpoints import bytes_of

SHARE = 0.5
"""Share of the longest substep that is taken, if none is given."""
SHORTEST = 16
"""Steps of a segment at least: beginning one costs about as much as a step."""


def wave_speed(body: SoftBody, values: dict[str, float]) -> float:
    """Return the speed of waves of pressure in a body [m/s]."""
    return float(np.sqrt(body.law.stiffness(values) / values["density"]))


def longest_substep(body: SoftBody, values: dict[str, float], dx: float) -> float:
    """Return the longest substep [s]: a wave of pressure crosses one cell in it, and shear spreads over less than one."""
    found = dx / wave_speed(body, values)
    viscosity = values.get("viscosity", 0.0)
    return min(found, dx * dx * values["density"] / (2 * body.dim * viscosity)) if viscosity else found


def segment_steps(steps: int, substeps: int, state: int, grid: int, memory: str | float, size: int = 8) -> int:
    """Return how many steps a segment has, such that the gradient fits into memory: as few as possible.

    Kept are the states between segments (and their gradients), all states of one segment while it is differentiated, with the grid
    if steps are not divided, and all states of one step with their grids otherwise.
    """
    allowed = bytes_of(memory) / size
    inner = (substeps + 1) * (state + grid) if substeps > 1 else 0

    def needed(n: int) -> int:
        return 4 * -(-steps // n) * state + 2 * n * (state + (0 if substeps > 1 else grid)) + inner

    for n in range(min(SHORTEST, steps), steps + 1):
        if steps % n == 0 and needed(n) <= allowed:
            return n
    for n in range(min(SHORTEST, steps), steps + 1):
        if needed(n) <= allowed:
            return n
    best = min(range(1, steps + 1), key=needed)
    if needed(best) <= allowed:
        return best
    raise ValueError(
        f"memory is {memory!r}, but the gradient of {steps} steps takes {needed(best) * size / 1e6:.0f} MB at least: allow more"
    )
