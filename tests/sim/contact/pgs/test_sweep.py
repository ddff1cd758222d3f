"""Sweeps of projected Gauss-Seidel: both forms against each other, against plain loops, and the choice between them."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from casadi import SX

from costate.sim import PGS
from costate.sim.contact.pgs.sweep import make_sweep
from costate.sim.contact.rows import Row

SWEEPS, CFM = 50, 1e-8


def contact_rows(contacts: int, limits: int) -> list[Row]:
    rows: list[Row] = []
    for _ in range(contacts):
        normal = len(rows)
        rows += [Row("normal", SX(0), SX(0)), *(Row("tangent", SX(0), SX(0), normal, SX(0.5)) for _ in range(2))]
    return rows + [Row("limit", SX(0), SX(0)) for _ in range(limits)] + [Row("friction", SX(0), SX(0), bound=SX(0.1))]


def random_problem(n: int, nv: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    J, root = random.normal(size=(n, nv)), random.normal(size=(nv, nv + 3))
    J[-3:] = np.eye(nv)[:3]  # limits and joint friction are rows with one entry
    return J, np.linalg.solve(root @ root.T, J.T), random.normal(size=n) - 1


def plain(rows: list[Row], J: np.ndarray, W: np.ndarray, c: np.ndarray, bounds: np.ndarray, cone: str) -> np.ndarray:
    """Projected Gauss-Seidel as the textbooks have it; a cone moves both tangents at once, by the shorter of their steps."""
    A = J @ W
    x = np.zeros(len(rows))
    steps = 1 / (np.diag(A) * (1 + CFM))
    for _ in range(SWEEPS):
        for k, row in enumerate(rows):
            speed = c + A @ x + CFM * np.diag(A) * x
            if row.kind == "tangent" and cone == "cone":
                if k == row.contact + 1:
                    both = slice(k, k + 2)
                    x[both] -= steps[both].min() * speed[both]
                    most, size = bounds[k] * x[row.contact], np.hypot(*x[both])
                    x[both] *= most / size if size > most else 1.0
                continue
            x[k] -= steps[k] * speed[k]
            most = bounds[k] * x[row.contact] if row.kind == "tangent" else bounds[k]
            x[k] = max(x[k], 0.0) if row.kind in ("normal", "limit") else np.clip(x[k], -most, most)
    return x


@pytest.mark.parametrize("cone", ["pyramid", "cone"])
@pytest.mark.parametrize("form", ["impulses", "velocities"])
@pytest.mark.parametrize("contacts", [1, 4, 12])
def test_against_plain_loops(contacts: int, form: str, cone: str) -> None:
    rows = contact_rows(contacts, limits=2)
    n, nv = len(rows), 8
    J, W, c = random_problem(n, nv)
    bounds = np.array([0.0 if r.bound is None else float(r.bound) for r in rows])
    sweep = make_sweep(rows, SX(ca.sparsify(ca.DM(J))), SX(ca.DM(W)), PGS(cone=cone, cfm=CFM), form)
    system = ca.evalf(sweep.system)
    carry = np.zeros(sweep.carry_size)
    for _ in range(SWEEPS):
        carry = np.asarray(sweep.function(carry, system, c, bounds)).ravel()
    expected = plain(rows, J, W, c, bounds, cone)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(carry[:n], expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    if form == "velocities":
        np.testing.assert_allclose(carry[n:], W @ expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_many_rows_on_few_coordinates_sweep_over_velocities() -> None:
    for contacts, nv, form in ((4, 18, "impulses"), (16, 6, "velocities")):
        rows = contact_rows(contacts, limits=2)
        n = len(rows)
        J, W, _ = random_problem(n, nv)
        sweep = make_sweep(rows, SX(ca.DM(J)), SX(ca.DM(W)), PGS())
        assert sweep.carry_size == (n if form == "impulses" else n + nv)
