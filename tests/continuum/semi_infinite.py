"""A half-space x >= 0 of one temperature whose surface is heated from time 0 on.

H. S. Carslaw, J. C. Jaeger, Conduction of Heat in Solids, 2nd ed., Oxford 1959: sections 2.4 (temperature), 2.7 (convection),
2.9 (flux).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfc, erfcx


@dataclass(frozen=True)
class SemiInfinite:
    """The material, and the temperature at the beginning."""

    conductivity: float = 20.0
    """Conductivity [W/(m K)]."""
    density: float = 8000.0
    """Density [kg/m^3]."""
    heat_capacity: float = 500.0
    """Specific heat [J/(kg K)]."""
    start: float = 300.0
    """Temperature at the beginning [K]."""

    @property
    def diffusivity(self) -> float:
        """Diffusivity [m^2/s]."""
        return self.conductivity / (self.density * self.heat_capacity)

    def under_temperature(self, x: np.ndarray, t: float, wall: float) -> np.ndarray:
        """Return the temperature [K] at depths x, the surface being held at `wall`."""
        return self.start + (wall - self.start) * erfc(self._scaled(x, t))

    def under_flux(self, x: np.ndarray, t: float, flux: float) -> np.ndarray:
        """Return the temperature [K] at depths x, a constant flux [W/m^2] entering the surface."""
        s = self._scaled(x, t)
        length = 2 * np.sqrt(self.diffusivity * t)
        return self.start + flux * length / self.conductivity * (np.exp(-s * s) / np.sqrt(np.pi) - s * erfc(s))

    def under_convection(self, x: np.ndarray, t: float, coefficient: float, ambient: float) -> np.ndarray:
        """Return the temperature [K] at depths x, the surface taking coefficient [W/(m^2 K)] x (ambient - T)."""
        s = self._scaled(x, t)
        b = coefficient * np.sqrt(self.diffusivity * t) / self.conductivity
        # exp(2 s b + b^2) erfc(s + b), without its overflow
        return self.start + (ambient - self.start) * (erfc(s) - np.exp(-s * s) * erfcx(s + b))

    def _scaled(self, x: np.ndarray, t: float) -> np.ndarray:
        return np.asarray(x) / (2 * np.sqrt(self.diffusivity * t))
