"""Triangles to pixels: a depth buffer, and the nearest face of each pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.draw.compiled.code import F32, F64, I32, I64, Code, Number
from costate.draw.compiled.loop import loop

FLAT = 1e-9
"""Twice the area of the smallest triangle that is drawn [pixels]."""


@loop(
    corners=np.float32,
    faces=np.int32,
    owner=np.int32,
    alpha=np.float32,
    first=int,
    end=int,
    two_sided=int,
    width=int,
    height=int,
    depth=np.float32,
    face=np.int32,
)
def fill(code: Code, a: Any) -> None:
    """Draw the faces from number `first` to `end`, whose corners are pixel x, pixel y and a depth that is linear on the screen.

    Those with a corner that is not a number are left out, and so are those seen from behind unless two_sided is 1. Owners with
    an alpha below 1 are a screen of holes: four levels with two by two samples per pixel.
    """
    with code.loop(a.first, a.end) as f:
        index = [a.faces[f * 3 + k] for k in range(3)]
        px, py, pz = ([a.corners[i.to(I64) * 3 + k].to(F64) for i in index] for k in range(3))
        area = (px[1] - px[0]) * (py[2] - py[0]) - (px[2] - px[0]) * (py[1] - py[0])
        # Counter-clockwise from outside is clockwise in pixels, whose y points down.
        facing = code.select(a.two_sided > 0, code.largest(area, -area), -area)
        with code.when(facing > FLAT):
            left, right = _between(code, px, a.width)
            top, bottom = _between(code, py, a.height)
            planes = _planes(px, py, pz, 1.0 / area)
            through = a.alpha[a.owner[index[0]]]
            with code.loop(top, bottom) as y:
                fy = y.to(F64) + 0.5
                rows = [(a, b * fy + c) for a, b, c in planes]
                with code.loop(left, right) as column:
                    fx = column.to(F64) + 0.5
                    e0, e1, e2, z = (a * fx + row for a, row in rows)
                    at, z = y * a.width + column, z.to(F32)
                    inside = (e0 >= 0.0) & (e1 >= 0.0) & (e2 >= 0.0) & (z < a.depth[at])
                    with code.when(inside & (_level(column, y) < through)):
                        a.depth[at] = z
                        a.face[at] = f.to(I32)


def _between(code: Code, x: list[Number], size: Number) -> tuple[Number, Number]:
    """Return the first pixel whose middle lies between the corners, and the one after the last."""
    low = code.smallest(*x) - 0.5
    high = code.largest(*x) - 0.5
    most = size.to(F64)
    first = -code.floor(-code.smallest(code.largest(low, 0.0), most))
    end = code.floor(code.smallest(code.largest(high, -1.0), most - 1.0)) + 1.0
    return first.to(I64), end.to(I64)


def _planes(x: list[Number], y: list[Number], z: list[Number], inverse: Number) -> list[Any]:
    """Return (a, b, c) of a x + b y + c for the three edge functions, each 1 at its own corner and 0 on the opposite edge, and for
    the depth."""
    edges = [
        (
            (y[j] - y[k]) * inverse,
            (x[k] - x[j]) * inverse,
            (x[j] * y[k] - x[k] * y[j]) * inverse,
        )
        for j, k in ((1, 2), (2, 0), (0, 1))
    ]
    depth = tuple(edges[0][m] * z[0] + edges[1][m] * z[1] + edges[2][m] * z[2] for m in range(3))
    return [*edges, depth]


def _level(x: Number, y: Number) -> Number:
    return ((x & 1) + 2 * ((x + y) & 1)).to(F32) * 0.25 + 0.125
