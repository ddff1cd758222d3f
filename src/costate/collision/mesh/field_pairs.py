"""Convex solids against sampled ones: points of the solid are looked up; the deepest and three that span most area are kept."""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.contact_point import POSE, pose, relative_pose, tangents
from costate.collision.convex.manifold import POINTS, ManifoldPoint, pick
from costate.collision.shapes import FAR, Field, Number, Solid, resized, sizes
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program


def field_program(a: Solid, field: Field) -> Program:
    """Return a program (pose of a, pose of the field, sizes of a, sizes of the field) -> contact points, normals from the field to
    a."""

    def middle(x: SX, y: SX, size: SX) -> SX:
        R, t = relative_pose(x, y)
        return t + R @ resized(a, size).centre()

    def points(x: SX, y: SX, size: SX, facing: SX) -> list[tuple[SX, Number]]:
        R, t = relative_pose(x, y)
        return [(t + R @ p, r) for p, r in resized(a, size).points_toward(-(R.T @ facing[1:]))]

    def kept(x: SX, y: SX, size: SX, facing: SX, p: SX, f: SX) -> SX:
        radii = [r for _, r in points(x, y, size, facing)]
        inside = resized(a, size).inner()  # a ball: what points on the far side miss where the middle is in the field
        return _kept(ca.vertcat(p, middle(x, y, size)), ca.vertcat(f, facing), [*radii, inside], facing[1:], y)

    b = ProgramBuilder("field")
    x, y, size_a, size_f = b.inputs(POSE, POSE, len(sizes(a)), len(sizes(field)))
    lookup = field.lookup()
    (around,) = b.call(lookup, b.trace(middle, x, y, size_a), size_f)
    at = b.trace(lambda *given: ca.vertcat(*(p for p, _ in points(*given))), x, y, size_a, around)
    each = np.arange(at.size).reshape(-1, 3)
    shared = np.tile(np.arange(size_f.size), (len(each), 1))
    (found,) = b.map(lookup, [(at, each), (size_f, shared)], [None])
    return b.program(b.trace(kept, x, y, size_a, around, at, found))


def _kept(p: SX, f: SX, radii: list[Number], facing: SX, y: SX) -> SX:
    """Return gap, point midway and normal of the points that are kept, in the world."""
    t1, t2 = tangents(facing)
    found = []
    for k, r in enumerate(radii):
        at, gap, normal = p[3 * k : 3 * k + 3], f[4 * k] - r, f[4 * k + 1 : 4 * k + 4]
        midway = at - normal * (r + gap / 2)
        found.append(ManifoldPoint(gap < FAR / 2, ca.vertcat(ca.dot(t1, at), ca.dot(t2, at), gap, 0, midway, normal)))
    kept = found if len(found) <= POINTS else pick(found)
    Rb, pb = pose(y)
    rows = [(ca.if_else(k.valid, k.gap, FAR), pb + Rb @ k.at[4:7], Rb @ k.at[7:]) for k in kept]
    return ca.vertcat(*(part for row in rows for part in row))
