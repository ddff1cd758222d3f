"""The step of `benchmarks.heat_problem` and its gradient in NumPy, written the textbook way: shape functions and their transposes.

It shares the material and the constants with the formulas that are compared, and nothing else: not the sum over Gauss points, not
the derivatives. It also takes complex numbers, for derivatives by complex steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.heat_problem import (
    AMBIENT,
    BEAM,
    CONVECTION,
    DENSITY,
    LATENT,
    MELTING,
    RADIATION,
    SPREAD,
    HeatProblem,
    conductivity,
    heat_capacity,
)

Array = np.ndarray
SIGNS = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]], float
)
"""Nodes of the element [-1, 1]^3."""


def shape_functions(points: Array) -> tuple[Array, Array]:
    """Return values (P, 8) and derivatives (P, 3, 8) of the shape functions at points (P, 3) of [-1, 1]^3."""
    f = 1 + SIGNS * points[:, None]
    slopes = [SIGNS[:, c] * f[:, :, (c + 1) % 3] * f[:, :, (c + 2) % 3] / 8 for c in range(3)]
    return f.prod(-1) / 8, np.stack(slopes, 1)


@dataclass(frozen=True)
class Quadrature:
    """Shape functions at the Gauss points of all elements."""

    N: Array
    """Values (8 points, 8 nodes)."""
    B: Array
    """Gradients (E, 8 points, 3, 8 nodes) [1/m]."""
    volume: Array
    """Volumes that belong to the points (E, 8) [m^3]."""

    @staticmethod
    def of(nodes: Array, elements: Array) -> Quadrature:
        N, dN = shape_functions(SIGNS / np.sqrt(3))
        J = np.einsum("pdn,enc->epdc", dN, nodes[elements])
        return Quadrature(N, np.linalg.inv(J) @ dN, np.linalg.det(J))


def reference_heat_step(  # noqa: PLR0913
    nodes: Array, elements: Array, birth: Array, T: Array, time: float, laser: Array, power: complex, dt: float, area: Array
) -> Array:  # fmt: skip
    """Return the temperatures (N,) [K] a step later."""
    Q, there = Quadrature.of(nodes, elements), (birth <= time)[:, None]
    F, C = _assembled(Q, elements, there, T)
    q = _surface_flow(T, power * _beam(nodes, laser))
    return T + np.where(np.real(C) > 0, dt * (F + area * q) / np.where(np.real(C) > 0, C, 1), 0)


def reference_heat_gradient(  # noqa: PLR0913
    nodes: Array, elements: Array, birth: Array, T: Array, time: float, laser: Array, power: float, dt: float, area: Array,
    weights: Array,
) -> tuple[Array, float]:  # fmt: skip
    """Return the derivatives of weights @ step by the temperatures (N,) and by the laser's power [1/W]."""
    Q, there = Quadrature.of(nodes, elements), (birth <= time)[:, None]
    F, C = _assembled(Q, elements, there, T)
    beam = _beam(nodes, laser)
    C1 = np.where(C > 0, C, 1)
    w = np.where(C > 0, weights * dt / C1, 0)  # by the flow
    power_bar = float(w @ (area * beam))
    T_bar = weights - w * area * (CONVECTION + 4 * RADIATION * T**3)
    F_bar = w[elements] * there
    C_bar = (-w * (F + area * _surface_flow(T, power * beam)) / C1)[elements] * there
    t, g = T[elements] @ Q.N.T, _gradients(Q, T[elements])
    g_bar = _gradients(Q, F_bar)
    k_slope = 0.0145
    t_bar = -k_slope * (g * g_bar).sum(-1) * Q.volume + DENSITY * _heat_capacity_slope(t) * (C_bar @ Q.N.T) * Q.volume
    local = t_bar @ Q.N - _divergence(Q, (conductivity(t) * Q.volume)[..., None] * g_bar)
    np.add.at(T_bar, elements, local)
    return T_bar, power_bar


def of_problem(p: HeatProblem) -> tuple[Array, Array, float]:
    """Return the temperatures after the step, and the gradient by temperatures and power."""
    given = arguments(p)
    return reference_heat_step(**given), *reference_heat_gradient(**given, weights=p.weights)


def arguments(p: HeatProblem) -> dict[str, Any]:
    """Return the arguments of a step."""
    names = ("nodes", "elements", "birth", "T", "time", "laser", "power", "dt", "area")
    return {name: getattr(p, name) for name in names}


def _assembled(Q: Quadrature, elements: Array, there: Array, T: Array) -> tuple[Array, Array]:
    """Return the heat flow into all nodes [W] and their capacities [J/K]."""
    t, g = T[elements] @ Q.N.T, _gradients(Q, T[elements])
    flow = -_divergence(Q, (conductivity(t) * Q.volume)[..., None] * g)
    capacity = (DENSITY * heat_capacity(t) * Q.volume) @ Q.N
    F, C = np.zeros(len(T), T.dtype), np.zeros(len(T), T.dtype)
    np.add.at(F, elements, flow * there)
    np.add.at(C, elements, capacity * there)
    return F, C


def _gradients(Q: Quadrature, local: Array) -> Array:
    """Return the gradients (E, 8 points, 3) of nodal values (E, 8)."""
    return (Q.B @ local[:, None, :, None])[..., 0]


def _divergence(Q: Quadrature, flux: Array) -> Array:
    """Return the transposed `_gradients` (E, 8) of (E, 8 points, 3)."""
    return (flux[:, :, None] @ Q.B)[:, :, 0].sum(1)


def _beam(nodes: Array, laser: Array) -> Array:
    return 3 / (np.pi * BEAM**2) * np.exp(-3 * ((nodes - laser) ** 2).sum(1) / BEAM**2)


def _surface_flow(T: Array, laser: Array) -> Array:
    """Return what flows into a surface [W/m^2]."""
    return laser - CONVECTION * (T - AMBIENT) - RADIATION * (T**4 - AMBIENT**4)


def _heat_capacity_slope(T: Array) -> Array:
    z = (T - MELTING) / SPREAD
    return 0.2 - LATENT / SPREAD**2 * 8 / np.pi * z / (1 + z * z) ** 3
