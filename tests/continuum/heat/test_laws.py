"""The enthalpy curve against the integral of the tables, and against its own inverse."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from tests.continuum.heat.parts import BENT

from costate.continuum.heat.laws import Curve, conductivity
from costate.continuum.materials import INCONEL_718, TI_6AL_4V, Material

MATERIALS = [INCONEL_718, TI_6AL_4V, BENT]
T = np.unique(np.concatenate([np.linspace(200, 3500, 331), [1500, 1533.15, 1600, 1609.15, 1878, 1928]]))


def over(f: ca.SX, x: ca.SX, values: np.ndarray) -> np.ndarray:
    """Return a formula of one number at values."""
    return np.asarray(ca.Function("f", [x], [f]).map(len(values))(values[None])).ravel()


@pytest.mark.parametrize("material", MATERIALS, ids=lambda m: m.name)
def test_the_curve_is_the_enthalpy_of_the_tables(material: Material) -> None:
    x, curve = ca.SX.sym("x"), Curve.of(material)
    h = over(curve.enthalpy(x, ca.SX(1), ca.SX(1)), x, T)
    expected = material.enthalpy(T, material.specific_heat[0][0])
    assert np.abs(h - expected).max() <= 1e-13 * np.abs(expected).max()
    assert curve.least_heat == min(c for _, c in material.specific_heat)


@pytest.mark.parametrize("factors", [(1.0, 1.0), (0.8, 1.3), (1.2, 0.0)])
@pytest.mark.parametrize("material", MATERIALS, ids=lambda m: m.name)
def test_temperatures_come_back_from_enthalpies(material: Material, factors: tuple[float, float]) -> None:
    x, curve = ca.SX.sym("x"), Curve.of(material)
    s, l = (ca.SX(v) for v in factors)
    h = over(curve.enthalpy(x, s, l), x, T)
    assert (np.diff(h) > 0).all()
    assert np.abs(over(curve.temperature(x, s, l), x, h) - T).max() <= 1e-9
    # The heat between two temperatures: specific heat and latent heat have their own factors.
    sensible = material.enthalpy(T) - material.latent_heat * material.liquid_share(T)
    expected = factors[0] * sensible + factors[1] * material.latent_heat * material.liquid_share(T)
    assert np.abs((h - h[0]) - (expected - expected[0])).max() <= 1e-12 * h.max()


@pytest.mark.parametrize("material", MATERIALS, ids=lambda m: m.name)
def test_conductivity_is_that_of_the_table(material: Material) -> None:
    x = ca.SX.sym("x")
    assert np.abs(over(conductivity(material, x), x, T) - material.conductivity_at(T)).max() <= 1e-12
