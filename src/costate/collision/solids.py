"""The shapes of models as solids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from casadi import SX

from costate.collision.mesh.fields import Heights
from costate.collision.mesh.files import grid_of_file, hull_of_file
from costate.collision.shapes import SOLIDS, Solid, plain_solid
from costate.model.model import Shape


def _mesh(shape: Shape) -> Solid:
    scale = (float(shape.size[0]), float(shape.size[1]), float(shape.size[2]))
    if shape.contact not in MESHES:
        raise ValueError(f"contact={shape.contact!r} of mesh '{shape.name}' is unknown; use {', '.join(MESHES)}")
    return MESHES[shape.contact](shape.mesh_file(), scale)


def _heights(shape: Shape) -> Solid:
    if shape.heights is None or min(np.shape(shape.heights)) < 2:
        raise ValueError(f"heightfield '{shape.name}' needs heights, at least 2 x 2")
    return Heights(SX(shape.size), np.asarray(shape.heights, float))


MESHES = {"hull": hull_of_file, "grid": grid_of_file}
"""What others touch of a mesh."""

MAKERS: dict[str, Callable[[Shape], Solid]] = {
    **dict.fromkeys(SOLIDS, plain_solid),
    "mesh": _mesh,
    "heightfield": _heights,
}
"""Shape kind -> its solid."""


def solid_of(shape: Shape | Solid) -> Solid:
    """The solid of a model's shape, in the shape's frame."""
    return shape if isinstance(shape, Solid) else MAKERS[shape.kind](shape)
