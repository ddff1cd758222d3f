"""Meshes of bodies as they are made: round bars that taper, and boxes and cylinders with rounded edges. For pictures only."""

from __future__ import annotations

import numpy as np

from costate.collision.mesh.triangles import Mesh
from costate.core.arrays import Array

SEGMENTS = 40
"""Corners of a circle."""
ARC = 6
"""Steps of a quarter of a circle along the outline."""


def turned(outline: Array, normals: Array, segments: int = SEGMENTS) -> Mesh:
    """Return a smooth surface of revolution about z.

    outline, normals: (radius, z) along the outside from top to bottom, and the directions outwards there, shape (n, 2) each.
    """
    turn = np.linspace(0, 2 * np.pi, segments + 1)
    c, s = np.cos(turn), np.sin(turn)

    def around(x: Array) -> Array:
        r, z = x[:, :1], x[:, 1:]
        return np.stack([r * c, r * s, z + 0 * c], -1).reshape(-1, 3)

    return Mesh(around(outline), around(normals), _grid(len(outline), segments + 1))


def _grid(rows: int, columns: int) -> Array:
    """Return triangles between the points of a grid, whose rows go down and whose columns go around."""
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
    a = (i * columns + j).ravel()
    b = a + columns
    return np.concatenate([np.stack([a, b, a + 1], -1), np.stack([a + 1, b, b + 1], -1)])


def _arc(start: float, end: float) -> Array:
    """Return directions (radial, z) from one angle above the horizon to another [rad]."""
    steps = max(2, round(ARC * abs(end - start) / (np.pi / 2)) + 1)
    angle = np.linspace(start, end, steps)
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def tapered_capsule(lower: float, upper: float, length: float) -> Mesh:
    """Return what covers two balls of these radii whose middles lie at z = -length / 2 and length / 2 [m]."""
    slant = np.arcsin(np.clip((lower - upper) / length, -1.0, 1.0))
    top, bottom = _arc(np.pi / 2, slant), _arc(slant, -np.pi / 2)
    middle = np.array([0.0, length / 2])
    outline = np.concatenate([middle + upper * top, lower * bottom - middle])
    outline[:, 0] = np.maximum(outline[:, 0], 0.0)
    return turned(outline, np.concatenate([top, bottom]))


def rounded_cylinder(lower: float, upper: float, length: float, edge: float) -> Mesh:
    """Return a cylinder along z, or a part of a cone, whose two edges are rounded with a radius [m]."""
    edge = min(edge, 0.49 * length, 0.9 * lower, 0.9 * upper)
    slant = np.arctan2(lower - upper, length)
    side = np.array([np.cos(slant), np.sin(slant)])
    reach = side @ [upper, length / 2] - edge
    z = length / 2 - edge
    ends = [np.array([(reach - side[1] * h) / side[0], h]) for h in (z, -z)]
    top, bottom = _arc(np.pi / 2, slant), _arc(slant, -np.pi / 2)
    outline = [[[0.0, length / 2]], ends[0] + edge * top, ends[1] + edge * bottom, [[0.0, -length / 2]]]
    return turned(np.concatenate(outline), np.concatenate([top[:1], top, bottom, bottom[-1:]]))


def rounded_box(size: Array, edge: float) -> Mesh:
    """Return a box of these edge lengths, rounded with a radius [m]: an eighth of a ball at each corner, and what is between."""
    half = np.asarray(size, float) / 2
    edge = min(edge, 0.98 * float(half.min()))
    step = np.linspace(0, np.pi / 2, 5)
    down = np.concatenate([step, step + np.pi / 2])
    around = np.concatenate([step + k * np.pi / 2 for k in range(4)] + [step[:1]])
    t, p = np.meshgrid(down, around, indexing="ij")
    normals = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], -1)
    quarter = np.append(np.repeat(np.arange(4), len(step)), 0)
    x = np.where((quarter == 0) | (quarter == 3), 1.0, -1.0) + 0 * t
    y = np.where(quarter < 2, 1.0, -1.0) + 0 * t
    z = np.repeat([1.0, -1.0], len(step))[:, None] + 0 * t
    points = np.stack([x, y, z], -1) * (half - edge) + edge * normals
    corner, last = np.arange(4) * len(step), (len(down) - 1) * len(around)
    lids = [corner[[0, 1, 2]], corner[[0, 2, 3]], last + corner[[2, 1, 0]], last + corner[[3, 2, 0]]]
    faces = np.concatenate([_grid(len(down), len(around)), np.array(lids)])
    return Mesh(points.reshape(-1, 3), normals.reshape(-1, 3), faces)
