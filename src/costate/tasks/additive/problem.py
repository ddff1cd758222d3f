"""The parts that the tasks print, and what a solution is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from costate.continuum.deposit import Process
from costate.continuum.heat.model import HeatModel
from costate.continuum.heat.process import Laser, Surroundings
from costate.continuum.materials import INCONEL_718, Material
from costate.continuum.shapes import Part, Plate, published_size, wall
from costate.core.names import unknown

Tell = Callable[[str], object]
"""Function that shows what is being done."""


@dataclass(frozen=True)
class Case:
    """A part, and how it is printed."""

    make: Callable[[], Part]
    material: Material = INCONEL_718
    dt: float | None = None
    laser: Laser = field(default_factory=lambda: Laser(radius=1.5e-3))
    surroundings: Surroundings = field(default_factory=lambda: Surroundings(base=300.0))
    power: float = 300.0
    """Largest power that is taken up [W]."""

    def model(self, **options: Any) -> HeatModel:
        """Return the heat model of the part."""
        part = self.make()
        settings: dict[str, Any] = {"dt": self.dt, "laser": self.laser, "surroundings": self.surroundings}
        return HeatModel(part.mesh, part.path, self.material, **(settings | options))


def thin_wall(length: float, height: float, element: float) -> Part:
    """Return a wall of one bead on a small plate."""
    plate = Plate(thickness=3 * element, margin=(4 * element, 3 * element))
    return wall(
        length, height, 2 * element, element, element, plate, Process(speed=0.008, travel=0.05, dwell=1.0, cooling=4.0)
    )


SCALED = Material(
    "metal of Mozaffar and Cao",
    30_000.0,
    ((300.0, 500.0), (2000.0, 500.0)),
    ((300.0, 10.0), (2000.0, 10.0)),
    1533.15,
    1609.15,
    272e3,
)
"""Numbers of the published notebook, with its density of 30 g/cm^3, which makes long steps stable."""

CASES: dict[str, Case] = {
    "small": Case(lambda: thin_wall(0.012, 0.003, 1e-3)),
    "fine": Case(lambda: thin_wall(0.012, 0.003, 5e-4), laser=Laser(radius=1e-3)),
    "medium": Case(lambda: thin_wall(0.024, 0.008, 1e-3)),
    "published": Case(published_size, SCALED, 0.02, Laser(1e-3, 3.0, "ball"), Surroundings(300.0, 50.0), 250.0),
}
"""Size -> case. "published" has the nodes, elements and steps of Mozaffar and Cao (arXiv 2107.10919)."""


def case_of(size: str) -> Case:
    """Return the case of a size."""
    if size not in CASES:
        raise ValueError(unknown("size", size, CASES))
    return CASES[size]


@dataclass
class Found:
    """The result of a task."""

    facts: dict[str, Any]
    """Numbers that matter, before and after."""
    solved: bool
    losses: list[float]
    """Loss of every iteration."""
    curves: dict[str, tuple[np.ndarray, dict[str, np.ndarray], str, str]] = field(default_factory=dict)
    """Plots: title -> (x, name -> y, label of x, label of y)."""
    model: HeatModel | None = None
    T: Tensor | None = None
    """Temperatures (frames, nodes) [K] of what was found."""
    times: Tensor | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Table of what was found."""
