"""Heat sources that move along x on the surface z = 0 of a half-space z <= 0, seen from the source.

Points are given relative to the source: x ahead of it, y beside it, z above it. Rosenthal's solution is the quasi-steady one of
a point; Eagar and Tsai's that of a Gaussian, after any time.

D. Rosenthal, The theory of moving sources of heat and its application to metal treatments, Trans. ASME 68 (1946) 849-866;
T. W. Eagar, N.-S. Tsai, Temperature fields produced by traveling distributed heat sources, Welding Journal 62 (1983) 346s-355s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad_vec


@dataclass(frozen=True)
class MovingSource:
    """A source of constant power and speed, and the material below it. No heat leaves the surface."""

    power: float = 200.0
    """Absorbed power [W]."""
    speed: float = 0.01
    """Speed along x [m/s]."""
    conductivity: float = 20.0
    """Conductivity [W/(m K)]."""
    density: float = 8000.0
    """Density [kg/m^3]."""
    heat_capacity: float = 500.0
    """Specific heat [J/(kg K)]."""
    start: float = 300.0
    """Temperature at the beginning and far away [K]."""

    @property
    def diffusivity(self) -> float:
        """Diffusivity [m^2/s]."""
        return self.conductivity / (self.density * self.heat_capacity)

    def rosenthal(self, points: np.ndarray) -> np.ndarray:
        """Return the quasi-steady temperature [K] at points (..., 3) around a point source."""
        r = np.linalg.norm(points, axis=-1)
        decay = np.exp(-self.speed * (points[..., 0] + r) / (2 * self.diffusivity))
        return self.start + self.power / (2 * np.pi * self.conductivity * r) * decay

    def gaussian(self, points: np.ndarray, deviation: float, t: float = np.inf) -> np.ndarray:
        """Return the temperature [K] at points (..., 3) around a Gaussian source that was switched on a time t ago.

        deviation: sigma of the flux P / (2 pi sigma^2) exp(-d^2 / (2 sigma^2)) [m]; a beam 3 P / (pi r^2) exp(-3 d^2 / r^2)
        has sigma = r / sqrt(6). Without t: after an infinite time, at the quasi-steady state.
        """
        x, y, z = np.moveaxis(np.asarray(points, float), -1, 0)
        a = self.diffusivity

        def since(u: float) -> np.ndarray:
            """Return what arrives of the heat given u^2 seconds ago: the root takes the singularity away."""
            s = u * u
            width = deviation**2 + 2 * a * s
            deep = np.exp(-z * z / (4 * a * s)) if s > 0 else np.where(z == 0, 1.0, 0.0)
            return (
                2
                / np.sqrt(np.pi * a)
                * deep
                * np.exp(-((x + self.speed * s) ** 2 + y * y) / (2 * width))
                / (2 * np.pi * width)
            )

        found = quad_vec(since, 0, np.sqrt(t), epsabs=0, epsrel=1e-11, limit=2000, norm="max")[0]
        return self.start + self.power / (self.density * self.heat_capacity) * found
