"""Bending of cloth against plates and beams, on several meshes, each of three sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_bvp

from costate.continuum.cloth.body import CLOTH, Cloth, sheet
from costate.continuum.cloth.measures import energy
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.step import Solver

G = 9.81
SOFT: Any = {"warp": 1e-9, "weft": 1e-9, "shear": 1e-9, "poisson": 0.0, "bending": 1.0}
"""Cloth that hardly resists anything but bending."""


def lattice(columns: int, rows: int, length: float, jitter: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of equilateral triangles; columns are lines along y, the last one at x = length."""
    a = length / (columns - 1)
    side = a * 2 / np.sqrt(3)
    k, j = np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij")
    points = np.stack([a * k, side * (j + 0.5 * (k % 2)), 0 * k], -1).reshape(-1, 3)
    rng = np.random.default_rng(0)
    points[:, :2] += jitter * side * rng.uniform(-1, 1, (len(points), 2))
    found = []
    for c in range(columns - 1):
        for r in range(rows - 1):
            p, q = c * rows + r, (c + 1) * rows + r
            even = [(p, q, p + 1), (q, q + 1, p + 1)]
            found += even if c % 2 == 0 else [(p, q, q + 1), (p, q + 1, p + 1)]
    return points, np.array(found)


def rolled(points: np.ndarray, triangles: np.ndarray, angle: float, radius: float = 100.0) -> float:
    """Energy of a flat piece that is rolled onto a cylinder, by that of a plate."""
    model = ClothModel([Cloth(points, triangles, SOFT)], dt=0.01, gravity=(0.0, 0.0, 0.0))
    d = np.array([np.cos(angle), np.sin(angle), 0])
    s = points @ d
    x = points + np.outer(radius * np.sin(s / radius) - s, d) + np.outer(radius * (1 - np.cos(s / radius)), [0, 0, 1])
    a, b, c = (points[triangles[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    return float(energy(model, model.start(torch.as_tensor(x)))) / (area / (2 * radius**2))


def limit(sizes: list[int], values: list[float]) -> float:
    """What values tend to that differ from it by parts of 1 / size and 1 / size^2."""
    return float(np.polyfit(1 / np.asarray(sizes), values, 2)[-1])


@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi / 2])
def test_equilateral_triangles_bend_as_a_plate_in_every_direction(angle: float) -> None:
    """Edges of the mesh belong to one triangle and do not bend: their part goes as 1 / n."""
    sizes = [8, 16, 32]
    found = [rolled(*lattice(n + 1, n + 1, 1.0), angle) for n in sizes]
    assert limit(sizes, found) == pytest.approx(1, abs=0.01)
    assert abs(found[2] - 1) < abs(found[1] - 1) < abs(found[0] - 1)


@pytest.mark.parametrize(("angle", "expected"), [(0.0, 1.0), (np.pi / 4, 1.5)])
def test_sheets_bend_by_their_direction(angle: float, expected: float) -> None:
    """Angles of a cylinder along x are at edges along y alone; of one at 45 degrees, half of that at both, and at diagonals
    1 / sqrt(2) of it, of edges that are sqrt(2) as long: 2 (1/2)^2 + 1."""
    sizes = [8, 16, 32]
    found = [rolled(flat.points, flat.triangles, angle) for flat in (sheet((n + 1, n + 1), (1, 1)) for n in sizes)]
    assert limit(sizes, found) == pytest.approx(expected, abs=0.01)


def test_diagonals_of_one_direction_are_stiff_across_them() -> None:
    """Bent along the diagonals, edges along x and y have whole angles, and diagonals, as above: 1 + 1 + 1."""
    sizes, found = [8, 16, 32], []
    for n in sizes:
        flat = sheet((n + 1, n + 1), (1, 1))
        a = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
        triangles = np.concatenate([np.stack([a, a + n + 1, a + n + 2], 1), np.stack([a, a + n + 2, a + 1], 1)])
        found.append(rolled(flat.points, triangles, np.pi / 4))
    assert limit(sizes, found) == pytest.approx(3, rel=0.01)


def test_meshes_without_order_are_a_little_stiffer() -> None:
    """Points moved by up to a fifth of an edge."""
    sizes = [8, 16, 32]
    found = [rolled(*lattice(n + 1, n + 1, 1.0, jitter=0.2), 0.7) for n in sizes]
    assert 1 < limit(sizes, found) < 1.15


def elastica(load: float) -> float:
    """How far the free end of a beam of length 1 hangs down, clamped level, its weight times length^3 by stiffness being load."""

    def turn(s: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.stack([y[1], load * (1 - s) * np.cos(y[0]), np.sin(y[0])])

    s = np.linspace(0, 1, 50)
    found = solve_bvp(turn, lambda a, b: np.array([a[0], b[1], a[2]]), s, np.zeros((3, 50)), tol=1e-8)
    return -float(found.sol(1.0)[2])


def test_a_strip_bends_as_an_elastica() -> None:
    """A strip whose end hangs down by a fifth of its length. It cannot stretch, and so not curve across: it is a plate.

    Its clamped end is a line of hinges, each of which bends for a whole cell, half of it beyond the clamp: 2 / n at small angles.
    """
    L, sizes, found = 0.3, [8, 16, 24], []
    B = CLOTH["density"] * G * L**3 / (8 * 0.2)
    parameters: Any = {"bending": B, "poisson": 0.0, "warp": 2e5, "weft": 2e5, "shear": 1e5}
    for n in sizes:
        rows = 3 * n // 4 + 1
        strip = Cloth(*lattice(n + 2, rows, L * (n + 1) / n), parameters)
        model = ClothModel([strip], dt=0.03, pins=range(2 * rows), solver=Solver(1e-3))
        last = model.run(130).final
        assert last.v.abs().max() < 1e-3
        found.append(-float(last.x[-rows:, 2].mean()) / L)
    expected = elastica(CLOTH["density"] * G * L**3 / B)
    assert abs(found[2] - expected) < abs(found[1] - expected) < abs(found[0] - expected)
    assert limit(sizes, found) == pytest.approx(expected, rel=0.02)
