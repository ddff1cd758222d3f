"""The narrow phase of pairs that are programs: pairs of one kind are a map, far ones are left out by their bounding spheres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import BOUND, bound, pruned
from costate.collision.narrow import POINT, POSE, pair_key, pair_program, point_count
from costate.collision.pairs import ContactPoint, Placed
from costate.collision.shapes import size_symbols
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var

if TYPE_CHECKING:
    from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class Narrow:
    """Pairs of placed solids, and symbols for the places where they may touch."""

    pairs: tuple[tuple[int, int], ...]
    """Indices of colliders."""
    placed: dict[int, Placed]
    symbols: SX
    """POINT numbers for each place of each pair, in the order of the pairs."""

    @staticmethod
    def of(pairs: Sequence[tuple[int, int]], placed: dict[int, Placed]) -> Narrow:
        count = sum(point_count(placed[i].solid, placed[j].solid) for i, j in pairs)
        used = {k: placed[k] for pair in pairs for k in pair}
        return Narrow(tuple(pairs), used, SX.sym("places", POINT * count))

    @cached_property
    def starts(self) -> dict[tuple[int, int], int]:
        """Pair -> its first place."""
        starts, at = {}, 0
        for i, j in self.pairs:
            starts[i, j] = at
            at += point_count(self.placed[i].solid, self.placed[j].solid)
        return starts

    def contact_points(self, i: int, j: int) -> list[ContactPoint]:
        """Places of one pair, as symbols."""
        found = []
        for k in range(point_count(self.placed[i].solid, self.placed[j].solid)):
            at = POINT * (self.starts[i, j] + k)
            gap, point, normal = ca.vertsplit(self.symbols[at : at + POINT], [0, 1, 4, 7])
            found.append(ContactPoint(gap, point, normal))
        return found

    def call(self, b: ProgramBuilder, s: Symbols, args: Sequence[Var], prune: bool = True) -> Var:
        """Values of the symbols, from the inputs of a step."""
        rows: dict[int, tuple[int, int, int]] = {}  # where pose, sizes and bounds of a collider are
        data: list[SX] = []
        at = 0
        for k, p in self.placed.items():
            parts = [ca.vertcat(ca.vec(p.rotation), p.position), size_symbols(p.solid), ca.vertcat(*bound(p.solid))]
            rows[k] = (at, at + POSE, at + POSE + parts[1].numel())
            data += parts
            at += sum(x.numel() for x in parts)
        (values,) = b.call(ca.Function("placed", s.inputs, [ca.densify(ca.vertcat(*data))]), *args)
        groups: dict[object, list[tuple[int, int]]] = {}
        for i, j in self.pairs:
            groups.setdefault(pair_key(self.placed[i].solid, self.placed[j].solid), []).append((i, j))
        found: list[Var] = []
        target: list[np.ndarray] = []
        for members in groups.values():
            found.append(self._group(b, values, rows, members, prune))
            target += [POINT * self.starts[m] + np.arange(self._width(*m)) for m in members]
        whole = found[0] if len(found) == 1 else b.concat(*found)
        order = np.concatenate(target)
        if np.array_equal(order, np.arange(len(order))):
            return whole
        x = SX.sym("x", whole.size)
        return b.call(ca.Function("ordered", [x], [x[np.argsort(order).tolist()]]), whole)[0]

    def _width(self, i: int, j: int) -> int:
        return POINT * point_count(self.placed[i].solid, self.placed[j].solid)

    def _group(
        self,
        b: ProgramBuilder,
        values: Var,
        rows: dict[int, tuple[int, int, int]],
        members: list[tuple[int, int]],
        prune: bool,
    ) -> Var:
        """Places of all pairs of one kind."""
        first = [self.placed[k].solid for k in members[0]]
        program = pair_program(*first)
        widths = [POSE, POSE, *program.in_sizes[2:]]
        tables = [
            np.array([rows[m[side]][part] + np.arange(width) for m in members])
            for (side, part), width in zip(((0, 0), (1, 0), (0, 1), (1, 1)), widths, strict=True)
        ]
        if prune:
            program = pruned(program)
            tables += [np.array([rows[m[side]][2] + np.arange(BOUND) for m in members]) for side in (0, 1)]
        return _mapped(b, program, values, tables)


def _mapped(b: ProgramBuilder, program: Program, values: Var, tables: list[np.ndarray]) -> Var:
    return b.map(program, [(values, t) for t in tables], [None])[0]
