"""Separating axes: the direction along which two overlapping solids overlap least.

    separation(n) = min over a in A, b in B of n . (a - b)        the least depth is minus its largest value

Where neither core is round, that direction is the normal of a face, or normal to an edge of each solid, so trying all of them finds
it (Gottschalk, Lin and Manocha, 1996). This file tries them in three rounds:

    _few_axes    what can be listed at once: the line of centres, faces and crossed edges of boxes, capsules and cylinders
    _faces       every face of a hull, as a loop over its table of faces
    _edges       every edge of a hull against every edge of the other solid. An edge is only met by directions between the normals
                 of its two faces, which is cheap to check, so few pairs of edges count.

For round solids `spread_starts` also tries directions spread over the sphere; the best of them are where the search of gjk.py
begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.contact_point import POSE, pose
from costate.collision.convex.pair import Pair, PairKind
from costate.collision.mesh.hull import EDGE, Hull
from costate.collision.shapes.solid import length
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var

SKEW = 1e-12
"""Square of the sine of the angle between two edges that have a common normal."""
WITHIN = 1e-9
"""Angle beside the normals of an edge at which a direction still meets it [rad]."""
SAMPLES = 96
"""Number of directions tried for round solids."""
STARTS = 4
"""Number of directions from which the least depth of round solids is searched."""
ALIKE = 0.85
"""Cosine of the angle within which two of them would find the same."""


def least_overlap(b: ProgramBuilder, kind: PairKind, last: Var, numbers: list[Var]) -> Var:
    """Return the unit direction (3,) of largest separation among faces and pairs of edges. last: another direction to try."""
    best = b.trace(kind.body(_few_axes), last, *numbers)
    for side in (0, 1):
        if isinstance((kind.a, kind.b)[side], Hull):
            best = _faces(b, kind, side, best, numbers)
    return _edges(b, kind, best, numbers)[0]


def spread_starts(b: ProgramBuilder, kind: PairKind, first: Var, numbers: list[Var]) -> Var:
    """Return rows of STARTS directions: the first, and the best of those spread over the sphere that are not alike."""
    ways, none = b.constant(sphere_points(SAMPLES)), [b.constant([1, 0, 0]), b.constant(-1e9)]
    chosen = [first]
    for _ in range(STARTS - 1):
        known = b.concat(*chosen, *([first] * (STARTS - len(chosen))))
        (n, _), _, _ = b.scan(kind.body(_sample), SAMPLES, none, sequences=[ways], shared=[known, *numbers])
        chosen.append(n)
    return b.concat(*chosen)


def sphere_points(count: int) -> np.ndarray:
    """Return evenly spread unit vectors (count, 3) on a spiral."""
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(turn), r * np.sin(turn), z], 1)


def _few_axes(pair: Pair, last: SX) -> list[SX]:
    """Return the best of the line of centres, the given direction, faces and crossed edges of simple solids, and its separation."""
    between = pair.between()
    a, b = pair.a, pair.b
    tried = [between / length(between), last / length(last)]
    tried += [-(pair.R @ n) for n in a.face_normals(pair.R.T @ (b.centre() - pair.t))]
    tried += b.face_normals(pair.t + pair.R @ a.centre())
    for i, j in product(a.edge_axes, b.edge_axes):
        across = ca.cross(pair.R[:, i], SX.eye(3)[:, j])
        skew = ca.dot(across, across) > SKEW
        unit = ca.if_else(skew, across, tried[0])
        unit = unit / length(unit)
        tried.append(ca.if_else(ca.dot(unit, between) < 0, -unit, unit))  # solids with axes are symmetric
    best, most = tried[0], pair.separation(tried[0])
    for n in tried[1:]:
        best, most = better(n, pair.separation(n), best, most)
    return [best, most]


def better(n: SX, s: SX, best: SX, most: SX) -> tuple[SX, SX]:
    """Return the direction with the larger separation, and that separation."""
    return ca.if_else(s > most, n, best), ca.fmax(s, most)


def _sample(pair: Pair, best: SX, most: SX, n: SX, known: SX) -> tuple[SX, SX]:
    alike = ca.mmax(ca.reshape(known, 3, STARTS).T @ n) > ALIKE
    s = ca.if_else(alike, -1e9, pair.separation(n))
    return better(n, s, best, most)


def _faces(b: ProgramBuilder, kind: PairKind, side: int, best: Sequence[Var], numbers: list[Var]) -> list[Var]:
    """Try all faces of a hull, a (side 0) or b (side 1), against the other solid."""

    def face(pair: Pair, best: SX, most: SX, normal: SX, polygon: SX) -> tuple[SX, SX]:
        seen = pair if side else pair.flipped()
        s = ca.dot(normal, seen.support_a(-normal) - polygon[:3])
        return better(normal if side else -(pair.R @ normal), s, best, most)

    faces = [_part(b, kind, side, name, numbers) for name in ("normals_flat", "polygons_flat")]
    return b.scan(kind.body(face), faces[0].size // 3, best, sequences=faces, shared=numbers)[0]


def _part(b: ProgramBuilder, kind: PairKind, side: int, name: str, numbers: list[Var]) -> Var:
    hull = (kind.a, kind.b)[side]
    assert isinstance(hull, Hull)
    return b.slice(numbers[1 + side], *hull.place(name))


def _edges(b: ProgramBuilder, kind: PairKind, best: Sequence[Var], numbers: list[Var]) -> Sequence[Var]:
    """Try edges of hulls against those of the other solid. A direction is kept only if it is better by the true separation: between
    two faces that are nearly one, an edge claims too much."""
    a_hull, b_hull = isinstance(kind.a, Hull), isinstance(kind.b, Hull)
    if a_hull and b_hull:
        found = _hull_edges(b, kind, best, numbers)
    elif (a_hull and kind.b.edge_axes) or (b_hull and kind.a.edge_axes):
        found = _few_edges(b, kind, best, numbers)
    else:
        return best
    truly = kind.body(lambda pair, old, s, n, claimed: better(n, pair.separation(n), old, s))
    return b.trace(truly, *best, *found, *numbers)


def _few_edges(b: ProgramBuilder, kind: PairKind, best: Sequence[Var], numbers: list[Var]) -> list[Var]:
    """Try the edges of the one hull, crossed with the axes that the other solid's edges lie along."""
    side = int(isinstance(kind.b, Hull))

    def edge(pair: Pair, best: SX, most: SX, row: SX) -> tuple[SX, SX]:
        seen = pair if side else pair.flipped()
        for axis in seen.a.edge_axes:
            n, met = _common_normal(row, seen.R[:, axis])
            s = ca.if_else(met, ca.dot(n, seen.support_a(-n) - row[:3]), -1e9)
            best, most = better(n if side else -(pair.R @ n), s, best, most)
        return best, most

    rows = _part(b, kind, side, "edges_flat", numbers)
    return b.scan(kind.body(edge), rows.size // EDGE, best, sequences=[rows], shared=numbers)[0]


def _hull_edges(b: ProgramBuilder, kind: PairKind, best: Sequence[Var], numbers: list[Var]) -> list[Var]:
    """Try every edge of a with every edge of b."""
    rows_a, rows_b = (_part(b, kind, side, "edges_flat", numbers) for side in (0, 1))
    outer = ProgramBuilder("edge")
    *carry, row, x, all_b = outer.inputs(3, 1, EDGE, POSE, rows_b.size)
    moved = outer.trace(_moved_edge, row, x)
    found, _, _ = outer.scan(_edge_pair, rows_b.size // EDGE, carry, sequences=[all_b], shared=[moved])
    steps = rows_a.size // EDGE
    return b.scan(outer.program(*found), steps, best, sequences=[rows_a], shared=[numbers[0], rows_b])[0]


def _moved_edge(row: SX, x: SX) -> SX:
    R, t = pose(x)
    return ca.vertcat(t + R @ row[:3], *(R @ row[k : k + 3] for k in (3, 6, 9)))


def _edge_pair(best: SX, most: SX, own: SX, other: SX) -> tuple[SX, SX]:
    n, met = _common_normal(own, other[3:6])
    for beside in (other[6:9], other[9:]):
        met = ca.logic_and(met, ca.dot(n, beside) >= -WITHIN)
    s = ca.if_else(met, ca.dot(n, other[:3] - own[:3]), -1e9)
    return better(n, s, best, most)


def _common_normal(edge: SX, along: SX) -> tuple[SX, SX]:
    """Return the unit direction normal to an edge of a hull (a row) and to another direction, out of the hull, and whether it meets
    the edge."""
    across = ca.cross(edge[3:6], along)
    square = ca.dot(across, across)
    skew = square > SKEW
    inward = ca.dot(across, edge[6:9] + edge[9:])
    n = across * (ca.if_else(inward > 0, -1, 1) / ca.sqrt(ca.if_else(skew, square, 1)))
    met = skew
    for beside in (edge[6:9], edge[9:]):
        met = ca.logic_and(met, ca.dot(n, beside) <= WITHIN)
    return n, met
