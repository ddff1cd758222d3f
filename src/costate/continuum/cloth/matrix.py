"""The matrix of a step of cloth: blocks of neighbours, products with them, and the preconditioner.

It is assembled once per step of Newton's method, 3 x 3 blocks of neighbours, and conjugate gradients multiply with it. Bending and
inertia, whose part does not change, and the coarser levels of the preconditioner (`coarse.py`) are computed once per solve: points
move too little in it to matter to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca

from costate.continuum.cloth.coarse import Coarse, inverse, levels_of, product
from costate.continuum.cloth.layers.room import room
from costate.continuum.cloth.scene import Group
from costate.kernel.fields import OWN, TOTAL, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.ops.fields.newton import Matrix

if TYPE_CHECKING:
    from costate.continuum.cloth.step import ClothStep


@dataclass(frozen=True, eq=False)
class StepMatrix:
    """Programs of the matrix of a step. What they take is what the residual of the step depends on."""

    step: ClothStep

    def programs(self, like: list[Field | Var], scale: Program) -> Matrix:
        """Return all programs. like: what the residual takes; scale: what its square is compared with."""
        parts = program_of(self._steady, like), self._assemble(like), program_of(self._whole, like)
        room = self._room(like) if self.step.pairs else None
        return Matrix(*parts, self._apply, self._precondition, scale, room)

    def _steady(self, g: FieldBuilder, y: Field, drift: Field, own: Field, *args) -> list[Field]:
        """Return what a solve computes once: numbers of all places, and the coarser levels of a positive definite matrix."""
        hold, air, contact, _, fixed = self.step.split(args)
        moved, none = self.step.moved(g, y, drift, own), g.constant([0.0])
        numbers = self._numbers(g, moved, own, hold, fixed)
        if not self.coarse.levels:
            return [numbers]
        blocks = self._full(g, none, moved, fixed, own, air, contact)
        return [numbers, *self.coarse.assemble(g, [blocks], numbers)]

    def _whole(self, g: FieldBuilder, y: Field, drift: Field, own: Field, *args) -> list[Field]:
        """Return all fields of the Hessian: numbers of all places, its coarser levels, and those of `_matrix`."""
        hold, _, _, _, fixed = self.step.split(args)
        numbers = self._numbers(g, self.step.moved(g, y, drift, own), own, hold, fixed)
        found = self._matrix(g, g.constant([1.0]), y, numbers, drift, own, *args)
        return [numbers, *self.coarse.assemble(g, found[:1], numbers), *found]

    def _numbers(self, g: FieldBuilder, moved: Field, own: Field, hold: list[Field], fixed: list[Field]) -> Field:
        """Return numbers of all places: bending, inertia and ties."""
        m, h2 = self.step.scene.pattern.m, self.step.h**2
        parts = self._parts(g, True, g.constant([0.0]), moved, fixed, own, None)

        def join(own: ca.SX, *given: ca.SX) -> ca.SX:
            found = given[len(hold) :]
            numbers = ca.SX(sum(found[1:], found[0])) if found else ca.SX.zeros(m)
            numbers[0] = numbers[0] + own[0] / h2 + (own[1] * given[0][0] if hold else 0)
            return numbers

        return g.for_each(self.step.points, join, [own, *hold, *parts])[0]

    def _parts(self, g: FieldBuilder, isotropic: bool, exact: Var, moved: Field, fixed, own: Field, air) -> list[Field]:
        """Return the blocks of all elements that have numbers (isotropic) or 3 x 3 blocks, kind by kind, as fields of points."""
        pattern, found = self.step.scene.pattern, []
        for group, numbers in zip(self.step.scene.groups, fixed, strict=True):
            if group.element.isotropic == isotropic:
                made = self._blocks(g, group, exact, moved, numbers, own, air)
                found.append(g.as_field(made.var, self.step.points, pattern.m if isotropic else 9 * pattern.m3))
        return found

    def _assemble(self, like: list[Field | Var]) -> Program:
        g = FieldBuilder("cloth matrix")
        (exact,) = g.inputs(1)

        (y,) = carried(g, like[:1])
        steady = [g.carried(of, n) for of, n in self.coarse.steady]
        found = self._matrix(g, exact, y, steady[0], *carried(g, like[1:]))
        return g.program(*(v.var if isinstance(v, Field) else v for v in found))

    def _room(self, like: list[Field | Var]) -> Program:
        """Return the program (y, d, what the residual depends on) -> how far a step may go."""
        assert self.step.pairs
        g = FieldBuilder("cloth, room")
        y, d, _, _, *args = carried(g, [like[0], *like])
        near = self.step.split(tuple(args))[3]
        return g.program(room(self.step.pairs, g, y, d, near[1:7], near[7]))

    def _matrix(self, g: FieldBuilder, exact: Var, y: Field, numbers: Field, drift: Field, own: Field, *args) -> list:
        """Return blocks of 3 x 3 numbers, and inverses of diagonal blocks; Hessians of pairs."""
        _, air, contact, near, fixed = self.step.split(args)
        moved = self.step.moved(g, y, drift, own)
        blocks = self._full(g, exact, moved, fixed, own, air, contact)
        H, steady = self.step.pairs.matrix(g, exact, moved, near[0], own, near[1:]) if self.step.pairs else (None, [])

        def invert(own: ca.SX, numbers: ca.SX, blocks: ca.SX, *more: ca.SX) -> ca.SX:
            own_block = ca.reshape(blocks[:9] + sum(more), 3, 3) + numbers[0] * ca.SX.eye(3)
            return ca.vertcat(ca.vec(inverse(own_block)), own[1])

        inverses = g.for_each(self.step.points, invert, [own, numbers, blocks, *steady])
        return [blocks, *inverses, *([H, *near[1:5], near[6]] if H else [])]

    def _full(self, g: FieldBuilder, exact: Var, moved: Field, fixed, own: Field, air, contact: list) -> Field:
        """Return the blocks of 3 x 3 numbers of all elements and of contact with shapes."""
        full = self._parts(g, False, exact, moved, fixed, own, air)
        touched = self.step.contacts.blocks(g, exact, moved, own, contact)
        if len(full) == 1 and not touched:
            return full[0]

        def body(own: ca.SX, *fields: ca.SX) -> ca.SX:
            blocks = ca.SX(sum(fields[1 : len(full)], fields[0])) if full else ca.SX.zeros(9)
            for push in fields[len(full) :]:
                blocks[:9] = blocks[:9] + own[1] * push
            return blocks

        return g.for_each(self.step.points, body, [own, *full, *touched])[0]

    def _blocks(
        self, g, group: Group, exact: Var, moved: Field, numbers: Field, own: Field, air: Field | None
    ) -> Field:
        element, pattern, k = group.element, self.step.scene.pattern, group.element.k
        table = g.table(group.entities, self.step.points, group.table)
        m = pattern.m if element.isotropic else pattern.m3
        places = Entities("places", pattern.places(m))
        slots = g.table(group.entities, places, pattern.slots(group.table, m))
        reads: list = [moved[table], numbers, exact]
        blown = air is not None and group.name == "triangles"
        reads += [air] if blown else []
        reads += [own[table]] if self.step.pinned else []

        def body(x: ca.SX, fixed: ca.SX, exact: ca.SX, *rest: ca.SX) -> ca.SX:
            H = element.hessian(x, fixed, exact)
            if blown:
                H += ca.kron(ca.SX.ones(3, 3), ca.mtimes(rest[0][:3], rest[0][:3].T))
            s = 1 if element.isotropic else 3
            free = rest[-1][:, 1] if self.step.pinned else ca.SX.ones(k)
            found = [H[s * a : s * a + s, s * b : s * b + s] * free[a] * free[b] for a in range(k) for b in range(k)]
            return ca.vertcat(*(ca.vec(t.T) for t in found))

        return g.for_each(group.entities, body, reads, [slots])[0]

    @cached_property
    def coarse(self) -> Coarse:
        """Coarser levels, for the preconditioner."""
        scene = self.step.scene
        return Coarse(scene.pattern, levels_of(scene.pattern, scene.rest, scene.body_of))

    def _carried(self, g: FieldBuilder) -> tuple[Field, list[Field], list[Field], list]:
        """Return numbers of all places, fields of the coarser levels, blocks and inverses, and those of pairs, as inputs."""
        near: list[tuple[Entities | None, int]] = []
        if self.step.pairs:
            near = [(self.step.pairs.entities, 144), *[(self.step.pairs.entities, 1)] * 4, (None, 2)]
        steady = [g.carried(of, n) for of, n in self.coarse.steady]
        finest = [g.carried(of, n) for of, n in self.coarse.finest_sizes]
        return steady[0], steady[1:], finest, [g.inputs(n)[0] if of is None else g.carried(of, n) for of, n in near]

    @cached_property
    def _apply(self) -> Program:
        g, pattern = FieldBuilder("cloth product"), self.step.scene.pattern
        p = g.carried(self.step.points, 3)
        numbers, _, (blocks, _), rest = self._carried(g)
        around = g.table(self.step.points, self.step.points, pattern.neighbours)

        def body(p: ca.SX, blocks: ca.SX, numbers: ca.SX) -> tuple[ca.SX, ...]:
            found = product(blocks, p[: pattern.m3, :]) + ca.mtimes(p.T, numbers)
            return (found,) if self.step.pairs else (found, ca.mtimes(p[0, :], found))

        found, *total = g.for_each(
            self.step.points, body, [p[around], blocks, numbers], [OWN] if self.step.pairs else [OWN, TOTAL]
        )
        if self.step.pairs:
            H, *at, span = rest
            found = g.for_each(
                self.step.points, lambda *q: sum(q), [found, *self.step.pairs.product(g, p, H, at, span)]
            )[0]
        return g.program(found.var, *total)

    @cached_property
    def _precondition(self) -> Program:
        g = FieldBuilder("cloth preconditioner")
        r = g.carried(self.step.points, 3)
        _, coarser, (_, near), _ = self._carried(g)
        z, sums = self.coarse.precondition(g, r, near, coarser)
        return g.program(z.var, sums)


def program_of(make: Callable[..., list], like: list[Field | Var]) -> Program:
    """Return the program of a function of a builder and of fields and vectors like some."""
    g = FieldBuilder("cloth")
    return g.program(*(v.var if isinstance(v, Field) else v for v in make(g, *carried(g, like))))


def carried(g: FieldBuilder, like: list[Field | Var]) -> list:
    """Return inputs of a program like some fields and vectors."""
    return [g.carried(a.of, a.n) if isinstance(a, Field) else g.inputs(a.size)[0] for a in like]
