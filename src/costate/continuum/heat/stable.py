"""The longest explicit step that is stable."""

from __future__ import annotations

import numpy as np

from costate.continuum.heat.bodies import corner_volumes, stiffness
from costate.continuum.heat.laws import Curve
from costate.continuum.materials import Material
from costate.continuum.mesh import HexMesh


def stable_step(mesh: HexMesh, material: Material) -> float:
    """Return the longest stable step [s]: 2 over the largest rate at which an element alone would even out its temperatures.

    No rate of the whole mesh is greater than the greatest of its elements. Conductivity is the greatest of the table, specific heat
    the least.
    """
    K = stiffness(mesh.nodes, mesh.elements)
    scale = 1 / np.sqrt(corner_volumes(mesh.nodes, mesh.elements))
    rates = np.linalg.eigvalsh(scale[:, :, None] * K * scale[:, None, :])[:, -1]
    greatest = max(k for _, k in material.conductivity)
    return float(2 * material.density * Curve.of(material).least_heat / (greatest * rates.max()))
