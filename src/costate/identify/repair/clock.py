"""The clock of a log: rows that repeat, ticks that were lost, and stamps that jitter although the robot ticks evenly.

A recorder stamps a row when it gets round to it, the robot ticks by itself. Positions and velocities know the time that passed
between two rows,

    dt = dq . v / v . v        (v: mean of both rows; over all joints)

and where these steps are whole multiples of one tick, and the stamps are not, the ticks are the better clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from costate.core.arrays import Array
from costate.identify.derivatives import smoothed
from costate.identify.log import Log

SHARE = 0.1
"""Error of a step, by the tick, below which it counts as a whole number of ticks."""
MOST = 0.8
"""Part of the fast steps that must be whole."""
BETTER = 3.0
"""Factor by which ticks must agree better with the motion than the stamps do."""
JITTER = 0.03
"""Error of stamps, by the tick, below which they are left alone."""
FAST = 0.2
"""Speed above which a step is judged, by the root mean square speed."""
WINDOWS = (40, 24, 12)
"""Half widths of the windows in which velocities are found where none were logged [rows]."""
ROUND = 5e-3
"""Relative distance from a number of one digit within which a tick is taken for it."""


@dataclass(frozen=True, eq=False)
class Clock:
    """The faults of a clock, and its times before and after, for the plot."""

    tick: float | None
    """Period of the robot's clock [s], if the stamps were replaced."""
    repeated: int
    """Number of rows that were copies of the row before."""
    lost: int
    """Number of ticks without a row."""
    jitter: float
    """Root mean square error of the stamps' steps [s]."""
    stamps: Array
    """Time stamps as they were [s], shape (n,)."""
    times: Array
    """Times of the same rows after repair [s], shape (n,)."""

    def notes(self) -> list[str]:
        """Return what was found, in words."""
        lines = []
        if self.repeated:
            share = self.repeated / (len(self.times) + self.repeated)
            lines.append(f"clock: {self.repeated} rows ({share:.1%}) repeat the row before: left out")
        if self.tick is not None:
            lines.append(
                f"clock: the robot ticks every {1e3 * self.tick:.6g} ms, but the stamps are off by {1e3 * self.jitter:.2g} ms "
                f"per step: replaced by ticks; {self.lost} ticks were lost"
            )
        return lines


def repair_clock(log: Log) -> tuple[Log, Clock]:
    """Return the log without repeated rows and with a clock that agrees with the motion."""
    assert log.t is not None
    log, repeated = without_repeats(log)
    assert log.t is not None
    if len(log) < 20 or log.q.shape[1] != log.tau.shape[1]:
        return log, Clock(None, repeated, 0, 0.0, log.t, log.t)
    found = _ticks(log)
    if found is None:
        return log, Clock(None, repeated, 0, 0.0, log.t, log.t)
    tick, count, jitter = found
    times = log.t[0] + tick * np.concatenate([[0.0], np.cumsum(count)])
    again = np.concatenate([[False], count == 0])
    stamps = log.t[~again]
    log = replace(log, t=times).take(~again)
    lost = int((count[count > 1] - 1).sum())
    return log, Clock(tick, repeated + int(again.sum()), lost, jitter, stamps, times[~again])


def without_repeats(log: Log) -> tuple[Log, int]:
    """Leave out rows whose measurements are all those of the row before, if the robot moves there. Returns their number."""
    measured = np.concatenate([x for name, x in log.arrays().items() if name != "time"], 1)
    same = np.concatenate([[False], (np.diff(measured, axis=0) == 0).all(1)])
    return (log.take(~same), int(same.sum())) if same.any() and not same[1:].all() else (log, 0)


def _ticks(log: Log) -> tuple[float, Array, float] | None:
    """Return the tick [s], the number of ticks of each step and the error of the stamps, if ticks are the better clock."""
    assert log.t is not None
    steps = np.diff(log.t)
    even = float(np.median(steps))
    if even <= 0:
        even = float(steps.mean())
    if log.v is not None:
        passed, fast = _passed(log.q, log.v)
        tick = _round(_mode(passed[fast])) if fast.any() else 0.0
    else:
        passed, fast, tick = _from_positions(log.q, even)
    if not tick > 0 or fast.sum() < 10 or not even / 3 < tick < 3 * even:
        return None
    count = np.round(passed / tick)
    off = np.abs(passed - count * tick)[fast]
    stamped = np.abs(passed - steps)[fast]
    if (off < SHARE * tick).mean() < MOST:
        return None
    by_ticks, by_stamps = (float(np.sqrt(np.mean(np.sort(x)[: int(0.98 * len(x)) + 1] ** 2))) for x in (off, stamped))
    jitter = float(np.sqrt((np.minimum(stamped, 10 * tick) ** 2).mean()))
    if by_stamps < BETTER * by_ticks or by_stamps < JITTER * tick:
        return None
    # Slower steps are judged, too, as far as the noise of the positions allows; below that the stamps count, and do little harm.
    speed = _speeds(log)
    noise = float(np.median(np.abs(passed - np.round(passed / tick) * tick)[fast] * speed[fast])) / 0.6745
    fast = speed > max(noise / (SHARE * tick), 1e-9)
    slow = np.concatenate([[0.0], np.cumsum(np.where(fast, 0.0, steps))]) / tick
    count = np.where(fast, np.maximum(count, 0), np.diff(np.round(slow)))
    if log.v is None:  # only the stamps know the length of a second
        tick = _round(float((log.t[-1] - log.t[0]) / count.sum()))
    return tick, count, jitter


def _speeds(log: Log) -> Array:
    """Return the speed of all joints together in each step, shape (N - 1,)."""
    assert log.t is not None
    if log.v is not None:
        return np.linalg.norm((log.v[1:] + log.v[:-1]) / 2, axis=1)
    v = smoothed(log.t[0] + np.linspace(0, log.t[-1] - log.t[0], len(log)), log.q, WINDOWS[-1])[1]
    return np.linalg.norm((v[1:] + v[:-1]) / 2, axis=1)


def _passed(q: Array, v: Array) -> tuple[Array, Array]:
    """Return the time that passed in each step by the motion [s], and where it moved fast enough to say so."""
    middle = (v[1:] + v[:-1]) / 2
    power = (middle**2).sum(1)
    fast = power > FAST**2 * max(float((v**2).sum(1).mean()), 1e-12)
    return (np.diff(q, axis=0) * middle).sum(1) / np.where(power > 0, power, 1.0), fast


def _from_positions(q: Array, even: float) -> tuple[Array, Array, float]:
    """Return the same where velocities were not logged: the window is taken in which steps are most nearly whole."""
    best = (np.ones(len(q) - 1), np.zeros(len(q) - 1, bool))
    for half in WINDOWS:
        found = _counted(q, half) if 2 * half < len(q) else best
        best = min(best, found, key=lambda each: _fraction(*each))
        if _fraction(*best) < SHARE / 5:
            break
    return best[0] * even, best[1], even


def _counted(q: Array, half: int) -> tuple[Array, Array]:
    """Return the ticks that passed in each step, as if rows were even at first, then with the velocities of the ticks so found."""
    count = np.ones(len(q) - 1)
    passed, fast = count, count > 0
    for _ in range(4):
        t = np.concatenate([[0.0], np.cumsum(np.maximum(count, 1e-3))])
        passed, fast = _passed(q, smoothed(t, q, half)[1])
        passed = passed / max(_mode(passed[fast]), 1e-12) if fast.any() else passed
        count = np.where(fast, np.clip(np.round(passed), 0, None), 1.0)
    return passed, fast


def _fraction(passed: Array, fast: Array) -> float:
    """Return how far steps are from whole numbers: the 90th percentile."""
    return float(np.quantile(np.abs(passed - np.round(passed))[fast], 0.9)) if fast.any() else np.inf


def _mode(x: Array) -> float:
    """Return the most frequent value, by the median around the median."""
    centre = float(np.median(x))
    near = x[np.abs(x - centre) < 0.3 * abs(centre)]
    return float(np.median(near)) if near.size else centre


def _round(tick: float) -> float:
    """Return a tick that is a number of one digit, such as 1, 2, 4 or 5 ms, where it nearly is."""
    if not tick > 0:
        return 0.0
    size = 10 ** np.floor(np.log10(tick) + 1e-3)
    near = round(tick / size) * size
    return float(near) if abs(tick - near) < ROUND * near else tick
