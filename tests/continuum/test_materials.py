"""Tables of materials, and enthalpies against numerical integration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from costate.continuum import INCONEL_718, MATERIALS, TI_6AL_4V, Material

TABLE = ((300.0, 500.0), (1000.0, 700.0))


def metal(**changes: object) -> Material:
    values = {
        "name": "metal",
        "density": 8000.0,
        "specific_heat": TABLE,
        "conductivity": TABLE,
        "solidus": 900.0,
        "liquidus": 950.0,
    }
    return Material(**{**values, **changes})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("material", MATERIALS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("low", "high"), [(298.15, 1200.0), (250.0, 1550.0), (298.15, 1900.0), (700.0, 2600.0), (1700.0, 400.0)]
)
def test_enthalpy_is_the_integral_of_the_apparent_heat(material: Material, low: float, high: float) -> None:
    kinks = [t for t, _ in material.specific_heat] + [material.solidus, material.liquidus]
    ends = [low, *sorted((t for t in kinks if min(low, high) < t < max(low, high)), reverse=high < low), high]
    integral = sum(quad(material.apparent_heat_at, a, b)[0] for a, b in pairwise(ends))
    assert material.enthalpy(high, since=low) == pytest.approx(integral, rel=1e-10)


def test_latent_heat_is_all_taken_up_between_solidus_and_liquidus() -> None:
    solid = metal(latent_heat=0.0)
    melting = metal(latent_heat=2e5)
    T = np.array([800.0, 900.0, 925.0, 950.0, 1500.0])
    np.testing.assert_allclose(melting.enthalpy(T) - solid.enthalpy(T), [0, 0, 1e5, 2e5, 2e5], rtol=1e-12, atol=1e-9)


def test_enthalpy_by_hand() -> None:
    # 500 J/(kg K) at 300 K and below, 700 at 1000 K and above.
    assert metal().enthalpy(1000.0, since=300.0) == pytest.approx(600 * 700)
    assert metal().enthalpy(300.0, since=200.0) == pytest.approx(500 * 100)
    assert metal().enthalpy(1200.0, since=1000.0) == pytest.approx(700 * 200)


def test_tables_are_read_with_straight_lines_and_held_at_their_ends() -> None:
    np.testing.assert_allclose(
        metal().conductivity_at([100.0, 300.0, 650.0, 1000.0, 3000.0]), [500, 500, 600, 700, 700]
    )
    assert INCONEL_718.specific_heat_at(1023.0) == pytest.approx((568 + 680) / 2)
    assert TI_6AL_4V.conductivity_at(298.0) == pytest.approx(7.0)


def test_materials_are_in_si_units_and_diffuse_heat_as_metals_do() -> None:
    for material in MATERIALS.values():
        T = np.linspace(300, 2500, 50)
        diffusivity = material.conductivity_at(T) / (material.density * material.specific_heat_at(T))
        assert ((diffusivity > 2e-6) & (diffusivity < 1e-5)).all()
        assert 1400 < material.solidus < material.liquidus < 2000 and 2e5 < material.latent_heat < 4e5
        assert hash(material) == hash(MATERIALS[material.name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"solidus": 960.0}, "solidus is 960.0 K and liquidus 950.0 K; expected the solidus below"),
        (
            {"conductivity": ((300.0, 1.0), (300.0, 2.0))},
            "conductivity of metal has the temperatures .*expected ascending",
        ),
        ({"specific_heat": ((300.0, -1.0),)}, r"specific_heat of metal has a row that is not above 0: \[300.0, -1.0\]"),
        ({"specific_heat": (300.0, 500.0)}, r"has the shape \(2,\); expected rows"),
        ({"density": 0.0}, "density is 0.0"),
        ({"latent_heat": -1.0}, "latent_heat is -1.0; expected 0 J/kg or more"),
        ({"emissivity": 1.5}, "emissivity is 1.5; expected a share from 0 to 1"),
        ({"absorptivity": -0.1}, "absorptivity is -0.1"),
    ],
)
def test_what_is_wrong_is_said(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metal(**changes)
