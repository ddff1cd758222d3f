"""Single rows that are wrong: a velocity that was padded with zero, a lost packet, a spike."""

from __future__ import annotations

import numpy as np

from costate.core.arrays import Array
from costate.identify.log import Log

FEWEST = 30
"""Number of rows below which nothing is judged."""
FACTOR = 40.0
"""Size of a spike, by the usual distance from the line through the neighbours."""
LEAST = {"q": 0.02, "v": 0.02, "a": 0.3, "tau": 0.5}
"""Size of a spike, by the standard deviation of its column, below which it is left alone."""
ABSURD = 1e3
"""Distance from the median, by the range of a column, that no measurement has."""
MOST = 0.01
"""Part of the rows that may be spikes: more are no accident, but how this robot is."""
_SOME = 3


def without_garbage(log: Log) -> tuple[Log, list[str]]:
    """Return the log without rows that hold absurd numbers, such as those of a broken packet, and a note that names them."""
    bad = np.zeros(len(log), bool)
    for name, x in log.arrays().items():
        low, middle, high = np.quantile(x, (0.02, 0.5, 0.98), axis=0)
        bad |= (np.abs(x - middle) > (2 if name == "time" else ABSURD) * np.maximum(high - low, 1e-6)).any(1)
    if not bad.any() or bad.mean() > MOST or len(log) < FEWEST:
        return log, []
    rows = np.flatnonzero(bad)
    named = ", ".join(log.row(int(r)) for r in rows[:_SOME]) + (
        f" and {len(rows) - _SOME} more" if len(rows) > _SOME else ""
    )
    return log.take(~bad), [f"rows: {named}: numbers far beyond all others: left out"]


def without_spikes(log: Log) -> tuple[Log, list[str]]:
    """Return the log without rows that stick out of their neighbours, and notes that name them."""
    if len(log) < FEWEST:
        return log, []
    notes: list[str] = []
    bad = np.zeros(len(log), bool)
    for name, least in LEAST.items():
        x = getattr(log, name)
        if x is None or (name == "q" and x.shape[1] != log.tau.shape[1]):
            continue
        for k in range(x.shape[1]):
            found = spikes(x[:, k], least)
            if found.any() and found.mean() <= MOST:
                rows = np.flatnonzero(found)
                named = ", ".join(log.row(int(r)) for r in rows[:_SOME]) + (
                    f" and {len(rows) - _SOME} more" if len(rows) > _SOME else ""
                )
                notes.append(f"rows: column '{log.column(name, k)}' sticks out in {named}: left out")
                bad |= found
    return (log.take(~bad), notes) if bad.any() else (log, [])


def spikes(x: Array, least: float) -> Array:
    """Return where a column leaves the line through its neighbours, although these are near each other, shape (N,)."""
    away = np.empty_like(x)
    away[1:-1] = x[1:-1] - (x[2:] + x[:-2]) / 2
    away[0], away[-1] = x[0] - (2 * x[1] - x[2]), x[-1] - (2 * x[-2] - x[-3])
    apart = np.empty_like(x)  # friction steps: there the neighbours differ as much
    apart[1:-1] = x[2:] - x[:-2]
    apart[0], apart[-1] = x[1] - x[2], x[-2] - x[-3]
    away = np.abs(away)
    usual = 1.4826 * float(np.median(away))
    found = (away > max(FACTOR * usual, least * float(x.std()), 1e-12)) & (away > 2 * np.abs(apart))
    # Beside a spike its neighbours look odd, too, by half: the largest is the spike.
    beside = np.concatenate([[0.0], away, [0.0]])
    return found & (away >= beside[:-2]) & (away >= beside[2:])
