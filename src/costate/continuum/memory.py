"""The length of a segment of a roll-out, such that its gradient fits into memory."""

from __future__ import annotations

import numpy as np

from costate.kernel.ops.checkpoints import bytes_of

SHORTEST = 32
"""Steps of a segment at least: beginning one costs about as much as a step."""
KEPT = 4
"""Copies of the state that a frame costs: state and what the history shows of it, and the gradients of both."""


def segment_steps(steps: int, numbers: int, memory: str | int | float, size: int = 8, shortest: int = SHORTEST) -> int:
    """Return how many steps a segment has: as few as memory allows, since every segment's end is a frame.

    Kept are the states at the ends of all segments, and all states of one segment while it is differentiated.
    """
    allowed = bytes_of(memory)
    state = numbers * size
    for n in range(1, steps + 1):
        if (KEPT * -(-steps // n) + 2 * n) * state <= allowed:
            return max(n, min(shortest, steps))
    best = max(1, round(np.sqrt(KEPT * steps / 2)))
    least = (KEPT * -(-steps // best) + 2 * best) * state
    raise ValueError(
        f"memory is {memory!r}, but the gradient of {steps} steps of {numbers} numbers takes {least / 1e6:.0f} MB at least: allow "
        "more"
    )
