"""A capsule and a box: both ends of the capsule, and where its axis is nearest to the box.

The distance of a box is convex, so along the axis it has one least value, which halving finds; no gap changes faster than the
bodies move, however deep they are in each other. A capsule that lies on a face is as near in many points. Then the least of a
distance that leans a little, to one side and to the other, are the two ends of that stretch, such as the edges that it lies across.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed, ball_against, points_against
from costate.collision.shapes.box import Box
from costate.collision.shapes.capsule import Capsule
from costate.collision.shapes.solid import TINY, length

LEAN = 1e-4
"""Slope that tells points at the same distance apart."""
HALVINGS, NEWTON = 12, 3
"""Times that the axis is halved, and steps of Newton from there, which have the derivatives of the nearest point."""


def capsule_box(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return both ends against the box, and the nearest point of the axis with a slope to either side."""
    return [*points_against(a, b), *(_nearest(a, b, lean) for lean in (-LEAN, LEAN))]


def _nearest(a: Placed, b: Placed, lean: float) -> ContactPoint:
    assert isinstance(a.solid, Capsule) and isinstance(b.solid, Box)
    middle, axis, edges = b.to_local(a.position), b.rotation.T @ a.rotation[:, 2], b.solid.size / 2
    half = a.solid.length / 2

    def slopes(t: SX) -> tuple[SX, SX, SX, SX]:
        """Return the distances from the planes of the faces and their slopes along the axis, the distance outside of the box, and
        half the slope of its square."""
        p = middle + t * axis
        planes, along = ca.fabs(p) - edges, ca.if_else(p < 0, -axis, axis)
        out = ca.fmax(planes, 0)
        far = length(out)
        return planes, along, far, ca.dot(out, along) + lean * far

    t = SX(0)
    for k in range(HALVINGS):
        planes, along, far, slope = slopes(t)
        rises = ca.if_else(far > 2 * TINY**0.5, slope, _steepest(planes, along) + lean) > 0
        t = t + ca.if_else(rises, -1, 1) * half / 2 ** (k + 1)
    finest = half / 2**HALVINGS
    for _ in range(NEWTON):
        planes, along, far, slope = slopes(t)
        bend = ca.dot(ca.if_else(planes > 0, along, 0), along)
        bent = bend > TINY
        (first, rise, depth), (second, fall, _) = _two_largest(planes, along, edges)
        # Inside: downhill to where the opposite face takes over, or the next one before that.
        moves, crosses = ca.fabs(rise) > LEAN, rise * fall < 0
        inside = ca.if_else(moves, -(first + depth) / ca.if_else(moves, rise, 1), 0)
        crossing = (second - first) / ca.if_else(crosses, rise - fall, 1)
        inside = ca.if_else(ca.logic_and(crosses, ca.fabs(crossing) < ca.fabs(inside)), crossing, inside)
        outside = ca.if_else(bent, -slope / ca.if_else(bent, bend, 1), 0)
        step = ca.if_else(far > 2 * TINY**0.5, outside, inside)
        t = ca.fmin(ca.fmax(t + ca.fmin(ca.fmax(step, -finest), finest), -half), half)
    return ball_against(a.to_world(ca.vertcat(0, 0, t)), a.solid.radius, b)


def _steepest(planes: SX, along: SX) -> SX:
    """Return the slope of the largest of three distances."""
    first = ca.if_else(planes[0] > planes[1], along[0], along[1])
    return ca.if_else(planes[2] > ca.fmax(planes[0], planes[1]), along[2], first)


def _two_largest(*rows: SX) -> list[list[SX]]:
    """Return the columns with the largest and the next number in the first of some rows (3,)."""
    columns = [[row[k] for row in rows] for k in range(3)]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        swap = columns[j][0] > columns[i][0]
        pair = list(zip(columns[i], columns[j], strict=True))
        columns[i], columns[j] = [ca.if_else(swap, y, x) for x, y in pair], [ca.if_else(swap, x, y) for x, y in pair]
    return columns[:2]
