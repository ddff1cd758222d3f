"""Tendons in a world: their lengths, and the forces of their springs, dampers and friction.

    d length / dt = J v,   force on the joints = J^T F

Limits, and friction where it is a bound, are rows of the contact model, as those of joints are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.model import Model
from costate.model import tendon as given
from costate.model.tendon import FixedTendon, SpatialTendon
from costate.physics import Parameters
from costate.physics.dynamics.passive import ALL_PASSIVE
from costate.physics.tree import Tree
from costate.sim.forces.configuration import Configuration
from costate.sim.forces.lengths import Length, Path, Sum

if TYPE_CHECKING:
    from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class Tendon:
    """A tendon of a world."""

    given: given.Tendon
    """Tendon as it was given, with the full names of its joints and links."""
    length: Length
    slack: tuple[float, float]
    """Lengths between which its spring does not pull [m]."""

    @property
    def name(self) -> str:
        return self.given.name


def resolve_tendons(model: Model, tendons: Iterable[given.Tendon]) -> tuple[Tendon, ...]:
    found = tuple(_resolve(model, t) for t in tendons)
    names = [*(j.name for j in model.joints), *(t.name for t in found)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"names of tendons and joints must differ, but {', '.join(twice)} appears twice: rename one")
    return found


def _resolve(model: Model, t: given.Tendon) -> Tendon:
    if isinstance(t, SpatialTendon):
        t = t.renamed(lambda name: name, lambda link: _link(model, t.name, link))
        length: Length = Path(t.path)
    elif isinstance(t, FixedTendon):
        length = _sum(model, t)
    else:
        raise TypeError(f"a tendon is a FixedTendon(name, {{joint: coefficient}}) or SpatialTendon, not {t!r}")
    return Tendon(t, length, t.slack or _at_home(model, length))


def _sum(model: Model, t: FixedTendon) -> Sum:
    terms: dict[tuple[int, int], float] = {}
    offset = 0.0
    for name, coefficient in t.joints.items():
        k = _joint(model, t.name, name)
        mimic, at = model.joints[k].mimic, (model.q_index[k], model.v_index[k])
        terms[at] = terms.get(at, 0.0) + coefficient * (mimic.multiplier if mimic else 1.0)
        offset += coefficient * (mimic.offset if mimic else 0.0)
    return Sum(tuple((iq, iv, c) for (iq, iv), c in terms.items()), offset)


def _at_home(model: Model, length: Length) -> tuple[float, float]:
    home = float(at_home(model, length.of))
    return home, home


def at_home(model: Model, expression: Callable[[Configuration], SX]) -> ca.DM:
    """Return the value of an expression of a configuration at home."""
    assert model.home is not None  # merged models have one
    q = SX.sym("q", model.nq)
    value = expression(Configuration(Tree.of(model, Parameters.of(model)), q))
    return ca.Function("home", [q], [ca.densify(value)])(ca.DM(model.home))


def _link(model: Model, tendon: str, name: str) -> str:
    """Return the full name of a link; a body also goes by its own name."""
    links = [link.name for link in model.links]
    found = [x for x in links if name in (x, x.partition("/")[2]) or x == f"{name}/body"]
    exact = [x for x in found if x == name] or found
    if len(exact) != 1:
        why = "several robots have a" if exact else "there is no"
        raise ValueError(f"tendon '{tendon}': {why} link '{name}' to run over; there are {', '.join(links)}")
    return exact[0]


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
    total, c = SX(s.setup.nv, 1), s.at(q)
    for t in s.setup.tendons:
        rubs = friction and t.given.friction
        if not (t.given.stiffness or t.given.damping or rubs):
            continue
        force, speed = SX(0), t.length.rate(c, v)
        if t.given.stiffness:
            force = force - t.given.stiffness * stretch(t, t.length.of(c))
        if t.given.damping:
            force = force - t.given.damping * speed
        if rubs:
            force = force - t.given.friction * ca.tanh(speed / ALL_PASSIVE.friction_speed)
        total = total + t.length.row(c).T * force
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
    return sum((t.given.stiffness / 2 * stretch(t, t.length.of(s.at(q))) ** 2 for t in springs), SX(0))


def resistance(s: Symbols, q: SX) -> tuple[SX, SX]:
    """Return damping and stiffness of all tendons in the coordinates of v, (nv, nv) each."""
    D, K = (SX(s.setup.nv, s.setup.nv) for _ in range(2))
    c = s.at(q)
    for t in s.setup.tendons:
        if not (t.given.damping or t.given.stiffness):
            continue
        J = t.length.row(c)
        outer = J.T @ J
        if t.given.damping:
            D = D + t.given.damping * outer
        if t.given.stiffness:
            low, high = t.slack
            length = t.length.of(c)
            pulls = SX(1) if low == high else ca.logic_or(length < low, length > high)
            K = K + t.given.stiffness * pulls * outer
    return D, K
