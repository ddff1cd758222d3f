"""Joints and torques in the wrong order or with the wrong sign, and torques in the wrong unit, as the robot's file tells.

The file's masses may be off by a third, but its torques still rise and fall with the measured ones. A mistake in a joint turns
that over; the one change of signs or order that puts it right is found by trying all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from costate.core.arrays import Array
from costate.identify.log import Log
from costate.identify.tables import LogError

SAMPLES = 400
"""Number of samples that are looked at."""
CLEAR = 0.05
"""Gain in explained shares, summed over joints, that a change must bring."""
HALVED = 0.5
"""Unexplained share after a change, by that before, up to which it is made."""
LITTLE = 0.02
"""Part of a torque that friction and rotor leave over, below which its size is not judged."""
DISTINCT = 0.7
"""Unexplained share after a change, by that after any other one, up to which it is made."""
AT_MOST = 3
"""Number of mistakes that are put right."""
Predict = Callable[[Log], Array]
"""Function that returns the torques of the robot's file (N, nv) for a log with velocities and accelerations."""


@dataclass(frozen=True)
class Change:
    """A change of order and sign of positions (with their rates) and torques."""

    text: str
    order_q: tuple[int, ...]
    sign_q: tuple[int, ...]
    order_tau: tuple[int, ...]
    sign_tau: tuple[int, ...]

    def apply(self, log: Log) -> Log:
        """Return the log with this change."""
        moved = {
            n: getattr(log, n)[:, self.order_q] * np.array(self.sign_q)
            for n in ("q", "v", "a")
            if getattr(log, n) is not None
        }
        return replace(log, **moved, tau=log.tau[:, self.order_tau] * np.array(self.sign_tau))


def repair_joints(log: Log, predict: Predict) -> tuple[Log, list[str]]:
    """Return the log with signs and order that fit the robot, and what was changed."""
    n = log.tau.shape[1]
    notes: list[str] = []
    if log.q.shape[1] != n or n == 0:
        return log, notes
    part = log.take(np.linspace(0, len(log) - 1, min(SAMPLES, len(log))).astype(int))
    for _ in range(AT_MOST):
        now = agreement(part, predict)
        tried = sorted(
            ((agreement(change.apply(part), predict).sum(), k, change) for k, change in enumerate(changes(log, n))),
            key=lambda each: -each[0],
        )
        best, _, change = tried[0]
        left, other = n - best, n - (tried[1][0] if len(tried) > 1 else 0.0)
        if best < now.sum() + CLEAR or left > HALVED * (n - now.sum()) or left > DISTINCT * other:
            break
        part, log = change.apply(part), change.apply(log)
        notes.append(
            f"joints: {change.text}: put right (the file explains {best / n:.0%} of the torques instead of {now.sum() / n:.0%})"
        )
    return _torque_unit(log, part, predict, notes)


def changes(log: Log, n: int) -> Iterator[Change]:
    """Yield the mistakes that are looked for."""
    same, plus = tuple(range(n)), (1,) * n
    for k in range(n):
        sign = tuple(-1 if i == k else 1 for i in range(n))
        q, tau = f"'{log.column('q', k)}' (with its rates)", f"'{log.column('tau', k)}'"
        yield Change(f"{tau} has the opposite sign", same, plus, same, sign)
        yield Change(f"{q} has the opposite sign", same, sign, same, plus)
        yield Change(f"{q} and {tau} have the opposite sign", same, sign, same, sign)
    for i, j in combinations(range(n), 2):
        order = tuple(j if k == i else i if k == j else k for k in range(n))
        q = f"'{log.column('q', i)}' and '{log.column('q', j)}' (with their rates)"
        tau = f"'{log.column('tau', i)}' and '{log.column('tau', j)}'"
        yield Change(f"{tau} are swapped", same, plus, order, plus)
        yield Change(f"{q} are swapped", order, plus, same, plus)
        yield Change(f"{q}, {tau} are swapped", order, plus, order, plus)
    if n > 1:
        minus, back = (-1,) * n, same[::-1]
        yield Change("all torques have the opposite sign", same, plus, same, minus)
        if n > 2:
            yield Change("the joints are in reverse order", back, plus, back, plus)


def agreement(log: Log, predict: Predict) -> Array:
    """Return the share of the measured torques that the file's explain, beside friction and rotor of each joint, shape (nv,)."""
    return _compare(log, predict(log))[0]


def _compare(log: Log, predicted: Array) -> tuple[Array, Array]:
    """Return the share of each torque that is explained (nv,), and the measured torque per predicted one (nv,)."""
    assert log.v is not None and log.a is not None
    share, ratio = np.zeros(log.tau.shape[1]), np.full(log.tau.shape[1], np.nan)
    for k in range(log.tau.shape[1]):
        v, a = log.v[:, k], log.a[:, k]
        own = np.stack([np.ones_like(v), v, np.tanh(v / 0.05), a], -1)
        y, x = (c - own @ np.linalg.lstsq(own, c, rcond=None)[0] for c in (log.tau[:, k], predicted[:, k]))
        whole = float(((log.tau[:, k] - log.tau[:, k].mean()) ** 2).sum())
        scale = max(float(x @ y) / max(float(x @ x), 1e-300), 0.0)
        left = float(((y - scale * x) ** 2).sum())
        share[k] = 1 - left / max(whole, 1e-300)
        if float(y @ y) > LITTLE * whole and left < 0.5 * float(y @ y):
            ratio[k] = scale
    return share, ratio


def _torque_unit(log: Log, part: Log, predict: Predict, notes: list[str]) -> tuple[Log, list[str]]:
    """Bring torques to N m; what looks like currents or torques of motors is refused with the gains it would take."""
    _, ratio = _compare(part, predict(part))
    sure = np.isfinite(ratio)
    if sure.sum() < max(1, len(sure) // 2):
        return log, notes
    typical = float(np.median(ratio[sure]))
    for factor, name in ((1e3, "mN m"), (1e-3, "kN m"), (1e6, "uN m")):
        if factor / 5 < typical < factor * 5:
            return replace(log, tau=log.tau / factor), [
                *notes,
                f"units: torques are in {name}: multiplied by {1 / factor:g}",
            ]
    if typical < 0.2 or typical > 5:
        gains = ", ".join(f"{1 / r:.3g}" if s else "?" for r, s in zip(ratio, sure, strict=True))
        raise LogError(
            f"{log.source}: torques are {typical:.3g} of what the robot needs, like currents or torques of motors behind gears; "
            f"give the gains (--gains, roughly {gains} by the robot's file), or pass check=False (--no-check)"
        )
    return log, notes
