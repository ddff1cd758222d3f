"""Laws of materials against their energies, singular values and scipy; a law of one's own."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm, logm, polar
from tests.continuum.mpm.scenes import block, moving

from costate.continuum.mpm import tensors
from costate.continuum.mpm.laws import DENSEST, LAWS, Law, Point, elastic, lame


def deformation(dim: int, size: float, seed: int = 0) -> np.ndarray:
    return np.eye(dim) + size * np.random.default_rng(seed).normal(size=(dim, dim))


def number(fn, *args: np.ndarray) -> np.ndarray:
    symbols = [ca.SX.sym(f"a{k}", *a.shape) for k, a in enumerate(args)]
    return np.array(ca.Function("f", symbols, [fn(*symbols)])(*args))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("size", [0.05, 0.3])
def test_rotation_is_that_of_the_polar_decomposition(dim: int, size: float) -> None:
    F = deformation(dim, size)
    assert np.linalg.det(F) > 0
    assert np.abs(number(tensors.rotation, F) - polar(F)[0]).max() < 1e-13


@pytest.mark.parametrize("dim", [2, 3])
def test_logarithm_and_exponential(dim: int) -> None:
    F = 1.3 * deformation(dim, 0.03)
    b = F @ F.T
    strain = 0.5 * np.asarray(logm(b))
    dev, trace = (number(lambda b, k=k: tensors.log_strain(b)[k], b) for k in (0, 1))
    assert np.abs(dev + trace / dim * np.eye(dim) - strain).max() < 1e-12
    assert (
        np.abs(number(tensors.exponential, strain - 0.2 * np.eye(dim)) - expm(strain - 0.2 * np.eye(dim))).max() < 1e-13
    )


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("material", ["corotated", "neo_hookean", "plasticine", "sand", "liquid"])
def test_stress_is_the_slope_of_the_energy(material: str, dim: int) -> None:
    """tau = dW/d(f) for a small further deformation f, as long as nothing flows."""
    law = LAWS[material]
    p = {name: ca.SX(v) for name, v in law.parameters.items()}
    if material == "plasticine":
        p["yield"] = ca.SX(1e9)
    state = 0.97 * np.eye(dim) + 0.003 * np.random.default_rng(1).normal(size=(dim, dim))
    start = {
        "liquid": np.array([np.linalg.det(state)]),
        "plasticine": (state @ state.T)[np.triu_indices(dim)],
        "sand": np.append((state @ state.T)[np.triu_indices(dim)], 0.0),
    }.get(material, state.ravel())
    f = ca.SX.sym("f", dim, dim)
    new, tau = law.step(Point(f, ca.SX.zeros(dim, dim), ca.SX(start), p, ca.SX(0)))
    assert law.energy is not None
    slope = ca.reshape(ca.gradient(law.energy(new, dim, p), f), dim, dim)
    found, want = (np.array(m) for m in ca.Function("both", [f], [tau, slope])(np.eye(dim)))
    assert np.abs(found - want).max() < 1e-9 * np.abs(found).max()


def test_a_liquid_is_not_stiffer_than_its_substeps_allow() -> None:
    """Pressure and energy go on smoothly below the densest state, and the slope of the pressure is that at it."""
    law = LAWS["liquid"]
    p = {name: ca.SX(v) for name, v in law.parameters.items()}
    assert law.energy is not None
    J = ca.SX.sym("J")
    pressure = -law.step(Point(ca.SX.eye(2), ca.SX.zeros(2, 2), J, p, ca.SX(0)))[1][0, 0] / J
    energy = law.energy(J, 2, p)
    f = ca.Function("f", [J], [pressure, ca.gradient(pressure, J), -ca.gradient(energy, J)])
    for volume in (0.5, 0.8, 0.86, 1.1):
        value, slope, want = (float(x) for x in f(volume))
        assert abs(value - want) < 1e-9 * 1e4
        assert abs(slope) <= 1e4 * DENSEST**-8 * (1 + 1e-12)
    around = [np.array([float(x) for x in f(DENSEST + d)]) for d in (-1e-9, 1e-9)]
    assert np.abs(around[0] - around[1]).max() < 1e-6 * np.abs(around[0]).max()


def test_a_law_of_ones_own() -> None:
    """A material in ten lines gives the same motion as the one in the table that it equals."""

    def rubber(F: ca.SX, p: dict[str, ca.SX]) -> ca.SX:
        mu, lam = lame(p)
        one = ca.SX.eye(F.shape[0])
        return mu * (F @ F.T - one) + lam * ca.log(ca.det(F)) * one

    own = Law(elastic(rubber), {"E": 1e4, "nu": 0.3})
    known, mine = block("neo_hookean"), block(own)  # type: ignore[arg-type]
    assert np.abs((known.run(20, moving(known)).x - mine.run(20, moving(mine)).x).numpy()).max() < 1e-12


def test_sand_does_not_resist_pull() -> None:
    p = {name: ca.SX(v) for name, v in LAWS["sand"].parameters.items()}
    state, tau = LAWS["sand"].step(
        Point(1.01 * ca.SX.eye(3), ca.SX.zeros(3, 3), ca.SX(LAWS["sand"].rest(3)), p, ca.SX(0))
    )
    assert np.abs(np.array(ca.DM(tau))).max() < 1e-12
    assert abs(float(ca.DM(state[-1])) - 3 * np.log(1.01)) < 1e-12  # and remembers the volume that it gained


def test_plasticine_flows_at_its_yield_stress() -> None:
    values = {**LAWS["plasticine"].parameters, "yield": 50.0}
    p = {name: ca.SX(v) for name, v in values.items()}
    shear = np.eye(3)
    shear[0, 1] = 0.05
    _, tau = LAWS["plasticine"].step(
        Point(ca.SX(shear), ca.SX.zeros(3, 3), ca.SX(LAWS["plasticine"].rest(3)), p, ca.SX(0))
    )
    t = np.array(ca.DM(tau))
    assert abs(np.linalg.norm(t - np.trace(t) / 3 * np.eye(3)) - 50.0) < 1e-9
