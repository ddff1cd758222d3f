"""Sweeps of projected Gauss-Seidel: both forms against each other and the law of contact, and the choice between them."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from casadi import SX

from costate.sim import PGS
from costate.sim.contact.pgs.sweep import make_sweep
from costate.sim.contact.rows import Row

SWEEPS, CFM = 3000, 1e-12


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


def solved(contacts: int, form: str, cone: str) -> tuple[list[Row], np.ndarray, np.ndarray, np.ndarray]:
    """Rows, A, c and the impulses after many sweeps of a random problem."""
    rows = contact_rows(contacts, limits=2)
    n, nv = len(rows), 8
    J, W, c = random_problem(n, nv)
    A = J @ W
    sweep = make_sweep(
        rows, SX(ca.sparsify(ca.DM(J))), SX(ca.DM(W)), SX(ca.DM(np.diag(A))), PGS(cone=cone, cfm=CFM), form
    )
    system = ca.evalf(sweep.system)
    carry = np.zeros(sweep.carry_size)
    for _ in range(SWEEPS):
        carry = np.asarray(sweep.function(carry, system, c, bounds_of(rows))).ravel()
    if form == "velocities":
        np.testing.assert_allclose(carry[n:], W @ carry[:n], rtol=0, atol=1e-9 * np.abs(carry[:n]).max())
    return rows, A, c, carry[:n]


def bounds_of(rows: list[Row]) -> np.ndarray:
    return np.array([0.0 if r.bound is None else float(r.bound) for r in rows])


@pytest.mark.parametrize("cone", ["box", "cone"])
@pytest.mark.parametrize("contacts", [1, 2, 4])
def test_impulses_obey_the_law(contacts: int, cone: str) -> None:
    """Contacts push or part; friction is within its bound, and at it points against the sliding. Both forms agree."""
    rows, A, c, x = solved(contacts, "impulses", cone)
    np.testing.assert_allclose(solved(contacts, "velocities", cone)[3], x, rtol=0, atol=1e-8 * np.abs(x).max())
    u, bounds = c + A @ x, bounds_of(rows)
    small = 1e-6 * np.abs(c).max()
    pushing = [k for k, r in enumerate(rows) if r.kind in ("normal", "limit")]
    assert x[pushing].max() > 0.1 and x[pushing].min() >= 0
    assert u[pushing].min() > -small and np.abs(u[pushing] * x[pushing]).max() < small
    for k, row in enumerate(rows):
        if row.kind != "normal":
            continue
        most, rub, slip = bounds[k + 1] * x[k], x[k + 1 : k + 3], u[k + 1 : k + 3]
        if cone == "cone":
            assert np.hypot(*rub) < most + small
            assert (
                np.hypot(*slip) < small or most == 0 or np.abs(rub + most * slip / np.hypot(*slip)).max() < 1e-4 * most
            )
        else:
            assert np.abs(rub).max() < most + small
            assert all(abs(s) < small or abs(r + most * np.sign(s)) < small for r, s in zip(rub, slip, strict=True))
    joint = len(rows) - 1
    assert abs(u[joint]) < small or abs(x[joint] + 0.1 * np.sign(u[joint])) < small


def test_many_rows_on_few_coordinates_sweep_over_velocities() -> None:
    for contacts, nv, form in ((4, 18, "impulses"), (16, 6, "velocities")):
        rows = contact_rows(contacts, limits=2)
        n = len(rows)
        J, W, _ = random_problem(n, nv)
        sweep = make_sweep(rows, SX(ca.DM(J)), SX(ca.DM(W)), SX(ca.DM(np.diag(J @ W))), PGS())
        assert sweep.carry_size == (n if form == "impulses" else n + nv)
