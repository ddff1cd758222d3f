"""One implicit step of cloth and ropes, as a program over fields.

The positions y at the end of a step of length h make this energy least (implicit Euler):

    sum m |y - x - h v - h^2 g|^2 / (2 h^2) + elements(y) + contact(y) + friction(y - x) + air(y - x)

Newton's method finds them, with the matrix of `matrix.py`. Velocities are (y - x) / h.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from costate.continuum.cloth.contact import Contacts
from costate.continuum.cloth.layers.pairs import FIELDS, Pairs
from costate.continuum.cloth.matrix import StepMatrix, program_of
from costate.continuum.cloth.scene import Group, Scene
from costate.kernel.fields import OWN, TOTAL, Entities, Field, FieldBuilder, Solution
from costate.kernel.ir.program import Var

TOLD = 4
"""Numbers about the solve of a step: converged, residual by weight, iterations of conjugate gradients, steps of Newton's method."""


@dataclass(frozen=True)
class Solver:
    """Limits of the solve of a step."""

    tolerance: float = 1e-6
    """Largest sum of squares of forces that do not balance, by that of the weights, as a root."""
    steps: int = 200
    """Largest number of steps of Newton's method."""
    limit: int = 600
    """Largest number of iterations of conjugate gradients in each of them."""


@dataclass(frozen=True, eq=False)
class Stepped:
    """Fields that a step needs beside positions and velocities, the same for all steps of a roll-out."""

    own: Field
    """Mass [kg] and whether a point is free (count, 2)."""
    fixed: list[Field]
    """Numbers of the elements of every group."""


@dataclass(frozen=True, eq=False)
class ClothStep:
    """The step of a scene."""

    scene: Scene
    h: float
    """Length of a step [s]."""
    contacts: Contacts
    pinned: bool
    """True if some points are pinned."""
    held: bool
    """True if some points are tied to places by springs."""
    windy: bool
    """True if air acts on triangles."""
    solver: Solver
    pairs: Pairs | None = None
    """Places for pairs of parts that are near each other."""

    @property
    def points(self) -> Entities:
        """All points."""
        return Entities("points", self.scene.count)

    # --- what does not change ---------------------------------------------------------------------------------------

    def prepare(self, f: FieldBuilder, rest: Field, free: Field, materials: dict[str, Field]) -> Stepped:
        """Return masses and numbers of elements, from the rest shape and the materials."""
        fixed, masses = [], []
        for group in self.scene.groups:
            numbers, mass = self._prepared(f, group, rest, materials)
            fixed.append(numbers)
            masses.append(mass)
        masses = [m for m in masses if m is not None]

        def body(free, *m):
            return ca.vertcat(sum(m[1:], m[0]), free)

        (own,) = f.for_each(self.points, body, [free, *masses])
        return Stepped(own, fixed)

    def _prepared(self, f: FieldBuilder, group: Group, rest: Field, materials: dict[str, Field]):
        of, element = group.entities, group.element
        table = f.table(of, self.points, group.table)
        material = materials[group.material]
        read = material[f.table(of, material.of, group.owners)] if group.owners.shape[1] > 1 else material

        def numbers(p: ca.SX) -> ca.SX:
            rows = p if group.owners.shape[1] > 1 and material.n > 1 else ca.reshape(p, 1, -1)
            rows = rows[:, list(group.columns)] if group.columns else rows
            return ca.vec(rows.T)

        if group.name in ("triangles", "segments"):

            def body(r, p):
                return element.prepare(r, numbers(p))

            return f.for_each(of, body, [rest[table], read], [OWN, table])
        return f.for_each(of, lambda r, p: element.prepare(r, numbers(p))[0], [rest[table], read])[0], None

    # --- the equation -----------------------------------------------------------------------------------------------

    def solve(
        self, f: FieldBuilder, start: Field, drift: Field, hold: Field | None, more: list[Field | Var], given: Stepped
    ) -> Solution:
        """Return the positions at the end of a step.

        Args:
            start: Where to start.
            drift: Where points would be if nothing but their weight acted on them; where pinned ones are.
            hold: Springs at points: stiffness [N/m], and the sum of stiffness times place [N] (4 numbers); None: none.
            more: Air (if windy), contact and friction (if anything can be touched), as they are at the beginning; positions at the
                beginning and pairs (if there are any).
            given: What does not change.
        """
        args = [drift, given.own, *([hold] if hold else []), *more, *given.fixed]
        like = [start, *args]
        matrix = StepMatrix(self).programs(like, program_of(self._scale, like))
        limits = self.solver.tolerance, self.solver.steps, self.solver.limit
        return f.solve(program_of(self._residual, like), start, args, None, *limits, matrix)

    def split(self, args: tuple) -> tuple[list[Field], Field | None, list, list[Field], list[Field]]:
        """Split the arguments behind `own` into ties (none or one), air, contact, pairs, numbers of the elements."""
        n = len(self.scene.groups)
        rest, fixed = list(args[: len(args) - n]), list(args[len(args) - n :])
        hold = [rest.pop(0)] if self.held else []
        air = rest.pop(0) if self.windy else None
        m = len(rest) - (1 + FIELDS if self.pairs else 0)
        return hold, air, rest[:m], rest[m:], fixed

    def moved(self, g: FieldBuilder, y: Field, drift: Field, own: Field) -> Field:
        if not self.pinned:
            return y
        return g.for_each(self.points, lambda y, d, o: o[1] * y + (1 - o[1]) * d, [y, drift, own])[0]

    def _residual(self, g: FieldBuilder, y: Field, drift: Field, own: Field, *args) -> list[Field]:
        hold, air, contact, near, fixed = self.split(args)
        moved = self.moved(g, y, drift, own)
        sums = []
        for group, numbers in zip(self.scene.groups, fixed, strict=True):
            table = g.table(group.entities, self.points, group.table)
            reads = [moved[table], numbers]
            body = group.element.gradient
            if air is not None and group.name == "triangles":
                reads, body = [*reads, air], self._blown
            sums += g.for_each(group.entities, body, reads, [table])
        push = self.contacts.gradient(g, moved, own, contact)
        if self.pairs:
            push += self.pairs.gradient(g, moved, near[0], own, near[1:])
        h2 = self.h**2

        def balance(y: ca.SX, drift: ca.SX, own: ca.SX, *forces: ca.SX) -> ca.SX:
            lacking = own[0] / h2 * (y - drift)
            total = lacking + sum(forces[len(hold) :])
            if hold:
                total += forces[0][0] * y - forces[0][1:]
            return own[1] * total + (1 - own[1]) * lacking

        return g.for_each(self.points, balance, [y, drift, own, *hold, *sums, *push])

    def _blown(self, x: ca.SX, fixed: ca.SX, air: ca.SX) -> ca.SX:
        """Return forces in a triangle and of the air on it; air: a vector a (3) and a number b such that each corner feels
        a (b - a (sum of corners))."""
        push = air[:3] * (ca.dot(air[:3], ca.sum1(x).T) - air[3])
        return self.scene.groups[0].element.gradient(x, fixed) + ca.vertcat(push, push, push)

    def _scale(self, g: FieldBuilder, y: Field, drift: Field, own: Field, *_) -> list[Var]:
        """Return the sum of squares of weights, with the usual gravity."""
        return g.for_each(self.points, lambda o: (9.81 * o[0]) ** 2, [own], [TOTAL])
