"""Small parts and materials that tests of heat share."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from costate.continuum.deposit import Process
from costate.continuum.heat.process import Surroundings
from costate.continuum.materials import Material
from costate.continuum.mesh import EVER, HexMesh
from costate.continuum.shapes import Part, Plate, draw_up, wall
from costate.continuum.toolpath import ToolPath

PLAIN = Material("plain", 8000.0, ((300, 500),), ((300, 20),), 1e4, 1e4 + 1, emissivity=0.0)
"""Material of constant properties that does not melt and does not radiate."""
BENT = Material(
    "bent", 8000.0, ((300, 450), (1000, 600), (1700, 650)), ((300, 10), (1000, 22), (1700, 30)), 1500.0, 1600.0, 250e3
)
"""Material with tables of three rows, latent heat, and radiation."""  # fmt: skip
INSULATED = Surroundings(convection=0.0)
"""Air that takes up no heat; materials that do not radiate lose none either."""


def box(x: NDArray, y: NDArray, z: NDArray, birth: NDArray | float = EVER) -> HexMesh:
    """Return a mesh of boxes between coordinates [m], elements along x first, then y, then z."""
    points = np.array([(a, b) for b in y for a in x])
    n = len(x)
    quads = np.array(
        [
            (j * n + i, j * n + i + 1, (j + 1) * n + i + 1, (j + 1) * n + i)
            for j, i in itertools.product(range(len(y) - 1), range(n - 1))
        ]
    )
    return HexMesh.sorted(*draw_up(points, quads, z), birth)


def column(z: NDArray, width: float = 1e-3) -> HexMesh:
    """Return elements on top of each other: a problem in z alone."""
    side = np.array([0.0, width])
    return box(side, side, z)


def bent(mesh: HexMesh, share: float, seed: int = 0) -> HexMesh:
    """Return a mesh with every node moved by up to a share of the smallest distance between nodes."""
    step = np.diff(np.unique(mesh.nodes[:, 2])).min()
    moved = share * step * np.random.default_rng(seed).uniform(-1, 1, mesh.nodes.shape)
    return HexMesh(mesh.nodes + moved, mesh.elements, mesh.birth)


def still(duration: float, at: tuple[float, float, float] = (0.0, 0.0, 0.0), on: bool = False) -> ToolPath:
    """Return the path of a laser that stays in one place."""
    return ToolPath(np.array([0.0, duration]), np.array([at, at]), np.array([False, on]))


def small_wall() -> Part:
    """Return a wall of two layers on a plate: 40 elements, 100 nodes, 0.56 s."""
    process = Process(speed=0.02, travel=0.1, dwell=0.05, cooling=0.1)
    return wall(0.004, 0.002, 0.002, plate=Plate(thickness=0.001, margin=0.001), process=process)
