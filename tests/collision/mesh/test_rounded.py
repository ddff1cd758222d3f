"""Meshes of rounded bodies: closed, facing outwards, and as large as their formulas say."""

from __future__ import annotations

import numpy as np
import pytest

from costate.collision.mesh.rounded import rounded_box, rounded_cylinder, tapered_capsule
from costate.collision.mesh.triangles import Mesh


def volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
    return float(np.einsum("ni,ni->", a, np.cross(b, c)) / 6)


def frustum(lower: float, upper: float, length: float) -> float:
    return np.pi * length / 3 * (lower**2 + lower * upper + upper**2)


def tapered_volume(lower: float, upper: float, length: float) -> float:
    """Return the volume of two balls' hull: a frustum between the circles of contact, and two pieces of the balls."""
    s = (lower - upper) / length
    c = np.sqrt(1 - s**2)

    def cap(r: float, h: float) -> float:  # of height h
        return np.pi * h**2 * (3 * r - h) / 3

    middle = frustum(lower * c, upper * c, length - (lower - upper) * s)
    return middle + cap(upper, upper * (1 - s)) + cap(lower, lower * (1 + s))


def box_volume(size: list[float], r: float) -> float:
    """Return the volume of a box with rounded edges, by Steiner's formula."""
    a, b, c = (x - 2 * r for x in size)
    return a * b * c + 2 * r * (a * b + b * c + c * a) + np.pi * r**2 * (a + b + c) + 4 / 3 * np.pi * r**3


CASES = [
    (tapered_capsule(0.3, 0.1, 1.0), tapered_volume(0.3, 0.1, 1.0)),
    (tapered_capsule(0.1, 0.2, 0.5), tapered_volume(0.1, 0.2, 0.5)),
    (rounded_cylinder(0.2, 0.2, 1.0, 1e-4), frustum(0.2, 0.2, 1.0)),
    (rounded_cylinder(0.3, 0.1, 1.0, 1e-4), frustum(0.3, 0.1, 1.0)),
    (rounded_box(np.array([1.0, 0.5, 0.3]), 0.1), box_volume([1.0, 0.5, 0.3], 0.1)),
    (rounded_box(np.array([1.0, 0.5, 0.3]), 1e-6), 0.15),
]


@pytest.mark.parametrize(("mesh", "wanted"), CASES)
def test_volume(mesh: Mesh, wanted: float) -> None:
    assert volume(mesh) == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("mesh", [m for m, _ in CASES] + [rounded_cylinder(0.3, 0.2, 0.4, 0.05)])
def test_closed_and_facing_outwards(mesh: Mesh) -> None:
    corner = mesh.vertices[mesh.faces]
    area = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    assert np.abs(area.sum(0)).max() < 1e-6  # the areas of a closed surface add up to nothing
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1.0, abs=1e-6)
    along = np.einsum("fi,fci->fc", area, mesh.normals[mesh.faces])
    assert (along >= -1e-9).all()
