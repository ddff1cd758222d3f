"""A cylinder whose lower end (local -z) goes into a socket, with or without a chamfer.

In a plane through the cup's axis the wall is what lies behind the bore, behind the chamfer and below the upper face: its distance
is the largest of theirs (`Socket.wall_faces`). Every gap here is the least of such a distance along a circle, or the distance of a
point that is fixed to the cylinder. So none changes faster than the bodies move, wherever they are.

    rim    the lower rim's nearest point to the wall. Along the cosine of its angle the distance is convex, so halving finds it.
    edge   the side of the cylinder against the bore's upper edge: the edge's nearest point to the axis, found in the same way.
    face   four points of the lower rim against floor, upper face and outside, which is all that the outside meets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed
from costate.collision.shapes.cylinder import Cylinder
from costate.collision.shapes.socket import Socket
from costate.collision.shapes.solid import TINY, Number, length

HALVINGS, NEWTON = 6, 3
"""Times that the arc around an angle is halved, and steps of Newton from there, which have its derivatives."""
FINEST = math.pi / 2**HALVINGS
"""Longest step of Newton [rad]."""
FLAT = 1e-12
"""Curvature below which all angles are as good [m]."""
MOUTH = 50.0
"""Part of the bore's depth, from its edge down, in which the lower face's points see the wall even if it is in the middle."""
UPRIGHT = 1e-9
"""Sine of a tilt that has no direction of its own."""

Found = tuple[SX, SX, SX]
"""Gap, point and normal in the frame of the cup."""
Face = Sequence[Any]
"""Signed distance of a point from a face, and the components of its normal towards the axis and upwards."""


def cylinder_socket(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the rim against the wall, the side against the bore's edge, and four points of the lower face against the cup."""
    assert isinstance(a.solid, Cylinder) and isinstance(b.solid, Socket)
    cup, r = b.solid, a.solid.radius
    axis = b.rotation.T @ a.rotation[:, 2]
    low = b.to_local(a.to_world(ca.vertcat(0, 0, -a.solid.length / 2)))
    across = b.rotation.T @ a.rotation[:, :2]
    found = [_rim(cup, low, axis, across, r), _edge(cup, low, axis, a.solid)]
    found += [_face(cup, low + r * (across @ SX(way)), length(low[:2])) for way in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    return [ContactPoint(gap, b.to_world(p), b.rotation @ n) for gap, p, n in found]


def _rim(cup: Socket, low: SX, axis: SX, across: SX, r: Number) -> Found:
    """Return the point of the lower rim that is nearest to the wall or deepest in it. Once the rim's middle is beyond the bore it
    fades out: only the face's points count there."""
    k, s, c1, c2, side = _leaning(axis, low)
    along, beside, sink = r * axis[2] * c1, r * side * c2, r * s
    square = ca.dot(low[:2], low[:2]) + r**2

    def slope(u: SX, v: SX) -> SX:
        """Return the sign of the slope at cosine and sine of the angle from the lowest point."""
        fall = sink * u
        lateral = ca.sqrt(ca.fmax(square + 2 * (along * u + beside * v) - fall**2, UPRIGHT**2))
        _, inward, up = _largest(cup.wall_faces(lateral, low[2] - fall))
        return up * lateral * sink * v - inward * (beside * u - along * v + sink * fall * v)

    u, v = _least(slope)
    lowest = ca.vertcat(axis[2] * k, -s)
    w = _frozen(across.T @ (u * lowest + v * side * ca.vertcat(-k[1], k[0], 0)))

    for _ in range(NEWTON):
        w = _downhill(w, _faces_at(cup, low, r * across, w)[1])
    p, faces = _faces_at(cup, low, r * across, w)
    first, second = _largest_two(faces)
    opposed = first[3] * second[3] < 0
    share = ca.if_else(opposed, first[3] / ca.if_else(opposed, first[3] - second[3], 1), 0)
    gap, n = _normal([first[0], *(x + share * (y - x) for x, y in zip(first[1:3], second[1:3], strict=True))], p)
    return ca.fmax(gap, length(low[:2]) - cup.bore), p, n


def _faces_at(cup: Socket, low: SX, rim: SX, w: SX) -> tuple[SX, list[Face]]:
    """Return the point of the rim in a direction, and the wall's faces there, with slope and curvature along the rim."""
    p, dp = low + rim @ w, rim @ _turned(w)
    lateral = length(p[:2])
    out = ca.dot(p[:2], dp[:2]) / lateral
    bent = (ca.dot(dp[:2], dp[:2]) + ca.dot(p[:2], low[:2] - p[:2]) - out**2) / lateral
    faces = cup.wall_faces(lateral, p[2])
    more = [(up * dp[2] - inward * out, up * (low[2] - p[2]) - inward * bent) for _, inward, up in faces]
    return p, [(*face, *rest) for face, rest in zip(faces, more, strict=True)]


def _downhill(w: SX, faces: list[Face]) -> SX:
    """Return the direction at which the slope of the largest face ends, or at which one that rises takes over before."""
    first = _largest(faces)
    step, share = _newton(*first[3:]), SX(1)
    for face in faces:
        uphill = face[3] * step > TINY
        rise = ca.if_else(uphill, (face[3] - first[3]) * step, 1)
        share = ca.if_else(uphill, ca.fmin(share, (first[0] - face[0]) / rise), share)
    return _moved(w, share * step)


def _edge(cup: Socket, low: SX, axis: SX, cylinder: Cylinder) -> Found:
    """Return the point of the bore's upper edge that is nearest to the cylinder's axis, against side and ends. It fades out as the
    cylinder leans by 60 degrees: one that lies crosses the edge twice."""
    k, s, c1, c2, sign = _leaning(axis, low)
    height, b = cup.edge_height, cup.bore

    def slope(u: SX, v: SX) -> SX:
        along = s * (b * u - c1) + axis[2] * (height - low[2])
        return (c1 + s * along) * v - sign * c2 * u

    u, v = _least(slope)
    w = _frozen(u * k + v * sign * ca.vertcat(-k[1], k[0]))
    for _ in range(NEWTON):  # on half the square of the distance
        t = _turned(w)
        way, lean = ca.vertcat(b * w, height) - low, ca.dot(axis[:2], t)
        along = ca.dot(axis, way)
        g = along * lean + ca.dot(low[:2], t)
        h = b * lean**2 - along * ca.dot(axis[:2], w) - ca.dot(low[:2], w)
        w = _moved(w, _newton(-g, -h))
    q = ca.vertcat(b * w, height)
    along = ca.dot(axis, q - low)
    way = q - low - along * axis
    far = length(way)
    # The side is there where the lower face is below the whole edge; until then the rim is. Over the wall the face stands on it.
    side, level = far - cylinder.radius, ca.dot(axis, low) - axis[2] * height
    below = level + s * b
    ends = ca.fmax(below, -level - s * b - cylinder.length)
    stands = ca.logic_and(below > side, ca.dot(low[:2], low[:2]) > b**2)
    gap = ca.fmax(ca.fmax(side, ends), b * (1 - 2 * axis[2]))
    return gap, q, ca.if_else(stands, axis, -way / far)


def _face(cup: Socket, p: SX, beside: SX) -> Found:
    """Return a point of the lower face against the cup. beside: distance of the face's middle from the cup's axis [m]. Once it is
    deeper in the bore than that, the wall is left to the rim: two rows of nearly the same contact have no force of their own."""
    lateral, z = length(p[:2]), p[2]
    wall = _largest(cup.wall_faces(lateral, z))
    wall = (ca.fmax(wall[0], (cup.edge_height - cup.depth / MOUTH - z - beside) / 2), *wall[1:])
    floor = z + cup.depth
    inside = _chosen(wall[0] < floor, wall, (floor, 0, 1))
    gap, n = _normal(_largest([inside, (lateral - cup.radius, -1, 0), (-floor - cup.floor, 0, -1)]), p)
    return gap, p, n


# --- faces of the cup's section ---------------------------------------------------------------------------------------


def _largest(faces: Sequence[Face]) -> Face:
    best = faces[0]
    for face in faces[1:]:
        best = _chosen(face[0] > best[0], face, best)
    return best


def _chosen(first: Any, a: Face, b: Face) -> Face:
    return [ca.if_else(first, x, y) for x, y in zip(a, b, strict=True)]


def _largest_two(faces: Sequence[Face]) -> tuple[Face, Face]:
    first, second = faces[0], faces[1]
    swap = second[0] > first[0]
    first, second = _chosen(swap, second, first), _chosen(swap, first, second)
    for face in faces[2:]:
        above = face[0] > first[0]
        second = _chosen(above, first, _chosen(face[0] > second[0], face, second))
        first = _chosen(above, face, first)
    return first, second


def _normal(face: Face, p: SX) -> tuple[SX, SX]:
    """Return the distance, and the normal (3,) at a point."""
    gap, inward, up = face
    n = ca.vertcat(-inward * p[:2] / length(p[:2]), up)
    return gap, n / length(n)


# --- the least along a circle -----------------------------------------------------------------------------------------


def _leaning(axis: SX, low: SX) -> tuple[SX, SX, SX, SX, SX]:
    """Return the horizontal direction (2,) to which an axis leans, any one if it is upright, the sine of its tilt, the point's
    components along and across that direction, and the sign of the latter: what is nearest is on that side."""
    tilt = axis[:2] + UPRIGHT * ca.vertcat(1, 0)
    s = length(tilt)
    k = tilt / s
    c2 = k[0] * low[1] - k[1] * low[0]
    return k, s, ca.dot(k, low[:2]), c2, ca.if_else(c2 < 0, -1, 1)


def _least(slope: Callable[[SX, SX], SX]) -> tuple[SX, SX]:
    """Return cosine and sine of the angle in [0, pi] at which a slope changes its sign from below to above zero."""
    u, v = SX(0), SX(1)
    for k in range(HALVINGS):
        angle = math.pi / 2 ** (k + 2)
        turn = ca.if_else(slope(u, v) > 0, math.sin(angle), -math.sin(angle))
        u, v = math.cos(angle) * u + turn * v, math.cos(angle) * v - turn * u
    return u, v


def _frozen(w: SX) -> SX:
    """Return a unit vector (2,) without its derivatives: those of a direction in which an upright axis leans say nothing."""
    w = ca.floor(w * 2**20 + 0.5) / 2**20
    return w / length(w)


def _turned(w: SX) -> SX:
    return ca.vertcat(-w[1], w[0])


def _newton(slope: SX, bend: SX) -> SX:
    """Return the step to the least [rad], or as far downhill as is allowed."""
    bent = bend > FLAT
    step = ca.if_else(
        bent, -slope / ca.if_else(bent, bend, 1), ca.if_else(slope > 0, -FINEST, ca.if_else(slope < 0, FINEST, 0))
    )
    return ca.fmin(ca.fmax(step, -FINEST), FINEST)


def _moved(w: SX, step: SX) -> SX:
    w = w + step * _turned(w)
    return w / length(w)
