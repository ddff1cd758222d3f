"""Interpolation in a constant grid, linear or cubic: straight-line code around a look-up of the values at the corners of a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import casadi as ca
import numpy as np

from costate.kernel.ir.program import Builder, Var
from costate.kernel.ir.straight import as_program
from costate.kernel.ops.table import Corners

Axis = tuple[float, float] | np.ndarray
"""First coordinate and spacing, or the increasing coordinates of all points."""
METHODS = {"linear": (0, 2), "cubic": (1, 4)}
"""Method -> points taken below the cell, points taken per axis."""


def interpolate(b: Builder, x: Var, grid: np.ndarray, axes: Sequence[Axis], method: str) -> Var:
    """Add the stages of an interpolation: the point in units of cells, the corners of its cell, and their weighted sum."""
    _check(x, grid, axes, method)
    before, reach = METHODS[method]
    (u,) = b.inline(as_program(_cell_coordinates(grid.shape[:-1], axes)), x)
    values, cell = b.stage(Corners(grid, before, reach), u)
    weighted = _weighted_sum(grid.ndim - 1, grid.shape[-1], reach)
    return b.inline(as_program(weighted), u, cell, values)[0]


def _check(x: Var, grid: np.ndarray, axes: Sequence[Axis], method: str) -> None:
    d = grid.ndim - 1
    if method not in METHODS:
        raise ValueError(f"unknown interpolation '{method}': use {' or '.join(map(repr, METHODS))}")
    if d < 1 or x.size != d or len(axes) != d or min(grid.shape[:-1]) < 2:
        raise ValueError(
            f"a grid of shape {grid.shape} (points per axis, then channels) needs a point of {d} coordinates and {d} axes with at "
            f"least two points each; got a point of {x.size} and {len(axes)} axes"
        )


def _cell_coordinates(shape: Sequence[int], axes: Sequence[Axis]) -> ca.Function:
    """Return x -> coordinates in units of cells: exact for even axes, piecewise linear for given points."""
    x = ca.SX.sym("x", len(shape))
    rows = []
    for k, (n, axis) in enumerate(zip(shape, axes, strict=True)):
        if isinstance(axis, tuple) and len(axis) == 2 and np.ndim(axis[0]) == 0:
            rows.append((x[k] - axis[0]) / axis[1])
            continue
        points = np.asarray(axis, float)
        if points.shape != (n,) or np.any(np.diff(points) <= 0):
            raise ValueError(f"axis {k} needs {n} increasing coordinates, got {points}")
        u = (x[k] - points[0]) / (points[1] - points[0])
        for i in range(1, n - 1):
            u = ca.if_else(x[k] >= points[i], i + (x[k] - points[i]) / (points[i + 1] - points[i]), u)
        rows.append(u)
    return ca.Function("cells", [x], [ca.vertcat(*rows)])


def _weighted_sum(d: int, channels: int, reach: int) -> ca.Function:
    """Return (u, cell, values) -> the sum of the values, each weighted by the product over the axes."""
    u, cell, values = ca.SX.sym("u", d), ca.SX.sym("cell", d), ca.SX.sym("values", reach**d * channels)
    weights = [_WEIGHTS[reach](u[k] - cell[k]) for k in range(d)]
    total = ca.SX.zeros(channels)
    for corner, step in enumerate(product(range(reach), repeat=d)):
        w = ca.SX(1)
        for axis, s in enumerate(step):
            w = w * weights[axis][s]
        total += w * values[corner * channels : (corner + 1) * channels]
    return ca.Function("interpolate", [u, cell, values], [total])


def _cubic(t: ca.SX) -> list[ca.SX]:
    """Return the Catmull-Rom weights of the points at -1, 0, 1, 2."""
    return [
        ((-0.5 * t + 1) * t - 0.5) * t,
        (1.5 * t - 2.5) * t * t + 1,
        ((-1.5 * t + 2) * t + 0.5) * t,
        (0.5 * t - 0.5) * t * t,
    ]


_WEIGHTS: dict[int, Callable[[ca.SX], list[ca.SX]]] = {2: lambda t: [1 - t, t], 4: _cubic}
