"""The laser, and what surrounds a part."""

from __future__ import annotations

from dataclasses import dataclass

from costate.continuum.checks import positive


@dataclass(frozen=True)
class Laser:
    """A Gaussian spot that moves along a tool path."""

    radius: float = 1e-3
    """Radius of the spot [m]."""
    factor: float = 2.0
    """Exponent of the profile exp(-factor d^2 / radius^2); 2 is the usual radius at 1/e^2, 3 that of Mozaffar and Cao."""
    shape: str = "beam"
    """"beam": from above, every face that looks up takes its share, so that all power arrives. "ball": every exposed face by its
    distance from the spot in space, as in published codes; more than the power may arrive."""

    def __post_init__(self) -> None:
        positive(radius=self.radius, factor=self.factor)
        if self.shape not in ("beam", "ball"):
            raise ValueError(f"shape of the laser is {self.shape!r}; expected 'beam' or 'ball'")


@dataclass(frozen=True)
class Surroundings:
    """The air and the base plate, to which a part gives heat."""

    ambient: float = 300.0
    """Temperature [K]."""
    convection: float = 50.0
    """Heat transfer [W/(m^2 K)]."""
    base: float | None = None
    """Temperature at which the nodes of the lowest plane are held [K]; None: the base is a face like any other."""

    def __post_init__(self) -> None:
        positive(ambient=self.ambient)
        if self.convection < 0:
            raise ValueError(f"convection is {self.convection} W/(m^2 K); expected 0 or more")
        if self.base is not None:
            positive(base=self.base)
