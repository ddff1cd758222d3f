"""The contacts of one pair: what stages compute for it, as functions of the numbers that it reads.

A contact point is kept as its rows, `7 dim + 1` numbers: the directions of its axes as spatial vectors (the acceleration along one is
its product with that of the bodies against each other), its weight, its reference accelerations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program
from costate.physics.algebra.spatial import cross
from costate.sim.contact.newton.cost import Cost
from costate.sim.contact.newton.pairwise.kinds import Kind
from costate.sim.contact.newton.pairwise.movers import SIX
from costate.sim.contact.newton.rows import axes_of, contact_law

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

BENDS = SIX * (SIX + 1) // 2
"""Numbers of a symmetric matrix of bodies' motions."""


@dataclass(frozen=True, eq=False)
class PairContact:
    """The contacts of a pair of some kind."""

    kind: Kind
    options: Newton
    dt: float

    @property
    def cost(self) -> Cost:
        assert self.options.cone is not None and self.options.impratio is not None
        return Cost("contact", self.kind.condim, self.options.cone, self.options.impratio)

    @property
    def row(self) -> int:
        """Numbers of a contact point's rows."""
        return (SIX + 1) * self.kind.condim + 1

    @property
    def n(self) -> int:
        """Number of rows of a pair."""
        return self.kind.points * self.kind.condim

    # --- where ----------------------------------------------------------------------------------------------------

    def rows(self) -> Program:
        """Build (poses, sizes, own numbers, middle, velocities of both bodies) -> (whether the shapes touch, rows)."""
        b = ProgramBuilder("rows")
        geometry = self.kind.program.in_sizes
        *shapes, own, middle, va, vb = b.inputs(*geometry, self.kind.own, 3, SIX, SIX)
        (found,) = b.call(self.kind.program, *shapes)
        return b.program(*b.trace(self._rows, found, own, middle, va, vb))

    def _rows(self, found: SX, own: SX, middle: SX, va: SX, vb: SX) -> tuple[SX, SX]:
        kind, rows, weights = self.kind, list[SX](), list[SX]()
        friction, easy, soft = kind.law(own)
        for numbers in ca.vertsplit(found, kind.width):
            gap, point, normal, along = ca.vertsplit(numbers, [0, 1, 4, POINT, kind.width])
            slides, turns = axes_of(normal, along if along.numel() else None, kind.condim, self.options.cone)
            arm = point - middle
            directions = [ca.vertcat(d, cross(arm, d)) for d in (normal, *slides)]
            directions += [ca.vertcat(SX.zeros(3), d) for d in turns]
            W = ca.horzcat(*directions).T
            law = contact_law(self.options, self.dt, gap - kind.margin, W @ (va - vb), friction, easy, soft)
            rows += [*directions, law[1], law[0]]
            weights.append(law[1])
        return ca.if_else(reduce(ca.fmax, weights) > 0, 1, 0), ca.vertcat(*rows)

    # --- how hard -------------------------------------------------------------------------------------------------

    def _points(self, rows: SX) -> Iterator[tuple[SX, SX, SX]]:
        """Yield directions (dim, 6), weight and reference accelerations of every contact point."""
        for numbers in ca.vertsplit(rows, self.row):
            dim = self.kind.condim
            W = ca.reshape(numbers[: SIX * dim], SIX, dim).T
            yield W, numbers[SIX * dim], numbers[SIX * dim + 1 :]

    def _each(self, rows: SX, x: SX) -> Iterator[tuple[SX, list[SX], SX]]:
        """Yield directions, deviations and weight of every contact point."""
        parts = zip(self._points(rows), ca.vertsplit(x, self.kind.condim), strict=True)
        for (W, D, _), own in parts:
            yield W, ca.vertsplit(own), D

    def deviations(self, rows: SX, ra: SX, rb: SX) -> SX:
        """Return x = J a - aref of all rows (n,). ra, rb: accelerations of both bodies."""
        return ca.vertcat(*(W @ (ra - rb) - target for W, _, target in self._points(rows)))

    def along(self, rows: SX, ra: SX, rb: SX) -> SX:
        """Return J a of all rows (n,)."""
        return ca.vertcat(*(W @ (ra - rb) for W, _, _ in self._points(rows)))

    def value(self, rows: SX, own: SX, ra: SX, rb: SX) -> SX:
        """Return the cost."""
        friction, _, _ = self.kind.law(own)
        x = self.deviations(rows, ra, rb)
        return sum((self.cost.value(x, D, friction) for _, x, D in self._each(rows, x)), SX(0))

    def forces(self, rows: SX, own: SX, ra: SX, rb: SX) -> SX:
        """Return the forces along all rows (n,)."""
        friction, _, _ = self.kind.law(own)
        x = self.deviations(rows, ra, rb)
        return ca.vertcat(*(f for _, x, D in self._each(rows, x) for f in self.cost.force(x, D, friction)))

    def wrenches(self, rows: SX, own: SX, ra: SX, rb: SX) -> tuple[SX, SX]:
        """Return the wrenches on both bodies."""
        force = ca.vertsplit(self.forces(rows, own, ra, rb), self.kind.condim)
        total = sum((W.T @ f for (W, _, _), f in zip(self._points(rows), force, strict=True)), SX.zeros(SIX))
        return total, -total

    def terms(self, rows: SX, own: SX, ra: SX, rb: SX) -> tuple[SX, SX, SX, SX]:
        """Return the wrenches on both bodies, how they change with the acceleration of one against the other (BENDS,), and x."""
        friction, _, _ = self.kind.law(own)
        x, bend = self.deviations(rows, ra, rb), SX.zeros(SIX, SIX)
        for W, own_x, D in self._each(rows, x):
            bend = bend + W.T @ (self.cost.hessian(own_x, D, friction) @ W)
        lower = [bend[i, j] for i in range(SIX) for j in range(i + 1)]
        return *self.wrenches(rows, own, ra, rb), ca.vertcat(*lower), x

    def slopes(self, rows: SX, own: SX, x: SX, y: SX, state: SX) -> SX:
        """Return the slope of the cost at x + step y by the step, and its change. state: the step first."""
        friction, _, _ = self.kind.law(own)
        first, second = SX(0), SX(0)
        for (_, at, D), (_, rate, _) in zip(self._each(rows, x), self._each(rows, y), strict=True):
            d1, d2 = self.cost.along(at, rate, state[0], D, friction)
            first, second = first + d1, second + d2
        return ca.vertcat(first, second)

    def push(self) -> Program:
        """Build (poses, sizes, own numbers, middle, velocities, accelerations of both bodies) -> wrenches on both bodies."""
        b = ProgramBuilder("push")
        whole = self.rows()
        *given, ra, rb = b.inputs(*whole.in_sizes, SIX, SIX)
        _, rows = b.call(whole, *given)
        return b.program(*b.trace(self.wrenches, rows, given[4], ra, rb))
