"""Checks of a log before anything is fitted to it: every error names rows and columns and says what to do."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import numpy as np

from costate.core.arrays import Array
from costate.identify.log import Log
from costate.identify.repair.rows import without_garbage
from costate.identify.tables import LogError
from costate.model import Model

DEGREES = 180 / np.pi
_NEAR = 1.3
"""Factor within which a ratio must be near 57.3 to be called a confusion of degrees and radians."""
_FLIPPED = -0.5
"""Correlation of measured with predicted torques below which a sign is called flipped."""
_OUT_OF_ORDER = 0.01
"""Part of the rows that may be left out because they came too late."""
_SOME = 3
"""Number of rows named in a message."""


def check_table(log: Log, drop_bad_rows: bool = False, repair: bool = False) -> tuple[Log, list[str]]:
    """Check for finite numbers and increasing time. Returns the log, and notes on what was dropped if that was asked for.

    repair: permit what `costate.identify.repair` takes care of: stamps that repeat, and other units of time."""
    notes: list[str] = []
    bad = np.zeros(len(log), bool)
    for quantity, x in log.arrays().items():
        holes = ~np.isfinite(x)
        for k in np.flatnonzero(holes.any(0)):
            rows = np.flatnonzero(holes[:, k])
            what = f"column '{log.column(quantity, int(k))}' has no number in {_rows(log, rows)}"
            if not drop_bad_rows:
                raise LogError(
                    f"{log.source}: {what}; correct or remove these rows, or pass drop_bad_rows=True (--drop-bad-rows)"
                )
            notes.append(f"{what}: dropped")
            bad |= holes[:, k]
    if bad.any():
        log = log.take(~bad)
    if len(log) < 2:
        raise LogError(f"{log.source}: {len(log)} usable rows are too few")
    if log.t is not None and repair:
        log, garbage = without_garbage(log)
        log, late = _in_order(log)
        notes += garbage + late
    if log.t is not None:
        _check_time(log, repair)
    elif log.v is None or log.a is None:
        raise LogError(
            f"{log.source}: velocities or accelerations are missing and there is no time to differentiate by; "
            "add a column 't' [s]"
        )
    return log, notes


def _in_order(log: Log) -> tuple[Log, list[str]]:
    """Leave out single rows whose time goes back."""
    assert log.t is not None
    back = ~_longest_increasing(log.t)
    if not back.any() or back.mean() > _OUT_OF_ORDER:
        return log, []
    named = _rows(log, np.flatnonzero(back))
    return log.take(~back), [f"clock: column '{log.column('time', 0)}' goes back in {named}: left out"]


def _longest_increasing(t: Array) -> Array:
    """Return which rows to keep so that time never goes back and as many as possible stay, shape (N,)."""
    if (np.diff(t) >= 0).all():
        return np.ones(len(t), bool)
    ends: list[float] = []
    at: list[int] = []
    before = np.full(len(t), -1)
    for k, value in enumerate(t):
        place = bisect_right(ends, value)
        before[k] = at[place - 1] if place else -1
        ends[place : place + 1], at[place : place + 1] = [value], [k]
    keep = np.zeros(len(t), bool)
    k = at[-1]
    while k >= 0:
        keep[k], k = True, int(before[k])
    return keep


def _check_time(log: Log, repair: bool) -> None:
    assert log.t is not None
    steps = np.diff(log.t)
    name = log.column("time", 0)
    if (repeated := np.flatnonzero(steps == 0)).size and not repair:
        raise LogError(
            f"{log.source}: column '{name}' repeats the time stamp of the row before in {_rows(log, repeated + 1)}; "
            "remove the duplicates, or write more digits"
        )
    if (back := np.flatnonzero(steps < 0)).size:
        raise LogError(
            f"{log.source}: column '{name}' goes back in time in {_rows(log, back + 1)}; "
            "sort the rows, or split the file where a new recording starts"
        )
    if float(np.median(steps)) > 10 and not repair:
        raise LogError(
            f"{log.source}: column '{name}' steps by {np.median(steps):g} s; is it in milli- or microseconds?"
        )


def check_units(log: Log, model: Model) -> None:
    """Check units and signs of angles, as far as the columns contradict each other or the robot's limits."""
    scalar = [j for j in model.joints if j.nv == 1]
    if len(scalar) != sum(1 for j in model.joints if j.nv):
        return
    for k, joint in enumerate(scalar):
        if joint.kind == "prismatic":
            continue
        _check_range(log, k, float(joint.lower[0]), float(joint.upper[0]))
    for fast, slow in (("v", "q"), ("a", "v")):
        x, rate = getattr(log, slow), getattr(log, fast)
        if x is not None and rate is not None and log.t is not None:
            for k in range(x.shape[1]):
                _check_rate(log, slow, fast, k, x[:, k], rate[:, k])


def _check_range(log: Log, k: int, lower: float, upper: float) -> None:
    reach = max(4 * np.pi, 2 * max((abs(x) for x in (lower, upper) if np.isfinite(x)), default=0.0))
    largest = int(np.abs(log.q[:, k]).argmax())
    if abs(log.q[largest, k]) > reach:
        raise LogError(
            f"{log.source}: column '{log.column('q', k)}' reaches {log.q[largest, k]:.4g} rad in {log.row(largest)}, "
            f"far beyond the joint's range; if it is in degrees, multiply it by pi/180"
        )


def _check_rate(log: Log, slow: str, fast: str, k: int, x: Array, rate: Array) -> None:
    """Compare x with the integral of its rate: the slope must be 1."""
    assert log.t is not None
    path = np.concatenate([[0.0], np.cumsum(np.diff(log.t) * (rate[1:] + rate[:-1]) / 2)])
    # A steady offset of the rate drifts: take a straight line out of both.
    basis = np.stack([np.ones_like(log.t), log.t - log.t.mean()], -1)
    x, path = (y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0] for y in (x, path))
    power = np.sqrt((path @ path) * (x @ x))
    if power == 0 or abs(x @ path) < 0.8 * power:
        return  # too noisy or too little motion to judge
    slope = (x @ path) / (path @ path)
    slow_name, fast_name = log.column(slow, k), log.column(fast, k)
    if slope < 0:
        raise LogError(
            f"{log.source}: column '{fast_name}' has the opposite sign of the rate of '{slow_name}'; flip one of them"
        )
    for factor, wrong in ((DEGREES, slow_name), (1 / DEGREES, fast_name)):
        if factor / _NEAR < slope < factor * _NEAR:
            raise LogError(
                f"{log.source}: column '{wrong}' is {DEGREES:.1f} times too large for the other of '{slow_name}' and "
                f"'{fast_name}': it seems to be in degrees; multiply it by pi/180"
            )


def check_torques(log: Log, predicted: Array, predicted_if_degrees: Array | None) -> None:
    """Check signs and units against the torques that the robot's file predicts, shape (N, nv) each."""
    as_is = _misfit(log.tau, predicted)
    if predicted_if_degrees is not None:
        converted = _misfit(log.tau, predicted_if_degrees)
        if converted < 0.3 < as_is and converted < 0.2 * as_is:
            columns = ", ".join(f"'{log.column('q', k)}'" for k in range(log.q.shape[1]))
            raise LogError(
                f"{log.source}: the torques fit the robot {as_is / converted:.0f} times better if {columns} (with their "
                "rates) are in degrees; multiply them by pi/180"
            )
    for k in range(log.tau.shape[1]):
        measured, expected = log.tau[:, k], predicted[:, k]
        spread = np.sqrt((measured @ measured) * (expected @ expected))
        if spread > 0 and (measured @ expected) / spread < _FLIPPED:
            worst = int(np.abs(measured * expected).argmax())
            raise LogError(
                f"{log.source}: column '{log.column('tau', k)}' has the opposite sign of what the robot needs (in "
                f"{log.row(worst)}: {measured[worst]:.4g} measured, {expected[worst]:.4g} predicted); torques are positive "
                "along the joint's velocity: flip the column, or the joint's axis in the robot file"
            )


def _misfit(measured: Array, predicted: Array) -> float:
    """Return the root mean square error relative to the measured torques."""
    return float(np.sqrt(((measured - predicted) ** 2).sum() / max((measured**2).sum(), 1e-300)))


def in_radians(log: Log) -> Log:
    """Return the log with its positions, velocities and accelerations read as degrees."""
    turned = {n: getattr(log, n) / DEGREES for n in ("q", "v", "a") if getattr(log, n) is not None}
    return replace(log, **turned)


def _rows(log: Log, rows: Array) -> str:
    named = ", ".join(log.row(int(k)) for k in rows[:_SOME])
    return named if len(rows) <= _SOME else f"{named} and {len(rows) - _SOME} more"
