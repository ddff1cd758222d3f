"""Pairs of shapes by kind: one program finds the contact points of all pairs of a kind, for other sizes and poses each.

A program reads its pair through index tables: `ShapeTable` knows where the pose and the sizes of every shape stand in the vectors
that hold those of all shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT, POSE, pair_key
from costate.collision.pairs import Placed
from costate.collision.shapes import Solid, size_symbols
from costate.core.fork import cached_property
from costate.kernel.ir.program import Program, Var

Pair = tuple[int, int]
"""Numbers of two shapes among the colliders of a scene."""
Read = tuple[Var, np.ndarray]
"""A vector, and the table of the elements that each instance of a map or walk reads of it."""


@dataclass(frozen=True, eq=False)
class Kind:
    """All pairs of one kind."""

    program: Program
    """(pose of a, pose of b, sizes of a, sizes of b) -> POINT numbers for each contact point."""
    members: tuple[int, ...]
    """Numbers of the pairs, in the list of pairs they were taken from."""

    @property
    def points(self) -> int:
        """Number of contact points of one pair."""
        return self.program.out_sizes[0] // POINT


def pair_kinds(
    pairs: Sequence[Pair], placed: Mapping[int, Placed], program: Callable[[Solid, Solid], Program]
) -> list[Kind]:
    """Group pairs by kind, in the order in which the kinds first appear. program: the program of a pair."""
    groups: dict[object, list[int]] = {}
    for k, (i, j) in enumerate(pairs):
        groups.setdefault(pair_key(placed[i].solid, placed[j].solid), []).append(k)
    found = []
    for members in groups.values():
        i, j = pairs[members[0]]
        found.append(Kind(program(placed[i].solid, placed[j].solid), tuple(members)))
    return found


@dataclass(frozen=True, eq=False)
class ShapeTable:
    """Poses and sizes of shapes, one shape after the other."""

    placed: Mapping[int, Placed]
    """Number of a collider -> the shape at its pose."""

    @property
    def poses(self) -> SX:
        """POSE numbers per shape."""
        rows = (ca.vertcat(ca.vec(ca.densify(p.rotation)), ca.densify(p.position)) for p in self.placed.values())
        return ca.densify(ca.vertcat(*rows))

    @property
    def sizes(self) -> SX:
        """Sizes of all shapes."""
        return ca.densify(ca.vertcat(*(size_symbols(p.solid) for p in self.placed.values())))

    @cached_property
    def _number(self) -> dict[int, int]:
        return {k: n for n, k in enumerate(self.placed)}

    @cached_property
    def _first_size(self) -> dict[int, int]:
        lengths = [size_symbols(p.solid).numel() for p in self.placed.values()]
        return dict(zip(self.placed, np.concatenate([[0], np.cumsum(lengths)]).astype(int).tolist(), strict=False))

    def sides(self, pairs: Sequence[Pair], width: int) -> list[np.ndarray]:
        """Tables of the first and of the second shape of some pairs, in a vector with `width` numbers per shape."""
        numbers = np.array([[self._number[k] for k in pair] for pair in pairs])
        return [numbers[:, side, None] * width + np.arange(width) for side in (0, 1)]

    def reads(self, pairs: Sequence[Pair], program: Program, poses: Var, sizes: Var) -> list[Read]:
        """Inputs of the program of a kind, for the pairs of that kind."""
        a, b = self.sides(pairs, POSE)
        lengths = [
            np.array([self._first_size[p[side]] + np.arange(n) for p in pairs])
            for side, n in enumerate(program.in_sizes[2:4])
        ]
        return [(poses, a), (poses, b), (sizes, lengths[0]), (sizes, lengths[1])]
