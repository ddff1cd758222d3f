"""The fluid around a link, and the box that stands for the link in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from costate.core.arrays import Array
from costate.core.constants import Constants
from costate.model.transform import Transform, zeros


@dataclass(frozen=True, eq=False)
class Drag(Constants):
    """A fluid that resists the motion of a link as it would resist that of a box (MJCF option density, viscosity, wind)."""

    sides: Array
    """Edge lengths of the box [m], shape (3,)."""
    pose: Transform = field(default_factory=Transform)
    """Pose of the box in the link frame; its centre is where the forces act."""
    density: float = 0.0
    """Density of the fluid [kg/m^3]."""
    viscosity: float = 0.0
    """Viscosity of the fluid [Pa s]."""
    wind: Array = field(default_factory=zeros)
    """Velocity of the fluid in world axes [m/s], shape (3,)."""


def equivalent_box(mass: float, inertia: Array) -> Array:
    """Return the edge lengths (3,) of an even box with a mass [kg] and moments of inertia about its axes [kg m^2], (3,)."""
    squares = 6 / mass * (inertia.sum() - 2 * inertia)
    return np.sqrt(np.maximum(squares, 0.0))
