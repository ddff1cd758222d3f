"""Validation: boxes stacked on the ground stay where they are.

A known answer without arithmetic: nothing moves. What does move is the solver's fault (impulses that are not finished tilt and
push the boxes) or the model's (soft contact sinks in under load, and soft friction creeps).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

import costate as cs
from costate.model.surface import Softness
from costate.sim import World

EDGE, MASS = 0.1, 1.0
"""Edge and mass of a box [m, kg]."""
SETTLED = 1.0
"""Time at which creep begins to count [s]."""
ALLOWED = 1e-3
"""Creep over a minute [m]."""


@dataclass(frozen=True)
class Setting:
    """Options of the simulation of a stack."""

    contact: cs.ContactModel
    dt: float
    """Control step [s]: where PGS starts from nothing."""
    substeps: int = 1


HARD = Softness((0.004, 1.0))
"""The stiffest contact MuJoCo's rules allow at a step of 2 ms."""
SETTINGS = {
    "Hard, 10 ms": Setting(cs.Hard(), 0.01),
    "Hard, 2 ms": Setting(cs.Hard(), 0.002),
    "PGS, 50 sweeps, 10 ms": Setting(cs.PGS(), 0.01),
    "PGS, 50 sweeps, 2 ms": Setting(cs.PGS(), 0.002),
    "PGS, 50 sweeps, 2 ms, warm start within 100 ms": Setting(cs.PGS(sweeps=50, warm_start=True), 0.1, 50),
    "Newton, pyramids, 2 ms": Setting(cs.Newton(softness=HARD), 0.002),
    "Newton, elliptic, 2 ms": Setting(cs.Newton(cone="elliptic", softness=HARD), 0.002),
    "Newton, elliptic, 2 ms, MuJoCo's own softness": Setting(cs.Newton(cone="elliptic"), 0.002),
}


@dataclass(frozen=True)
class Motion:
    """The motion of the boxes."""

    times: np.ndarray
    """Times [s], (n,)."""
    places: np.ndarray
    """Positions [m], (n, boxes, 3)."""

    @property
    def settling(self) -> float:
        """Furthest any box is from where it was put, once it has settled [m]."""
        return float(self._far(0.0)[self._index(SETTLED)])

    @property
    def creep(self) -> np.ndarray:
        """Furthest any box is from where it had settled [m], 0 before that, (n,)."""
        return np.where(self.times >= SETTLED - 1e-9, self._far(SETTLED), 0.0)

    def _far(self, since: float) -> np.ndarray:
        return np.linalg.norm(self.places - self.places[self._index(since)], axis=-1).max(-1)

    def _index(self, time: float) -> int:
        return int(np.searchsorted(self.times, time - 1e-9))


def stack(boxes: int, setting: Setting) -> tuple[World, torch.Tensor]:
    """A world, and its state with the boxes on each other, touching. A box may touch those next to it, and all the ground."""
    names = [f"box{k}" for k in range(boxes)]
    bodies = [cs.Body(name, [cs.shapes.box((EDGE, EDGE, EDGE))], MASS) for name in names]
    touching = [("ground", name) for name in names] + list(pairwise(names))
    world = World(
        bodies=bodies,
        scenery=[cs.Static("ground", cs.shapes.plane())],
        contact=setting.contact,
        dt=setting.dt,
        substeps=setting.substeps,
        collide=touching,
    )
    state = world.initial_state(dtype=torch.float64)
    for k, name in enumerate(names):
        state[world.coordinates(name)[0]][2] = (k + 0.5) * EDGE
    return world, state


def rest(setting: Setting, seconds: float, boxes: int = 10, samples: int = 120) -> Motion:
    """The stack left alone."""
    world, state = stack(boxes, setting)
    every = max(1, round(seconds / samples / setting.dt))
    steps = round(seconds / setting.dt) // every * every
    states = world.rollout(state, torch.zeros(steps, 0, dtype=state.dtype), checkpoint=every)
    places = [states[:, world.coordinates(f"box{k}")[0]][:, :3] for k in range(boxes)]
    return Motion(setting.dt * every * np.arange(len(states)), torch.stack(places, 1).numpy())
