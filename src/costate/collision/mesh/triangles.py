"""Triangle meshes for pictures: unit shapes, surfaces of revolution, and any triangles with smooth or sharp edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from costate.core.arrays import Array

CREASE = np.cos(np.radians(40.0))
"""Cosine of the angle between faces above which they keep their edge."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with a normal per vertex."""

    vertices: Array
    """Corners [m], shape (n, 3)."""
    normals: Array
    """Unit normals, shape (n, 3)."""
    faces: Array
    """Corners of the triangles, counter-clockwise seen from outside, shape (m, 3)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "vertices", np.ascontiguousarray(self.vertices, np.float32))
        object.__setattr__(self, "normals", np.ascontiguousarray(self.normals, np.float32))
        object.__setattr__(self, "faces", np.ascontiguousarray(self.faces, np.int32))


def lathe(profile: ArrayLike, segments: int = 32) -> Mesh:
    """Return a surface of revolution about z.

    profile: (radius, z) of the corners, from top to bottom along the outside, shape (n, 2). Every edge is sharp.
    """
    corners = np.asarray(profile, float)
    bands = [_band(a, b, segments) for a, b in pairwise(corners) if not np.allclose(a, b)]
    return joined(bands)


def _band(a: Array, b: Array, segments: int) -> Mesh:
    """Return the cone between two circles, given as (radius, z)."""
    turn = np.linspace(0, 2 * np.pi, segments + 1)
    c, s = np.cos(turn), np.sin(turn)
    dr, dz = b - a
    n_r, n_z = np.array([-dz, dr]) / np.hypot(dr, dz)  # outside is to the left of the way down
    ring = [np.stack([r * c, r * s, np.full_like(c, z)], -1) for r, z in (a, b)]
    normal = np.stack([n_r * c, n_r * s, np.full_like(c, n_z)], -1)
    i, k = np.arange(segments), segments + 1
    upper = np.stack([i, i + k, i + 1], -1) if a[0] > 0 else np.zeros((0, 3), int)
    lower = np.stack([i + 1, i + k, i + k + 1], -1) if b[0] > 0 else np.zeros((0, 3), int)
    if a[0] == 0:
        lower = np.stack([i, i + k, i + k + 1], -1)
    return Mesh(np.concatenate(ring), np.concatenate([normal, normal]), np.concatenate([upper, lower]))


def joined(meshes: Sequence[Mesh]) -> Mesh:
    """Return several meshes as one."""
    starts = np.cumsum([0, *(len(m.vertices) for m in meshes[:-1])])
    return Mesh(
        np.concatenate([m.vertices for m in meshes]),
        np.concatenate([m.normals for m in meshes]),
        np.concatenate([m.faces + k for m, k in zip(meshes, starts, strict=True)]),
    )


@cache
def unit_sphere(rings: int = 20, segments: int = 40) -> Mesh:
    """Return a ball of radius 1."""
    down, turn = np.linspace(0, np.pi, rings + 1), np.linspace(0, 2 * np.pi, segments + 1)
    t, p = np.meshgrid(down, turn, indexing="ij")
    points = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], -1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(rings), np.arange(segments), indexing="ij")
    a = (i * (segments + 1) + j).ravel()
    b = a + segments + 1
    upper, lower = np.stack([a, b, a + 1], -1), np.stack([a + 1, b, b + 1], -1)
    faces = np.concatenate([upper[i.ravel() > 0], lower[i.ravel() < rings - 1]])
    return Mesh(points, points, faces)


@cache
def unit_cap() -> Mesh:
    """Return the upper half of a ball of radius 1, open below."""
    ball = unit_sphere()
    keep = ball.vertices[:, 2] > -1e-6
    number = np.cumsum(keep) - 1
    faces = ball.faces[keep[ball.faces].all(1)]
    return Mesh(ball.vertices[keep], ball.normals[keep], number[faces])


@cache
def unit_cylinder(segments: int = 40) -> Mesh:
    """Return a cylinder of radius 1 and length 1 along z, centred."""
    return lathe([(0, 0.5), (1, 0.5), (1, -0.5), (0, -0.5)], segments)


@cache
def unit_tube(segments: int = 40) -> Mesh:
    """Return a unit cylinder without its ends."""
    return lathe([(1, 0.5), (1, -0.5)], segments)


@cache
def unit_cone(segments: int = 24) -> Mesh:
    """Return a cone with radius 1 at z = 0 and its tip at z = 1."""
    return lathe([(0, 1), (1, 0), (0, 0)], segments)


@cache
def unit_box() -> Mesh:
    """Return a box with edges of length 1, centred."""
    vertices, normals, faces = [], [], []
    for axis in range(3):
        for side in (-1.0, 1.0):
            normal = np.eye(3)[axis] * side
            u = np.eye(3)[(axis + 1) % 3]
            v = np.cross(normal, u)
            k = 4 * len(normals)
            vertices += [(normal + x * u + y * v) / 2 for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            normals.append(normal)
            faces += [(k, k + 1, k + 2), (k, k + 2, k + 3)]
    return Mesh(np.array(vertices), np.repeat(np.array(normals), 4, axis=0), np.array(faces))


def heights_mesh(heights: Array, length_x: float, length_y: float) -> Mesh:
    """Return a surface through heights (nx, ny) over a rectangle around the origin [m], seen from both sides."""
    nx, ny = heights.shape
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, nx) * length_x, np.linspace(-0.5, 0.5, ny) * length_y, indexing="ij")
    vertices = np.stack([x, y, heights], -1).reshape(-1, 3)
    k = np.arange(nx * ny).reshape(nx, ny)
    corners = [k[:-1, :-1], k[1:, :-1], k[1:, 1:], k[:-1, 1:]]
    a, b, c, d = (part.ravel() for part in corners)
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    return creased(vertices, np.concatenate([faces, faces[:, ::-1]]))


UNIT: dict[str, Callable[[], Mesh]] = {
    "sphere": unit_sphere,
    "cylinder": unit_cylinder,
    "tube": unit_tube,
    "cone": unit_cone,
    "box": unit_box,
}
"""Meshes that are scaled to size, by name."""


def creased(vertices: Array, faces: Array) -> Mesh:
    """Return a mesh with normals that are smooth over each vertex, but flat where neighbouring faces meet at a sharp angle."""
    corner = vertices[faces]
    area = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(area, axis=1, keepdims=True)
    flat = area / np.maximum(length, 1e-20)
    _, same = np.unique(np.round(vertices, 7), axis=0, return_inverse=True)
    summed = np.zeros((same.max() + 1, 3))
    np.add.at(summed, same[faces].ravel(), np.repeat(area, 3, axis=0))
    smooth = summed / np.maximum(np.linalg.norm(summed, axis=1, keepdims=True), 1e-20)
    per_corner = smooth[same[faces]]
    sharp = np.einsum("fci,fi->fc", per_corner, flat) < CREASE
    normals = np.where(sharp[..., None], flat[:, None], per_corner)
    return Mesh(corner.reshape(-1, 3), normals.reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3))
