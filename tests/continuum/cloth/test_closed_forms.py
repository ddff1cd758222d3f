"""Cloth and ropes against solutions on paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize

import costate as cs
from costate.continuum.cloth.body import CLOTH, Rope, sheet, straight_rope
from costate.continuum.cloth.contact import CREEP, Collider
from costate.continuum.cloth.measures import energy, gaps
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.step import Solver

G = 9.81


def settled(model: ClothModel, steps: int) -> np.ndarray:
    """Positions after long steps, each of which takes most of the motion away."""
    history = model.run(steps)
    assert history.final.v.abs().max() < 1e-4
    return history.final.x.numpy()


def test_a_rope_hangs_as_a_catenary() -> None:
    """Ends 0.6 m apart, 1 m long, hardly any stretch. A chain of n links differs from the curve by a part of 1 / n^2."""
    n, span, length = 40, 0.6, 1.0
    t = np.linspace(0, 1, n + 1)
    bent = np.stack([span * t, 0 * t, -0.8 * np.minimum(t, 1 - t)], 1)  # two straight halves of 0.5 m
    rope = Rope(bent, {"stretch": 1e4, "bending": 0.0})
    x = settled(ClothModel([rope], dt=0.05, pins=[0, n], solver=Solver(1e-8)), 150)
    a = float(brentq(lambda a: 2 * a * np.sinh(span / (2 * a)) - length, 0.05, 10))  # pyright: ignore[reportArgumentType]
    lowest = a - a * np.cosh(span / (2 * a))
    assert x[:, 2].min() == pytest.approx(lowest, rel=2e-3)
    curve = a * np.cosh((x[:, 0] - span / 2) / a) - a * np.cosh(span / (2 * a))
    assert np.abs(x[:, 2] - curve).max() < 2e-3 * length


def test_a_strip_stretches_under_its_weight() -> None:
    """rho g L^2 / (2 E) at the lower end; 0.7 % of strain, of which St. Venant-Kirchhoff adds the square."""
    L, E = 1.0, 200.0
    parameters: Any = {"warp": E, "weft": E, "poisson": 0.0, "shear": E / 2}
    strip = sheet((17, 3), (L, 0.1), parameters=parameters)
    points = strip.points[:, [1, 2, 0]] * [1, 1, -1]  # hanging along -z
    strip = type(strip)(points, strip.triangles, parameters, rest=strip.rest)
    top = [0, 1, 2]
    model = ClothModel([strip], dt=0.05, pins=top)
    x = settled(model, 100)
    sag = x[0, 2] - x[-2, 2] - L
    assert sag == pytest.approx(CLOTH["density"] * G * L**2 / (2 * E), rel=0.02)


def test_a_stiff_rope_swings_as_a_rod() -> None:
    """T = 2 pi sqrt(2 L / 3 g), 3.6 % longer at 43 degrees of swing."""
    L, n, dt, angle = 0.4, 8, 1e-3, 0.75
    end = L * np.array([np.sin(angle), 0, -np.cos(angle)])
    rope = straight_rope((0, 0, 0), tuple(end), n, parameters={"stretch": 1e5, "bending": 1e3})
    model = ClothModel([rope], dt=dt, pins=[0])
    x = model.run(1200).x[:, -1, 0].numpy()
    down = np.nonzero((x[:-1] > 0) & (x[1:] <= 0))[0][0]
    up = np.nonzero((x[:-1] < 0) & (x[1:] >= 0))[0][0]
    small = 2 * np.pi * np.sqrt(2 * L / (3 * G))
    k = np.sin(angle / 2) ** 2
    expected = small * (1 + k / 4 + 9 * k**2 / 64)
    assert 2 * (up - down) * dt == pytest.approx(expected, rel=0.01)


def test_energy_never_grows() -> None:
    cloth = sheet((9, 9), (0.5, 0.5))
    model = ClothModel([cloth], dt=0.01, pins=[0])
    history, state, found = [], model.start(), []
    for _ in range(30):
        history = model.run(1, state)
        state = history.final
        found.append(float(energy(model, state)))
    assert np.all(np.diff(found) < 1e-9 * abs(found[0]) + 1e-12)
    assert found[-1] < found[0] - 1e-3


@pytest.mark.parametrize("angle", [0.35, 0.55])
def test_cloth_slips_on_an_incline_above_the_angle_of_friction(angle: float) -> None:
    mu = 0.5  # atan 0.5 = 0.464
    dt, steps = 0.01, 60
    model = ClothModel([sheet((5, 5), (0.2, 0.2))], dt=dt, colliders=[Collider(cs.shapes.plane(), mu)])
    down = torch.tensor([G * np.sin(angle), 0, -G * np.cos(angle)], dtype=torch.float64)
    flat = torch.tensor([0.0, 0.0, -G * np.cos(angle)], dtype=torch.float64)
    x = model.start().x + torch.tensor([0, 0, 0.8 * model.thickness])
    rest = model.run(60, model.start(x), gravity=flat)  # settles
    assert gaps(model, rest.x).min() > 0
    motion = model.run(steps, rest.final, gravity=down)
    speed = float(motion.final.v[:, 0].mean())
    if angle < np.arctan(mu):
        assert abs(speed) < CREEP
    else:
        assert speed == pytest.approx(steps * dt * G * (np.sin(angle) - mu * np.cos(angle)), rel=0.03)


def test_a_hanging_sheet_has_the_least_energy() -> None:
    """The same sheet at rest by SciPy, from an energy of its own in NumPy."""
    cloth = sheet((4, 4), (0.3, 0.3), parameters={"warp": 100.0, "weft": 60.0, "shear": 30.0, "bending": 1e-3})
    pins = [0, 3]
    model = ClothModel([cloth], dt=0.2, pins=pins, solver=Solver(1e-9))
    x = settled(model, 150)
    free = np.setdiff1d(np.arange(16), pins)

    def total(z: np.ndarray) -> float:
        y = cloth.points.copy()
        y[free] = z.reshape(-1, 3)
        return _potential(cloth.points, cloth.triangles, y)

    best = minimize(total, x[free].ravel(), method="BFGS", options={"gtol": 1e-9})
    assert np.abs(best.x - x[free].ravel()).max() < 2e-5
    assert total(x[free].ravel()) - best.fun < 1e-9


def _potential(rest: np.ndarray, triangles: np.ndarray, x: np.ndarray) -> float:
    """Energy of weight, stretch and bending, written with loops over triangles and hinges."""
    Ew, Ef, nu, G12, B, rho = 100.0, 60.0, 0.3, 30.0, 1e-3, CLOTH["density"]
    C = np.array([[Ew, nu * Ef, 0], [nu * Ef, Ef, 0], [0, 0, 0]]) / (1 - nu**2 * Ef / Ew)
    C[2, 2] = G12
    total, areas, edges = 0.0, [], {}
    for t, (a, b, c) in enumerate(triangles):
        D = np.column_stack([rest[b] - rest[a], rest[c] - rest[a]])[:2]
        F = np.column_stack([x[b] - x[a], x[c] - x[a]]) @ np.linalg.inv(D)
        e = (F.T @ F - np.eye(2)) / 2
        strain = np.array([e[0, 0], e[1, 1], 2 * e[0, 1]])
        area = abs(np.linalg.det(D)) / 2
        total += area * strain @ C @ strain / 2 + rho * area * G * (x[a] + x[b] + x[c])[2] / 3
        areas.append(area)
        for p, q, r in ((a, b, c), (b, c, a), (c, a, b)):
            edges.setdefault(frozenset((int(p), int(q))), []).append((t, int(r)))
    for edge, sides in edges.items():
        if len(sides) == 2:
            p, q = edge
            weights = {p: 0.0, q: 0.0}
            for _, r in sides:
                cot = {}
                for s, o in ((p, q), (q, p)):
                    u, v = rest[o] - rest[s], rest[r] - rest[s]
                    cot[s] = u @ v / np.linalg.norm(np.cross(u, v))
                weights[p] += cot[q]
                weights[q] += cot[p]
                weights[r] = weights.get(r, 0.0) - cot[p] - cot[q]
            bent = sum(w * x[k] for k, w in weights.items())
            total += 0.5 * B / (areas[sides[0][0]] + areas[sides[1][0]]) * bent @ bent
    return total
