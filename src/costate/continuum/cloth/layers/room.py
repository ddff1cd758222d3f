"""The room of a step of Newton's method: how far it may go so that nothing passes through anything.

Every pair that may touch advances along the step by what its distance allows, until it is as near as it may come (additive
continuous collision detection, Li et al. 2021). Which pairs these are was found for points that stay within a distance of where the
solve began, or of where they would be if all had moved together: none goes farther. A step that would, ends there, and so does the
solve: it goes on with the pairs of that place.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from costate.continuum.cloth.layers.pairs import Pairs, rows_of
from costate.kernel.fields import GREATEST, OWN, TOTAL, Field, FieldBuilder
from costate.kernel.ir.program import Program, Var

GAP = 0.2
"""Share of the distance at the beginning of a motion that is kept at its end."""
FLOOR = 1e-4
"""Distance, by the thickness, below which nothing may come any nearer: far above rounding."""
NEAR = 0.1
"""Distance beyond that, by it, that counts as none."""
CAREFUL = 0.9
"""Share of what the distance allows that an advance takes."""
ROUNDS = 60
"""Largest number of advances."""
TINY = 1e-300


def room(pairs: Pairs, g: FieldBuilder, y: Field, d: Field, fields: Sequence[Field | Var], ball: Field) -> Var:
    """Return the largest length t, up to 1, of a step y - t d, and 1 if it ends where points may not go on.

    fields: indices of the pairs' points (4), their numbers, and how many there are. ball: where every point began, and how much
    farther or less far than all of them on average it may go (4).
    """
    passing = _passing(pairs, g, y, d, fields)
    (sums,) = g.for_each(pairs.points, lambda y, d, b: ca.vertcat(y - b[:3], d), [y, d, ball], [TOTAL])
    mean = g.call(lambda s: s / pairs.points.count, sums)[0]
    (leaving,) = g.for_each(pairs.points, _leaving, [y, d, ball, mean], [GREATEST])

    def least(passing: ca.SX, leaving: ca.SX) -> ca.SX:
        most = ca.fmax(passing, leaving)
        return ca.vertcat(1 / ca.fmax(1, most), ca.if_else(ca.logic_and(leaving > 1, leaving >= passing), 1, 0))

    return g.call(least, passing, leaving)[0]


def _leaving(y: ca.SX, d: ca.SX, ball: ca.SX, mean: ca.SX) -> ca.SX:
    """Return 1 / t for the length t at which a point leaves its ball, which moves with all points. mean: of y and d (6)."""
    u, d = y - ball[:3] - mean[:3], d - mean[3:]
    along, square = ca.dot(u, d), ca.sumsqr(d)
    left = ca.fmax(ball[3] ** 2 - ca.sumsqr(u), 0)
    return square / (along + ca.sqrt(along * along + square * left) + TINY)


def _passing(pairs: Pairs, g: FieldBuilder, y: Field, d: Field, fields: Sequence[Field | Var]) -> Var:
    """Return the greatest 1 / t of pairs that come as near as they may at a length t below 1, or 0."""
    at, span = pairs.around(g, fields), fields[5]
    assert isinstance(span, Var)

    def begin(numbers: ca.SX, *read: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        rate = _rate(rows_of(read[4:]), numbers[1])
        going = ca.if_else(rate > 0, 1, 0)
        known = ca.vertcat(rate, ca.fmax(GAP * apart(rows_of(read[:4]), numbers[1]), FLOOR * pairs.thickness))
        return known, ca.vertcat(1 - going, going), going

    reads = [fields[4], *(y[a] for a in at), *(d[a] for a in at)]
    known, state, left = g.for_each(pairs.entities, begin, reads, [OWN, OWN, TOTAL], between=span)
    given = [known.var, y.var, d.var, *(f.var if isinstance(f, Field) else f for f in fields[:6])]
    (last, _), _ = g.while_loop(_unfinished(pairs), _advance(pairs), ROUNDS, [state.var, left], given)

    def bound(s: ca.SX) -> ca.SX:
        return ca.if_else(s[0] < 1, 1 / ca.fmax(s[0], TINY), 0)

    return g.for_each(pairs.entities, bound, [g.as_field(last, pairs.entities, 2)], [GREATEST], between=span)[0]


def _carried(pairs: Pairs, g: FieldBuilder) -> tuple[Field, Var, Field, Field, Field, list[Field | Var]]:
    of = pairs.entities
    state, left = g.carried(of, 2), g.inputs(1)[0]
    known, y, d = g.carried(of, 2), g.carried(pairs.points, 3), g.carried(pairs.points, 3)
    fields: Sequence[Field | Var] = [*(g.carried(of, 1) for _ in range(4)), g.carried(of, 2), g.inputs(2)[0]]
    return state, left, known, y, d, fields


def _unfinished(pairs: Pairs) -> Program:
    g = FieldBuilder("cloth, advances left")
    _, left, *_ = _carried(pairs, g)
    return g.program(g.call(lambda n: ca.if_else(n > 0, 1, 0), left)[0])


def _advance(pairs: Pairs) -> Program:
    """Return the program of one advance of all pairs. Those that may go all the way end with a length of 1 or more."""
    g = FieldBuilder("cloth, advance")
    state, _, known, y, d, fields = _carried(pairs, g)
    at, span = pairs.around(g, fields), fields[5]
    assert isinstance(span, Var)

    def body(state: ca.SX, known: ca.SX, numbers: ca.SX, *read: ca.SX) -> tuple[ca.SX, ca.SX]:
        t, (rate, least) = state[0], ca.vertsplit(known)
        free = apart(rows_of(read[:4]) - t * rows_of(read[4:]), numbers[1]) - least
        stuck = free < NEAR * least
        new = ca.if_else(ca.logic_or(stuck, state[1] == 0), t, t + CAREFUL * free / (rate + TINY))
        going = ca.if_else(ca.logic_or(ca.logic_or(stuck, state[1] == 0), new >= 1), 0, 1)
        return ca.vertcat(new, going), going

    reads = [state, known, fields[4], *(y[a] for a in at), *(d[a] for a in at)]
    new, left = g.for_each(pairs.entities, body, reads, [OWN, TOTAL], between=span)
    return g.program(new.var, left)


def _rate(D: ca.SX, edges: ca.SX) -> ca.SX:
    """Return the most that the distance of a pair can change in a step (4, 3)."""
    D = D - ca.repmat(ca.sum1(D) / 4, 4, 1)
    size = [ca.sqrt(ca.sumsqr(D[i, :])) for i in range(4)]
    point = size[0] + ca.fmax(ca.fmax(size[1], size[2]), size[3])
    return ca.if_else(edges > 0, ca.fmax(size[0], size[1]) + ca.fmax(size[2], size[3]), point)


def apart(X: ca.SX, edges: ca.SX) -> ca.SX:
    """Return the distance of a pair: the least of those between all parts of it (a face and a point, lines, ends)."""
    a, b, c, d = (X[i, :] for i in range(4))
    other = [_to_segment(a, b, c), _to_segment(a, c, d), _to_segment(a, d, b), _to_face(a, b, c, d)]
    lines = [_to_segment(a, c, d), _to_segment(b, c, d), _to_segment(c, a, b), _to_segment(d, a, b), _lines(a, b, c, d)]
    return ca.sqrt(ca.if_else(edges > 0, _least(lines), _least(other)))


def _least(squares: list[ca.SX]) -> ca.SX:
    found = squares[0]
    for s in squares[1:]:
        found = ca.fmin(found, s)
    return found


def _to_segment(p: ca.SX, a: ca.SX, b: ca.SX) -> ca.SX:
    e, q = b - a, p - a
    t = ca.fmin(ca.fmax(ca.dot(q, e) / (ca.sumsqr(e) + TINY), 0), 1)
    return ca.sumsqr(q - t * e)


def _to_face(p: ca.SX, a: ca.SX, b: ca.SX, c: ca.SX) -> ca.SX:
    """Return the square of the distance of a point from the inside of a triangle; that from a corner if it is not above it."""
    u, v, q = b - a, c - a, p - a
    uu, uv, vv, qu, qv = ca.dot(u, u), ca.dot(u, v), ca.dot(v, v), ca.dot(q, u), ca.dot(q, v)
    det = ca.fmax(uu * vv - uv * uv, TINY)
    s, t = (vv * qu - uv * qv) / det, (uu * qv - uv * qu) / det
    inside = ca.fmin(ca.fmin(s, t), 1 - s - t) >= 0
    return ca.if_else(inside, ca.sumsqr(q - s * u - t * v), ca.sumsqr(q))


def _lines(a: ca.SX, b: ca.SX, c: ca.SX, d: ca.SX) -> ca.SX:
    """Return the square of the distance of two points of edges: the nearest ones of their lines, unless those are outside."""
    u, v, r = b - a, d - c, a - c
    uu, uv, vv, ur, vr = ca.dot(u, u), ca.dot(u, v), ca.dot(v, v), ca.dot(u, r), ca.dot(v, r)
    s = ca.fmin(ca.fmax((uv * vr - ur * vv) / ca.fmax(uu * vv - uv * uv, TINY), 0), 1)
    t = ca.fmin(ca.fmax((uv * s + vr) / (vv + TINY), 0), 1)
    return ca.sumsqr(r + s * u - t * v)
