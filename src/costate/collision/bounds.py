"""Bounding spheres and boxes, and pairs that are only examined where their spheres are near."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import pose
from costate.collision.shapes import FAR, Solid, length
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program

BOUND = 4
"""Numbers of a bounding sphere: its middle in the solid's frame, its radius."""


def bound(solid: Solid) -> tuple[SX, SX]:
    """Return middle and radius of a sphere around a solid; the radius is FAR where there is none."""
    return solid.bounding_sphere()


BOX = 6
"""Numbers of a bounding box: its middle in the solid's frame, and half its edges along the solid's axes."""


def bounding_box(solid: Solid) -> SX:
    """Return middle and half edges of a box around a solid, (BOX,); FAR where there is none."""
    return ca.vertcat(*solid.bounding_box())


def boxes_apart(x: SX, y: SX, s: SX, t: SX) -> SX:
    """Return how far two boxes (s at the pose x, t at y) are apart along the normals of their faces [m], a lower bound of their
    distance."""
    (A, a), (B, b) = pose(x), pose(y)
    a, b = a + A @ s[:3], b + B @ t[:3]
    between, turn = a - b, A.T @ B
    reach = ca.fabs(turn)
    along = [
        ca.fabs(A.T @ between) - s[3:] - reach @ t[3:],
        ca.fabs(B.T @ between) - t[3:] - reach.T @ s[3:],
    ]
    return ca.mmax(ca.vertcat(*along))


def pruned(program: Program) -> Program:
    """Return a pair's program with two bounding spheres as further inputs. Where the spheres are further apart than the radius of
    the smaller one, the pair has one contact point: on the line between them, with the distance of the spheres, a lower bound."""
    b = ProgramBuilder("pruned")
    x, y, *rest = b.inputs(*program.in_sizes, BOUND, BOUND)
    near = b.trace(lambda x, y, s, t: _spheres(x, y, s, t)[1] < ca.fmin(s[3], t[3]), x, y, *rest[-2:])
    close = ProgramBuilder("close")
    *inner, _, _ = close.inputs(*program.in_sizes, BOUND, BOUND)

    def far(x: SX, y: SX, *rest: SX) -> SX:
        between, gap, point = _spheres(x, y, *rest[-2:])
        count = program.out_sizes[0] // 7
        return ca.vertcat(*(ca.vertcat(gap if k == 0 else FAR, point, between) for k in range(count)))

    return b.program(*b.cond(near, close.program(*close.call(program, *inner)), far, x, y, *rest))


def _spheres(x: SX, y: SX, s: SX, t: SX) -> tuple[SX, SX, SX]:
    """Return the direction from the second sphere to the first, their distance, and the point midway."""
    middles = [p + R @ c[:3] for (R, p), c in ((pose(x), s), (pose(y), t))]
    apart = middles[0] - middles[1]
    distance = length(apart)
    normal = apart / distance
    gap = distance - s[3] - t[3]
    return normal, gap, middles[1] + normal * (t[3] + gap / 2)
