"""One explicit step of heat conduction on hexahedra: its formulas, and a wall to compute it on. All engines compared compute this.

Elements have 8 nodes, 2 x 2 x 2 Gauss points and a lumped capacity; conductivity and heat capacity are smooth functions of the
temperature; laser, convection and radiation act at nodes. Formulas use operators alone, so that they take numbers, NumPy and JAX
arrays with an entry per element, and CasADi's symbols; `xp` gives the functions `exp` and `where` (NumPy, jax.numpy, `CASADI()`).
Units are SI. This file imports nothing but numpy: the interpreters of all engines read it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Values = Any
"""Sequence of what formulas compute with: numbers, arrays, symbols."""
AMBIENT = 300.0
"""Temperature of the surroundings [K]."""
DENSITY = 8190.0
"""Mass density [kg/m^3]."""
CONVECTION = 50.0
"""Heat transfer coefficient [W/(m^2 K)]."""
RADIATION = 0.2 * 5.67e-8
"""Emissivity times the constant of Stefan and Boltzmann [W/(m^2 K^4)]."""
BEAM = 1e-3
"""Radius of the laser's beam [m]."""
MELTING, SPREAD, LATENT = 1571.0, 76.0, 272e3
"""Middle and width of the range in which the metal melts [K], and its heat of fusion [J/kg]."""
GAUSS = 0.5 - 0.5 / np.sqrt(3.0)
"""First of two Gauss points on [0, 1]; both have the weight 1/2."""
NODE_OF_CORNER = (0, 1, 3, 2, 4, 5, 7, 6)
"""Corner i + 2 j + 4 k of the unit cube -> node of the element (its bottom face counter-clockwise, then its top face)."""
STORED = 56
"""Numbers that an element stores instead of its node positions: 7 per Gauss point."""


def conductivity(T: Any) -> Any:
    """Return the conductivity [W/(m K)] at a temperature [K]."""
    return 8.9 + 0.0145 * (T - AMBIENT)


def heat_capacity(T: Any) -> Any:
    """Return the specific heat [J/(kg K)]; the heat of fusion is a smooth bump, whose integral is LATENT."""
    z = (T - MELTING) * (1 / SPREAD)
    bell = 1 + z * z
    return 430.0 + 0.2 * (T - AMBIENT) + (LATENT / SPREAD * 2 / np.pi) / (bell * bell)


def hex_flow(T: Values, X: Values, alive: Any = None) -> tuple[list[Any], list[Any]]:
    """Return the heat flow into the 8 nodes of an element [W] and its lumped capacity at them [J/K].

    T: temperatures (8,). X: positions x0, y0, z0, x1, ... (24,). alive: 1, or 0 for an element that is not there yet.
    """
    slopes = [
        _slopes(_corners([X[3 * n + c] for n in range(8)])) for c in range(3)
    ]  # component -> direction -> 8 points
    J = [[[slopes[c][d][p] for c in range(3)] for d in range(3)] for p in range(8)]

    def flux(p: int, k: Any, d: list[Any]) -> tuple[list[Any], Any]:
        cofactors = [_cross(J[p][(r + 1) % 3], J[p][(r + 2) % 3]) for r in range(3)]
        det = _dot(J[p][0], cofactors[0])
        scale = k / det
        g = [scale * (cofactors[0][c] * d[0] + cofactors[1][c] * d[1] + cofactors[2][c] * d[2]) for c in range(3)]
        return [_dot(cofactors[r], g) for r in range(3)], det

    return _element(T, flux, alive)


def hex_flow_stored(T: Values, G: Values, alive: Any = None) -> tuple[list[Any], list[Any]]:
    """Return the same from stored geometry G (56,), see `stored_geometry`."""

    def flux(p: int, k: Any, d: list[Any]) -> tuple[list[Any], Any]:
        a, b, c, e, f, g, det = (G[7 * p + m] for m in range(7))
        kd = [k * x for x in d]
        q = [a * kd[0] + b * kd[1] + c * kd[2], b * kd[0] + e * kd[1] + f * kd[2], c * kd[0] + f * kd[1] + g * kd[2]]
        return q, det

    return _element(T, flux, alive)


def stored_geometry(X: Values) -> list[Any]:
    """Return 7 numbers per Gauss point (56,): the upper triangle of det(J) J^-1 J^-T, by rows, then det(J)."""
    slopes = [_slopes(_corners([X[3 * n + c] for n in range(8)])) for c in range(3)]
    G = []
    for p in range(8):
        J = [[slopes[c][d][p] for c in range(3)] for d in range(3)]
        cofactors = [_cross(J[(r + 1) % 3], J[(r + 2) % 3]) for r in range(3)]
        det = _dot(J[0], cofactors[0])
        G += [_dot(cofactors[r], cofactors[s]) / det for r in range(3) for s in range(r, 3)] + [det]
    return G


def node_update(  # noqa: PLR0913
    T: Any, flow: Any, capacity: Any, X: Values, area: Any, laser: Values, power: Any, dt: Any, xp: Any = np
) -> Any:  # fmt: skip
    """Return the temperature of a node a step later. A node of elements that are not there yet keeps its temperature.

    X: position (3,). area: surface that belongs to the node [m^2]. laser: centre of the beam (3,). power [W]. dt [s].
    """
    d2 = sum((X[c] - laser[c]) * (X[c] - laser[c]) for c in range(3))
    T2 = T * T
    q = power * ((3 / (np.pi * BEAM**2)) * xp.exp((-3 / BEAM**2) * d2))
    q = q - CONVECTION * (T - AMBIENT) - RADIATION * (T2 * T2 - AMBIENT**4)
    there = capacity > 0
    return xp.where(there, T + dt * (flow + area * q) / xp.where(there, capacity, 1.0), T)


def CASADI() -> SimpleNamespace:
    """Return the functions that the formulas need, for CasADi's symbols."""
    import casadi as ca

    return SimpleNamespace(exp=ca.exp, where=ca.if_else)


def _element(T: Values, flux: Any, alive: Any) -> tuple[list[Any], list[Any]]:
    """Sum over the Gauss points. Values are tensor products: interpolation and slopes go one direction at a time."""
    corners = _corners(T)
    inside, slopes = _interpolated(corners), _slopes(corners)
    q, heat = [], []
    for p in range(8):
        k = 0.125 * conductivity(inside[p])
        flow, det = flux(p, k, [slopes[d][p] for d in range(3)])
        q.append(flow)
        heat.append((0.125 * DENSITY) * heat_capacity(inside[p]) * det)
    flow = _slopes_transposed(q)
    capacity = _interpolated(heat)  # its matrix is symmetric
    if alive is not None:
        flow, capacity = [alive * f for f in flow], [alive * c for c in capacity]
    return _corners(flow), _corners(capacity)  # the order is its own inverse


def _corners(v: Values) -> list[Any]:
    return [v[n] for n in NODE_OF_CORNER]


def _mixed(v: list[Any], stride: int) -> list[Any]:
    """Interpolate corner values at the two Gauss points of one direction."""
    out = list(v)
    for lo in _pairs(stride, len(v)):
        d = GAUSS * (v[lo + stride] - v[lo])
        out[lo], out[lo + stride] = v[lo] + d, v[lo + stride] - d
    return out


def _pairs(stride: int, count: int) -> list[int]:
    return [n for n in range(count) if not n & stride]


def _interpolated(v: list[Any]) -> list[Any]:
    return _mixed(_mixed(_mixed(v, 1), 2), 4)


def _slopes(v: list[Any]) -> list[list[Any]]:
    """Return the derivatives (3, 8) at the Gauss points by the coordinates of the unit cube."""
    found = []
    for axis in range(3):
        s = 1 << axis
        edges = [v[n + s] - v[n] for n in _pairs(s, 8)]  # four of them: constant along their direction
        edges = _mixed(_mixed(edges, 1), 2)
        found.append([edges[_pairs(s, 8).index(p & ~s)] for p in range(8)])
    return found


def _slopes_transposed(q: list[list[Any]]) -> list[Any]:
    """Return minus the transposed `_slopes` of q (8, 3): what flows into the corners."""
    out: list[Any] = [None] * 8
    for axis in range(3):
        s = 1 << axis
        lower = _pairs(s, 8)
        edges = _mixed(_mixed([q[n][axis] + q[n + s][axis] for n in lower], 1), 2)
        for n, e in zip(lower, edges, strict=True):
            out[n] = e if out[n] is None else out[n] + e
            out[n + s] = -e if out[n + s] is None else out[n + s] - e
    return out


def _cross(a: Values, b: Values) -> list[Any]:
    return [a[(c + 1) % 3] * b[(c + 2) % 3] - a[(c + 2) % 3] * b[(c + 1) % 3] for c in range(3)]


def _dot(a: Values, b: Values) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@dataclass(frozen=True)
class HeatProblem:
    """A mesh, its state, and what acts on it during a step."""

    nodes: np.ndarray
    """Positions (N, 3) [m]."""
    elements: np.ndarray
    """Nodes of the elements (E, 8), in order of birth."""
    birth: np.ndarray
    """Times at which elements come to be (E,) [s]."""
    area: np.ndarray
    """Surface that belongs to each node (N,) [m^2]."""
    T: np.ndarray
    """Temperatures (N,) [K]."""
    weights: np.ndarray
    """Weights of the temperatures after the step in the number that is differentiated (N,)."""
    laser: np.ndarray
    """Centre of the beam (3,) [m]."""
    time: float
    power: float
    dt: float

    def save(self, file: Path) -> None:
        np.savez(file, **asdict(self))

    @staticmethod
    def load(file: Path | str) -> HeatProblem:
        with np.load(file) as z:
            entries: dict[str, Any] = {name: z[name] if z[name].ndim else float(z[name]) for name in z.files}
            return HeatProblem(**entries)


def wall(shape: tuple[int, int, int] = (137, 10, 11), size: float = 1e-3, alive: float = 1.0) -> HeatProblem:
    """Return a printed wall of shape[0] x shape[1] x shape[2] elements, 15,070 by default, whose nodes are moved a little.

    size: edge of an element [m]. alive: share of the elements that are there at the time of the step.
    """
    random = np.random.default_rng(0)
    counts = [n + 1 for n in shape]
    grid = (
        np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), -1).transpose(2, 1, 0, 3).reshape(-1, 3)
    )
    nodes = size * (grid + random.uniform(-0.1, 0.1, grid.shape))
    low = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), -1).transpose(2, 1, 0, 3).reshape(-1, 3)
    steps = np.array([1, counts[0], counts[0] * counts[1]])
    cube = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
    elements = (low[:, None] + cube) @ steps
    birth = 0.02 * np.arange(len(elements))
    laser = nodes[elements[int(alive * len(elements)) - 1, 6]] + np.array([0, 0, 0.1 * size])
    hot = 1300 * np.exp(-((nodes - laser) ** 2).sum(1) / (2 * (5 * size) ** 2))
    T = AMBIENT + hot + random.uniform(0, 20, len(nodes))
    weights = random.uniform(-1, 1, len(nodes))
    area = np.minimum(np.minimum(grid, np.array(shape) - grid).min(1), 1)  # 0 on the surface
    area = np.where(area == 0, size**2, 0.0)
    time = float(birth[int(alive * len(elements)) - 1])
    return HeatProblem(nodes, elements, birth, area, T, weights, laser, time, 250.0, 0.002)
