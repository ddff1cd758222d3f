"""Preparation of a log for a fit: checks, repairs, velocities and accelerations, and a filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from costate.core.arrays import Array
from costate.identify import solve
from costate.identify.base import Base
from costate.identify.checks import check_table, check_units
from costate.identify.derivatives import HALF_WIDTHS, differentiate, windows
from costate.identify.filter import Filter
from costate.identify.log import Log
from costate.identify.regressor import Regressor
from costate.identify.repair.clock import Clock, repair_clock
from costate.identify.repair.joints import repair_joints
from costate.identify.repair.rows import without_spikes
from costate.identify.repair.units import repair_units
from costate.identify.tables import LogError

NARROWER = 0.6
"""Window for accelerations, by the one that is best for positions: in that one, smoothing takes too much off accelerations."""
BETTER = 0.95
"""Error of torques, by that with the logged rates, from which others are taken instead."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A log that is complete, what was done to it, and the filter for its torques."""

    log: Log
    filter: Filter
    notes: list[str] = field(default_factory=list)
    clock: Clock | None = None
    halves: Array | None = None
    """Half widths of the windows of positions (nv,), if velocities and accelerations come from them."""
    measured: Array | None = None
    """Positions before they were smoothed (N, nv), likewise."""


def prepare(
    log: Log, regressor: Regressor, *, repair: bool, check: bool, drop_bad_rows: bool, period: float | None
) -> Prepared:
    """Return a log that is complete: checked, repaired if that is wanted, with velocities and accelerations."""
    log, notes = check_table(log, drop_bad_rows, repair)
    clock = None
    if repair:
        log, clock, more = _repair(log, regressor)
        notes += more
    if check:
        check_units(log, regressor.model)
    found = _with_rates(log, regressor, period, repair)
    log, notes = found.log, [*notes, *found.notes]
    plain = True
    if repair and check:

        def predict(part: Log) -> Array:
            assert part.v is not None and part.a is not None
            return regressor.torques(part.q, part.v, part.a, regressor.pi())

        log, more = repair_joints(log, predict)
        notes, plain = notes + more, not more
    return replace(found, log=log, notes=notes, clock=clock, halves=found.halves if plain else None)


def _repair(log: Log, regressor: Regressor) -> tuple[Log, Clock | None, list[str]]:
    """Return the log with rows, units and clock repaired, as far as its columns tell about each other."""
    if log.q.shape[1] != log.tau.shape[1]:
        return log, None, []
    log, notes = without_spikes(log)
    log, more = repair_units(log, regressor.model)
    notes += more
    if log.t is None:
        return log, None, notes
    log, clock = repair_clock(log)
    if (np.diff(log.t if log.t is not None else np.zeros(0)) <= 0).any():
        raise LogError(
            f"{log.source}: column '{log.column('time', 0)}' repeats time stamps, and the motion does not show the true ones; "
            "remove the duplicates, or write more digits"
        )
    return log, clock, notes + clock.notes()


def _with_rates(log: Log, regressor: Regressor, period: float | None, compare: bool) -> Prepared:
    """Return the log with velocities and accelerations: those that explain the torques best, the logged ones in doubt."""
    complete = log.v is not None and log.a is not None
    if regressor.model.nq != regressor.model.nv or log.t is None:
        if not complete:
            raise LogError(
                f"{log.source}: positions with quaternions cannot be differentiated here; log v and a as well"
            )
        return Prepared(log, Filter.none(len(log)))
    if log.v is None or not compare or len(log) < 2 * _least(regressor):
        return next(_candidates(log, period))
    logged, derived = _candidates(log, period)
    same = _coarser(derived.filter)  # errors are comparable through the same filter only
    better = _unexplained(derived.log, same, regressor) < BETTER * _unexplained(logged.log, same, regressor)
    return derived if better else logged


def _candidates(log: Log, period: float | None) -> Iterator[Prepared]:
    """Yield the log with rates as logged, as far as they are, and then with all of them from the positions."""
    assert log.t is not None
    if log.v is not None and log.a is not None:
        yield Prepared(log, Filter.none(len(log)))
    elif log.v is not None:
        halves = windows(log.t, log.v)
        _, a, _ = differentiate(log.t, log.v, period, halves=halves)
        note = "accelerations were found by differentiating the velocities"
        yield Prepared(replace(log, a=a), _filter(log.t, halves, period), [note])
    wide = windows(log.t, log.q)
    halves = np.maximum((NARROWER * wide).astype(int), HALF_WIDTHS[0])
    q, v, a = differentiate(log.t, log.q, period, halves=halves)
    if log.v is None and log.a is not None:
        a = log.a
    note = "velocities and accelerations were found by differentiating the positions"
    if log.v is not None:
        note += f": the torques fit them better than those logged{_lag(log, v, a)}"
    ready = Prepared(replace(log, q=q, v=v, a=a), _filter(log.t, wide, period), [note])
    yield replace(ready, halves=halves, measured=log.q) if period is None and log.a is not a else ready


def _filter(t: Array, halves: Array, period: float | None) -> Filter:
    return Filter.none(len(t)) if period is not None else Filter.of(t, halves)


def _lag(log: Log, v: Array, a: Array) -> str:
    """Return how far the logged velocities are behind the positions, in words."""
    assert log.v is not None and log.t is not None
    lag = float(((v - log.v) * a).sum() / max(float((a**2).sum()), 1e-300))
    return f", which lag by {1e3 * lag:.2g} ms" if lag > 0.5 * float(np.median(np.diff(log.t))) else ""


def _least(regressor: Regressor) -> int:
    return regressor.size // max(regressor.model.nv, 1) + 1


def _unexplained(log: Log, filtered: Filter, regressor: Regressor) -> float:
    """Return the error of the torques by the best parameters, as a geometric mean over joints [N m or N]."""
    assert log.v is not None and log.a is not None
    reduced = solve.Reduced.of(solve.Equations(regressor, log.q, log.v, log.a, log.tau, filtered))
    base = Base.of(np.concatenate(reduced.R), regressor.names)
    scale = np.maximum(np.sqrt((log.tau**2).mean(0)), 1e-9)
    linear = solve.solve_linear(reduced, base.independent, scale)
    return float(np.exp(np.log(np.maximum(linear.sigma, 1e-9 * scale)).mean()))


def _coarser(filtered: Filter) -> Filter:
    """Return the filter at no more than some thousand rows: enough to compare."""
    step = max(1, len(filtered) // 2000)
    return filtered.take(slice(0, None, step))
