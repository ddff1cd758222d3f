"""Pairs of shapes by kind: one program finds the contact points of all pairs of a kind, for other sizes and poses each.

A program reads its pair through index tables: `ShapeTable` knows where the pose and the sizes of every shape stand in the vectors
that hold those of all shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT, POSE, pair_key
from costate.collision.pairs import Placed
from costate.collision.shapes import Solid
from costate.kernel.ir.program import Program, Var

Pair = tuple[int, int]
"""Numbers of two shapes among the colliders of a scene."""
Read = tuple[Var, np.ndarray]
"""A vector, and the table of the elements that each instance of a map or walk reads of it."""


@dataclass(frozen=True, eq=False)
class Kind:
    """All pairs of one kind."""

    program: Program
    """Program (pose of a, pose of b, sizes of a, sizes of b) -> POINT numbers for each contact point."""
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


def side_tables(at: Mapping[int, int], pairs: Sequence[Pair], widths: Sequence[int]) -> list[np.ndarray]:
    """Return the tables of the first and of the second shape of some pairs. at: first element of every shape."""
    return [np.array([at[p[side]] + np.arange(n) for p in pairs]) for side, n in enumerate(widths)]


@dataclass(frozen=True, eq=False)
class ShapeTable:
    """A directory of the vectors that hold the poses and the sizes of all shapes: first element of every shape."""

    pose_at: Mapping[int, int]
    size_at: Mapping[int, int]

    def reads(self, pairs: Sequence[Pair], program: Program, poses: Var, sizes: Var) -> list[Read]:
        """Return the inputs of the program of a kind, for the pairs of that kind."""
        found = [(poses, t) for t in side_tables(self.pose_at, pairs, (POSE, POSE))]
        return found + [(sizes, t) for t in side_tables(self.size_at, pairs, program.in_sizes[2:4])]


def pose_numbers(placed: Placed) -> SX:
    """Return the rotation, column by column, and the position (POSE,)."""
    return ca.vertcat(ca.vec(placed.rotation), placed.position)


def starts(keys: Iterable[int], sizes: Iterable[int]) -> dict[int, int]:
    """Return the first element of every shape in a vector with so many numbers per shape."""
    return dict(zip(keys, np.concatenate([[0], np.cumsum(list(sizes))]).astype(int).tolist(), strict=False))


def rows_of(count: int, width: int) -> np.ndarray:
    """Return the table of consecutive elements, `width` per instance."""
    return np.arange(count * width).reshape(count, width)


def same_for_all(count: int, width: int) -> np.ndarray:
    """Return the table of the same elements for all instances."""
    return np.tile(np.arange(width), (count, 1))
