"""Soft bodies: particles of one material."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from costate.continuum.checks import positive, rows_of_numbers
from costate.continuum.mpm.laws import LAWS, Law, Range


@dataclass(frozen=True, eq=False)
class SoftBody:
    """Particles of one material, in 2D or 3D."""

    points: np.ndarray
    """Positions of the particles (n, dim) [m]."""
    spacing: float
    """Distance of neighbours [m]: a particle has the volume spacing^dim; in 2D per metre of depth."""
    material: str | Law = "neo_hookean"
    """Name of a material (see `LAWS`), or a law of your own."""
    parameters: dict[str, float] = field(default_factory=dict)
    """Numbers of the material that differ from the usual ones, and `density` [kg/m^3]."""
    muscles: ArrayLike = None  # type: ignore[assignment]
    """Number of the muscle that each particle belongs to (n), -1 for none; None: none at all."""
    varying: Sequence[str] = ()
    """Parameters that may differ from particle to particle."""
    name: str = "body"

    def __post_init__(self) -> None:
        points = np.asarray(self.points, float)
        if points.ndim != 2 or points.shape[1] not in (2, 3) or not len(points):
            raise ValueError(f"points of '{self.name}' have the shape {points.shape}; expected (n, 2) or (n, 3)")
        rows_of_numbers(f"points of '{self.name}'", points, points.shape[1], "positions [m]")
        positive(spacing=self.spacing)
        object.__setattr__(self, "points", points)
        known = {"density": 0.0, **self.law.parameters}
        unknown = [n for n in (*self.parameters, *self.varying) if n not in known]
        if unknown:
            raise ValueError(f"'{self.name}' has no parameter '{unknown[0]}'; there are {', '.join(known)}")
        for parameter, value in self.values().items():
            self.check_value(parameter, value, value)
        muscles = np.full(len(points), -1) if self.muscles is None else np.asarray(self.muscles, int)
        if muscles.shape != (len(points),) or muscles.min() < -1:
            raise ValueError(
                f"muscles of '{self.name}' have the shape {muscles.shape}; expected ({len(points)},) from -1"
            )
        object.__setattr__(self, "muscles", muscles)

    @property
    def law(self) -> Law:
        """Law of the material."""
        if isinstance(self.material, Law):
            return self.material
        if self.material not in LAWS:
            raise ValueError(f"no material '{self.material}'; there are {', '.join(LAWS)}, or give a Law")
        return LAWS[self.material]

    def values(self) -> dict[str, float]:
        """Return all parameters with their values."""
        usual = {"density": 1000.0, **self.law.parameters}
        return usual | {k: float(v) for k, v in self.parameters.items()}

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.points.shape[1]

    @property
    def count(self) -> int:
        """Number of particles."""
        return len(self.points)

    @property
    def volume(self) -> float:
        """Volume of a particle [m^dim]."""
        return self.spacing**self.dim

    @property
    def rest(self) -> list[float]:
        """Numbers that the law keeps, of an undeformed particle."""
        return self.law.rest(self.dim)

    def check_value(self, parameter: str, least: float, greatest: float) -> None:
        """Raise if values of a parameter, from the least to the greatest, are none that the material can have."""
        allowed = self.law.ranges.get(parameter, Range(-np.inf))
        if fault := allowed.fault(least, greatest):
            raise ValueError(f"{parameter} of '{self.name}' {fault}")
