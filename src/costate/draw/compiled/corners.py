"""Corners of triangles: from their bodies into the world, and from the world onto the screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.draw.compiled.code import F32, I64, Code, Vector
from costate.draw.compiled.loop import loop

NEAREST = 0.01
"""Distance from the camera of the nearest corner that is drawn [m]."""


@loop(
    vertices=np.float32,
    normals=np.float32,
    owner=np.int32,
    poses=np.float64,
    count=int,
    points=np.float32,
    turned=np.float32,
)
def place(code: Code, a: Any) -> None:
    """Move corners (count, 3) and normals by the poses [R | p] of their owners, (owners, 3, 4)."""
    with code.loop(code.number(0, I64), a.count) as i:
        at = a.owner[i].to(I64) * 12
        v, n = a.vertices.three(i).wide(), a.normals.three(i).wide()
        for row in range(3):
            r = Vector(*(a.poses[at + 4 * row + k] for k in range(3)))
            a.points[i * 3 + row] = (r.dot(v) + a.poses[at + 4 * row + 3]).to(F32)
            a.turned[i * 3 + row] = r.dot(n).to(F32)


@loop(points=np.float32, camera=np.float64, count=int, middle_x=float, middle_y=float, screen=np.float32)
def project(code: Code, a: Any) -> None:
    """Project points (count, 3): pixel x, pixel y and -1 / depth; not a number where they are too near.

    camera: right, up and forward, the first two times the focal length in pixels, then its position, shape (4, 3).
    """
    right, up, forward, position = (a.camera.three(code.number(k, I64)) for k in range(4))
    with code.loop(code.number(0, I64), a.count) as i:
        d = a.points.three(i).wide() - position
        depth = d.dot(forward)
        near = code.select(depth > NEAREST, 1.0 / depth, float("nan"))
        a.screen[i * 3] = (a.middle_x + d.dot(right) * near).to(F32)
        a.screen[i * 3 + 1] = (a.middle_y - d.dot(up) * near).to(F32)
        a.screen[i * 3 + 2] = (-near).to(F32)
