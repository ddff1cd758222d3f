"""A slab |x| <= L of one temperature cools by convection on both sides: the series of its eigenfunctions.

H. S. Carslaw, J. C. Jaeger, Conduction of Heat in Solids, 2nd ed., Oxford 1959, section 3.11; F. P. Incropera et al.,
Fundamentals of Heat and Mass Transfer, section 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import root_scalar

TERMS = 60
"""Number of terms: enough for rounding from a Fourier number of 1e-3 on (exp(-(59 pi)^2 / 1000) = 1e-15)."""


@dataclass(frozen=True)
class Slab:
    """A slab, its surroundings, and its temperature at the beginning."""

    half: float = 0.01
    """Half of its thickness L [m]."""
    coefficient: float = 500.0
    """Heat transfer coefficient [W/(m^2 K)]."""
    ambient: float = 300.0
    """Temperature of the surroundings [K]."""
    start: float = 1000.0
    """Temperature at the beginning [K]."""
    conductivity: float = 20.0
    """Conductivity [W/(m K)]."""
    density: float = 8000.0
    """Density [kg/m^3]."""
    heat_capacity: float = 500.0
    """Specific heat [J/(kg K)]."""

    @property
    def biot(self) -> float:
        """Biot number h L / k."""
        return self.coefficient * self.half / self.conductivity

    def fourier(self, t: float) -> float:
        """Return the Fourier number of a time [s]."""
        return self.conductivity / (self.density * self.heat_capacity) * t / self.half**2

    @cached_property
    def roots(self) -> np.ndarray:
        """Roots of z tan z = Bi, one in each [n pi, (n + 1/2) pi]."""

        def residual(z: float) -> float:
            return z * np.sin(z) - self.biot * np.cos(z)

        brackets = [(n * np.pi, (n + 0.5) * np.pi) for n in range(TERMS)]
        return np.array([root_scalar(residual, bracket=b, xtol=1e-15, rtol=1e-14).root for b in brackets])

    def temperature(self, x: np.ndarray, t: float) -> np.ndarray:
        """Return the temperature [K] at distances x from the middle; t must be at least a Fourier number of 1e-3."""
        z = self.roots
        terms = self._weights(t) * np.cos(z * np.asarray(x)[..., None] / self.half)
        return self.ambient + (self.start - self.ambient) * terms.sum(-1)

    def mean(self, t: float) -> float:
        """Return the mean temperature [K]."""
        z = self.roots
        return self.ambient + (self.start - self.ambient) * float((self._weights(t) * np.sin(z) / z).sum())

    def _weights(self, t: float) -> np.ndarray:
        if not self.fourier(t) >= 1e-3:
            raise ValueError(f"the series is cut: t = {t} s is a Fourier number of {self.fourier(t):.2g}, below 1e-3")
        z = self.roots
        return 4 * np.sin(z) / (2 * z + np.sin(2 * z)) * np.exp(-z * z * self.fourier(t))
