"""Solids known by samples: height fields, and distances sampled on a grid. A table stage of a program looks them up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.collision.shapes.field import Field
from costate.collision.shapes.solid import TINY, Number, length
from costate.core.files import checksum
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var

Samples = NDArray[np.float64]

FOOT_STEPS = 4
"""Steps from a point to the nearest one of a height field."""


@dataclass(frozen=True, eq=False)
class Heights(Field):
    """A surface z = h(x, y) over a rectangle around the origin, solid below, with upright sides; nothing beyond the rectangle."""

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
        p, extent = b.inputs(3, 2)
        # The table's rectangle has edges of length one. Cubics need a neighbour beyond each edge.
        spacing = [1 / (n - 1) for n in self.heights.shape]
        heights = np.pad(self.heights, 1, mode="reflect", reflect_type="odd")
        grid = np.stack([heights, *np.gradient(heights, *spacing)], -1)
        axes = [(-0.5 - d, d) for d in spacing]

        def tangent_plane(p: SX, extent: SX, x: SX, h: SX) -> tuple[SX, SX]:
            """Return the foot of p on the plane that touches the surface at x, where the height and its slopes are h, and the
            distance and normal from that plane."""
            normal = ca.vertcat(-h[1] / extent[0], -h[2] / extent[1], 1)
            normal = normal / length(normal)
            gap = ca.dot(normal, p - ca.vertcat(x, h[0]))
            out = ca.fabs(p[:2]) - extent / 2
            on_x = out[0] > out[1]
            beside, out = ca.fmax(out[0], out[1]) > gap, ca.fmax(out[0], out[1])
            sides = ca.vertcat(ca.if_else(p[:2] < 0, -1, 1) * ca.vertcat(on_x, 1 - on_x), 0)
            return _within(p - gap * normal, extent), ca.vertcat(ca.fmax(gap, out), ca.if_else(beside, sides, normal))

        def at(x: Var) -> tuple[Var, ...]:
            h = b.table(b.trace(lambda x, extent: x / extent, x, extent), grid, axes, "cubic")
            return b.trace(tangent_plane, p, extent, x, h)

        x = b.trace(_within, p, extent)
        for _ in range(FOOT_STEPS):
            x = at(x)[0]
        return b.program(at(x)[1])


def _within(p: SX, extent: SX) -> SX:
    return ca.fmin(ca.fmax(p[:2], -extent / 2), extent / 2)


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
        p, margin = b.inputs(3, 1)
        low = SX(self.origin)
        high = low + SX((np.array(self.values.shape) - 1) * self.spacing)
        grid = np.stack([self.values, *np.gradient(self.values, self.spacing)], -1)
        axes = [(float(x), self.spacing) for x in self.origin]

        def from_surface(p: SX, q: SX, margin: SX, value: SX) -> tuple[SX, SX]:
            """Return where the line from p to the surface point next to q enters the grid, and distance and normal."""
            normal = value[1:] / length(value[1:])
            surface = q - value[0] * normal
            way = p - surface
            beyond = ca.mmax(ca.fmax(p - high, low - p)) > 0
            far = length(ca.if_else(beyond, way, 1))
            distance, out = ca.if_else(beyond, far, value[0]) - margin, ca.if_else(beyond, way / far, normal)
            return _towards(surface, p, low, high), ca.vertcat(distance, out)

        q = b.trace(lambda p: ca.fmin(ca.fmax(p, low), high), p)
        q, _ = b.trace(from_surface, p, q, margin, b.table(q, grid, axes))
        return b.program(b.trace(from_surface, p, q, margin, b.table(q, grid, axes))[1])


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
