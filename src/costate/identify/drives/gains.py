"""Drive gains (torque per ampere) from two runs: one as the robot is, one with a payload of known mass.

Currents alone cannot tell a heavy robot with strong motors from a light one with weak motors. A known mass m can, on a link whose
columns of the regressor are Y_m, Y_h and Y_I:

    i = (Y pi + Y_f f) / k                                  without the payload
    i = (Y pi + Y_f f + Y_m m + Y_h h + Y_I I) / k          with it: where its mass is (h, I) is not known

Errors are those of currents, so that gains cannot shrink to make them small. Given the gains k, this is linear least squares; the
gains themselves are found by Gauss-Newton on their logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from costate.core.arrays import Array
from costate.identify.base import Base
from costate.identify.filter import Filter
from costate.identify.log import Columns, Log, from_table
from costate.identify.noise.correlated import scatter
from costate.identify.regressor import Regressor
from costate.identify.repair.prepare import prepare
from costate.identify.solve import side_by_side, triangle
from costate.identify.tables import read_table
from costate.robot import Robot, load_robot

_PASSES = 3


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of the drives, with standard deviations, and the first moment of the payload that goes with them."""

    values: Array
    """Torque per measured unit [N m/A or N/A], shape (nv,)."""
    std: Array
    """Standard deviations, shape (nv,)."""
    effective: Array
    """Effective sample sizes behind them, shape (nv,)."""
    moment: Array
    """First moment of the payload about the link's origin [kg m], shape (3,)."""


def drive_gains(
    robot: Robot | str | Path,
    run: str | Path | Mapping[str, Array],
    loaded: str | Path | Mapping[str, Array],
    mass: float,
    link: str | None = None,
    *,
    columns: Columns | None = None,
    header: str | None = None,
) -> Gains:
    """Return the gains of a robot's drives from a log of currents as it is, and one with a payload.

    mass: of the payload [kg]; link: to which it is fixed, default: the last one that moves; columns, header: as in `cs.identify`.
    """
    robot = robot if isinstance(robot, Robot) else load_robot(robot)
    regressor = Regressor.of(robot.model)
    ready = []
    for data in (run, loaded):
        table = dict(data) if isinstance(data, Mapping) else read_table(Path(data), header)[0]
        log = from_table(table, robot.model, columns, "the data" if isinstance(data, Mapping) else str(data))
        found = prepare(log, regressor, repair=True, check=False, drop_bad_rows=False, period=None)
        ready.append((found.log, found.filter))
    return find_gains(regressor, ready[:1], ready[1:], mass, link or regressor.links[-1])


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
    X = np.concatenate(blocks)
    base = Base.of(triangle(X[..., : regressor.size].reshape(-1, regressor.size)), regressor.names)
    columns = np.concatenate([base.independent, np.arange(regressor.size, X.shape[2])]).astype(int)
    # Per joint [columns | torque that is known | current], reduced to a triangle.
    factors = [triangle(X[:, j][:, columns]) for j in range(nv)]
    start, sigma = np.zeros(nv), np.array([np.linalg.norm(f[:, -1]) for f in factors]) / np.sqrt(len(X))

    def parts(logs: Array) -> tuple[Array, Array, Array]:
        k = np.exp(logs)
        A = np.concatenate([f[:, :-2] / (c * s) for f, c, s in zip(factors, k, sigma, strict=True)])
        b = np.concatenate([(f[:, -1] - f[:, -2] / c) / s for f, c, s in zip(factors, k, sigma, strict=True)])
        x = np.linalg.lstsq(A, b, rcond=1e-10)[0]
        return A, x, b - A @ x

    found = None
    for _ in range(_PASSES):
        found = least_squares(lambda logs: parts(logs)[2], start, x_scale=1.0)
        start = found.x
        error = np.split(
            found.fun * np.repeat(sigma, [len(f) for f in factors]), np.cumsum([len(f) for f in factors])[:-1]
        )
        sigma = np.array([np.linalg.norm(e) for e in error]) / np.sqrt(len(X))
    assert found is not None
    k, x = np.exp(found.x), parts(found.x)[1]
    # Derivatives of the currents by the logarithms of the gains and by all other unknowns, run by run.
    stretches = []
    for block in blocks:
        rows = block[..., columns]
        current = (rows[..., :-2] @ x + rows[..., -2]) / k
        J = np.concatenate([side_by_side(-current[..., None]), rows[..., :-2] / k[:, None]], 2)
        stretches.append((J, J / sigma[:, None] ** 2, rows[..., -1] - current))
    doubt = scatter(stretches).first(nv)
    return Gains(k, k * doubt.std, doubt.effective, x[-9:-6])


def _rows(regressor: Regressor, log: Log, filtered: Filter, at: int, mass: float) -> Array:
    """Return the columns of a run (m, nv, size + offsets nv + payload 9), what is known of its torque, and the current."""
    assert log.v is not None and log.a is not None
    Y, known = regressor.rows(log.q, log.v, log.a)
    payload = Y[..., at : at + 10]
    offset = side_by_side(np.ones((*log.tau.shape, 1)))
    sure = known + mass * payload[..., 0]
    columns = [Y, offset, payload[..., 1:] * float(mass > 0), sure[..., None], log.tau[..., None]]
    return filtered.apply(np.concatenate(columns, 2))
