"""Particles that fill a shape."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from costate.collision.kinds import solid_of
from costate.collision.shapes import Field, Solid, sizes
from costate.continuum.checks import positive
from costate.kernel import ProgramBuilder
from costate.model.shape import Shape


def distance_of(shape: Shape | Solid, p: ca.SX) -> ca.SX:
    """Return the signed distance [m] of a point (3,) from a shape at its pose."""
    if isinstance(shape, Solid):
        return shape.distance(p)
    R, t = ca.DM(shape.pose.rotation), ca.DM(shape.pose.translation)
    return solid_of(shape).distance(ca.mtimes(R.T, p - t))


def distances(shape: Shape | Solid, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return signed distances (n) [m] and their gradients (n, 3) at points (n, dim); in 2D of the section z = 0."""
    points = np.zeros((len(x), 3))
    points[:, : x.shape[1]] = x
    solid = solid_of(shape)
    if isinstance(solid, Field):
        return _looked_up(solid, shape, points)
    p = ca.SX.sym("p", 3)
    distance = distance_of(shape, p)
    f = ca.Function("distance", [p], [distance, ca.gradient(distance, p)])
    d, n = f.map(len(x))(points.T)
    return np.array(d).ravel(), np.array(n).T


def _looked_up(field: Field, shape: Shape | Solid, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and normals of a solid that is known by samples, at its pose."""
    R, t = (np.eye(3), np.zeros(3)) if isinstance(shape, Solid) else (shape.pose.rotation, shape.pose.translation)
    b = ProgramBuilder("distances")
    p = b.input("p", 3)
    b.output("found", b.call(field.lookup(), p, b.constant(np.array(ca.DM(sizes(field))).ravel()))[0])
    found = b.kernel().numpy(p=(points - t) @ R).found
    return found[:, 0], found[:, 1:] @ R.T


def box(lower: Sequence[float], upper: Sequence[float], spacing: float) -> np.ndarray:
    """Return points (n, dim) on a lattice that fills a box evenly, with about the given spacing [m]."""
    positive(spacing=spacing)
    axes = []
    for low, high in zip(lower, upper, strict=True):
        n = max(1, round((high - low) / spacing))
        axes.append(low + (np.arange(n) + 0.5) * (high - low) / n)
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))


def fill(shape: Shape | Solid, spacing: float, lower: Sequence[float], upper: Sequence[float]) -> np.ndarray:
    """Return the points (n, dim) of a lattice in a box that lie in a shape; with two numbers per corner in its section z = 0."""
    points = box(lower, upper, spacing)
    inside = points[distances(shape, points)[0] <= 0]
    if not len(inside):
        raise ValueError(f"no point of a lattice of {spacing:g} m between {tuple(lower)} and {tuple(upper)} is in it")
    return inside
