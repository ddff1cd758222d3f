"""One implicit step of cloth and ropes, as a program over fields.

The positions y at the end of a step of length h make this energy least (implicit Euler):

    sum m |y - x - h v - h^2 g|^2 / (2 h^2) + elements(y) + contact(y) + friction(y - x) + air(y - x)

Newton's method finds them. Its matrix is assembled once per step of it, 3 x 3 blocks of neighbours, and conjugate gradients
multiply with it. Bending and inertia, whose part does not change, and the coarser levels of the preconditioner (`coarse.py`) are
computed once per solve: points move too little in it to matter to them. Velocities are (y - x) / h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from costate.continuum.cloth.coarse import Coarse, inverse, levels_of, product
from costate.continuum.cloth.contact import Contacts
from costate.continuum.cloth.pairs import FIELDS, Pairs
from costate.continuum.cloth.room import room
from costate.continuum.cloth.scene import Group, Scene
from costate.kernel.fields import OWN, TOTAL, Entities, Field, FieldBuilder, Solution
from costate.kernel.ir.program import Program, Var
from costate.kernel.ops.fields.newton import Matrix

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
        program = self._program
        parts = program(self._steady, like), self._assemble(like), program(self._whole, like)
        room = self._room(like) if self.pairs else None
        matrix = Matrix(*parts, self._apply, self._precondition, program(self._scale, like), room)
        limits = self.solver.tolerance, self.solver.steps, self.solver.limit
        return f.solve(program(self._residual, like), start, args, None, *limits, matrix)

    def _program(self, make, like: list[Field | Var]) -> Program:
        g = FieldBuilder("cloth")
        ins = [g.carried(a.of, a.n) if isinstance(a, Field) else g.inputs(a.size)[0] for a in like]
        return g.program(*(v.var if isinstance(v, Field) else v for v in make(g, *ins)))

    def _split(self, args: tuple) -> tuple[list[Field], Field | None, list, list[Field], list[Field]]:
        """Split the arguments behind `own` into ties (none or one), air, contact, pairs, numbers of the elements."""
        n = len(self.scene.groups)
        rest, fixed = list(args[: len(args) - n]), list(args[len(args) - n :])
        hold = [rest.pop(0)] if self.held else []
        air = rest.pop(0) if self.windy else None
        m = len(rest) - (1 + FIELDS if self.pairs else 0)
        return hold, air, rest[:m], rest[m:], fixed

    def _moved(self, g: FieldBuilder, y: Field, drift: Field, own: Field) -> Field:
        if not self.pinned:
            return y
        return g.for_each(self.points, lambda y, d, o: o[1] * y + (1 - o[1]) * d, [y, drift, own])[0]

    def _residual(self, g: FieldBuilder, y: Field, drift: Field, own: Field, *args) -> list[Field]:
        hold, air, contact, near, fixed = self._split(args)
        moved = self._moved(g, y, drift, own)
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

    # --- its matrix -------------------------------------------------------------------------------------------------

    def _steady(self, g: FieldBuilder, y: Field, drift: Field, own: Field, *args) -> list[Field]:
        """Return what a solve computes once: numbers of all places, and the coarser levels of a positive definite matrix."""
        hold, air, contact, _, fixed = self._split(args)
        moved, none = self._moved(g, y, drift, own), g.constant([0.0])
        numbers = self._numbers(g, moved, own, hold, fixed)
        if not self.coarse.levels:
            return [numbers]
        full = self._parts(g, False, none, moved, fixed, own, air)
        touched = self.contacts.blocks(g, none, moved, own, contact)
        blocks = g.for_each(self.points, _joined(len(full), len(touched)), [own, *full, *touched])
        return [numbers, *self.coarse.assemble(g, blocks, numbers)]

    def _whole(self, g: FieldBuilder, y: Field, drift: Field, own: Field, *args) -> list[Field]:
        """Return all fields of the Hessian: numbers of all places, its coarser levels, and those of `_matrix`."""
        hold, _, _, _, fixed = self._split(args)
        numbers = self._numbers(g, self._moved(g, y, drift, own), own, hold, fixed)
        found = self._matrix(g, g.constant([1.0]), y, numbers, drift, own, *args)
        return [numbers, *self.coarse.assemble(g, found[:1], numbers), *found]

    def _numbers(self, g: FieldBuilder, moved: Field, own: Field, hold: list[Field], fixed: list[Field]) -> Field:
        """Return numbers of all places: bending, inertia and ties."""
        m, h2 = self.scene.pattern.m, self.h**2
        parts = self._parts(g, True, g.constant([0.0]), moved, fixed, own, None)

        def join(own: ca.SX, *given: ca.SX) -> ca.SX:
            found = given[len(hold) :]
            numbers = ca.SX(sum(found[1:], found[0])) if found else ca.SX.zeros(m)
            numbers[0] = numbers[0] + own[0] / h2 + (own[1] * given[0][0] if hold else 0)
            return numbers

        return g.for_each(self.points, join, [own, *hold, *parts])[0]

    def _parts(self, g: FieldBuilder, isotropic: bool, exact: Var, moved: Field, fixed, own: Field, air) -> list[Field]:
        """Return the blocks of all elements that have numbers (isotropic) or 3 x 3 blocks, kind by kind, as fields of points."""
        pattern, found = self.scene.pattern, []
        for group, numbers in zip(self.scene.groups, fixed, strict=True):
            if group.element.isotropic == isotropic:
                made = self._blocks(g, group, exact, moved, numbers, own, air)
                found.append(g.as_field(made.var, self.points, pattern.m if isotropic else 9 * pattern.m3))
        return found

    def _assemble(self, like: list[Field | Var]) -> Program:
        g = FieldBuilder("cloth matrix")
        (exact,) = g.inputs(1)

        def carried(a: Field | Var) -> Any:
            return g.carried(a.of, a.n) if isinstance(a, Field) else g.inputs(a.size)[0]

        y, steady = carried(like[0]), [g.carried(of, n) for of, n in self.coarse.steady]
        found = self._matrix(g, exact, y, steady[0], *map(carried, like[1:]))
        return g.program(*(v.var if isinstance(v, Field) else v for v in found))

    def _room(self, like: list[Field | Var]) -> Program:
        """Return the program (y, d, what the residual depends on) -> how far a step may go."""
        assert self.pairs
        g = FieldBuilder("cloth, room")
        y, d, _, *args = [
            g.carried(a.of, a.n) if isinstance(a, Field) else g.inputs(a.size)[0] for a in (like[0], *like)
        ]
        near = self._split((*args[1:],))[3]
        return g.program(room(self.pairs, g, y, d, near[1:7], near[7]))

    def _matrix(
        self, g: FieldBuilder, exact: Var, y: Field, numbers: Field, drift: Field, own: Field, *args
    ) -> list[Field]:
        """Return blocks of 3 x 3 numbers, and inverses of diagonal blocks; Hessians of pairs."""
        _, air, contact, near, fixed = self._split(args)
        moved = self._moved(g, y, drift, own)
        full = self._parts(g, False, exact, moved, fixed, own, air)
        touched = self.contacts.blocks(g, exact, moved, own, contact)
        H, steady = self.pairs.matrix(g, exact, moved, near[0], own, near[1:]) if self.pairs else (None, [])
        joined, k = _joined(len(full), len(touched)), len(full) + len(touched)

        def join(own: ca.SX, numbers: ca.SX, *fields: ca.SX) -> tuple[ca.SX, ca.SX]:
            blocks = joined(own, *fields[:k])
            own_block = ca.reshape(blocks[:9] + sum(fields[k:]), 3, 3) + numbers[0] * ca.SX.eye(3)
            return blocks, ca.vertcat(ca.vec(inverse(own_block)), own[1])

        found = g.for_each(self.points, join, [own, numbers, *full, *touched, *steady], [OWN, OWN])
        return [*found, *([H, *near[1:5], near[6]] if H else [])]

    def _blocks(
        self, g, group: Group, exact: Var, moved: Field, numbers: Field, own: Field, air: Field | None
    ) -> Field:
        element, pattern, k = group.element, self.scene.pattern, group.element.k
        table = g.table(group.entities, self.points, group.table)
        m = pattern.m if element.isotropic else pattern.m3
        places = Entities("places", pattern.places(m))
        slots = g.table(group.entities, places, pattern.slots(group.table, m))
        reads: list = [moved[table], numbers, exact]
        blown = air is not None and group.name == "triangles"
        reads += [air] if blown else []
        reads += [own[table]] if self.pinned else []

        def body(x: ca.SX, fixed: ca.SX, exact: ca.SX, *rest: ca.SX) -> ca.SX:
            H = element.hessian(x, fixed, exact)
            if blown:
                H += ca.kron(ca.SX.ones(3, 3), ca.mtimes(rest[0][:3], rest[0][:3].T))
            s = 1 if element.isotropic else 3
            free = rest[-1][:, 1] if self.pinned else ca.SX.ones(k)
            found = [H[s * a : s * a + s, s * b : s * b + s] * free[a] * free[b] for a in range(k) for b in range(k)]
            return ca.vertcat(*(ca.vec(t.T) for t in found))

        return g.for_each(group.entities, body, reads, [slots])[0]

    @cached_property
    def coarse(self) -> Coarse:
        """Coarser levels, for the preconditioner."""
        scene = self.scene
        return Coarse(scene.pattern, levels_of(scene.pattern, scene.rest, scene.body_of))

    def _carried(self, g: FieldBuilder) -> tuple[Field, list[Field], list[Field], list[Field]]:
        """Return numbers of all places, fields of the coarser levels, blocks and inverses, and those of pairs, as inputs."""
        near: list[tuple[Entities | None, int]] = []
        if self.pairs:
            near = [(self.pairs.entities, 144), *[(self.pairs.entities, 1)] * 4, (None, 2)]
        steady = [g.carried(of, n) for of, n in self.coarse.steady]
        finest = [g.carried(of, n) for of, n in self.coarse.finest_sizes]
        return steady[0], steady[1:], finest, [g.inputs(n)[0] if of is None else g.carried(of, n) for of, n in near]

    @cached_property
    def _apply(self) -> Program:
        g, pattern = FieldBuilder("cloth product"), self.scene.pattern
        p = g.carried(self.points, 3)
        numbers, _, (blocks, _), rest = self._carried(g)
        around = g.table(self.points, self.points, pattern.neighbours)

        def body(p: ca.SX, blocks: ca.SX, numbers: ca.SX) -> tuple[ca.SX, ...]:
            found = product(blocks, p[: pattern.m3, :]) + ca.mtimes(p.T, numbers)
            return (found,) if self.pairs else (found, ca.mtimes(p[0, :], found))

        found, *total = g.for_each(
            self.points, body, [p[around], blocks, numbers], [OWN] if self.pairs else [OWN, TOTAL]
        )
        if self.pairs:
            H, *at, span = rest
            found = g.for_each(self.points, lambda *q: sum(q), [found, *self.pairs.product(g, p, H, at, span)])[0]
        return g.program(found.var, *total)

    @cached_property
    def _precondition(self) -> Program:
        g = FieldBuilder("cloth preconditioner")
        r = g.carried(self.points, 3)
        _, coarser, (_, near), _ = self._carried(g)
        z, sums = self.coarse.precondition(g, r, near, coarser)
        return g.program(z.var, sums)


def _joined(full: int, touched: int):
    """Return the function of `own`, blocks of some kinds of elements and of contact, that adds them up."""

    def body(own: ca.SX, *fields: ca.SX) -> ca.SX:
        blocks = ca.SX(sum(fields[1:full], fields[0])) if full else ca.SX.zeros(9)
        for push in fields[full : full + touched]:
            blocks[:9] = blocks[:9] + own[1] * push
        return blocks

    return body
