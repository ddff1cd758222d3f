"""The result of an identification: parameters, their uncertainty, and what the data could not tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from costate.core.arrays import Array
from costate.identify.base import Base
from costate.identify.drives.elastic import Elastic
from costate.identify.drives.fit import Drive
from costate.identify.filter import Filter
from costate.identify.log import Log
from costate.identify.noise.correlated import Scatter, intervals
from costate.identify.regressor import Regressor
from costate.identify.repair.clock import Clock
from costate.model import Model, write_urdf
from costate.robot import Robot

MOVING = 0.03
"""Part of its largest speed above which a joint moves."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The errors of torques in one part of the log."""

    index: Array
    """Indices of the samples."""
    before: Array
    """Root mean square error of the robot as given, per joint [N m or N], shape (nv,)."""
    after: Array
    """Root mean square error of the identified robot, likewise; both after the filter, if torques were filtered."""
    raw: Array
    """Root mean square error of the identified robot without the filter."""


@dataclass(frozen=True, eq=False)
class Validation:
    """The errors of torques in another log, relative to the root mean square torque, per joint (nv,)."""

    all: Array
    """Relative error of all rows."""
    moving: Array
    """Relative error of the rows in which the joint moves: at rest, friction may be anything up to its limit."""
    error: Array
    """Root mean square error of all rows [N m or N]."""

    @staticmethod
    def of(error: Array, tau: Array, v: Array) -> Validation:
        """Return the errors (N, nv) of torques, relative to them."""
        moving = np.abs(v) > MOVING * np.abs(v).max(0)

        def relative(mask: Array) -> Array:
            return np.sqrt((error**2 * mask).sum(0) / np.maximum((tau**2 * mask).sum(0), 1e-300))

        return Validation(relative(np.ones_like(moving)), relative(moving), np.sqrt((error**2).mean(0)))


@dataclass(frozen=True, eq=False)
class Identification:
    """The result of `cs.identify`."""

    model: Model
    """Model with the parameters found."""
    prior: Model
    """Model as given."""
    regressor: Regressor
    base: Base
    """Combinations of parameters that the data determine."""
    beta: Array
    """Estimates of the base parameters by weighted least squares, shape (rank,)."""
    scatter: Scatter
    """Scatter of beta: its covariance, and the effective sample size, if errors go together from row to row."""
    sigma: Array
    """Noise of the torques per joint, estimated [N m or N], shape (nv,)."""
    singular_values: Array
    """Singular values of the regressor with columns of unit length, descending: how well combinations of parameters show."""
    train: Fit
    test: Fit | None
    history: list[float] = field(default_factory=list)
    """Cost per iteration (Gauss-Newton) or per epoch (Adam)."""
    held_out_history: list[float] = field(default_factory=list)
    """Held-out cost per epoch (Adam)."""
    notes: list[str] = field(default_factory=list)
    log: Log | None = None
    """Data, with velocities and accelerations as used."""
    predicted: Array | None = None
    """Torques of the identified robot, shape (N, nv)."""
    filter: Filter | None = None
    """Filter that torques and regressor went through."""
    drive: Drive | None = None
    """Friction beyond damping and Coulomb friction."""
    elastic: Elastic | None = None
    """Stiffness of elastic joints, if it was asked for."""
    validation: Validation | None = None
    """Errors in another log, if one was given."""
    clock: Clock | None = None
    """Faults of the log's clock."""

    @property
    def robot(self) -> Robot:
        """Robot with the parameters found."""
        return Robot(self.model)

    @property
    def names(self) -> list[str]:
        """Names of the parameters that were to be found."""
        return self.regressor.names

    @property
    def values(self) -> Array:
        """Parameters found, in the order of `names`.

        Only their base combinations are determined by data; the rest is as near to the robot given as possible.
        """
        return self.regressor.pi(self.model)

    @property
    def std(self) -> Array:
        """Standard deviations of the base parameters, shape (rank,)."""
        return self.scatter.std

    @property
    def covariance(self) -> Array:
        """Covariance of the base parameters, shape (rank, rank)."""
        return self.scatter.covariance

    @property
    def interval(self) -> tuple[Array, Array]:
        """Ends of the 95 % confidence intervals of the base parameters."""
        return intervals(self.beta, self.std, self.scatter.effective)

    def distance(self, beta: Array) -> float:
        """Return the squared Mahalanobis distance of other base parameters from the estimate.

        It is chi-square with `base.rank` degrees of freedom if they are the true ones.
        """
        d = np.asarray(beta) - self.beta
        return float(d @ np.linalg.solve(self.covariance, d))

    def indistinct(self) -> list[str]:
        """Return, in words, which parameters these data cannot tell apart."""
        return self.base.indistinct()

    def save_urdf(self, path: str | Path) -> None:
        """Write the identified robot."""
        write_urdf(self.model, path)

    def plot(self, folder: str | Path) -> list[Path]:
        """Write the plots: torques, base parameters with intervals, singular values, progress."""
        from costate.identify.plot import write_plots

        return write_plots(self, Path(folder))

    def summary(self) -> str:
        """Return a page of text."""
        lines = [f"{self.prior.name}: {self.base.rank} of {len(self.names)} parameters can be told apart by these data"]
        if self.singular_values.size:
            seen = self.singular_values[: self.base.rank]
            lines.append(f"condition number of what can: {seen[0] / seen[-1]:.3g} (columns of unit length)")
        lines += ["", "root mean square error of torques [N m or N]"]
        lines.append(f"{'joint':<28}{'given':>12}{'identified':>12}{'held out':>12}{'noise':>12}")
        joints = [j.name for j in self.regressor.model.joints for _ in range(j.nv)]
        for k, name in enumerate(joints):
            held = f"{self.test.after[k]:12.4g}" if self.test else f"{'-':>12}"
            lines.append(
                f"{name:<28}{self.train.before[k]:12.4g}{self.train.after[k]:12.4g}{held}{self.sigma[k]:12.4g}"
            )
        if self.filter is not None and self.filter.half:
            raw = " ".join(f"{x:.3g}" for x in (self.test or self.train).raw)
            lines.append(
                f"(torques and model through the same filter of {2 * self.filter.half + 1} rows; without it, held out: {raw})"
            )
        lines += ["", "base parameters, estimate +- 95 %"]
        for k, wide in enumerate(self.interval[1] - self.beta):
            doubt = "   (not determined)" if wide > abs(self.beta[k]) else ""
            lines.append(f"{self.beta[k]:12.5g} +- {wide:<10.2g} {self.base.expression(k)}{doubt}")
        if self.base.dependent.size:
            lines += ["", "cannot be told apart by these data", *(f"  {line}" for line in self.indistinct())]
        if self.drive is not None and self.drive.errors:
            lines += ["", *self.drive.table()]
        if self.elastic is not None:
            lines += ["", *self.elastic.table()]
        if self.validation is not None:
            lines += ["", "another log: error by torque, all rows and moving rows [%]"]
            for k, name in enumerate(joints):
                lines.append(f"{name:<28}{100 * self.validation.all[k]:12.3g}{100 * self.validation.moving[k]:12.3g}")
        if self.notes:
            lines += ["", "notes", *(f"  {note}" for note in self.notes)]
        return "\n".join(lines)
