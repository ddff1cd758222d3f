"""A step of a fluid in plain NumPy: interpolation by SciPy, pressure by a sparse factorisation, walls cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates
from scipy.sparse import lil_matrix
from scipy.sparse.linalg import spsolve

from costate.continuum.fluid.grid import Grid


def shifted(x: np.ndarray, axis: int, by: int) -> np.ndarray:
    """Return the numbers of the cells `by` cells further along an axis."""
    return np.roll(x, -by, axis)


def velocity_at(u: np.ndarray, c: int) -> np.ndarray:
    """Return the velocity at the faces across axis c, or at the centres (c = d)."""
    d, found = len(u), []
    for a in range(d):
        middle = (u[a] + shifted(u[a], a, 1)) / 2
        found.append(u[a] if a == c else middle if c == d else (middle + shifted(middle, c, -1)) / 2)
    return np.stack(found)


def carry(x: np.ndarray, u: np.ndarray, share: float, valid: np.ndarray | None) -> np.ndarray:
    """Return what arrives at every place of a lattice; share: dt / cell."""
    at = np.indices(x.shape) - share * u
    read = lambda y: map_coordinates(y, at, order=1, mode="grid-wrap")  # noqa: E731
    if valid is None:
        return read(x)
    weight = read(valid.astype(float))
    return np.where(weight > 1e-6, read(x * valid) / np.maximum(weight, 1e-6), x)


def viscous(grid: Grid, u: np.ndarray, c: int, slip: bool) -> np.ndarray:
    """Return the sum of differences to the neighbours of component c; walls within half a cell stand at their velocity."""
    total = np.zeros(grid.shape)
    for cell in np.ndindex(*grid.shape):
        for e in range(grid.d):
            for s in (-1, 1):
                other = tuple((i + s * (k == e)) % n for k, (i, n) in enumerate(zip(cell, grid.shape, strict=True)))
                below = tuple((i - (k == c)) % n for k, (i, n) in enumerate(zip(other, grid.shape, strict=True)))
                buried = e != c and grid.solid[other] and grid.solid[below]
                weight = 1 if not buried else 0 if slip else 2
                total[cell] += weight * (u[c][other] - u[c][cell])
    return total


def pressure(grid: Grid, u: np.ndarray) -> np.ndarray:
    """Return dt / (density * cell) times the pressure; one of a closed fluid has its mean at 0."""
    fluid = np.flatnonzero(grid.fluid)
    number = {int(k): i for i, k in enumerate(fluid)}
    closed = not grid.open.any()
    A, b = lil_matrix((len(fluid) + closed,) * 2), np.zeros(len(fluid) + closed)
    for i, k in enumerate(fluid):
        cell = np.unravel_index(k, grid.shape)
        for e in range(grid.d):
            up = tuple((j + (m == e)) % grid.shape[m] for m, j in enumerate(cell))
            b[i] -= u[e][up] - u[e][cell]
            for s in (-1, 1):
                other = tuple((j + s * (m == e)) % grid.shape[m] for m, j in enumerate(cell))
                if not grid.solid[other]:
                    A[i, i] += 1
                    if grid.fluid[other]:
                        A[i, number[int(np.ravel_multi_index(other, grid.shape))]] -= 1
        if closed:
            A[i, -1] = A[-1, i] = 1
    p = np.zeros(grid.count)
    p[fluid] = np.asarray(spsolve(A.tocsr(), b))[: len(fluid)]
    return p.reshape(grid.shape)


def step(grid: Grid, u: np.ndarray, s: np.ndarray, dt: float, slip: bool = False, **given: Any) -> tuple:
    """Return velocity (d, *shape), smoke, pressure and force after a semi-Lagrangian step."""
    d, share = grid.d, dt / grid.cell
    zero = np.zeros((d, *grid.shape))
    walls = grid.solid.any()
    wall_speed = given.get("given", zero)
    new = carry(s, velocity_at(u, d), share, ~grid.solid if walls else None)
    new = np.where(grid.solid, 0, new + dt * given.get("source", 0))
    made = []
    for c in range(d):
        valid = ~(grid.solid & shifted(grid.solid, c, -1)) if walls and slip else None
        v = carry(u[c], velocity_at(u, c), share, valid)
        v = (
            v
            + dt * given.get("buoyancy", np.zeros(d))[c] * (new + shifted(new, c, -1)) / 2
            + dt * given.get("force", zero)[c]
        )
        v = v + dt * given.get("viscosity", 0.0) / grid.cell**2 * viscous(grid, u, c, slip)
        made.append(v)
    v, force = np.stack(made), np.zeros(d)
    if "resistance" in given:
        for c in range(d):
            k = dt * (given["resistance"] + shifted(given["resistance"], c, -1)) / 2
            slowed = (v[c] + k * wall_speed[c]) / (1 + k)
            free = ~(grid.solid | shifted(grid.solid, c, -1))
            force[c] = grid.cell**d / dt * ((v[c] - slowed) * free).sum()
            v[c] = slowed
    v, p = project(grid, v, wall_speed)
    return v, new, p * grid.cell / dt, force


def project(grid: Grid, v: np.ndarray, wall_speed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a velocity without divergence, and the pressure that makes it so."""
    blocked = np.stack([grid.solid | shifted(grid.solid, c, -1) for c in range(grid.d)])
    v = np.where(blocked, wall_speed, v)
    p = pressure(grid, v)
    for c in range(grid.d):
        v[c] -= np.where(blocked[c], 0, p - shifted(p, c, -1))
    return v, p
