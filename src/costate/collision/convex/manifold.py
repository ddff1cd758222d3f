"""Contact manifolds: up to four points of the overlap of the faces that two convex solids turn to each other.

The search (gjk.py) gives the normal. Along it, each solid shows a face (a polygon, an edge or a point):

1. Both faces are written in coordinates (x, y, height) across and along the normal.
2. Where they overlap, points are found: corners of one over the other, and crossings of their edges. All have the same normal, and
   each has its own gap, the difference of the heights.
3. Four are kept: a deepest one, the one furthest from it, and the two that span the largest area with these.

Rounded solids add their radii to the heights at the end. The least gap is the distance of the solids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import casadi as ca
from casadi import SX

from costate.collision.contact_point import tangents
from costate.collision.convex.gjk import polished
from costate.collision.convex.pair import Pair
from costate.collision.shapes.rays import FAR

POINTS = 4
"""Contact points of a pair."""
BESIDE = 1e-6
"""Distance beside a face at which a corner is still over it [m]: boxes of the same size can be stacked."""
SPREAD = 1e-6
"""Distance below which two points, or a point and a line through others, count once [m]."""
LEVEL = 1e-6
"""Height above the deepest point that costs as much as the whole reach of the points, where the first is chosen [m]."""
STEEP = 4.0
"""Distance across the normal that a rise above the deepest point costs, by the rise."""
MISSED = 1e-7
"""Distance by which the solids must be nearer than all points found for their nearest points to be taken instead [m]."""


@dataclass(frozen=True, eq=False)
class ManifoldPoint:
    """A point of the overlap: (x, y) across the normal, and the heights of both surfaces there."""

    valid: SX
    at: SX
    """Column of x, y, height of a, height of b [m], and whatever else belongs to the point."""

    @property
    def gap(self) -> SX:
        return self.at[2] - self.at[3]


def manifold(pair: Pair, n: SX, flats_a: SX, flats_b: SX, follows: SX) -> list[tuple[SX, SX, SX]]:
    """Return POINTS times (gap, point midway, normal), in the frame of b; the gap is FAR where there are fewer points."""
    n = ca.if_else(follows, polished(pair, n, flats_a[:3], flats_a[3:], flats_b[:3], flats_b[3:], newton=2)[0], n)
    t1, t2 = tangents(n)
    T = ca.horzcat(t1, t2, n).T
    face_a = [T @ (pair.t + pair.R @ p) for p in pair.a.face(-(pair.R.T @ n))]
    face_b = [T @ p for p in pair.b.face(n)]
    found = _overlap(face_a, face_b)
    nearest = _nearest(pair, T, n, flats_a)
    kept = pick(found, nearest)
    ra, rb = pair.a.rounding, pair.b.rounding
    results = []
    for p in kept:
        low, high = p.at[3] + rb, p.at[2] - ra
        gap = ca.if_else(p.valid, high - low, FAR)
        results.append((gap, T.T @ ca.vertcat(p.at[:2], (low + high) / 2), n))
    return results


def _nearest(pair: Pair, T: SX, n: SX, flats_a: SX) -> ManifoldPoint:
    """Return the solids' nearest points along the normal; across it, the one that is not on a face or an edge decides."""
    a, b = T @ pair.support_a(-n), T @ pair.support_b(n)
    on_flat = ca.dot(flats_a[:3], flats_a[:3]) > 0.5
    return ManifoldPoint(SX(1), ca.vertcat(ca.if_else(on_flat, b[:2], a[:2]), a[2], b[2]))


def _overlap(a: list[SX], b: list[SX]) -> list[ManifoldPoint]:
    """Return all corners of one face over the other, and crossings of edges. Faces are corners (x, y, height)."""
    found = []
    for corners, other, own in ((a, b, 2), (b, a, 3)):
        if len(other) < 3:
            continue
        normal, level = _plane(other)
        edges = _edges(other)
        broad = _broad(normal, edges)
        for p in corners:
            height = (level - normal[0] * p[0] - normal[1] * p[1]) / ca.if_else(broad, normal[2], 1)
            heights = (p[2], height) if own == 2 else (height, p[2])
            found.append(ManifoldPoint(ca.logic_and(broad, _over(p, edges, normal[2])), ca.vertcat(p[:2], *heights)))
    return found + [_crossing(*e, *f) for e in _edges(a) for f in _edges(b)]


def _edges(face: list[SX]) -> list[tuple[SX, SX]]:
    if len(face) < 3:
        return [(face[0], face[1])] if len(face) == 2 else []
    return list(zip(face, [*face[1:], face[0]], strict=True))


def _plane(face: list[SX]) -> tuple[SX, SX]:
    """Return twice the area of a face as a vector, by Newell's method, and its level along that."""
    normal = sum((ca.cross(p - face[0], q - face[0]) for p, q in pairwise(face[1:])), SX.zeros(3))
    return normal, ca.dot(normal, face[0])


def _broad(normal: SX, edges: list[tuple[SX, SX]]) -> SX:
    """Return whether a face has an area as seen along the normal."""
    size = sum((_cross2(q - p, q - p, dot=True) for p, q in edges), SX(0))
    return normal[2] ** 2 > 1e-12 * size**2


def _over(p: SX, edges: list[tuple[SX, SX]], turn: SX) -> SX:
    inside = SX(1)
    way = ca.if_else(turn < 0, -1, 1)
    for start, end in edges:
        e = end - start
        inside = ca.logic_and(inside, way * _cross2(e, p - start) >= -BESIDE * ca.sqrt(_cross2(e, e, dot=True) + 1e-24))
    return inside


def _cross2(u: SX, v: SX, dot: bool = False) -> SX:
    return u[0] * v[0] + u[1] * v[1] if dot else u[0] * v[1] - u[1] * v[0]


def _crossing(p: SX, p_end: SX, q: SX, q_end: SX) -> ManifoldPoint:
    u, w, r = p_end - p, q_end - q, q - p
    turn = _cross2(u, w)
    skew = turn**2 > 1e-12 * _cross2(u, u, dot=True) * _cross2(w, w, dot=True)
    turn = ca.if_else(skew, turn, 1)
    s, t = _cross2(r, w) / turn, _cross2(r, u) / turn
    on_both = skew
    for x in (s, t):
        on_both = ca.logic_and(on_both, ca.logic_and(x >= 0, x <= 1))
    return ManifoldPoint(on_both, ca.vertcat(p[:2] + s * u[:2], p[2] + s * u[2], q[2] + t * w[2]))


# --- choosing four ---------------------------------------------------------------------------------------------------


def pick(found: list[ManifoldPoint], nearest: ManifoldPoint | None = None) -> list[ManifoldPoint]:
    """Choose POINTS of the points found: a deepest one, and three that span the largest area with it. nearest: the first one where
    none found is as near.

    Points that are as deep as the deepest but for LEVEL are told apart by their places, not by rounding: the outermost is the
    first, which is a corner and not just any point of an edge. Of the others those that rise above the deepest count as nearer, by
    STEEP times as much: a body stands on the corners of its face, not on those of its top that reach further.
    """
    if not found:
        first = ManifoldPoint(SX(0), SX.zeros(4)) if nearest is None else ManifoldPoint(SX(1), nearest.at)
        return [first, *(ManifoldPoint(SX(0), first.at) for _ in range(POINTS - 1))]
    deepest = _least(found, lambda p: p.gap)
    low = ca.vertcat(_least(found, lambda p: p.at[0]), _least(found, lambda p: p.at[1]))
    high = -ca.vertcat(_least(found, lambda p: -p.at[0]), _least(found, lambda p: -p.at[1]))
    middle = (low + high) / 2
    reach = -_least(found, lambda p: -_length(p.at[:2] - middle))
    first, any_found = _best(found, lambda p: _length(p.at[:2] - middle) / reach - ((p.gap - deepest) / LEVEL) ** 2)
    first = ManifoldPoint(any_found, first)
    if nearest is not None:
        missed = ca.logic_or(ca.logic_not(first.valid), first.gap > nearest.gap + MISSED)
        first = ManifoldPoint(SX(1), ca.if_else(missed, nearest.at, first.at))

    def rise(p: ManifoldPoint) -> SX:
        return STEEP * (p.gap - deepest)

    def beside(p: SX) -> SX:
        return ca.fabs(_cross2(base, p - first.at)) / along

    def beyond(p: SX) -> SX:
        return ca.mmax(ca.vertcat(*(-turn * _cross2(e - s, p - s) / _length(e - s) for s, e in sides)))

    second, _ = _best(found, lambda p: _length(p.at - first.at) - rise(p))
    base = second - first.at
    along = _length(base)
    third, _ = _best(found, lambda p: beside(p.at) - rise(p))
    turn = ca.if_else(_cross2(base, third - first.at) < 0, -1, 1)
    sides = [(first.at, second), (second, third), (third, first.at)]
    fourth, _ = _best(found, lambda p: beyond(p.at) - rise(p))
    apart = ca.logic_and(any_found, along > SPREAD)
    wide = ca.logic_and(apart, beside(third) > SPREAD)
    return [
        first,
        ManifoldPoint(apart, second),
        ManifoldPoint(wide, third),
        ManifoldPoint(ca.logic_and(wide, beyond(fourth) > SPREAD), fourth),
    ]


def _length(x: SX) -> SX:
    """Return the length of a vector across the normal; not quite 0, whose derivative is none."""
    return ca.sqrt(_cross2(x, x, dot=True) + 1e-24)


def _least(found: list[ManifoldPoint], value: Callable[[ManifoldPoint], SX]) -> SX:
    """Return the least value of the valid points; FAR if there is none."""
    return ca.mmin(ca.vertcat(*(ca.if_else(p.valid, value(p), FAR) for p in found)))


def _best(found: list[ManifoldPoint], value: Callable[[ManifoldPoint], SX]) -> tuple[SX, SX]:
    """Return the valid point with the largest value, and whether there is any."""
    best, most = SX.zeros(found[0].at.numel()), SX(-FAR)
    for p in found:
        score = ca.if_else(p.valid, value(p), -FAR)
        best, most = ca.if_else(score > most, p.at, best), ca.fmax(score, most)
    return best, most > -FAR
