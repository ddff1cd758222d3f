"""The softness of constraints: stiffness, damping and impedance from MuJoCo's solref and solimp, which may be inputs of a step.

    solref, solimp                              of all shapes, joints and equalities that have none of their own
    solref:SHAPE, solimp:SHAPE                  of one shape; those of two shapes are mixed
    solreflimit:JOINT, solimplimit:JOINT        of the limits of a joint or tendon
    solreffriction:JOINT, solimpfriction:JOINT  of its Coulomb friction

Whether solref is a time constant and a damping ratio, or a negative stiffness and damping, is what its default value says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.model.surface import Bounds, Softness, Surface, mixing_part
from costate.sim.contact.detect import Contact
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

OF_SHAPE = ("solref", "solimp")
OF_JOINT = {"solreflimit": "limit", "solimplimit": "limit", "solreffriction": "friction", "solimpfriction": "friction"}
"""Parameter of a joint -> the field of its bounds."""
IMPEDANCES = (1e-4, 0.9999)
"""Bounds MuJoCo puts on what files say."""
TINY = 1e-15
Number = float | SX


@dataclass(frozen=True, eq=False)
class Soft:
    """The softness of a constraint, with symbols where its numbers are inputs."""

    solref: tuple[Number, ...]
    solimp: tuple[Number, ...]
    is_time: bool
    """True if solref is a time constant and a damping ratio."""

    @property
    def is_tuned(self) -> bool:
        """Return whether any of its numbers is an input."""
        return any(isinstance(x, SX) for x in (*self.solref, *self.solimp))

    @staticmethod
    def of(softness: Softness) -> Soft:
        return Soft(softness.solref, softness.solimp, softness.solref[0] > 0)

    def given(self, solref: SX | None, solimp: SX | None) -> Soft:
        """Return it with symbols in place of its numbers."""
        return Soft(
            self.solref if solref is None else tuple(ca.vertsplit(solref)),
            self.solimp if solimp is None else tuple(ca.vertsplit(solimp)),
            self.is_time,
        )

    def reference(self, depth: SX, dt: float) -> tuple[SX, Number, Number]:
        """Return impedance d, stiffness k and damping b."""
        low, high = IMPEDANCES
        d0, d1, width, middle, power = self.solimp
        d0, d1, middle = (_least(_most(x, low), high) for x in (d0, d1, middle))
        d = _impedance(d0, d1, _most(width, 0.0), middle, _most(power, 1.0), depth)
        time, ratio = self.solref
        if self.is_time:
            time = _most(time, 2 * dt)
            return d, 1 / (d1 * time * ratio) ** 2, 2 / (d1 * time)
        return d, -time / d1**2, -ratio / d1


def _impedance(d0: Number, d1: Number, width: Number, middle: Number, power: Number, depth: SX) -> SX:
    tuned = any(isinstance(x, SX) for x in (d0, d1, width, middle, power))
    if not tuned and (d0 == d1 or width <= TINY):
        return SX((d0 + d1) / 2)
    x = ca.fmin(ca.fabs(depth) / (_most(width, TINY) if tuned else width), 1)
    if not tuned and power == 1:
        return d0 + (d1 - d0) * x
    left = 1 - x
    if isinstance(power, SX):  # the derivative of 0**p by p
        x, left = ca.fmax(x, 1e-300), ca.fmax(left, 1e-300)
    rise = x**power / middle ** (power - 1)
    settle = 1 - left**power / (1 - middle) ** (power - 1)
    return d0 + (d1 - d0) * ca.if_else(x <= middle, rise, settle)


def _most(a: Number, b: float) -> Number:
    return ca.fmax(a, b) if isinstance(a, SX) else max(a, b)


def _least(a: Number, b: Number) -> Number:
    return ca.fmin(a, b) if isinstance(a, SX) or isinstance(b, SX) else min(a, b)


class Softnesses:
    """The softness of every constraint of a world."""

    def __init__(self, s: Symbols, options: Newton):
        self.symbols, self.options = s, options
        own = (p.partition(":") for p in s.given)
        self.tuned = any(kind in (*OF_SHAPE, *OF_JOINT) for kind, _, _ in own)

    @property
    def usual(self) -> Soft:
        """The softness of what has none of its own."""
        return Soft.of(self.options.softness).given(*(self.symbols.given.get(kind) for kind in OF_SHAPE))

    def of_bounds(self, name: str, own: Bounds | None, which: str) -> Soft:
        """Return that of a joint's or tendon's limits or friction. which: field of its bounds."""
        given = self.symbols.given
        soft = self.usual if own is None else Soft.of(getattr(own, which))
        return soft.given(given.get(f"solref{which}:{name}"), given.get(f"solimp{which}:{name}"))

    def of_equality(self, own: Softness | None) -> Soft:
        return self.usual if own is None else Soft.of(own)

    def of_contact(self, t: Contact) -> Soft:
        assert t.surface is not None
        setup = self.symbols.setup
        at = [k for k, c in enumerate(setup.scene.colliders) if c.name in t.shapes]
        if not self.tuned or (min(at), max(at)) in setup.scene.listed:
            return Soft.of(t.surface.softness)
        sides = [self._of_shape(name) for name in t.shapes]
        (a, x), (b, y) = sides
        if a.priority != b.priority:
            return x if a.priority > b.priority else y
        return _mixed(x, y, mixing_part(a.solmix, b.solmix))

    def _of_shape(self, name: str) -> tuple[Surface, Soft]:
        """Return the surface of a shape, and its softness."""
        setup = self.symbols.setup
        collider = setup.collider(name)
        assert collider is not None
        own = collider.surface
        soft = self.usual if own is None else Soft.of(own.softness)
        symbols = {kind: symbol for (kind, at), symbol in self._of_shapes.items() if at == name}
        return own or Surface(), soft.given(symbols.get("solref"), symbols.get("solimp"))

    @property
    def _of_shapes(self) -> dict[tuple[str, str], SX]:
        found = {}
        for parameter, symbol in self.symbols.given.items():
            kind, _, owner = parameter.partition(":")
            collider = self.symbols.setup.collider(owner)
            if kind in OF_SHAPE and owner and collider is not None:
                found[kind, collider.name] = symbol
        return found


def _mixed(a: Soft, b: Soft, part: float) -> Soft:
    solimp = tuple(part * x + (1 - part) * y for x, y in zip(a.solimp, b.solimp, strict=True))
    pairs = list(zip(a.solref, b.solref, strict=True))
    if a.is_time and b.is_time:
        return Soft(tuple(part * x + (1 - part) * y for x, y in pairs), solimp, True)
    return Soft(tuple(_least(x, y) for x, y in pairs), solimp, False)  # stiffnesses are not times: the harder one


# --- defaults ---------------------------------------------------------------------------------------------------------


def usual_number(setup: Setup, softness: Softness, kind: str) -> np.ndarray:
    """Return the default of solref or solimp. Raises an error where everything has its own."""
    model = setup.scene.model
    shapes = {k for pair in setup.scene.pairs for k in pair if pair not in setup.scene.listed}
    plain = any(setup.scene.colliders[k].surface is None for k in shapes)
    bounded = [j for j in model.joints if j.friction or (j.nv == 1 and np.isfinite([j.lower[0], j.upper[0]]).any())]
    plain = plain or any(j.bounds is None for j in bounded) or any(c.softness is None for c in setup.constraints)
    if not plain:
        raise ValueError(
            f"parameter '{kind}': all shapes and joints of this world bring their own from a file; name one: '{kind}:SHAPE', "
            f"'{kind}limit:JOINT' or '{kind}friction:JOINT'"
        )
    return np.array(getattr(softness, kind), float)


def own_number(setup: Setup, softness: Softness, kind: str, owner: str) -> np.ndarray:
    """Return the default of a shape's or joint's own number."""
    if kind in OF_SHAPE:
        collider = setup.collider(owner)
        if collider is None:
            raise ValueError(f"parameter '{kind}:{owner}': no shape of that name; use {_names(setup)}")
        found = softness if collider.surface is None else collider.surface.softness
        return np.array(getattr(found, kind), float)
    bounds = {j.name: j.bounds for j in setup.scene.model.joints} | {t.name: t.given.bounds for t in setup.tendons}
    if owner not in bounds:
        raise ValueError(f"parameter '{kind}:{owner}': no joint of that name; use {', '.join(bounds)}")
    own = bounds[owner]
    found = softness if own is None else getattr(own, OF_JOINT[kind])
    return np.array(getattr(found, kind[: len("solref")]), float)


def _names(setup: Setup) -> str:
    return ", ".join(c.name for c in setup.scene.colliders) or "none"
