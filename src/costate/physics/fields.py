"""Solids known by samples: height fields, and distances sampled on a grid. A table stage of a program looks them up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.kernel import ProgramBuilder
from costate.kernel.program import Program
from costate.physics.shapes import FAR, Field, Number, length

Samples = NDArray[np.float64]

FOOT_STEPS = 4
"""Steps from a point to the nearest one of a height field."""


@dataclass(frozen=True, eq=False)
class Heights(Field):
    """A surface z = h(x, y) over a rectangle around the origin, solid below; nothing beyond the rectangle."""

    extent: SX
    """Lengths along x and y [m], (2,)."""
    heights: Samples
    """[m], at even places over the rectangle, edges included, shape (nx, ny)."""

    @cached_property
    def key(self) -> str:
        return _digest(self.heights)

    def lookup(self) -> Program:
        """(point (3,), extent (2,)) -> (distance, normal (3,)). The surface is smooth (cubic); its nearest point is found
        from the tangent plane at the last one."""
        b = ProgramBuilder("heights")
        p, extent = b.input("p", 3), b.input("extent", 2)
        px, ex, at = SX.sym("p", 3), SX.sym("e", 2), SX.sym("x", 2)
        nx, ny = self.heights.shape
        # Slopes per unit of the table, whose rectangle has edges of length one.
        slopes = np.gradient(self.heights, 1 / (nx - 1), 1 / (ny - 1))
        grid = np.stack([self.heights, *slopes], -1)
        axes = [(-0.5, 1 / (nx - 1)), (-0.5, 1 / (ny - 1))]
        h = SX.sym("h", 3)
        normal = ca.vertcat(-h[1] / ex[0], -h[2] / ex[1], 1)
        normal = normal / length(normal)
        gap = ca.dot(normal, px - ca.vertcat(at, h[0]))
        step = ca.Function("step", [px, ex, at, h], [(px - gap * normal)[:2]])
        (x,) = b.call(ca.Function("below", [px], [px[:2]]), p)
        unit = ca.Function("unit", [at, ex], [ca.fmin(ca.fmax(at / ex, -0.5), 0.5)])
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
    """How much the surface is grown [m]."""
    values: Samples
    """[m], shape (nx, ny, nz)."""
    origin: Samples
    """Of the first point [m], (3,)."""
    spacing: float
    """[m]."""

    @cached_property
    def key(self) -> str:
        return _digest(self.values, self.origin, np.array(self.spacing))

    def lookup(self) -> Program:
        """(point (3,), margin (1,)) -> (distance, normal (3,)). Beyond the grid: from its nearest point."""
        b = ProgramBuilder("grid")
        p, margin = b.input("p", 3), b.input("margin", 1)
        px, m, value = SX.sym("p", 3), SX.sym("m"), SX.sym("v", 4)
        slopes = np.gradient(self.values, self.spacing)
        low = self.origin
        high = low + (np.array(self.values.shape) - 1) * self.spacing
        inside = ca.fmin(ca.fmax(px, SX(low)), SX(high))
        (q,) = b.call(ca.Function("inside", [px], [inside]), p)
        axes = [(float(x), self.spacing) for x in low]
        v = b.table(q, np.stack([self.values, *slopes], -1), axes)
        normal = value[1:] / length(value[1:])
        away = px - inside
        beyond = ca.dot(away, away) > 0
        way = ca.fmax(value[0], 0) * normal + away
        normal = ca.if_else(beyond, way / length(ca.if_else(beyond, way, 1)), normal)
        distance = value[0] + ca.if_else(beyond, length(ca.if_else(beyond, away, 1)), 0) - m
        b.output("found", b.call(ca.Function("found", [px, m, value], [ca.vertcat(distance, normal)]), p, margin, v)[0])
        return b.program()


def _digest(*arrays: Samples) -> str:
    return hashlib.sha256(
        b"".join(np.ascontiguousarray(x).tobytes() + str(x.shape).encode() for x in arrays)
    ).hexdigest()
