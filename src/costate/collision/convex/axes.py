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

from itertools import product

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.convex.pair import Pair
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


def least_overlap(b: ProgramBuilder, pair: Pair, symbols: list[SX], last: Var, args: list[Var]) -> Var:
    """Return the unit direction (3,) of largest separation among faces and pairs of edges. last: another direction to try."""
    seed = SX.sym("seed", 3)
    best = b.call(ca.Function("few", [seed, *symbols], _few_axes(pair, seed)), last, *args)
    for side in (0, 1):
        if isinstance((pair.a, pair.b)[side], Hull):
            best = _faces(b, pair, symbols, side, best, args)
    return _edges(b, pair, symbols, best, args)[0]


def spread_starts(b: ProgramBuilder, pair: Pair, symbols: list[SX], first: Var, args: list[Var]) -> Var:
    """Return rows of STARTS directions: the first, and the best of those spread over the sphere that are not alike."""
    (ways,) = b.call(ca.Function("ways", [], [SX(ca.DM(sphere_points(SAMPLES).ravel()))]))
    none = b.call(ca.Function("none", [], [SX([1, 0, 0]), SX(-1e9)]))
    chosen = [first]
    for _ in range(STARTS - 1):
        known = b.concat(*chosen, *([first] * (STARTS - len(chosen))))
        (n, _), _, _ = b.scan(_sample(pair, symbols), SAMPLES, none, sequences=[ways], shared=[known, *args])
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


def _sample(pair: Pair, symbols: list[SX]) -> ca.Function:
    best, most, n, known = SX.sym("best", 3), SX.sym("most"), SX.sym("n", 3), SX.sym("known", 3 * STARTS)
    alike = ca.mmax(ca.reshape(known, 3, STARTS).T @ n) > ALIKE
    s = ca.if_else(alike, -1e9, pair.separation(n))
    return ca.Function("sample", [best, most, n, known, *symbols], better(n, s, best, most))


def _faces(b: ProgramBuilder, pair: Pair, symbols: list[SX], side: int, best: list[Var], args: list[Var]) -> list[Var]:
    """Try all faces of a hull, a (side 0) or b (side 1), against the other solid."""
    hull = (pair.a, pair.b)[side]
    assert isinstance(hull, Hull)
    normals, polygons = _part(b, hull, "normals_flat", args[1 + side]), _part(b, hull, "polygons_flat", args[1 + side])
    normal, polygon = SX.sym("normal", 3), SX.sym("polygon", polygons.size // (normals.size // 3))
    before = [SX.sym("best", 3), SX.sym("most")]
    seen = pair if side else pair.flipped()
    s = ca.dot(normal, seen.support_a(-normal) - polygon[:3])
    n = normal if side else -(pair.R @ normal)
    body = ca.Function("face", [*before, normal, polygon, *symbols], better(n, s, *before))
    return b.scan(body, normals.size // 3, best, sequences=[normals, polygons], shared=args)[0]


def _part(b: ProgramBuilder, hull: Hull, name: str, sizes: Var) -> Var:
    start, count = hull.place(name)
    return b.slice(sizes, start, count)


def _edges(b: ProgramBuilder, pair: Pair, symbols: list[SX], best: list[Var], args: list[Var]) -> list[Var]:
    """Try edges of hulls against those of the other solid. A direction is kept only if it is better by the true separation: between
    two faces that are nearly one, an edge claims too much."""
    a_hull, b_hull = isinstance(pair.a, Hull), isinstance(pair.b, Hull)
    if a_hull and b_hull:
        found = _hull_edges(b, pair, symbols, best, args)
    elif (a_hull and pair.b.edge_axes) or (b_hull and pair.a.edge_axes):
        found = _few_edges(b, pair, symbols, best, args)
    else:
        return best
    old, s, n, claimed = SX.sym("old", 3), SX.sym("s"), SX.sym("n", 3), SX.sym("claimed")
    body = ca.Function("truly", [old, s, n, claimed, *symbols], better(n, pair.separation(n), old, s))
    return b.call(body, *best, *found, *args)


def _few_edges(b: ProgramBuilder, pair: Pair, symbols: list[SX], best: list[Var], args: list[Var]) -> list[Var]:
    """Try the edges of the one hull, crossed with the axes that the other solid's edges lie along."""
    side = int(isinstance(pair.b, Hull))
    hull, seen = (pair.b, pair) if side else (pair.a, pair.flipped())
    assert isinstance(hull, Hull)
    rows = _part(b, hull, "edges_flat", args[1 + side])
    row, best_n, most = SX.sym("edge", EDGE), SX.sym("best", 3), SX.sym("most")
    found = (best_n, most)
    for axis in seen.a.edge_axes:
        n, met = _common_normal(row, seen.R[:, axis])
        s = ca.if_else(met, ca.dot(n, seen.support_a(-n) - row[:3]), -1e9)
        found = better(n if side else -(pair.R @ n), s, *found)
    body = ca.Function("edge", [best_n, most, row, *symbols], found)
    return b.scan(body, rows.size // EDGE, best, sequences=[rows], shared=args)[0]


def _hull_edges(b: ProgramBuilder, pair: Pair, symbols: list[SX], best: list[Var], args: list[Var]) -> list[Var]:
    """Try every edge of a with every edge of b."""
    assert isinstance(pair.a, Hull) and isinstance(pair.b, Hull)
    rows_a, rows_b = (_part(b, hull, "edges_flat", args[1 + k]) for k, hull in enumerate((pair.a, pair.b)))
    before, own, other = [SX.sym("best", 3), SX.sym("most")], SX.sym("own", EDGE), SX.sym("other", EDGE)
    n, met = _common_normal(own, other[3:6])
    for beside in (other[6:9], other[9:]):
        met = ca.logic_and(met, ca.dot(n, beside) >= -WITHIN)
    s = ca.if_else(met, ca.dot(n, other[:3] - own[:3]), -1e9)
    inner = ca.Function("edges", [*before, own, other], better(n, s, *before))
    outer = ProgramBuilder("edge")
    carry = [outer.input("best", 3), outer.input("most", 1)]
    row, pose, all_b = outer.input("row", EDGE), outer.input("pose", 12), outer.input("rows", rows_b.size)
    turned = ca.vertcat(pair.t + pair.R @ other[:3], *(pair.R @ other[k : k + 3] for k in (3, 6, 9)))
    (moved,) = outer.call(ca.Function("moved", [other, symbols[0]], [turned]), row, pose)
    found, _, _ = outer.scan(inner, rows_b.size // EDGE, carry, sequences=[all_b], shared=[moved])
    for name, x in zip(("best", "most"), found, strict=True):
        outer.output(name, x)
    steps = rows_a.size // EDGE
    return b.scan(outer.program(), steps, best, sequences=[rows_a], shared=[args[0], rows_b])[0]


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
