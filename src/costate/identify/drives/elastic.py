"""Elastic joints: gears twist by the torque that they carry, so that the link is not where the motor is.

    tau = rotor and friction (theta', theta'') + tau_J             theta: position of the motor, which is logged
    q = theta - c tau_J,     tau_J = rigid-body torques (q, q', q'')     c: compliance, 1 / stiffness

Torques without elasticity are linear in all other parameters. So what the twist changes in them, e(c), is taken off the measured
ones, and compliances are found by Gauss-Newton together with these parameters: de/dc are further columns of the regressor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array
from costate.identify import solve
from costate.identify.base import Base
from costate.identify.derivatives import HALF_WIDTHS, differentiate, smoothed, windows
from costate.identify.filter import Filter
from costate.identify.log import Log
from costate.identify.noise.correlated import Scatter, intervals
from costate.identify.regressor import JOINT_TERMS, Regressor
from costate.robot.identified import with_parameters

ITERATIONS, ENOUGH = 20, 1e-4
"""Number of Gauss-Newton steps at most; change of a compliance, relative to its standard deviation or value, that is none."""
TWISTS = 4
"""Number of passes in which the link's motion and the torque between motor and link are made to agree. Each takes off a factor of
the square of the motion's frequency by that of the joint's resonance; more would only let noise above the resonance grow."""
FAITHFUL = 1e-3
"""Part of a torque that may be lost by smoothing it before it is differentiated."""
SMALL = 1e-4
"""Twist by which columns are found as differences [rad or m]."""
Rates = Callable[[Array, Array], tuple[Array, Array, Array]]
"""Function (columns, their joints) -> columns smoothed, their first and second derivatives in time."""


@dataclass(frozen=True, eq=False)
class Elastic:
    """Joints that twist, and by how much."""

    joints: tuple[str, ...]
    index: Array
    """Number of each of them among the velocities, shape (k,)."""
    compliance: Array
    """Twist by torque [rad/(N m) or m/N], not negative, shape (k,)."""
    rigid: Array
    """Inertial parameters by which torques between motors and links are computed, shape (10 links,)."""
    period: float | None
    scatter: Scatter
    """Scatter of the base parameters and of the compliances after them."""

    @property
    def std(self) -> Array:
        """Standard deviations of the compliances, with all parameters unknown, shape (k,)."""
        return self.scatter.std[-len(self.index) :]

    @property
    def stiffness(self) -> Array:
        """Stiffness of each joint [N m/rad or N/m]; infinite where nothing shows that it twists."""
        return 1 / np.maximum(self.compliance, 1e-300)

    @property
    def interval(self) -> tuple[Array, Array]:
        """Ends of the 95 % intervals of the stiffness; the upper one is infinite where the joint may be rigid."""
        effective = self.scatter.effective[-len(self.index) :]
        stiffest, softest = intervals(self.compliance, self.std, effective)
        return 1 / softest, np.where(stiffest > 0, 1 / np.maximum(stiffest, 1e-300), np.inf)

    def torques(self, regressor: Regressor, log: Log) -> Array:
        """Return what the twist of joints changes in the torques of a log, shape (N, nv)."""
        c, bare = np.zeros(log.tau.shape[1]), _bare(regressor)
        c[self.index] = self.compliance
        return _change(bare, log, c, self.rigid, _rates(bare, log, self.rigid, self.period))

    def table(self) -> list[str]:
        """Return the stiffnesses as lines of text."""
        lines = ["elastic joints: stiffness [N m/rad or N/m], 95 % interval"]
        for name, k, low, high in zip(self.joints, self.stiffness, *self.interval, strict=True):
            found = f"{k:.4g} ({low:.4g} to {high:.4g})" if np.isfinite(high) else f"at least {low:.4g}"
            lines.append(f"  {name:<26}{found}")
        return lines


def fit_elastic(
    joints: Sequence[str], regressor: Regressor, log: Log, filtered: Filter, base: Base, period: float | None
) -> Elastic:
    """Find the compliances of some joints ("all": of all of them). filtered: rows to use."""
    names, index = _chosen(joints, regressor)
    if log.t is None or not regressor.links:
        raise ValueError(
            "elastic joints need a log with time stamps, and inertial parameters among the terms to be found"
        )
    bare, size = _bare(regressor), 10 * len(regressor.links)
    scale = np.maximum(np.sqrt((log.tau**2).mean(0)), 1e-9)
    data = _equations(regressor, log, filtered, log.tau)
    found = solve.solve_linear(solve.Reduced.of(data), base.independent, scale)
    columns = np.concatenate([base.independent, regressor.size + np.arange(len(index))]).astype(int)
    x, rigid = np.concatenate([found.beta, np.zeros(len(index))]), np.zeros(size)
    rates: Rates | None = None
    for _ in range(ITERATIONS):
        c = np.zeros(log.tau.shape[1])
        c[index] = x[base.rank :]
        # Torques of a rigid robot may not tell a rotor from the link that it moves: there the robot's file decides.
        rigid = solve.nearest(x[: base.rank], regressor.pi(), base.independent, base.dependent, base.K)[:size]
        rates = rates or _rates(bare, log, rigid, period)
        own = np.stack([_column(bare, log, c, j, rigid, rates) for j in index], -1)
        rest = log.tau - _change(bare, log, c, rigid, rates)
        data = _equations(regressor, log, filtered, rest, own)
        found = solve.solve_linear(solve.Reduced.of(data), columns, scale)
        std = np.sqrt(np.diag(found.covariance))
        step = found.beta + np.where(columns < regressor.size, 0.0, x) - x
        if (np.abs(step) <= ENOUGH * np.maximum(std, np.abs(x))).all():
            break
        x = x + step
        x[base.rank :] = np.maximum(x[base.rank :], 0.0)
    return Elastic(names, index, x[base.rank :], rigid, period, data.scatter(columns, found.beta, found.sigma))


def _chosen(joints: Sequence[str], regressor: Regressor) -> tuple[tuple[str, ...], Array]:
    """Return names of joints, and their numbers among the velocities."""
    model = regressor.model
    single = {j.name: i for j, i in zip(model.joints, model.v_index, strict=True) if j.nv == 1}
    names = tuple(single) if "all" in joints else tuple(joints)
    for name in names:
        if name not in single:
            raise ValueError(f"elastic joint '{name}': joints with one axis are {', '.join(single)}; or say all")
    return names, np.array([single[name] for name in names], int)


def _bare(regressor: Regressor) -> Regressor:
    """Return the regressor of the links alone: rotors and friction are on the motors' side."""
    none = {(term, j.name): np.zeros(1) for term in JOINT_TERMS for j in regressor.model.joints if j.nv}
    return Regressor(with_parameters(regressor.model, none), regressor.links, ())


def _rates(bare: Regressor, log: Log, rigid: Array, period: float | None) -> Rates:
    """Return a function that smooths and differentiates torques, by the widest windows that leave them as they are.

    Between a motor and its link, noise grows where it is faster than the resonance of both: so it must not be followed.
    """
    assert log.v is not None and log.a is not None and log.t is not None
    t, torque = log.t, bare.torques(log.q, log.v, log.a, rigid)
    if period is not None:
        return lambda x, some: differentiate(t, x, period)
    halves, size = windows(t, torque), np.sqrt((torque**2).mean(0))
    for half in (h for h in HALF_WIDTHS if 2 * h + 1 <= len(t)):
        away = np.sqrt(((smoothed(t, torque, half)[0] - torque) ** 2).mean(0))
        halves = np.where(away <= FAITHFUL * size, np.maximum(halves, half), halves)
    return lambda x, some: differentiate(t, x, halves=halves[some])


def _change(bare: Regressor, log: Log, c: Array, rigid: Array, rates: Rates) -> Array:
    """Return the torques of the links where they are, less those where their motors are, shape (N, nv)."""
    assert log.v is not None and log.a is not None
    motor = (log.q, log.v, log.a)
    at_motor = bare.torques(*motor, rigid)
    torque, some = at_motor, np.flatnonzero(c)
    for _ in range(TWISTS if len(some) else 0):
        twist = [np.zeros_like(x) for x in motor]
        for x, own in zip(twist, rates(torque[:, some] * c[some], some), strict=True):
            x[:, some] = own
        q, v, a = (x - d for x, d in zip(motor, twist, strict=True))
        torque = bare.torques(q, v, a, rigid)
    return torque - at_motor


def _column(bare: Regressor, log: Log, c: Array, j: int, rigid: Array, rates: Rates) -> Array:
    """Return the change of the torques by the compliance of a joint, shape (N, nv): a difference."""
    h = SMALL / max(float(np.abs(log.tau[:, j]).max()), 1e-9)
    ends = [_change(bare, log, c + s * h * np.eye(len(c))[j], rigid, rates) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


def _equations(
    regressor: Regressor, log: Log, filtered: Filter, tau: Array, shared: Array | None = None
) -> solve.Equations:
    assert log.v is not None and log.a is not None
    return solve.Equations(regressor, log.q, log.v, log.a, tau, filtered, shared=shared)
