"""The Stefan problem: a half-space melts or freezes from its wall. Neumann's solution.

H. S. Carslaw, J. C. Jaeger, Conduction of Heat in Solids, 2nd ed., Oxford 1959, section 11.2; V. Alexiades, A. D. Solomon,
Mathematical Modeling of Melting and Freezing Processes, Hemisphere 1993, sections 2.1 and 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import erf, erfc, erfcx


@dataclass(frozen=True)
class Stefan:
    """A half-space x >= 0 of one temperature, whose wall x = 0 is held at another one, beyond the melting point.

    Without `start` it begins at the melting point: the one-phase problem, in which the far phase does not conduct. The phases have
    the same density. The wall may be hotter (melting) or colder (freezing) than the melting point.
    """

    wall: float
    """Temperature of the wall [K]."""
    melting: float
    """Melting point [K]."""
    start: float | None = None
    """Temperature at the beginning [K]."""
    density: float = 8000.0
    """Density of both phases [kg/m^3]."""
    latent: float = 270e3
    """Heat of fusion [J/kg]."""
    conductivity: tuple[float, float] = (30.0, 30.0)
    """Conductivities [W/(m K)] of the phase at the wall and of the far one."""
    heat_capacity: tuple[float, float] = (700.0, 700.0)
    """Specific heats [J/(kg K)] of the phase at the wall and of the far one."""

    @property
    def far(self) -> float:
        """Temperature far from the wall [K]."""
        return self.melting if self.start is None else self.start

    @property
    def diffusivity(self) -> tuple[float, float]:
        """Diffusivities of the two phases [m^2/s]."""
        k, c = self.conductivity, self.heat_capacity
        return k[0] / (self.density * c[0]), k[1] / (self.density * c[1])

    @cached_property
    def growth(self) -> float:
        """Number lambda of the front's position, 2 lambda sqrt(alpha t), alpha being the diffusivity at the wall."""
        if (self.wall - self.melting) * (self.melting - self.far) < 0 or self.wall == self.melting:
            raise ValueError(f"the melting point {self.melting} must lie between wall {self.wall} and start {self.far}")
        sign = np.sign(self.wall - self.melting)
        a1, a2 = self.diffusivity
        nu = np.sqrt(a1 / a2)

        def residual(x: float) -> float:
            """Subtract the heat of fusion from what arrives at the front; times exp(x^2)."""
            near = self.conductivity[0] * (self.wall - self.melting) / (erf(x) * np.sqrt(a1))
            # exp(-nu^2 x^2) / erfc(nu x) = 1 / erfcx(nu x)
            beyond = self.conductivity[1] * (self.melting - self.far) / (erfcx(nu * x) * np.sqrt(a2))
            fused = self.density * self.latent * x * np.sqrt(np.pi * a1)
            return sign * (near - beyond * np.exp(x * x)) - fused * np.exp(x * x)

        return root_scalar(residual, bracket=(1e-9, 5.0), xtol=1e-15, rtol=1e-14).root

    def front(self, t: np.ndarray | float) -> np.ndarray:
        """Return the position of the front [m]."""
        return 2 * self.growth * np.sqrt(self.diffusivity[0] * np.asarray(t))

    def temperature(self, x: np.ndarray, t: float) -> np.ndarray:
        """Return the temperature [K] at distances x from the wall."""
        a1, a2 = self.diffusivity
        lam, nu = self.growth, np.sqrt(a1 / a2)
        near = self.wall + (self.melting - self.wall) * erf(x / (2 * np.sqrt(a1 * t))) / erf(lam)
        beyond = self.far + (self.melting - self.far) * erfc(x / (2 * np.sqrt(a2 * t))) / erfc(lam * nu)
        return np.where(x < self.front(t), near, beyond)

    def heat(self, t: float) -> float:
        """Return the heat that has passed the wall so far [J/m^2], negative if it left."""
        a1 = self.diffusivity[0]
        return (
            2 * self.conductivity[0] * (self.wall - self.melting) / erf(self.growth) * float(np.sqrt(t / (np.pi * a1)))
        )
