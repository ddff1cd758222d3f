"""Convex solids against sampled ones: points of the solid are looked up; the deepest and three that span most area are kept."""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.contact_point import tangents
from costate.collision.convex.manifold import POINTS, ManifoldPoint, pick
from costate.collision.shapes import FAR, Field, Number, Solid, resized, sizes
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program


def field_program(a: Solid, field: Field) -> Program:
    """Return a program (pose of a, pose of the field, sizes of a, sizes of the field) -> contact points, normals from the field to
    a."""
    b = ProgramBuilder("field")
    x, y = b.input("x", 12), b.input("y", 12)
    size_a, size_f = b.input("sa", len(sizes(a))), b.input("sf", len(sizes(field)))
    px, py, s = SX.sym("x", 12), SX.sym("y", 12), SX.sym("s", len(sizes(a)))
    solid = resized(a, s)
    R, t = _relative(px, py)
    lookup = field.lookup()
    (middle,) = b.call(ca.Function("middle", [px, py, s], [t + R @ solid.centre()]), x, y, size_a)
    (around,) = b.call(lookup, middle, size_f)
    facing = SX.sym("facing", 4)
    points = solid.points_toward(-(R.T @ facing[1:]))
    where = ca.vertcat(*(t + R @ p for p, _ in points))
    (at,) = b.call(ca.Function("points", [px, py, s, facing], [where]), x, y, size_a, around)
    each = np.arange(3 * len(points)).reshape(-1, 3)
    shared = np.tile(np.arange(size_f.size), (len(points), 1))
    (found,) = b.map(lookup, [(at, each), (size_f, shared)], [None])
    p, f = SX.sym("p", 3 * len(points)), SX.sym("f", 4 * len(points))
    kept = _kept(p, f, [r for _, r in points], facing[1:], py)
    b.output("points", b.call(ca.Function("kept", [py, s, facing, p, f], [kept]), y, size_a, around, at, found)[0])
    return b.program()


def _relative(x: SX, y: SX) -> tuple[SX, SX]:
    Rb = ca.reshape(y[:9], 3, 3)
    return Rb.T @ ca.reshape(x[:9], 3, 3), Rb.T @ (x[9:] - y[9:])


def _kept(p: SX, f: SX, radii: list[Number], facing: SX, y: SX) -> SX:
    """Return gap, point midway and normal of the points that are kept, in the world."""
    t1, t2 = tangents(facing)
    found = []
    for k, r in enumerate(radii):
        at, gap, normal = p[3 * k : 3 * k + 3], f[4 * k] - r, f[4 * k + 1 : 4 * k + 4]
        midway = at - normal * (r + gap / 2)
        found.append(ManifoldPoint(gap < FAR / 2, ca.vertcat(ca.dot(t1, at), ca.dot(t2, at), gap, 0, midway, normal)))
    kept = found if len(found) <= POINTS else pick(found)
    Rb, pb = ca.reshape(y[:9], 3, 3), y[9:]
    rows = [(ca.if_else(k.valid, k.gap, FAR), pb + Rb @ k.at[4:7], Rb @ k.at[7:]) for k in kept]
    return ca.vertcat(*(part for row in rows for part in row))
