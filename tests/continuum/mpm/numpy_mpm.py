"""MLS-MPM in NumPy, for tests: written from the equations, node by node, with singular values where the package has series."""

from __future__ import annotations

from itertools import product

import numpy as np


def spline(u: np.ndarray, kind: str) -> np.ndarray:
    """Return the B-spline at a distance in cells."""
    a = np.abs(u)
    if kind == "quadratic":
        return np.where(a < 0.5, 0.75 - a**2, np.where(a < 1.5, 0.5 * (1.5 - a) ** 2, 0))
    return np.where(a < 1, 0.5 * a**3 - a**2 + 2 / 3, np.where(a < 2, (2 - a) ** 3 / 6, 0))


def lame(p: dict[str, float]) -> tuple[float, float]:
    return p["E"] / 2 / (1 + p["nu"]), p["E"] * p["nu"] / (1 + p["nu"]) / (1 - 2 * p["nu"])


def corotated(f, F, L, p):
    F = f @ F
    mu, lam = lame(p)
    U, _, Vt = np.linalg.svd(F)
    J = np.linalg.det(F)[:, None, None]
    return F, 2 * mu * (F - U @ Vt) @ F.swapaxes(1, 2) + lam * (J - 1) * J * np.eye(F.shape[1])


def neo_hookean(f, F, L, p):
    F = f @ F
    mu, lam = lame(p)
    I = np.eye(F.shape[1])
    return F, mu * (F @ F.swapaxes(1, 2) - I) + lam * np.log(np.linalg.det(F))[:, None, None] * I


def _hencky(U, e, p):
    mu, lam = lame(p)
    tau = 2 * mu * e + lam * e.sum(1, keepdims=True)
    return U * np.exp(e)[:, None, :], np.einsum("nij,nj,nkj->nik", U, tau, U)


def plasticine(f, F, L, p):
    mu, _ = lame(p)
    U, s, _ = np.linalg.svd(f @ F)
    e = np.log(s)
    dev = e - e.mean(1, keepdims=True)
    size = np.linalg.norm(dev, axis=1, keepdims=True)
    over = np.maximum(size - p["yield"] / (2 * mu), 0)
    return _hencky(U, e - over * dev / np.maximum(size, 1e-300), p)


def sand(f, state, L, p):
    F, gained = state
    mu, lam = lame(p)
    dim = F.shape[1]
    U, s, _ = np.linalg.svd(f @ F)
    e = np.log(s) + gained[:, None] / dim
    trace = e.sum(1)
    sine = np.sin(np.radians(p["angle"]))
    alpha = np.sqrt(2 / 3) * 2 * sine / (3 - sine)
    dev = e - e.mean(1, keepdims=True)
    size = np.linalg.norm(dev, axis=1)
    gamma = size + (dim * lam + 2 * mu) / (2 * mu) * trace * alpha
    new = np.where(gamma[:, None] > 0, e - gamma[:, None] * dev / np.maximum(size, 1e-300)[:, None], e)
    new = np.where(trace[:, None] >= 0, 0.0, new)
    F, tau = _hencky(U, new, p)
    return (F, trace - new.sum(1)), tau


def liquid(f, J, L, p):
    dim = L.shape[1]
    div = np.trace(L, axis1=1, axis2=2)
    J = np.minimum(J * np.exp(np.trace(f, axis1=1, axis2=2) - dim), 1.25)
    shear = p["viscosity"] * (L + L.swapaxes(1, 2) - 2 / dim * div[:, None, None] * np.eye(dim))
    pressure = p["bulk"] / p["gamma"] * (J ** -p["gamma"] - 1)
    line = p["bulk"] / p["gamma"] * (0.85 ** -p["gamma"] - 1) + p["bulk"] * 0.85 ** (-p["gamma"] - 1) * (0.85 - J)
    pressure = np.where(J < 0.85, line, pressure)
    return J, J[:, None, None] * (shear - pressure[:, None, None] * np.eye(dim))


LAWS = {"corotated": corotated, "neo_hookean": neo_hookean, "plasticine": plasticine, "sand": sand, "liquid": liquid}


def rest(kind: str, n: int, dim: int):
    F = np.tile(np.eye(dim), (n, 1, 1))
    return np.ones(n) if kind == "liquid" else (F, np.zeros(n)) if kind == "sand" else F


def step(  # noqa: PLR0913
    state,
    kind: str,
    p: dict[str, float],
    shape,
    dx: float,
    h: float,
    volume: float,
    gravity,
    friction: float,
    order: str,
):
    """One step: positions, velocities, affine parts, numbers of the law -> the same."""
    x, v, C, s = state
    dim, mass = x.shape[1], p["density"] * volume
    D = {"quadratic": 0.25, "cubic": 1 / 3}[order] * dx**2
    s, tau = LAWS[kind](np.eye(dim) + h * C, s, C, p)
    A = -h * volume / D * tau + mass * C
    grid, weight_of = np.zeros((*shape, dim + 1)), []
    low = np.floor(x / dx).astype(int) - 1
    for node in product(range(4), repeat=dim):
        i = low + np.array(node)
        w = spline(x / dx - i, order).prod(1)
        d = i * dx - x
        given = w[:, None] * np.concatenate([mass * v + np.einsum("nij,nj->ni", A, d), np.full((len(x), 1), mass)], 1)
        np.add.at(grid, tuple(i.T), given)
        weight_of.append((i, w, d))
    u = grid[..., :dim] / np.maximum(grid[..., dim:], 1e-300) + h * np.asarray(gravity)
    place = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    for k in range(dim):
        for there, sign in ((place[..., k] < 3, 1.0), (place[..., k] >= shape[k] - 3, -1.0)):
            into = np.minimum(sign * u[..., k], 0)
            along = u.copy()
            along[..., k] = 0
            speed = np.linalg.norm(along, axis=-1)
            left = np.maximum(1 + friction * into / np.maximum(speed, 1e-300), 0)
            hit = u.copy()
            hit[..., k] -= sign * into
            other = [j for j in range(dim) if j != k]
            hit[..., other] = (left[..., None] * u)[..., other]
            u = np.where((there & (into < 0))[..., None], hit, u)
    v, B = np.zeros_like(v), np.zeros_like(C)
    for i, w, d in weight_of:
        ui = u[tuple(i.T)]
        v += w[:, None] * ui
        B += np.einsum("n,ni,nj->nij", w, ui, d)
    return x + h * v, v, B / D, s
