"""Exciting trajectories: periodic motions within a robot's limits that make its parameters identifiable.

    q(t) = centre + sum over k of A_k sin(k w t) + B_k (cos(k w t) - 1)        w = 2 pi / period

The coefficients maximise log det(W^T W) of the base regressor W (D-optimality: the volume of the confidence region of the base
parameters is smallest, in whatever units), by Adam through the compiled regressor. The motion starts at rest.

After an identification the next motion is designed for what is still uncertain: the information of the data so far is added to that
of the motion, and the volume of the region after both is made small (Bayesian D-optimality: a round of active learning).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.core.arrays import Array
from costate.identify.base import Base
from costate.identify.excitation import Excitation, motion_at
from costate.identify.regressor import JOINT_TERMS, Regressor
from costate.identify.result import Identification
from costate.robot import Robot, load_robot

FREE_RANGE, FREE_SPEED = np.pi, 2.0
"""Half range [rad or m] and speed [rad/s or m/s] of joints without limits."""
FLOOR = 1e-12
"""Least information about a combination of parameters, relative to that about single ones."""


@dataclass(frozen=True)
class ExciteOptions:
    """Options of the design of an exciting motion."""

    period: float = 10.0
    """Period of the motion [s]."""
    harmonics: int = 5
    """Number of harmonics per joint."""
    margin: float = 0.9
    """Fraction of every limit (position around its middle, velocity, effort) that may be used."""
    max_acceleration: float | None = None
    """Largest acceleration [rad/s^2 or m/s^2]; None: no limit."""
    terms: tuple[str, ...] = ("inertial", *JOINT_TERMS)
    """Parameters that are to become identifiable."""
    samples: int = 120
    """Number of instants of the period at which the design looks at the motion. Limits are checked at ten times as many."""
    iterations: int = 300
    """Number of steps of Adam."""
    learning_rate: float = 0.03
    """Learning rate of Adam at the start."""
    restarts: int = 2
    """Number of random starts; the best is returned."""
    seed: int = 0
    """Seed of the random starts."""


@dataclass(frozen=True, eq=False)
class _Limits:
    """The limits of a motion, per joint."""

    centre: Array
    reach: Array
    speed: Array
    effort: Array
    acceleration: float

    @staticmethod
    def of(robot: Robot, options: ExciteOptions, centre: Array | None) -> _Limits:
        lower, upper = robot.model.lower, robot.model.upper
        bounded = np.isfinite(lower) & np.isfinite(upper)
        low, high = np.where(bounded, lower, -FREE_RANGE), np.where(bounded, upper, FREE_RANGE)
        middle = (low + high) / 2 if centre is None else np.asarray(centre, float)
        if ((middle < low) | (middle > high)).any():
            raise ValueError(f"centre {middle} is outside of the robot's limits {low} ... {high}")
        speed, effort = robot.model.max_velocity, robot.model.max_effort
        return _Limits(
            centre=middle,
            reach=options.margin * np.minimum(high - middle, middle - low),
            speed=options.margin * np.where(np.isfinite(speed) & (speed > 0), speed, FREE_SPEED),
            effort=options.margin * np.where(effort > 0, effort, np.inf),
            acceleration=np.inf if options.max_acceleration is None else options.max_acceleration,
        )

    def use(self, q: Any, v: Any, a: Any, tau: Any) -> list[Any]:
        """Return the part of every limit that is used, 1 at the limit: four arrays (N, n)."""
        limits = self.reach, self.speed, np.full_like(self.speed, self.acceleration), self.effort
        moved = q - self._like(q, self.centre), v, a, tau
        return [x / self._like(x, limit) for x, limit in zip(moved, limits, strict=True)]

    @staticmethod
    def _like(x: Any, limit: Array) -> Any:
        return torch.as_tensor(limit) if isinstance(x, Tensor) else limit


@dataclass(frozen=True, eq=False)
class _Known:
    """The information that data so far hold about base parameters, and the noise of torques."""

    information: Tensor
    """Inverse covariance of the base parameters of the design, zero for those not seen yet, shape (r, r)."""
    weight: Tensor
    """Information of one look at the motion, per joint: rows that will be logged for it by the variance of torques, shape (n,)."""

    @staticmethod
    def of(result: Identification, regressor: Regressor, base: Base, samples: int) -> _Known:
        if result.names != regressor.names:
            raise ValueError(
                f"after= is a result for {len(result.names)} parameters of '{result.prior.name}', the motion is designed for "
                f"{len(regressor.names)} of '{regressor.model.name}': give the same robot and terms"
            )
        to_beta = np.zeros((result.base.rank, len(result.names)))
        to_beta[:, result.base.independent] = np.eye(result.base.rank)
        to_beta[:, result.base.dependent] = result.base.K
        information = to_beta.T @ np.linalg.solve(result.covariance, to_beta)
        rows = samples if result.log is None else len(result.log)
        own = information[np.ix_(base.independent, base.independent)]
        return _Known(torch.as_tensor(own), torch.as_tensor(rows / samples / result.sigma**2))

    def volume(self, Y: Tensor) -> Tensor:
        """Return -log det of the information after the motion, whose regressor is Y (samples, n, r)."""
        W = (Y * self.weight.sqrt()[:, None]).reshape(-1, Y.shape[-1])
        return _volume(W.T @ W + self.information)


def excite(
    robot: Robot | str | Path,
    *,
    centre: Sequence[float] | Array | None = None,
    after: Identification | None = None,
    progress: Callable[[int, float], None] | None = None,
    **options: Any,
) -> Excitation:
    """Design a periodic motion from which a robot's parameters can be identified.

    Collisions are not looked at: choose `centre` (start, and middle of the motion; default the middle of the limits) and `margin`
    such that there is room.

    Args:
        after: Result of an identification: the motion is designed for what it leaves uncertain, as long a log again assumed.
        progress: Called with the iteration and the objective.
        options: Fields of `ExciteOptions`.
    """
    chosen = ExciteOptions(**options)
    robot = robot if isinstance(robot, Robot) else load_robot(robot)
    model = robot.identified_model()
    if model.nq != model.nv:
        raise ValueError(
            f"robot '{model.name}' has joints with quaternions; exciting motions are for single-axis joints"
        )
    regressor = Regressor.of(model, chosen.terms)
    limits = _Limits.of(robot, chosen, None if centre is None else np.asarray(centre, float))
    base = _structure(regressor, limits)
    known = None if after is None else _Known.of(after, regressor, base, chosen.samples)
    with torch.enable_grad():
        starts = range(chosen.seed, chosen.seed + chosen.restarts)
        found = [_design(regressor, base, limits, chosen, seed, progress, known) for seed in starts]
    sine, cosine, history = min(found, key=lambda x: x[2][-1])
    return _finish(regressor, base, limits, chosen, model, sine, cosine, history)


def _structure(regressor: Regressor, limits: _Limits) -> Base:
    """Return the combinations of parameters that show at all: those of random states."""
    rng = np.random.default_rng(0)
    n = len(limits.centre)
    q = limits.centre + limits.reach * rng.uniform(-1, 1, (200, n))
    v, a = limits.speed * rng.uniform(-1, 1, (200, n)), 3 * rng.normal(size=(200, n))
    Y, _ = regressor.rows(q, v, a)
    return Base.of(Y.reshape(-1, regressor.size), regressor.names)


def _design(
    regressor: Regressor,
    base: Base,
    limits: _Limits,
    options: ExciteOptions,
    seed: int,
    progress: Any,
    known: _Known | None,
) -> tuple[Array, Array, list[float]]:
    """Run Adam on the coefficients, relative to the joints' reach, with penalties beyond the limits."""
    t = np.arange(options.samples) * options.period / options.samples
    random = torch.Generator().manual_seed(seed)
    n = len(limits.centre)
    x = 0.2 * torch.randn(2, options.harmonics, n, generator=random, dtype=torch.float64)
    x.requires_grad_()
    optimizer = torch.optim.Adam([x], lr=options.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.iterations)
    columns = torch.as_tensor(base.independent)
    pi = torch.as_tensor(regressor.pi())
    history: list[float] = []
    for k in range(options.iterations):
        optimizer.zero_grad()
        sine, cosine = _at_rest(x * torch.as_tensor(limits.reach))
        q, v, a = motion_at(torch.as_tensor(t), options.period, torch.as_tensor(limits.centre), sine, cosine)
        out = regressor.kernel(q=q, v=v, a=a)
        tau = out.Y @ pi + out.known
        excess = sum(((use.abs() - 1).clamp(min=0) ** 2).mean() for use in limits.use(q, v, a, tau))
        Y = out.Y[..., columns]
        W = Y.flatten(0, 1)
        objective = (_volume(W.T @ W) if known is None else known.volume(Y)) / base.rank + 100 * excess
        objective.backward()
        optimizer.step()
        schedule.step()
        history.append(objective.item())
        if progress:
            progress(k, history[-1])
    with torch.no_grad():
        sine, cosine = _at_rest(x * torch.as_tensor(limits.reach))
    return sine.numpy(), cosine.numpy(), history


def _volume(information: Tensor) -> Tensor:
    """Return -log det of an information matrix (r, r), in units in which its diagonal is 1, where a floor keeps it finite."""
    scale = information.diagonal().clamp(min=1e-24).sqrt()
    unit = information / scale / scale[:, None] + FLOOR * torch.eye(len(scale), dtype=information.dtype)
    return -(torch.linalg.slogdet(unit)[1] + 2 * scale.log().sum())


def _at_rest(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return coefficients whose motion starts without velocity (sum k A_k = 0) and acceleration (sum k^2 B_k = 0)."""
    k = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
    return x[0] - k * (k * x[0]).sum(0) / (k**2).sum(), x[1] - k**2 * (k**2 * x[1]).sum(0) / (k**4).sum()


def _finish(regressor, base, limits, options, model, sine, cosine, history) -> Excitation:
    """Shrink the motion until it keeps every limit on a fine grid, and find what it shows."""
    t = np.linspace(0, options.period, 10 * options.samples)
    scale = 1.0
    for _ in range(60):
        q, v, a = motion_at(t, options.period, limits.centre, scale * sine, scale * cosine)
        tau = regressor.torques(q, v, a, regressor.pi())
        worst = max(float(np.abs(use).max()) for use in limits.use(q, v, a, tau))
        if worst <= 1.0:
            break
        scale *= min(0.98, 0.999 / worst)
    else:
        raise ValueError(
            f"holding {model.name} at its centre takes more than {options.margin:g} of its effort limits; "
            "give another centre or margin"
        )
    Y, _ = regressor.rows(q, v, a)
    W = Y.reshape(-1, regressor.size)
    seen = W[:, base.independent] / np.linalg.norm(W[:, base.independent], axis=0)
    return Excitation(
        joints=[j.name for j in model.joints if j.nv],
        period=options.period,
        centre=limits.centre,
        sine=scale * sine,
        cosine=scale * cosine,
        rank=Base.of(W, regressor.names).rank,
        structural_rank=base.rank,
        condition=float(np.linalg.cond(seen)),
        history=history,
    )
