"""Units and signs that contradict the positions: degrees, the motor's side of a gear, milliseconds, velocities that are flipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from costate.core.arrays import Array
from costate.identify.log import Log
from costate.model import Joint, Model

DEGREES = 180 / np.pi
NEAR = 1.15
"""Factor within which a ratio must be near a confusion of units."""
ALIKE = 0.8
"""Correlation from which a rate is compared with its integral at all."""
TYPICAL = 0.98
"""Part of the rows whose range counts: single wrong ones say nothing about units."""
USUAL_SPEED = 3.0
"""Speed limit of joints that have none in the file [rad/s or m/s]."""
SLOWEST = 2e-3
"""Peak speed, by the limit, below which the unit of time is doubted."""
TIMES = {1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}


def repair_units(log: Log, model: Model) -> tuple[Log, list[str]]:
    """Return the log with time in seconds, angles in radians and rates that belong to the positions; and what was changed."""
    notes: list[str] = []
    for step in (_time, _angles, _rates):
        log, more = step(log, model)
        notes += more
    return log, notes


def _time(log: Log, model: Model) -> tuple[Log, list[str]]:
    """Bring time to seconds: by the velocities, or else by the speeds that a robot can have."""
    if log.t is None:
        return log, []
    scale = 1.0
    if log.v is not None and log.v.shape == log.q.shape:
        slopes = [slope(log.t, log.q[:, k], log.v[:, k]) for k in range(log.q.shape[1])]
        found = np.abs([s for s in slopes if s is not None])
        if found.size:
            scale = next((s for s in TIMES if _is_near(float(np.median(found)), s)), 1.0)
    elif log.v is None and log.q.shape[1] == model.nv:
        limits = np.where(np.isfinite(model.max_velocity) & (model.max_velocity > 0), model.max_velocity, USUAL_SPEED)
        steps = np.maximum(np.diff(log.t), 1e-300)
        peak = float((np.quantile(np.abs(np.diff(log.q, axis=0)) / steps[:, None], 0.95, axis=0) / limits).max())
        if 0 < peak < SLOWEST:
            scale = min(TIMES, key=lambda s: abs(np.log(peak / s / 0.3)))
    if scale == 1.0:
        return log, []
    return replace(log, t=log.t * scale), [
        f"units: column '{log.column('time', 0)}' is in {TIMES[scale]}: multiplied by {scale:g}"
    ]


def _angles(log: Log, model: Model) -> tuple[Log, list[str]]:
    """Bring positions that leave the joints' range to radians of the joint, with rates that agree with them."""
    if log.q.shape[1] != model.nv:
        return log, []
    turning = dict(_turning(model))
    bad = [k for k, joint in turning.items() if _leaves(log.q[:, k], joint)]
    if not bad:
        return log, []
    q, notes, in_degrees = log.q.copy(), [], []
    for k in bad:
        ratio = slope(log.t, q[:, k], log.v[:, k]) if log.t is not None and log.v is not None else None
        if ratio is None or _is_near(ratio, 1.0) or _is_near(ratio, DEGREES) or _leaves(q[:, k] / ratio, turning[k]):
            in_degrees.append(k)
            continue
        q[:, k] /= ratio
        notes.append(f"units: column '{log.column('q', k)}' is on the motor's side of a gear: divided by {ratio:.4g}")
    log = replace(log, q=q)
    if in_degrees:
        log, note = _from_degrees(log, list(turning), in_degrees)
        notes.append(note)
    return log, notes


def _from_degrees(log: Log, turning: list[int], bad: list[int]) -> tuple[Log, str]:
    """Bring all joints that turn to radians, where some are clearly in degrees: a robot has one unit."""
    q, v, a = log.q.copy(), _copy(log.v), _copy(log.a)
    agree = v is None or log.t is None
    if log.t is not None and v is not None:
        agree = all(_is_near(slope(log.t, q[:, k], v[:, k]) or 1.0, 1.0) for k in bad)
    q[:, turning] /= DEGREES
    if agree:
        for rate in (v, a):
            if rate is not None:
                rate[:, turning] /= DEGREES
    columns = ", ".join(f"'{log.column('q', k)}'" for k in bad[:3])
    what = "positions and their rates" if agree else "positions"
    note = f"units: {columns} leave the joints' range: in degrees; {what} that turn are multiplied by pi/180"
    return replace(log, q=q, v=v, a=a), note


def _leaves(q: Array, joint: Joint) -> bool:
    lower, upper = float(joint.lower[0]), float(joint.upper[0])
    reach = max(4 * np.pi, 2 * max((abs(x) for x in (lower, upper) if np.isfinite(x)), default=0.0))
    return float(np.quantile(np.abs(q), TYPICAL)) > reach


def _turning(model: Model) -> list[tuple[int, Joint]]:
    scalar = [j for j in model.joints if j.nv]
    return [(k, j) for k, j in enumerate(scalar) if j.nv == 1 and j.kind != "prismatic"]


def _rates(log: Log, model: Model) -> tuple[Log, list[str]]:
    """Scale velocities and accelerations that are another unit's, another sign's, or a motor's, column by column."""
    notes: list[str] = []
    for slow, fast in (("q", "v"), ("v", "a")):
        x, rate = getattr(log, slow), _copy(getattr(log, fast))
        if x is None or rate is None or log.t is None or x.shape != rate.shape:
            continue
        for k in range(x.shape[1]):
            found = slope(log.t, x[:, k], rate[:, k])
            if found is None or _is_near(found, 1.0):
                continue
            rate[:, k] *= found
            notes.append(
                f"units: column '{log.column(fast, k)}' is {_named(found)} of the rate of '{log.column(slow, k)}': "
                f"multiplied by {found:.4g}"
            )
        log = replace(log, **{fast: rate})
    return log, notes


def _named(found: float) -> str:
    """Return what a rate is, that must be multiplied by a number."""
    if _is_near(found, -1.0):
        return "the opposite sign"
    if _is_near(abs(found), 1 / DEGREES):
        return "in degrees, 57.3 times the size"
    return f"{1 / found:.4g} times the size (the motor's side of a gear?)"


def slope(t: Array, x: Array, rate: Array) -> float | None:
    """Return the slope of x over the integral of its rate, which should be 1; None if the two do not resemble each other."""
    path = np.concatenate([[0.0], np.cumsum(np.diff(t) * (rate[1:] + rate[:-1]) / 2)])
    # A steady offset of the rate drifts: take a straight line out of both.
    basis = np.stack([np.ones_like(t), t - t.mean()], -1)
    x, path = (y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0] for y in (x, path))
    power = np.sqrt((path @ path) * (x @ x))
    if power == 0 or abs(x @ path) < ALIKE * power:
        return None
    return float((x @ path) / (path @ path))


def _is_near(value: float, wanted: float) -> bool:
    return value * wanted > 0 and 1 / NEAR < value / wanted < NEAR


def _copy(x: Array | None) -> Array | None:
    return None if x is None else x.copy()
