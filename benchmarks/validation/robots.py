"""Validation: gymnasium's ant and humanoid under random torques, by both engines.

They fall, roll and kick: single trajectories are chaotic, so that rounding decides where a robot is after seconds. For a tenth of a
second states must agree; over ten seconds heights, energies and contact forces must have the same distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np

from benchmarks.validation.twins import Comparison, Twins

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"


@dataclass(frozen=True)
class Case:
    """Options of how a robot is shaken."""

    size: float
    """Size of the controls, uniform in both directions."""
    held: int
    """Steps for which a control is held."""
    sampled: float
    """Time between samples of energy and force [s]."""


CASES = {"ant": Case(0.3, 5, 0.1), "humanoid": Case(0.4, 5, 0.1)}
MOMENT = 0.1
"""Time for which states are compared one by one [s]."""


def robot(name: str) -> Twins:
    """A file of gymnasium in both engines."""
    return Twins.of((ASSETS / f"{name}.xml").read_text(), self_collision=True)


def starts(twins: Twins, count: int, seed: int = 0) -> np.ndarray:
    """Draw disturbed states in which gymnasium starts its robots: MuJoCo's states (count, size)."""
    random = np.random.default_rng(seed)
    qpos = np.tile(twins.model.qpos0, (count, 1))
    qpos[:, 7:] += 0.1 * random.normal(size=(count, twins.model.nq - 7))
    return twins.states(qpos, 0.1 * random.normal(size=(count, twins.model.nv)))


def shake(name: str, twins: Twins, steps: int, count: int, seed: int = 1) -> np.ndarray:
    """Random controls (steps, count, nu) of MuJoCo's motors."""
    case = CASES[name]
    random = np.random.default_rng(seed)
    drawn = random.uniform(-case.size, case.size, (-(-steps // case.held), count, twins.model.nu))
    return np.repeat(drawn, case.held, axis=0)[:steps]


@dataclass(frozen=True)
class Episodes:
    """Measures of many episodes in both engines."""

    times: np.ndarray
    """Times [s], (t,)."""
    ours: dict[str, np.ndarray]
    """(t, n) each."""
    theirs: dict[str, np.ndarray]
    moments: np.ndarray
    """Largest difference of the states a moment after they were the same, at five times of the episodes, (5, n)."""

    def compare(self, since: float) -> dict[str, Comparison]:
        """Means over each episode from a time [s] on."""
        late = self.times >= since - 1e-9
        return {k: Comparison(self.ours[k][late].mean(0), self.theirs[k][late].mean(0)) for k in self.ours}


def episodes(name: str, twins: Twins, count: int, seconds: float) -> Episodes:
    """Both engines under the same controls, from the same states."""
    every = round(CASES[name].sampled / twins.dt)
    steps = round(seconds / twins.dt) // every * every
    start, controls = starts(twins, count), shake(name, twins, steps + every, count)
    ours = twins.run_ours(start, controls[:steps], every)
    theirs = twins.run_theirs(start, controls[:steps], every)
    at = controls[::every][: len(ours)]
    own, other = twins.ours(ours, at), twins.theirs(theirs, at)
    own["torso height, m"], other["torso height, m"] = ours[..., 2], theirs[..., 3]
    chosen = np.linspace(0, len(theirs) - 2, 5).astype(int)
    moments = np.array([_moment(twins, theirs[k], controls[k * every :]) for k in chosen])
    return Episodes(every * twins.dt * np.arange(len(ours)), own, other, moments)


def _moment(twins: Twins, start: np.ndarray, controls: np.ndarray) -> np.ndarray:
    steps = min(round(MOMENT / twins.dt), len(controls))
    ours = twins.run_ours(start, controls[:steps], every=steps)[-1]
    theirs = twins.run_theirs(start, controls[:steps], every=steps)[-1]
    return twins.difference(ours, theirs)
