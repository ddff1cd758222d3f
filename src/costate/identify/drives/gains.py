"""Drive gains (torque per ampere) from two runs: one as the robot is, one with a payload of known mass.

Currents alone cannot tell a heavy robot with strong motors from a light one with weak motors. A known mass can: with gains k on the
side of the unknowns,

    Y pi - k i = 0                          without the payload
    Y pi + Y_h h + Y_I I - k i = - Y_m m    with it: its mass m is known, where it is (h, I) is not

are linear equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array
from costate.identify.base import Base
from costate.identify.filter import Filter
from costate.identify.log import Log
from costate.identify.regressor import Regressor
from costate.identify.solve import side_by_side

_PASSES = 6


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of the drives, with standard deviations, and the first moment of the payload that goes with them."""

    values: Array
    """Torque per measured unit [N m/A or N/A], shape (nv,)."""
    std: Array
    """Standard deviations, shape (nv,)."""
    moment: Array
    """First moment of the payload about the link's origin [kg m], shape (3,)."""


def find_gains(
    regressor: Regressor,
    runs: Sequence[tuple[Log, Filter]],
    loaded: Sequence[tuple[Log, Filter]],
    mass: float,
    link: str,
) -> Gains:
    """Return the gains. runs, loaded: logs with currents in place of torques; mass: of the payload [kg], fixed to a link."""
    nv = regressor.model.nv
    at = 10 * regressor.links.index(link)
    blocks = [_rows(regressor, log, filtered, at, 0.0) for log, filtered in runs]
    blocks += [_rows(regressor, log, filtered, at, mass) for log, filtered in loaded]
    X = np.concatenate([block[0] for block in blocks])
    y = np.concatenate([block[1] for block in blocks])
    W = X.reshape(-1, X.shape[2])
    base = Base.of(np.linalg.qr(W[:, : regressor.size], mode="r"), regressor.names)
    columns = np.concatenate([base.independent, np.arange(regressor.size, W.shape[1])]).astype(int)
    sigma, x, inverse = np.ones(nv), np.zeros(len(columns)), np.zeros((0, 0))
    for _ in range(_PASSES):
        A, b = (X[..., columns] / sigma[:, None]).reshape(-1, len(columns)), (y / sigma).reshape(-1)
        size = np.maximum(np.linalg.norm(A, axis=0), 1e-12)
        inverse = np.linalg.pinv(A / size) / size[:, None]
        x = inverse @ b
        sigma = np.sqrt(((X[..., columns] @ x - y) ** 2).mean(0))
    std = np.linalg.norm(inverse, axis=1)
    return Gains(x[-nv:], std[-nv:], x[-nv - 9 : -nv - 6])


def _rows(regressor: Regressor, log: Log, filtered: Filter, at: int, mass: float) -> tuple[Array, Array]:
    """Return the columns of a run (m, nv, size + offsets + payload 9 + gains nv), and the right side (m, nv)."""
    assert log.v is not None and log.a is not None
    Y, known = regressor.rows(log.q, log.v, log.a)
    payload = Y[..., at : at + 10]
    more = payload[..., 1:] * float(mass > 0)
    offset = side_by_side(np.ones((*log.tau.shape, 1)))
    X = np.concatenate([Y, offset, more, -side_by_side(log.tau[..., None])], 2)
    y = -known - mass * payload[..., 0]
    both = filtered.apply(np.concatenate([X, y[..., None]], 2))
    return both[..., :-1], both[..., -1]
