"""Contact of pairs that need more than straight-line code: programs from two poses to contact points.

    (pose of a (12), pose of b (12), sizes of a, sizes of b) -> POINT numbers each: gap, point, normal from b to a

A pose is the rotation, column by column, and the position.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.contact_point import POSE, pose, relative_pose
from costate.collision.convex.gjk import search_program
from costate.collision.convex.manifold import manifold
from costate.collision.convex.pair import Pair, PairKind
from costate.collision.mesh.field_pairs import field_program
from costate.collision.pairs import Placed, by_program, contact_points
from costate.collision.shapes import Convex, Field, Solid, resized, sizes
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program
from costate.kernel.tracing import body_program
from costate.model import Transform

POINT = 7


def point_count(a: Solid, b: Solid) -> int:
    """Return how many contact points a pair has."""
    return pair_program(a, b).out_sizes[0] // POINT


def pair_key(a: Solid, b: Solid) -> tuple[Hashable, Hashable]:
    """Return a key: pairs with the same one are one program, with different sizes."""
    return _kind(a), _kind(b)


def _kind(solid: Solid) -> Hashable:
    if isinstance(solid, Field):
        return type(solid), solid.key
    return type(solid), *(SX(getattr(solid, f.name)).numel() for f in fields(solid))  # type: ignore[arg-type]


_programs: dict[tuple[Hashable, Hashable], Program] = {}


def pair_program(a: Solid, b: Solid) -> Program:
    """Return the program of a pair, made once for all pairs of the same key."""
    key = pair_key(a, b)
    if key not in _programs:
        _programs[key] = _make(a, b)
    return _programs[key]


def point_program(a: Solid, b: Solid) -> Program:
    """Return the program of any pair of plain solids, or its formula as one."""
    return pair_program(a, b) if by_program(a, b) else _formula(a, b)


def is_plain(solid: Solid) -> bool:
    """Return whether a solid is defined by its kind and sizes (compositions are not)."""
    return isinstance(solid, Field) or not any(
        isinstance(getattr(solid, f.name), Solid | Transform)
        for f in fields(solid)  # type: ignore[arg-type]
    )


def _formula(a: Solid, b: Solid) -> Program:
    key = pair_key(a, b)
    if key not in _programs:

        def formula(x: SX, y: SX, size_a: SX, size_b: SX) -> SX:
            found = contact_points(Placed(resized(a, size_a), *pose(x)), Placed(resized(b, size_b), *pose(y)))
            return ca.vertcat(SX(0, 1), *(ca.vertcat(c.gap, c.point, c.normal) for c in found))

        _programs[key] = body_program(formula, [POSE, POSE, len(sizes(a)), len(sizes(b))])
    return _programs[key]


def _make(a: Solid, b: Solid) -> Program:
    if isinstance(b, Field):
        return field_program(a, b)
    return _flipped(field_program(b, a)) if isinstance(a, Field) else convex_program(a, b)


def _flipped(program: Program) -> Program:
    """Return the program of the same pair the other way round."""
    b = ProgramBuilder("flipped")
    n = program.in_sizes
    y, x, size_y, size_x = b.inputs(n[1], n[0], n[3], n[2])
    (found,) = b.call(program, x, y, size_x, size_y)
    signs = np.tile([1, 1, 1, 1, -1, -1, -1], found.size // POINT)
    return b.program(b.trace(lambda points: points * SX(signs), found))


def convex_program(a: Solid, b: Solid) -> Program:
    """Return the program of two convex solids of these kinds and counts of sizes, whatever the sizes are."""
    assert isinstance(a, Convex) and isinstance(b, Convex)
    kind = PairKind(a, b)
    p = ProgramBuilder("convex")
    x, y, *sizes = p.inputs(POSE, *kind.number_sizes)
    numbers = [p.trace(lambda x, y: ca.veccat(*relative_pose(x, y)), x, y), *sizes]
    found = p.call(search_program(kind), *numbers)
    return p.program(p.trace(_to_world, p.trace(kind.body(_local), *found, *numbers), y))


def _local(pair: Pair, *found: SX) -> SX:
    return ca.vertcat(*(ca.vertcat(*point) for point in manifold(pair, *found)))


def _to_world(points: SX, y: SX) -> SX:
    R, p = pose(y)
    rows = []
    for row in ca.vertsplit(points, POINT):
        gap, point, normal = ca.vertsplit(row, [0, 1, 4, 7])
        rows += [gap, p + R @ point, R @ normal]
    return ca.vertcat(*rows)
