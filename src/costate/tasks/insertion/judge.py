"""Judging: whether episodes succeeded, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.tasks.insertion.episode import aligned
from costate.tasks.insertion.scene import ARM_Q, ARM_V
from costate.train import episode
from costate.train.episode import Trajectory

if TYPE_CHECKING:
    from costate.tasks.insertion.task import Insertion


MAX_ERROR, MAX_SPEED = 5e-4, 0.01
"""Largest error [m], and largest speed against the socket [m/s], of a success."""
MAX_TILT = torch.pi / 180
"""Largest tilt of a success [rad]."""
MAX_PENETRATION = 1e-4
"""Deepest overlap of a success [m]."""


@dataclass(frozen=True)
class Verdict(episode.Verdict):
    """The judgement of each insertion; errors are those of the bottle's foot when it should be seated [m]."""

    tilt: Tensor
    """Tilt of the bottle then [rad]."""
    kept_place: Tensor
    """True if error and tilt stayed within what is allowed from then on."""
    kept_still: Tensor
    """True if the speed stayed within what is allowed from then on."""
    penetration: Tensor
    """Deepest overlap with the socket at any time [m]."""
    within_limits: Tensor
    """True if joint positions, velocities, accelerations and jerks stayed within their limits."""
    peak_acceleration: Tensor
    """Highest acceleration of any joint [rad/s^2]."""
    peak_jerk: Tensor
    """Highest jerk of any joint [rad/s^3]."""
    seconds: Tensor
    """Duration of the motion [s]."""


def judge(task: Insertion, trajectory: Trajectory, tolerance: float = 1.0) -> Verdict:
    """Judge trajectories of any world by the criteria of the task; overlaps are measured in `task.world` unless they are given.

    tolerance: factor of the errors, speeds and overlaps that are allowed.
    """
    T, states = task.options.horizon, aligned(trajectory)
    position, tilt, velocity = task.errors(states)
    error, speed = position.norm(dim=-1), velocity.norm(dim=-1)
    kept_place = ((error[T:] <= tolerance * MAX_ERROR) & (tilt[T:] <= tolerance * MAX_TILT)).all(0)
    kept_still = (speed[T + 1 :] <= tolerance * MAX_SPEED).all(0)
    penetration = trajectory.measured.get("penetration")
    if penetration is None:
        penetration = (-task.world.gaps(states).amin((0, -1))).clamp(min=0.0)
    acceleration = states[..., ARM_V].diff(dim=0) / task.options.dt
    jerk = acceleration.diff(dim=0) / task.options.dt
    hardest = acceleration.abs().amax((0, -1)), jerk.abs().amax((0, -1))
    within = _within_limits(task, states)
    for peak, limit in zip(hardest, (task.options.acceleration_limit, task.options.jerk_limit), strict=True):
        within = within & (peak <= limit) if limit else within
    return Verdict(
        kept_place
        & kept_still
        & (penetration <= tolerance * MAX_PENETRATION)
        & within
        & states.isfinite().all(-1).all(0),
        error[T],
        tilt[T],
        kept_place,
        kept_still,
        penetration,
        within,
        *hardest,
        task.options.dt * (T - _begun(trajectory)),
    )


def _begun(trajectory: Trajectory) -> Tensor:
    """Return the time index that each episode begins with, (B,)."""
    begun = None if trajectory.episodes is None else trajectory.episodes.begun
    return torch.zeros(trajectory.states.shape[1], dtype=torch.long) if begun is None else begun


def _within_limits(task: Insertion, states: Tensor) -> Tensor:
    q, v = states[..., ARM_Q], states[..., ARM_V]
    low, high, fastest = (x.to(q.dtype) for x in (task.arm.lower, task.arm.upper, task.max_velocity))
    # A servo that is told to go at the limit may pass it by a rounding error, not by more.
    return ((q >= low) & (q <= high) & (v.abs() <= 1.001 * fastest)).all(-1).all(0)


@dataclass(frozen=True)
class Metrics(episode.Metrics):
    """The results of many insertions; errors in mm."""

    tilt_mean: float
    """Mean tilt [degrees]."""
    tilt_worst: float
    """Largest tilt [degrees]."""
    kept_place: float
    """Fraction that stayed within error and tilt."""
    kept_still: float
    """Fraction that stayed below the speed."""
    no_penetration: float
    """Fraction without more overlap than is allowed."""
    penetration_worst: float
    """Deepest overlap [mm]."""
    within_limits: float
    """Fraction whose joints stayed within their limits."""
    peak_acceleration: float
    """Mean over the episodes of the highest acceleration [rad/s^2]."""
    peak_jerk: float
    """Mean over the episodes of the highest jerk [rad/s^3]."""
    seconds: float
    """Duration of the motion, mean [s]."""

    def brief(self, unit: str) -> dict[str, str]:
        """Return the few numbers of a table with a row per case, as text."""
        more = {"mean tilt": f"{self.tilt_mean:.3f} deg", "worst overlap": f"{self.penetration_worst:.3f} {unit}"}
        return super().brief(unit) | more


def summarise(task: Insertion, verdict: Verdict) -> Metrics:
    """Return the metrics of a verdict."""
    v = verdict
    error, tilt = 1e3 * v.error.double(), torch.rad2deg(v.tilt.double())

    def share(x: Tensor) -> float:
        return float(x.double().mean())

    return Metrics(
        episodes=len(error),
        success=share(v.success),
        error_mean=float(error.mean()),
        error_95=float(error.quantile(0.95)),
        error_worst=float(error.max()),
        tilt_mean=float(tilt.mean()),
        tilt_worst=float(tilt.max()),
        kept_place=share(v.kept_place),
        kept_still=share(v.kept_still),
        no_penetration=share(v.penetration <= MAX_PENETRATION),
        penetration_worst=1e3 * float(v.penetration.max()),
        within_limits=share(v.within_limits),
        peak_acceleration=share(v.peak_acceleration),
        peak_jerk=share(v.peak_jerk),
        seconds=share(v.seconds),
    )
