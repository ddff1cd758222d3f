"""Bounding spheres and boxes, and pairs that are only examined where their spheres are near."""

from __future__ import annotations

import casadi as ca
from casadi import SX

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
    (A, a), (B, b) = ((ca.reshape(p[:9], 3, 3), p[9:] + ca.reshape(p[:9], 3, 3) @ c[:3]) for p, c in ((x, s), (y, t)))
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
    args = [b.input(f"i{k}", n) for k, n in enumerate(program.in_sizes)]
    spheres = [b.input(f"sphere{k}", BOUND) for k in range(2)]
    x, y, s, t = SX.sym("x", 12), SX.sym("y", 12), SX.sym("s", BOUND), SX.sym("t", BOUND)
    between, gap, point = _spheres(x, y, s, t)
    near = gap < ca.fmin(s[3], t[3])
    (condition,) = b.call(ca.Function("near", [x, y, s, t], [near]), *args[:2], *spheres)
    rest = [SX.sym(f"r{k}", n) for k, n in enumerate(program.in_sizes[2:])]
    (n,) = program.out_sizes
    points = [ca.vertcat(gap if k == 0 else FAR, point, between) for k in range(n // 7)]
    far = ca.Function("far", [x, y, *rest, s, t], [ca.vertcat(*points)])
    close = ProgramBuilder("close")
    inner = [close.input(f"i{k}", m) for k, m in enumerate((*program.in_sizes, BOUND, BOUND))]
    close.output("points", close.call(program, *inner[:-2])[0])
    b.output("points", b.cond(condition, close.program(), far, *args, *spheres)[0])
    return b.program()


def _spheres(x: SX, y: SX, s: SX, t: SX) -> tuple[SX, SX, SX]:
    """Return the direction from the second sphere to the first, their distance, and the point midway."""
    middles = [p[9:] + ca.reshape(p[:9], 3, 3) @ c[:3] for p, c in ((x, s), (y, t))]
    apart = middles[0] - middles[1]
    distance = length(apart)
    normal = apart / distance
    gap = distance - s[3] - t[3]
    return normal, gap, middles[1] + normal * (t[3] + gap / 2)
