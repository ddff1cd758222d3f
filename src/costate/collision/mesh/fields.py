"""Solids known by samples: height fields, and distances sampled on a grid. A table stage of a program looks them up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.collision.shapes.field import Field
from costate.collision.shapes.rays import FAR
from costate.collision.shapes.solid import TINY, Number, length
from costate.core.files import checksum
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program

Samples = NDArray[np.float64]

FOOT_STEPS = 4
"""Steps from a point to the nearest one of a height field."""


@dataclass(frozen=True, eq=False)
class Heights(Field):
    """A surface z = h(x, y) over a rectangle around the origin, solid below; nothing beyond the rectangle."""

    extent: SX
    """Lengths along x and y [m], (2,)."""
    heights: Samples
    """Heights [m], evenly spread over the rectangle, edges included, shape (nx, ny)."""

    @cached_property
    def key(self) -> str:
        return _digest(self.heights)

    def lookup(self) -> Program:
        """Return a program (point (3,), extent (2,)) -> (distance, normal (3,)). The surface is smooth (cubic); its nearest point
        is found from the tangent plane at the last one."""
        b = ProgramBuilder("heights")
        p, extent = b.input("p", 3), b.input("extent", 2)
        px, ex, at = SX.sym("p", 3), SX.sym("e", 2), SX.sym("x", 2)
        # The table's rectangle has edges of length one. Cubics need a neighbour beyond each edge.
        spacing = [1 / (n - 1) for n in self.heights.shape]
        heights = np.pad(self.heights, 1, mode="reflect", reflect_type="odd")
        grid = np.stack([heights, *np.gradient(heights, *spacing)], -1)
        axes = [(-0.5 - d, d) for d in spacing]
        h = SX.sym("h", 3)
        normal = ca.vertcat(-h[1] / ex[0], -h[2] / ex[1], 1)
        normal = normal / length(normal)
        gap = ca.dot(normal, px - ca.vertcat(at, h[0]))
        within = ca.Function("within", [at, ex], [ca.fmin(ca.fmax(at, -ex / 2), ex / 2)])
        step = ca.Function("step", [px, ex, at, h], [within((px - gap * normal)[:2], ex)])
        unit = ca.Function("unit", [at, ex], [at / ex])
        (x,) = b.call(ca.Function("below", [px, ex], [within(px[:2], ex)]), p, extent)
        for _ in range(FOOT_STEPS):
            (x,) = b.call(step, p, extent, x, b.table(b.call(unit, x, extent)[0], grid, axes, "cubic"))
        value = b.table(b.call(unit, x, extent)[0], grid, axes, "cubic")
        beyond = ca.mmax(ca.fabs(px[:2]) - ex / 2) > 0
        found = ca.vertcat(ca.if_else(beyond, FAR, gap), normal)
        b.output("found", b.call(ca.Function("found", [px, ex, at, h], [found]), p, extent, x, value)[0])
        return b.program()


@dataclass(frozen=True, eq=False)
class Grid(Field):
    """Signed distances on a grid of points, which hold the whole surface."""

    margin: Number
    """Distance by which the surface is grown [m]."""
    values: Samples
    """Distances [m], shape (nx, ny, nz)."""
    origin: Samples
    """Position of the first point [m], (3,)."""
    spacing: float
    """Distance between neighbouring points [m]."""

    @cached_property
    def key(self) -> str:
        return _digest(self.values, self.origin, np.array(self.spacing))

    def lookup(self) -> Program:
        """Return a program (point (3,), margin (1,)) -> (distance, normal (3,)). From beyond the grid, the distance is that to the
        surface point next to where the line to it enters the grid, found in two steps."""
        b = ProgramBuilder("grid")
        p, margin = b.input("p", 3), b.input("margin", 1)
        px, qx, m, value = SX.sym("p", 3), SX.sym("q", 3), SX.sym("m"), SX.sym("v", 4)
        low = SX(self.origin)
        high = low + SX((np.array(self.values.shape) - 1) * self.spacing)
        grid = np.stack([self.values, *np.gradient(self.values, self.spacing)], -1)
        axes = [(float(x), self.spacing) for x in self.origin]
        normal = value[1:] / length(value[1:])
        surface = qx - value[0] * normal
        entry = ca.Function("entry", [px, qx, value], [_towards(surface, px, low, high)])
        (q,) = b.call(ca.Function("nearest", [px], [ca.fmin(ca.fmax(px, low), high)]), p)
        (q,) = b.call(entry, p, q, b.table(q, grid, axes))
        v = b.table(q, grid, axes)
        way = px - surface
        beyond = ca.mmax(ca.fmax(px - high, low - px)) > 0
        far = length(ca.if_else(beyond, way, 1))
        distance, normal = ca.if_else(beyond, far, value[0]) - m, ca.if_else(beyond, way / far, normal)
        found = ca.Function("found", [px, qx, m, value], [ca.vertcat(distance, normal)])
        b.output("found", b.call(found, p, q, margin, v)[0])
        return b.program()


def _towards(start: SX, end: SX, low: SX, high: SX) -> SX:
    """Return where the way from a point in a box to another leaves the box; the other if it does not."""
    way = end - start
    share = SX(1)
    for k in range(3):
        moves = ca.fabs(way[k]) > TINY
        room = ca.if_else(way[k] > 0, high[k], low[k]) - start[k]
        share = ca.fmin(share, ca.if_else(moves, room / ca.if_else(moves, way[k], 1), 1))
    return start + share * way


def _digest(*arrays: Samples) -> str:
    return checksum(*(part for x in arrays for part in (np.ascontiguousarray(x).tobytes(), str(x.shape).encode())))
