"""Random states near a singularity: chains, fingers and legs that are almost straight, with their tips in the floor.

There friction and the normal force together hardly move anything, and a correction of overlap that asks for a speed could cost any
energy. What counts is the energy that corrections add beyond what the impulses of the same step take from the motion. The push is
the difference of ends with it and without (`Hard(erp=0)`), as `world.energy` has them; what impulses take, less the work of lifting
within the slop, NumPy computes from masses, Jacobian and impulses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

import costate as cs
from benchmarks.convergence.problems import Problems, Recorder
from benchmarks.convergence.robots import GROUND, D, normal
from costate.model import Transform

DT = 0.0025
DEEP = 1e-3
"""Tips of straight limbs are as deep in the floor [m]."""
BENT, SPEED = 0.03, 0.3
"""Standard deviations of the angles by which limbs are not straight [rad], and of velocities [rad/s and m/s]."""
CHUNK = 2048
DOWN = np.diag([1.0, -1.0, -1.0])


@dataclass(frozen=True)
class Limbs:
    """A robot over a floor, with a contact model; and its states."""

    world: Callable[[cs.ContactModel | None], cs.World]
    states: Callable[[cs.World, int, torch.Generator], torch.Tensor]


@dataclass(frozen=True)
class Gains:
    """Changes of energy in a step from each of some states [J], (b,)."""

    pushed: np.ndarray
    """Energy that the push adds."""
    taken: np.ndarray
    """Energy that impulses take, less the work of lifting."""
    energy: np.ndarray
    """Energy at the end, without the push: rounding is relative to it."""

    @property
    def gained(self) -> np.ndarray:
        """Return what corrections add beyond what impulses take."""
        return np.nan_to_num(self.pushed - self.taken, nan=math.inf)

    @property
    def largest(self) -> float:
        """Return the largest gain, and at least 0, relative to the energy, or to 1 J where that is less."""
        return float((self.gained / np.maximum(np.abs(self.energy), 1)).max(initial=0))


def gains(make: Callable[[cs.ContactModel | None], cs.World], states: torch.Tensor, contact: cs.Hard) -> Gains:
    """Measure a step from each state (b, nx). contact: a model without restitution."""
    world, plain = make(contact), Recorder(make(replace(contact, erp=0.0)))
    found = []
    for x in states.split(CHUNK):
        kept = plain.call(x)
        with torch.no_grad():
            end, without = (world.energy(y).numpy() for y in (world.step(x), torch.tensor(kept["after"])))
        found.append((end - without, taken(next(plain.split(kept))), without))
    return Gains(*map(np.concatenate, zip(*found, strict=True)))


def taken(given: Problems) -> np.ndarray:
    """Return the energy that impulses take, (b,): their work is P' v - P' M^-1 P / 2, of the momentum P = J' l that they give."""
    P = np.einsum("bij,bi->bj", given.J, given.impulses)
    return (P * np.linalg.solve(given.M, P[..., None])[..., 0]).sum(1) / 2 - (P * given.v).sum(1)


def _bent(world: cs.World, name: str, count: int, random: torch.Generator) -> torch.Tensor:
    x = world.initial_state(count, dtype=D)
    q, v = world.coordinates(name)
    x[:, q] = BENT * normal(random, count, q.stop - q.start)
    x[:, v] = SPEED * normal(random, count, v.stop - v.start)
    return x


def _hung(name: str, tip: str, R: np.ndarray) -> Limbs:
    """Return a robot whose straight limbs hang down to the floor."""

    def at(height: float, contact: cs.ContactModel | None) -> cs.World:
        return cs.World(
            {"limb": cs.load_robot(name)}, scenery=[GROUND], contact=contact, dt=DT, check=False,
            poses={"limb": Transform(R, np.array([0, 0, height]))}, collide=lambda a, b: tip in a + b,
        )  # fmt: skip

    looked = at(10.0, cs.Hard())
    straight = torch.zeros(looked.nx, dtype=D)
    height = 10.0 - float(looked.gaps(straight).min()) - DEEP
    return Limbs(lambda contact: at(height, contact), lambda w, n, random: _bent(w, "limb", n, random))


def chain(links: int) -> Limbs:
    return _hung(f"pendulum{links}", f"link_{links}", np.eye(3))


def hand() -> Limbs:
    return _hung("allegro_hand", "tip", DOWN)


def quadruped() -> Limbs:
    """Return a Laikago on straight legs, the deepest of its feet as deep as DEEP at most."""

    def world(contact: cs.ContactModel | None) -> cs.World:
        return cs.World(
            [cs.load_robot("laikago")], scenery=[GROUND], contact=contact, dt=DT, check=False,
            collide=lambda a, b: "toe" in a or "toe" in b,
        )  # fmt: skip

    def states(w: cs.World, count: int, random: torch.Generator) -> torch.Tensor:
        x = w.initial_state(count, dtype=D)
        x[:, 7:19] = BENT * normal(random, count, 12)
        x[:, 19:] = SPEED * normal(random, count, 18)
        depth = DEEP * torch.rand(count, dtype=D, generator=random)
        x[:, 2] -= w.gaps(x).amin(-1) + depth
        return x

    return Limbs(world, states)


SCENES: dict[str, tuple[Callable[[], Limbs], int]] = {
    "chain of two links": (lambda: chain(2), 30_000),
    "chain of five links": (lambda: chain(5), 20_000),
    "Allegro hand, fingers straight": (hand, 25_000),
    "Laikago on straight legs": (quadruped, 25_000),
}
"""Name -> robot, and how many of its states are looked at."""


def measured(contact: cs.Hard, most: int | None = None) -> Iterator[tuple[str, Gains]]:
    """Yield what is found of every robot. most: states of each at most."""
    for name, (make, count) in SCENES.items():
        limbs = make()
        states = limbs.states(limbs.world(contact), min(count, most or count), torch.Generator().manual_seed(0))
        yield name, gains(limbs.world, states, contact)
