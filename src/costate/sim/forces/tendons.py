"""Tendons over joints in a world: their lengths, and the forces of their springs, dampers and friction.

    length = J q + offset,   J constant,   force on the joints = J^T F

Limits, and friction where it is a bound, are rows of the contact model, as those of joints are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.model import Model
from costate.model.tendon import FixedTendon
from costate.physics.dynamics.passive import ALL_PASSIVE

if TYPE_CHECKING:
    from costate.sim.setup import Symbols

Terms = tuple[tuple[int, int, float], ...]
"""Indices in q and in v, and coefficients."""


@dataclass(frozen=True, eq=False)
class Length:
    """A weighted sum of coordinates: that of a tendon, or of a single joint."""

    terms: Terms
    offset: float = 0.0
    """Offset from joints that follow others at a distance (mimic)."""

    def of(self, q: SX) -> SX:
        return sum((c * q[iq] if c != 1.0 else q[iq] for iq, _, c in self.terms), SX(self.offset or 0))

    def rate(self, v: SX) -> SX:
        return sum((c * v[iv] if c != 1.0 else v[iv] for _, iv, c in self.terms), SX(0))

    def row(self, nv: int) -> SX:
        """Return J, (1, nv)."""
        J = SX(1, nv)
        for _, iv, c in self.terms:
            J[0, iv] = c
        return J


@dataclass(frozen=True, eq=False)
class Tendon:
    """A tendon of a world."""

    given: FixedTendon
    """Tendon as it was given, with the full names of its joints."""
    length: Length
    slack: tuple[float, float]
    """Lengths between which its spring does not pull [m]."""

    @property
    def name(self) -> str:
        return self.given.name


def resolve_tendons(model: Model, tendons: Iterable[FixedTendon]) -> tuple[Tendon, ...]:
    found = tuple(_resolve(model, t) for t in tendons)
    names = [*(j.name for j in model.joints), *(t.name for t in found)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"names of tendons and joints must differ, but {', '.join(twice)} appears twice: rename one")
    return found


def _resolve(model: Model, t: FixedTendon) -> Tendon:
    if not isinstance(t, FixedTendon):
        raise TypeError(f"a tendon is a FixedTendon(name, {{joint: coefficient}}), not {t!r}")
    assert model.home is not None  # merged models have one
    terms: dict[tuple[int, int], float] = {}
    offset = 0.0
    for name, coefficient in t.joints.items():
        k = _joint(model, t.name, name)
        mimic, at = model.joints[k].mimic, (model.q_index[k], model.v_index[k])
        terms[at] = terms.get(at, 0.0) + coefficient * (mimic.multiplier if mimic else 1.0)
        offset += coefficient * (mimic.offset if mimic else 0.0)
    length = Length(tuple((iq, iv, c) for (iq, iv), c in terms.items()), offset)
    home = offset + sum(c * float(model.home[iq]) for iq, _, c in length.terms)
    return Tendon(t, length, t.slack or (home, home))


def _joint(model: Model, tendon: str, name: str) -> int:
    scalar = {j.name: k for k, j in enumerate(model.joints) if j.kind in ("revolute", "continuous", "prismatic")}
    found = [k for full, k in scalar.items() if name in (full, full.partition("/")[2])]
    if len(found) != 1:
        why = "several robots have a" if found else "there is no"
        raise ValueError(
            f"tendon '{tendon}': {why} joint '{name}' with one coordinate to run over; there are {', '.join(scalar)}"
        )
    return found[0]


def tendon_forces(s: Symbols, q: SX, v: SX, friction: bool) -> SX:
    """Return the generalised forces of all springs and dampers, (nv,). friction: whether Coulomb friction acts too, smooth as that
    of joints."""
    total = SX(s.setup.nv, 1)
    for t in s.setup.tendons:
        force, speed = SX(0), t.length.rate(v)
        if t.given.stiffness:
            force = force - t.given.stiffness * stretch(t, t.length.of(q))
        if t.given.damping:
            force = force - t.given.damping * speed
        if friction and t.given.friction:
            force = force - t.given.friction * ca.tanh(speed / ALL_PASSIVE.friction_speed)
        if not force.is_zero():
            total = total + t.length.row(s.setup.nv).T * force
    return total


def stretch(t: Tendon, length: SX) -> SX:
    """Return how far the spring is pulled [m]; negative where it is pushed."""
    low, high = t.slack
    if low == high:
        return length - low
    pulled = ca.fmax(length - high, 0) if np.isfinite(high) else SX(0)
    return pulled + (ca.fmin(length - low, 0) if np.isfinite(low) else 0)


def tendon_energy(s: Symbols, q: SX) -> SX:
    """Return the energy of all springs [J]."""
    springs = [t for t in s.setup.tendons if t.given.stiffness]
    return sum((t.given.stiffness / 2 * stretch(t, t.length.of(q)) ** 2 for t in springs), SX(0))


def resistance(s: Symbols, q: SX) -> tuple[SX, SX]:
    """Return damping and stiffness of all tendons in the coordinates of v, (nv, nv) each."""
    D, K = (SX(s.setup.nv, s.setup.nv) for _ in range(2))
    for t in s.setup.tendons:
        J = t.length.row(s.setup.nv)
        outer = J.T @ J
        if t.given.damping:
            D = D + t.given.damping * outer
        if t.given.stiffness:
            low, high = t.slack
            length = t.length.of(q)
            pulls = SX(1) if low == high else ca.logic_or(length < low, length > high)
            K = K + t.given.stiffness * pulls * outer
    return D, K
