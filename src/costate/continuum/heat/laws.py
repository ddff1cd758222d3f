"""Material laws as formulas: temperature from enthalpy, and back, and conductivity.

The state of a node is the enthalpy of a kilogram, not the temperature: then heat that flows in is heat that is there, whatever
the step, and latent heat is a part of the curve like any other. Between the rows of the tables the specific heat is a straight
line, so the enthalpy is a parabola in the temperature, and its inverse has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from costate.continuum.materials import Material


@dataclass(frozen=True)
class Curve:
    """The enthalpy of a material between temperatures at which its law changes.

    With factors s of the specific heat and l of the latent heat, the enthalpy at knot k is s sensible[k] + l latent[k], and the
    slope behind it s (heat[k] + slope[k] (T - knots[k])) + l melting[k].
    """

    knots: np.ndarray
    """Temperatures [K], ascending. The first and the last pieces go on for ever."""
    heat: np.ndarray
    """Specific heat at the knots [J/(kg K)]."""
    slope: np.ndarray
    """Slope of the specific heat behind each knot [J/(kg K^2)]."""
    melting: np.ndarray
    """Latent heat per kelvin behind each knot [J/(kg K)]."""
    sensible: np.ndarray
    """Enthalpy at the knots without latent heat [J/kg], 0 at the first row of the table."""
    latent: np.ndarray
    """Latent heat at the knots [J/kg]."""

    @staticmethod
    def of(material: Material) -> Curve:
        """Return the curve of a material."""
        rows = np.array(material.specific_heat)[:, 0]
        knots = np.unique(np.concatenate([rows, [material.solidus, material.liquidus]]))
        knots = np.concatenate([[knots[0] - 1.0], knots])  # before the first row the specific heat is constant
        heat = material.specific_heat_at(knots)
        slope = np.append(np.diff(heat) / np.diff(knots), 0.0)
        share = material.liquid_share(knots)
        melting = np.append(np.diff(share) / np.diff(knots), 0.0) * material.latent_heat
        start = float(rows[0])
        without = material.enthalpy(knots, start) - material.latent_heat * (share - material.liquid_share(start))
        return Curve(knots, heat, slope, melting, without, material.latent_heat * share)

    def temperature(self, h: ca.SX, s: ca.SX, l: ca.SX) -> ca.SX:
        """Return the temperature [K] at an enthalpy [J/kg]."""
        at = s * ca.DM(self.sensible) + l * ca.DM(self.latent)
        passed = [h >= at[k] for k in range(1, len(self.knots))]
        start, knot = _at(passed, at), _at(passed, self.knots)
        c = s * _at(passed, self.heat) + l * _at(passed, self.melting)
        more = h - start
        return knot + 2 * more / (c + ca.sqrt(c * c + 2 * s * _at(passed, self.slope) * more))

    def enthalpy(self, T: ca.SX, s: ca.SX, l: ca.SX) -> ca.SX:
        """Return the enthalpy [J/kg] at a temperature [K]."""
        passed = [t <= T for t in self.knots[1:]]
        d = T - _at(passed, self.knots)
        c = s * (_at(passed, self.heat) + _at(passed, self.slope) * d / 2) + l * _at(passed, self.melting)
        return s * _at(passed, self.sensible) + l * _at(passed, self.latent) + c * d

    def slope_at(self, T: ca.SX, s: ca.SX, l: ca.SX) -> ca.SX:
        """Return the slope of the enthalpy [J/(kg K)] at a temperature [K]."""
        passed = [t <= T for t in self.knots[1:]]
        d = T - _at(passed, self.knots)
        return s * (_at(passed, self.heat) + _at(passed, self.slope) * d) + l * _at(passed, self.melting)

    @property
    def least_heat(self) -> float:
        """Smallest slope of the enthalpy [J/(kg K)]."""
        return float((self.heat + self.melting).min())


def conductivity(material: Material, T: ca.SX) -> ca.SX:
    """Return the conductivity [W/(m K)] at a temperature [K]: straight lines between the rows, the end values beyond them."""
    t, k = np.array(material.conductivity).T
    found = ca.SX(k[0])
    for low, high, rise in zip(t[:-1], t[1:], np.diff(k), strict=True):
        found += rise / (high - low) * (ca.fmin(ca.fmax(T, low), high) - low)
    return found


def _at(passed: list[ca.SX], values: np.ndarray | ca.SX) -> ca.SX:
    """Return the value of the last knot that was passed."""
    found = ca.SX(values[0])
    for k, after in enumerate(passed):
        found += after * (values[k + 1] - values[k])
    return found
