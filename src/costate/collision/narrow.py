"""Contact of pairs that need more than straight-line code: programs from two poses to contact points.

    (pose of a (12), pose of b (12), sizes of a, sizes of b) -> POINT numbers each: gap, point, normal from b to a

A pose is the rotation, column by column, and the position.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from functools import cache

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.convex.gjk import search_program
from costate.collision.convex.manifold import POINTS, manifold
from costate.collision.convex.pair import pair_symbols
from costate.collision.mesh.field_pairs import field_program
from costate.collision.pairs import Placed, by_program, contact_points
from costate.collision.shapes import Convex, Field, Solid, resized, sizes
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program
from costate.kernel.ir.straight import as_program
from costate.model import Transform

POSE, POINT = 12, 7


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
        x, y = SX.sym("x", POSE), SX.sym("y", POSE)
        size = [SX.sym(f"s{k}", len(sizes(solid))) for k, solid in enumerate((a, b))]
        placed = [Placed(resized(s, n), *pose(p)) for s, n, p in zip((a, b), size, (x, y), strict=True)]
        rows = [ca.vertcat(c.gap, c.point, c.normal) for c in contact_points(*placed)]
        points = ca.densify(ca.vertcat(SX(0, 1), *rows))
        _programs[key] = as_program(ca.Function("formula", [x, y, *size], [points]))
    return _programs[key]


def _make(a: Solid, b: Solid) -> Program:
    if isinstance(b, Field):
        return field_program(a, b)
    return _flipped(field_program(b, a)) if isinstance(a, Field) else convex_program(a, b)


def _flipped(program: Program) -> Program:
    """Return the program of the same pair the other way round."""
    b = ProgramBuilder("flipped")
    n = program.in_sizes
    args = [b.input(f"i{k}", m) for k, m in enumerate((n[1], n[0], n[3], n[2]))]
    (found,) = b.call(program, args[1], args[0], args[3], args[2])
    x = SX.sym("x", found.size)
    signs = np.tile([1, 1, 1, 1, -1, -1, -1], found.size // POINT)
    b.output("points", b.call(ca.Function("signs", [x], [x * SX(signs)]), found)[0])
    return b.program()


def convex_program(a: Solid, b: Solid) -> Program:
    """Return the program of two convex solids of these kinds and counts of sizes, whatever the sizes are."""
    assert isinstance(a, Convex) and isinstance(b, Convex)
    p = ProgramBuilder("convex")
    pair, symbols = pair_symbols(a, b)
    x, y = p.input("x", POSE), p.input("y", POSE)
    sizes = [p.input(f"s{k}", s.numel()) for k, s in enumerate(symbols[1:])]
    (relative,) = p.call(_relative(), x, y)
    found = p.call(search_program(a, b), relative, *sizes)
    touch = [SX.sym(f"t{k}", x.size) for k, x in enumerate(found)]
    points = ca.vertcat(*(ca.vertcat(*point) for point in manifold(pair, *touch)))
    (local,) = p.call(ca.Function("manifold", [*symbols, *touch], [points]), relative, *sizes, *found)
    p.output("points", p.call(_to_world(POINTS), local, y)[0])
    return p.program()


@cache
def _relative() -> ca.Function:
    """Return a function of both poses that gives the pose of a in b."""
    x, y = SX.sym("x", POSE), SX.sym("y", POSE)
    (Ra, pa), (Rb, pb) = pose(x), pose(y)
    return ca.Function("relative", [x, y], [ca.vertcat(ca.vec(Rb.T @ Ra), Rb.T @ (pa - pb))])


def pose(x: SX) -> tuple[SX, SX]:
    """Return rotation and position from a column."""
    return ca.reshape(x[:9], 3, 3), x[9:]


@cache
def _to_world(count: int) -> ca.Function:
    points, y = SX.sym("points", POINT * count), SX.sym("y", POSE)
    R, p = pose(y)
    rows = []
    for k in range(count):
        gap, point, normal = ca.vertsplit(points[POINT * k : POINT * (k + 1)], [0, 1, 4, 7])
        rows += [gap, p + R @ point, R @ normal]
    return ca.Function("to_world", [points, y], [ca.vertcat(*rows)])
