"""GJK and portals: the direction along which two convex solids are furthest apart, or overlap least.

    separation(n) = min over a in A, b in B of n . (a - b)        its largest value is the distance, or minus the depth

The search has three stages, and this file follows their order:

1. Apart: GJK (Gilbert, Johnson and Keerthi, 1988) finds the point of A - B that is nearest to the origin. A simplex of up to four
   points of A - B is improved by one support point per step; if it holds the origin, the solids overlap.
2. Overlapping: the direction of least depth is one of finitely many axes (axes.py), unless a solid is round. Then rays from the
   origin, along the best of these axes and others, are followed to the portal (a triangle of A - B, as in Snethen's XenoCollide,
   2008) through which they leave A - B. The normal of the portal is the next ray, and the depth along it never grows. Where a
   solid has neither faces nor edges, ridges.py goes on from there.
3. Polishing: the direction is tried as the normal of faces and of pairs of edges nearby, and improved by Newton's method where
   surfaces are round. A direction that is normal to more flats wins a tie, so that resting boxes rest on faces.

All stages are loops with a state of fixed size, so that every sample of a batch is one lane. The search itself is not
differentiated: it says which features touch. What follows from them (`polished`) is differentiated, and that is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
from casadi import SX

from costate.collision.contact_point import tangents
from costate.collision.convex.axes import STARTS, better, least_overlap, spread_starts
from costate.collision.convex.pair import Pair, PairKind
from costate.collision.convex.ridges import climbed, has_ridges, on_ridges
from costate.collision.shapes.solid import TINY, length
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program

OVERLAP, ROUGH_OVERLAP = 1e-7, 1e-6
"""Cores nearer than this overlap [m]; in float32 the latter."""
CONVERGED = 1e-12
"""Relative error of the squared distance at which GJK ends."""
FLAT, ROUGH_FLAT = 1e-11, 1e-4
"""Areas and volumes relative to the lengths of the edges that count as none; in float32 the latter."""
PORTAL = 1e-9
"""Distance that A - B may reach beyond a portal when the search ends [m]."""
GJK_STEPS, PORTAL_STEPS, ROUNDS, POLISH = 64, 80, 4, 3
TIE, ROUGH_TIE = 1e-10, 1e-7
"""Distance by which a direction that is normal to fewer flats must hold the solids further apart to be taken [m]; in float32 the
latter."""
CURVED = 1e-9
"""Least curvature of the separation at its maximum [m] for a step of Newton."""
LONGEST = 0.1
"""Longest step of Newton [rad]."""


def search_program(kind: PairKind) -> Program:
    """Return a program (pose, sizes of a, sizes of b) -> (n, flats of a (6,), of b (6,), whether n follows from them), whose
    derivatives are zero."""
    search = _search(kind)
    b = ProgramBuilder("fixed")
    tangent, adjoint = _zeros(search.out_sizes), _zeros(search.in_sizes)
    return b.program(*b.custom(search, *b.like(search), tangent=tangent, adjoint=adjoint))


def _zeros(sizes: Sequence[int]) -> Callable[..., list[SX]]:
    return lambda *_: [SX.zeros(n) for n in sizes]


def _search(kind: PairKind) -> Program:
    b = ProgramBuilder("search")
    numbers = b.inputs(*kind.number_sizes)
    start = b.trace(kind.body(_start), *numbers)
    (_, c, last, _), _ = b.while_loop(
        lambda w, c, last, state, *_: state == RUNNING, kind.body(_gjk), GJK_STEPS, start, shared=numbers
    )
    overlaps = b.trace(kind.body(_touches), c, *numbers)
    n = b.cond(overlaps, _inside(kind), lambda c, *_: c / length(c), c, last, *numbers)
    none = [b.zeros(6), b.zeros(6), b.zeros(1)]
    return b.program(*b.scan(kind.body(_polish), POLISH, [*n, *none], shared=numbers)[0])


def _touches(pair: Pair, c: SX) -> SX:
    """Return whether the point of A - B nearest to the origin is as near as that of solids that overlap."""
    return ca.dot(c, c) < _rough(pair, OVERLAP, ROUGH_OVERLAP) ** 2


def _rough(pair: Pair, fine: float, rough: float) -> SX:
    """Return one or the other, as numbers are rounded: in float32 a tiny part that is added to a number is lost."""
    above = 2 + pair.R[0, 0]
    return ca.if_else(above * (1 + 1e-9) - above == 0, rough, fine)


# --- apart: GJK -------------------------------------------------------------------------------------------------------

RUNNING, DONE = 0, 1


def _start(pair: Pair) -> list[SX]:
    """Return a simplex of one point, three times; the point of it nearest to the origin, which is also the last one; the state."""
    w = pair.difference(-pair.between())
    return [ca.vertcat(w, w, w), w, w, SX(RUNNING)]


def _gjk(pair: Pair, simplex: SX, c: SX, last: SX, state: SX) -> list[SX]:
    """Add the point of A - B that is furthest towards the origin, and keep the triangle that comes nearest."""
    old = [simplex[3 * k : 3 * k + 3] for k in range(3)]
    w = pair.difference(-c)
    square = ca.dot(c, c)
    flat = _rough(pair, FLAT, ROUGH_FLAT)
    triangles = [[w, old[0], old[1]], [w, old[1], old[2]], [w, old[2], old[0]]]
    best, nearest = ca.vertcat(*triangles[0]), nearest_on_triangle(*triangles[0], flat=flat)
    for triangle in triangles[1:]:
        p = nearest_on_triangle(*triangle, flat=flat)
        nearer = ca.dot(p, p) < ca.dot(nearest, nearest)
        best, nearest = ca.if_else(nearer, ca.vertcat(*triangle), best), ca.if_else(nearer, p, nearest)
    inside = _holds_origin(w, *old, flat=flat)
    optimal = square - ca.dot(c, w) <= CONVERGED * square
    stuck = ca.dot(nearest, nearest) >= square * (1 - 1e-14)
    nearest = ca.if_else(inside, 0, nearest)
    kept = ca.logic_or(optimal, ca.logic_and(stuck, ca.logic_not(inside)))
    touches = ca.logic_or(inside, _touches(pair, nearest))
    return [ca.if_else(kept, simplex, best), ca.if_else(kept, c, nearest), c, ca.logic_or(kept, touches)]


def nearest_on_triangle(p: SX, q: SX, r: SX, flat: SX) -> SX:
    """Return the point of a triangle, which may be degenerate, nearest to the origin."""
    best = _nearest_on_segment(p, q)
    for ends in ((q, r), (r, p)):
        x = _nearest_on_segment(*ends)
        best = ca.if_else(ca.dot(x, x) < ca.dot(best, best), x, best)
    normal = ca.cross(q - p, r - p)
    square = ca.dot(normal, normal)
    weights = [ca.dot(normal, ca.cross(*ends)) for ends in ((q, r), (r, p), (p, q))]
    broad = square > flat**2 * (ca.dot(q - p, q - p) * ca.dot(r - p, r - p))
    over = broad
    for weight in weights:
        over = ca.logic_and(over, weight >= 0)
    foot = normal * (ca.dot(normal, p) / ca.if_else(broad, square, 1))
    return ca.if_else(over, foot, best)


def _nearest_on_segment(p: SX, q: SX) -> SX:
    along = q - p
    share = -ca.dot(p, along) / (ca.dot(along, along) + TINY)
    return p + ca.fmin(ca.fmax(share, 0), 1) * along


def _holds_origin(w: SX, p: SX, q: SX, r: SX, flat: SX) -> SX:
    """Return whether a tetrahedron with a volume holds the origin."""
    weights = [_det(p, q, r), -_det(w, q, r), _det(w, p, r), -_det(w, p, q)]
    edges = [x - w for x in (p, q, r)]
    volume = _det(*edges)
    # With fused multiply-adds the volume of a flat one is not zero, but rounding.
    inside = volume**2 > flat**2 * ca.dot(edges[0], edges[0]) * ca.dot(edges[1], edges[1]) * ca.dot(edges[2], edges[2])
    for weight in weights:
        inside = ca.logic_and(inside, weight * volume >= 0)
    return inside


def _det(x: SX, y: SX, z: SX) -> SX:
    return ca.dot(x, ca.cross(y, z))


# --- overlapping: portals ---------------------------------------------------------------------------------------------

FIRST, SECOND, THIRD, REFINE, LEFT = 0, 1, 2, 3, 4


def _inside(kind: PairKind) -> Program:
    """Return a program (end of GJK, the point before it, numbers) -> the direction of least depth, for solids that overlap."""
    b = ProgramBuilder("inside")
    _, last, *numbers = b.inputs(3, 3, *kind.number_sizes)
    n = least_overlap(b, kind, last, numbers)
    if kind.a.is_round or kind.b.is_round:
        starts = spread_starts(b, kind, n, numbers)
        best, _, _ = b.scan(_from_start(kind), STARTS, [n, b.constant(-1e9)], sequences=[starts], shared=numbers)
        n = on_ridges(b, kind, list(best), numbers)[0] if has_ridges(kind) else best[0]
    return b.program(n)


def _from_start(kind: PairKind) -> Program:
    """Return a program (best direction so far, its separation, where to start, numbers) -> the first two, after the portals from
    there were tried."""
    b = ProgramBuilder("start")
    best, most, start, *numbers = b.inputs(3, 1, 3, *kind.number_sizes)
    # The rays of A - B go the other way: it is left where -n . x is largest.
    entered = [b.zeros(9), start, b.trace(lambda ray: -ray, start), b.constant(FIRST), b.zeros(1)]
    (_, n, *_), _ = b.while_loop(
        lambda v, n, d, phase, *_: phase < LEFT, kind.body(_portal), PORTAL_STEPS, entered, shared=numbers
    )
    top = list(b.trace(kind.body(_kept), start, n, *numbers))
    top = climbed(b, kind, top, numbers, _newton) if has_ridges(kind) else top
    return b.program(*b.trace(better, *top, best, most))


def _kept(pair: Pair, start: SX, n: SX) -> tuple[SX, SX]:
    unit = n / length(n)  # portals can be tiny, and their normals inexact
    return better(unit, pair.separation(unit), start, pair.separation(start))


def _portal(pair: Pair, v: SX, n: SX, d: SX, phase: SX, rounds: SX) -> list[SX]:
    """Take one point of A - B per step: first three to find a portal that the ray goes through, then more to bring it to the
    surface."""
    v1, v2, v3 = (v[3 * k : 3 * k + 3] for k in range(3))
    normal = _towards(ca.cross(v2 - v1, v3 - v1), d)
    ways = [d, _across(d, v1), _towards(ca.cross(v1, v2), d), normal]
    way = ways[0]
    for k in (SECOND, THIRD, REFINE):
        way = ca.if_else(phase == k, ways[k], way)
    x = pair.difference(way)
    found = [
        (ca.vertcat(x, v2, v3), SX(SECOND)),
        (_ordered(v1, x, v3, d), SX(THIRD)),
        _discover(v1, v2, x, d),
        (_narrow(v1, v2, v3, x, d), SX(REFINE)),
    ]
    after, next_phase = found[0]
    for k in (SECOND, THIRD, REFINE):
        here = phase == k
        after, next_phase = ca.if_else(here, found[k][0], after), ca.if_else(here, found[k][1], next_phase)
    unit = normal / length(normal)
    reached = ca.logic_and(phase == REFINE, ca.dot(unit, x - v1) < PORTAL)
    settled = ca.logic_or(1 - ca.dot(unit, d) < 1e-12, rounds + 1 >= ROUNDS)
    next_phase = ca.if_else(reached, ca.if_else(settled, LEFT, FIRST), next_phase)
    return [after, ca.if_else(reached, -unit, n), ca.if_else(reached, unit, d), next_phase, rounds + reached]


def _towards(n: SX, d: SX) -> SX:
    return ca.if_else(ca.dot(n, d) < 0, -n, n)


def _across(d: SX, v: SX) -> SX:
    """Return a direction normal to the ray and to a point; any normal to the ray if the point lies on it."""
    n = ca.cross(d, v)
    return ca.if_else(ca.dot(n, n) > 1e-16 * ca.dot(v, v), n, tangents(d)[0])


def _ordered(v1: SX, v2: SX, v3: SX, d: SX) -> SX:
    """Order both points so that the ray is on the side of v1 x v2."""
    return ca.if_else(ca.dot(ca.cross(v1, v2), d) < 0, ca.vertcat(v2, v1, v3), ca.vertcat(v1, v2, v3))


def _discover(v1: SX, v2: SX, x: SX, d: SX) -> tuple[SX, SX]:
    """Check whether the ray goes through the triangle; if it passes beside an edge to x, x replaces the other point."""
    beside_1 = ca.dot(ca.cross(v1, x), d) > 0
    beside_2 = ca.dot(ca.cross(x, v2), d) > 0
    outside = ca.if_else(beside_1, ca.vertcat(v1, x, x), ca.vertcat(x, v2, x))
    missed = ca.logic_or(beside_1, beside_2)
    return ca.if_else(missed, outside, ca.vertcat(v1, v2, x)), ca.if_else(missed, THIRD, REFINE)


def _narrow(v1: SX, v2: SX, v3: SX, x: SX, d: SX) -> SX:
    """Return the one of the three triangles with x that the ray goes through."""
    k1, k2, k3 = (ca.dot(ca.cross(v, x), d) for v in (v1, v2, v3))
    third = ca.logic_and(k1 <= 0, k2 >= 0)
    first = ca.logic_and(k2 <= 0, k3 >= 0)
    return ca.if_else(third, ca.vertcat(v1, v2, x), ca.if_else(first, ca.vertcat(x, v2, v3), ca.vertcat(v1, x, v3)))


# --- polishing --------------------------------------------------------------------------------------------------------


def _polish(pair: Pair, n: SX, flats_a: SX, flats_b: SX, follows: SX) -> list[SX]:
    """Return a direction near n that holds the solids at least as far apart and is normal to as many flats as possible, the flats,
    and whether it follows from them."""
    near_a = pair.a.flats(-(pair.R.T @ n))
    near_b = pair.b.flats(n)
    none = SX.zeros(3)
    edge_a, edge_b = near_a[2], near_b[2]
    options = [
        (*near_a[:2], none, none),
        (none, none, *near_b[:2]),
        (edge_a, none, edge_b, none),
        (edge_a, none, none, none),
        (none, none, edge_b, none),
        (none, none, none, none),
    ]
    wanted = [2, 2, 2, 1, 1, 0]
    tie = _rough(pair, TIE, ROUGH_TIE)
    best, most, flats = n, SX(-1e6), (none, none, none, none)
    for option, count in zip(options, wanted, strict=True):
        trial, has = polished(pair, n, *option, newton=int(count < 2))
        s = ca.if_else(has == count, pair.separation(trial), -1e9)
        better = s > most + tie
        best, most = ca.if_else(better, trial, best), ca.if_else(better, s, most)
        flats = tuple(ca.if_else(better, x, y) for x, y in zip(option, flats, strict=True))
    worse = pair.separation(n) > most + tie
    before = (n, flats_a, flats_b, follows)
    after = (best, ca.vertcat(*flats[:2]), ca.vertcat(*flats[2:]), SX(1))
    return [ca.if_else(worse, x, y) for x, y in zip(before, after, strict=True)]


def polished(pair: Pair, n: SX, a1: SX, a2: SX, b1: SX, b2: SX, newton: int = 1) -> tuple[SX, SX]:
    """Return the direction near n that is normal to the flats of a (in its axes) and of b and holds the solids furthest apart, and
    how many flats it is normal to. Zeros are no flats. Two flats define the direction; with fewer, steps of Newton are made: one
    from the solution has its first derivative, two have its second and third, too."""
    world = [pair.R @ a1, pair.R @ a2, b1, b2]
    there = [ca.dot(x, x) > 0.5 for x in (a1, a2, b1, b2)]
    first, has_first = ca.if_else(there[0], world[0], world[2]), ca.logic_or(there[0], there[2])
    two = ca.logic_and(there[0], there[2])
    second = ca.if_else(there[1], world[1], ca.if_else(there[3], world[3], ca.if_else(two, world[2], 0)))
    across = ca.cross(first, second)
    skew = ca.dot(across, across) > 1e-6
    across = ca.if_else(skew, across, n)
    by_flats = _towards(across / length(across), n)
    count = ca.if_else(skew, 2, ca.if_else(ca.logic_or(two, ca.logic_or(there[1], there[3])), -1, has_first))
    for _ in range(newton):
        n = _newton(pair, n, first, has_first)
    return ca.if_else(skew, by_flats, n), count


def _newton(pair: Pair, n: SX, flat: SX, has_flat: SX) -> SX:
    """Take a step to the largest separation among unit vectors (normal to the flat, if there is one)."""
    within = n - ca.if_else(has_flat, ca.dot(n, flat), 0) * flat
    n = within / length(within)
    gradient, hessian = pair.difference(-n), pair.curvature(n)  # a support function's gradient is its point
    t1, t2 = tangents(n)
    across = ca.cross(ca.if_else(has_flat, flat, t2), n)
    t1 = across / length(across)
    g1, g2 = ca.dot(t1, gradient), ca.dot(t2, gradient)
    radial = ca.dot(n, gradient)
    h11, h22 = ca.dot(t1, hessian @ t1) - radial, ca.dot(t2, hessian @ t2) - radial
    h12 = ca.dot(t1, hessian @ t2)
    det = h11 * h22 - h12 * h12
    peak = ca.logic_and(h11 < -CURVED, det > CURVED**2)
    det = ca.if_else(peak, det, 1)
    both = [ca.if_else(peak, -(h22 * g1 - h12 * g2) / det, 0), ca.if_else(peak, -(h11 * g2 - h12 * g1) / det, 0)]
    ridge = h11 < -CURVED
    alone = ca.if_else(ridge, -g1 / ca.if_else(ridge, h11, 1), 0)
    step = ca.if_else(has_flat, alone * t1, both[0] * t1 + both[1] * t2)
    step = step * ca.fmin(1, LONGEST / length(step))
    moved = n + step
    return moved / length(moved)
