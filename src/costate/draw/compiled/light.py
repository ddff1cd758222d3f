"""Light: what the samples of each pixel show, and their mean as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.draw.compiled.code import F32, F64, I32, I64, Code, Number, Vector
from costate.draw.compiled.loop import loop

SAMPLES = 2
"""Samples per pixel and direction."""
LEVELS = 1 << 14
"""Length of the table from linear light to bytes."""
WARM, COOL = (1.0, 0.97, 0.92), (0.92, 0.97, 1.05)
"""Colours of the sun and the sky."""


@loop(
    face=np.int32,
    faces=np.int32,
    owner=np.int32,
    screen=np.float32,
    points=np.float32,
    normals=np.float32,
    colors=np.float32,
    behind=np.float32,
    floor=np.float32,
    place=np.float32,
    depth=np.float32,
    outline=np.float32,
    sun=np.float32,
    setting=np.float32,
    table=np.uint8,
    width=int,
    height=int,
    pixels=int,
    image=np.uint8,
)
def shade(code: Code, a: Any) -> None:
    """Fill an image (height, width, 3) with sRGB bytes.

    Args:
        face: Nearest face of each sample, -1 where there is none.
        behind, floor: The picture without bodies is behind + floor * (light on the ground), (height, width, 3) each.
        place: Point of the ground under each pixel [m], (height, width, 2); not a number where there is none.
        depth: Depth map seen from the sun (pixels, pixels). outline: half as large in each direction.
        sun: From points to pixels of the map and depth, [A | b] (3, 4), the direction of the sun (3), and the depth [m] by
            which a point must lie behind what shades it.
        setting: Position of the camera (3), height of the ground, brightness of the ground in full shadow.
        table: sRGB bytes of linear light from 0 to 1.
    """
    zero = code.number(0, I64)
    shadow = _Shadow(code, a.sun, a.depth, a.outline, a.pixels)
    eye, ground, dark = Vector(a.setting[0], a.setting[1], a.setting[2]), a.setting[3], a.setting[4]
    with code.loop(zero, a.height) as y, code.loop(zero, a.width) as x:
        at = y * a.width + x
        covered = shadow.on_the_ground(a.place[at * 2], a.place[at * 2 + 1], ground)
        lit = 1.0 - (1.0 - dark) * covered
        back = a.behind.three(at) + a.floor.three(at) * lit
        total = [code.variable(c * float(SAMPLES**2)) for c in (back.x, back.y, back.z)]
        first = y * a.width * SAMPLES**2 + x * SAMPLES
        seen = [a.face[first + k] for k in range(SAMPLES)] + [
            a.face[first + a.width * SAMPLES + k] for k in range(SAMPLES)
        ]
        with code.when(code.largest(*seen) >= 0), code.loop(zero, code.number(SAMPLES**2, I64)) as sample:
            row, column = y * SAMPLES + _half(code, sample), x * SAMPLES + (sample & 1)
            f = a.face[row * a.width * SAMPLES + column]
            with code.when(f >= 0):
                corner = [a.faces[f.to(I64) * 3 + k] for k in range(3)]
                weights = _weights(code, [a.screen.three(k) for k in corner], column.to(F64) + 0.5, row.to(F64) + 0.5)
                p = _mixed(weights, [a.points.three(k) for k in corner])
                with code.when(p.z >= ground - 1e-3):
                    n = _mixed(weights, [a.normals.three(k) for k in corner]).unit(code)
                    own = a.owner[corner[0]].to(I64) * 4
                    base = Vector(a.colors[own], a.colors[own + 1], a.colors[own + 2])
                    light = _shaded(code, p, n, base, eye, shadow)
                    for sum_, c, old in zip(total, (light.x, light.y, light.z), (back.x, back.y, back.z), strict=True):
                        sum_.set(sum_.get() + c - old)
        for k in range(3):
            value = total[k].get() * (1 / SAMPLES**2)
            level = code.smallest(code.largest(value, 0.0), 1.0) * float(LEVELS - 1) + 0.5
            a.image[at * 3 + k] = a.table[level.to(I32)]


def _half(code: Code, sample: Number) -> Number:
    return Number(code, code.builder.lshr(sample.value, code.number(1, I64).value))


def _weights(code: Code, corners: list[Vector], x: Number, y: Number) -> list[Number]:
    """Return weights of the three corners at a pixel, straight in space and not on the screen."""
    px, py = [c.x.to(F64) for c in corners], [c.y.to(F64) for c in corners]
    edges = []
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        across = (px[j] - x) * (py[k] - y) - (px[k] - x) * (py[j] - y)
        edges.append(across * corners[i].z.to(F64))
    whole = 1.0 / (edges[0] + edges[1] + edges[2])
    return [(e * whole).to(F32) for e in edges]


def _mixed(weights: list[Number], corners: list[Vector]) -> Vector:
    return corners[0] * weights[0] + corners[1] * weights[1] + corners[2] * weights[2]


def _shaded(code: Code, p: Vector, n: Vector, base: Vector, eye: Vector, shadow: _Shadow) -> Vector:
    """Return the light from a point: sun, sky, a highlight, and a rim that sets bodies off against each other."""
    view = (eye - p).unit(code)
    facing = n.dot(shadow.toward)
    sunny = code.variable(code.number(0.0, F32))
    with code.when(facing > 0.0):
        sunny.set(shadow.on_bodies(p + n * 0.004) * code.smallest(facing, 1.0))
    light = sunny.get()
    sky = n.z * 0.5 + 0.5
    half = (view + shadow.toward).unit(code)
    g = code.largest(n.dot(half), 0.0)
    g8 = _square(_square(_square(g)))
    gloss = _square(_square(g8)) * g8 * light * 0.18
    rim = 1.0 - code.smallest(code.largest(n.dot(view), 0.0), 1.0)
    white = gloss + rim * rim * rim * sky * 0.06
    sun, ambient = light * 0.78, sky * 0.28 + 0.16
    return Vector(
        *(c * (sun * w + ambient * k) + white for c, w, k in zip((base.x, base.y, base.z), WARM, COOL, strict=True))
    )


def _square(x: Number) -> Number:
    return x * x


class _Shadow:
    """The scene as the sun sees it."""

    def __init__(self, code: Code, sun: Any, depth: Any, outline: Any, pixels: Number):
        self.code, self.depth, self.outline, self.pixels = code, depth, outline, pixels
        self.rows = [Vector(*(sun[4 * r + k] for k in range(3))) for r in range(3)]
        self.shift = [sun[4 * r + 3] for r in range(3)]
        self.toward = Vector(sun[12], sun[13], sun[14])
        self.bias = sun[15]

    def _pixel(self, p: Vector, row: int) -> Number:
        return self.rows[row].dot(p) + self.shift[row]

    def on_bodies(self, p: Vector) -> Number:
        """Return how much of the sun a point sees, in [0, 1], by nine samples around it."""
        code, last = self.code, (self.pixels - 1).to(F32)
        depth = self._pixel(p, 2) - self.bias
        seen = code.number(0.0, F32)
        x, y = self._pixel(p, 0), self._pixel(p, 1)

        def at(v: Number) -> Number:
            return code.smallest(code.largest(v, 0.0), last).to(I64)

        columns = [at(x + d) for d in (-1.3, 0.0, 1.3)]
        for line in [at(y + d) * self.pixels for d in (-1.3, 0.0, 1.3)]:
            for column in columns:
                seen = seen + code.select(depth < self.depth[line + column], code.number(1 / 9, F32), 0.0)
        return seen

    def on_the_ground(self, x: Number, y: Number, ground: Number) -> Number:
        """Return how dark the ground is at a point, in [0, 1]."""
        code = self.code
        p = Vector(x, y, ground)
        u, v = (self._pixel(p, k) * 0.5 - 0.5 for k in (0, 1))  # the outline has half as many pixels
        half = self.pixels.to(F32) * 0.5
        found = code.variable(code.number(0.0, F32))
        inside = (u > 0.0) & (v > 0.0) & (u < half - 1.001) & (v < half - 1.001)
        with code.when(inside):
            i, j = u.to(I64), v.to(I64)
            du, dv = u - i.to(F32), v - j.to(F32)
            o, at, line = self.outline, j * half.to(I64) + i, half.to(I64)
            top = o[at] * (1.0 - du) + o[at + 1] * du
            low = o[at + line] * (1.0 - du) + o[at + line + 1] * du
            found.set(top * (1.0 - dv) + low * dv)
        return found.get()
