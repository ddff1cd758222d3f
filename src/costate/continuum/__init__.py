"""Continua: parts that grow and the heat in them, smoke and liquids on grids, soft bodies, cloth, and robots among fields."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from costate.continuum.deposit import Process, birth_times, born_along
from costate.continuum.faces import Faces
from costate.continuum.files.gcode import read_gcode, write_gcode
from costate.continuum.files.lsdyna import read_lsdyna, write_lsdyna
from costate.continuum.files.paths import read_toolpath, write_toolpath
from costate.continuum.files.vtk import VtkSeries, write_vtk
from costate.continuum.fluid.grid import Grid, border
from costate.continuum.materials import INCONEL_718, MATERIALS, TI_6AL_4V, Material
from costate.continuum.mesh import EVER, HexMesh
from costate.continuum.shapes import Part, Plate, block, cylinder, published_size, wall
from costate.continuum.toolpath import ToolPath

if TYPE_CHECKING:
    from costate.continuum.cloth.body import Cloth, Rope, sheet, straight_rope
    from costate.continuum.cloth.contact import Collider
    from costate.continuum.cloth.model import ClothModel
    from costate.continuum.cloth.robots import ClothWorld, Grip
    from costate.continuum.cloth.state import ClothHistory, ClothState
    from costate.continuum.cloth.step import Solver
    from costate.continuum.coupling import WorldLinks
    from costate.continuum.fluid.model import FluidHistory, FluidModel
    from costate.continuum.heat.melt import MeltDepth
    from costate.continuum.heat.model import HeatModel, History
    from costate.continuum.heat.process import Laser, Surroundings
    from costate.continuum.liquid.model import LiquidHistory, LiquidModel
    from costate.continuum.mpm.body import SoftBody
    from costate.continuum.mpm.grid import MpmGrid
    from costate.continuum.mpm.model import MpmModel
    from costate.continuum.mpm.state import MpmHistory, MpmState
    from costate.continuum.mpm.walls import Obstacle

__all__ = [
    "EVER",
    "INCONEL_718",
    "MATERIALS",
    "TI_6AL_4V",
    "Cloth",
    "ClothHistory",
    "ClothModel",
    "ClothState",
    "ClothWorld",
    "Collider",
    "Faces",
    "FluidHistory",
    "FluidModel",
    "Grid",
    "Grip",
    "HeatModel",
    "HexMesh",
    "History",
    "Laser",
    "LiquidHistory",
    "LiquidModel",
    "Material",
    "MeltDepth",
    "MpmGrid",
    "MpmHistory",
    "MpmModel",
    "MpmState",
    "Obstacle",
    "Part",
    "Plate",
    "Process",
    "Rope",
    "SoftBody",
    "Solver",
    "Surroundings",
    "ToolPath",
    "VtkSeries",
    "WorldLinks",
    "birth_times",
    "block",
    "border",
    "born_along",
    "cylinder",
    "published_size",
    "read_gcode",
    "read_lsdyna",
    "read_toolpath",
    "sheet",
    "straight_rope",
    "wall",
    "write_gcode",
    "write_lsdyna",
    "write_toolpath",
    "write_vtk",
]

# Geometry needs NumPy alone; what needs the compiler and torch is loaded on first use.
_LAZY = {
    "Cloth": "costate.continuum.cloth.body",
    "ClothHistory": "costate.continuum.cloth.state",
    "ClothModel": "costate.continuum.cloth.model",
    "ClothState": "costate.continuum.cloth.state",
    "ClothWorld": "costate.continuum.cloth.robots",
    "Collider": "costate.continuum.cloth.contact",
    "FluidHistory": "costate.continuum.fluid.model",
    "FluidModel": "costate.continuum.fluid.model",
    "Grip": "costate.continuum.cloth.robots",
    "HeatModel": "costate.continuum.heat.model",
    "History": "costate.continuum.heat.model",
    "Laser": "costate.continuum.heat.process",
    "LiquidHistory": "costate.continuum.liquid.model",
    "LiquidModel": "costate.continuum.liquid.model",
    "MeltDepth": "costate.continuum.heat.melt",
    "Surroundings": "costate.continuum.heat.process",
    "MpmGrid": "costate.continuum.mpm.grid",
    "MpmHistory": "costate.continuum.mpm.state",
    "MpmModel": "costate.continuum.mpm.model",
    "MpmState": "costate.continuum.mpm.state",
    "Obstacle": "costate.continuum.mpm.walls",
    "Rope": "costate.continuum.cloth.body",
    "SoftBody": "costate.continuum.mpm.body",
    "Solver": "costate.continuum.cloth.step",
    "sheet": "costate.continuum.cloth.body",
    "straight_rope": "costate.continuum.cloth.body",
    "WorldLinks": "costate.continuum.coupling",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
