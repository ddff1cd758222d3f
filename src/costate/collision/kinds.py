"""Kinds of shapes: what the shapes of models (a kind, sizes, perhaps a file) mean, one row for each kind.

Most kinds are told by their sizes alone, and their row is a class of solids. Meshes and height fields also have a file or samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from casadi import SX

from costate.collision.mesh.fields import Heights
from costate.collision.mesh.files import grid_of_file, hull_of_file, load_triangles, mesh_from_file
from costate.collision.mesh.hull import mass_properties
from costate.collision.mesh.triangles import heights_mesh
from costate.collision.shapes import (
    Box,
    Capsule,
    ChamferedSocket,
    Cylinder,
    Ellipsoid,
    Part,
    Plane,
    Socket,
    Solid,
    Sphere,
)
from costate.collision.shapes.solid import MassProperties
from costate.model.shape import SHAPE_SIZES, Shape


@dataclass(frozen=True)
class Kind:
    """A kind of shape."""

    size_count: int
    solid: Callable[[Shape], Solid]
    """Solid that others touch, in the shape's frame."""
    mass_properties: Callable[[Shape, float], MassProperties]
    """Centre of mass and inertia of a shape of a mass [kg]."""
    parts: Callable[[Shape], list[Part]]
    """Meshes that are drawn."""
    is_endless: bool = False
    """True for planes: two shapes of such kinds never touch each other."""


def plain(solid: type[Solid]) -> Kind:
    """Return the kind of shapes whose sizes say everything."""

    def make(shape: Shape) -> Solid:
        return solid.of_sizes(SX(np.asarray(shape.size, float)))

    return Kind(
        solid.size_count,
        make,
        lambda shape, mass: make(shape).mass_properties(mass),
        lambda shape: make(shape).parts(),
        solid.facing is not None,
    )


def _mesh(shape: Shape) -> Solid:
    scale = (float(shape.size[0]), float(shape.size[1]), float(shape.size[2]))
    if shape.contact not in MESHES:
        raise ValueError(f"contact={shape.contact!r} of mesh '{shape.name}' is unknown; use {', '.join(MESHES)}")
    return MESHES[shape.contact](shape.mesh_file(), scale)


def _mesh_properties(shape: Shape, mass: float) -> MassProperties:
    return mass_properties(load_triangles(shape.mesh_file())[0] * shape.size, mass)


def _mesh_parts(shape: Shape) -> list[Part]:
    path = shape.mesh_file()
    return [Part(f"file {shape.mesh}", lambda: mesh_from_file(path), shape.size)]


def _heights(shape: Shape) -> Heights:
    if shape.heights is None or min(np.shape(shape.heights)) < 2:
        raise ValueError(f"heightfield '{shape.name}' needs heights, at least 2 x 2")
    return Heights(SX(shape.size), np.asarray(shape.heights, float))


def _heights_parts(shape: Shape) -> list[Part]:
    field = _heights(shape)
    x, y = map(float, shape.size)
    return [Part(f"heights {field.key[:16]} {x:g} {y:g}", lambda: heights_mesh(field.heights, x, y))]


MESHES = {"hull": hull_of_file, "grid": grid_of_file}
"""Solids of a mesh, by the name of what others touch."""

KINDS: dict[str, Kind] = {
    "sphere": plain(Sphere),
    "box": plain(Box),
    "cylinder": plain(Cylinder),
    "capsule": plain(Capsule),
    "ellipsoid": plain(Ellipsoid),
    "plane": plain(Plane),
    "socket": plain(Socket),
    "chamfered_socket": plain(ChamferedSocket),
    "mesh": Kind(3, _mesh, _mesh_properties, _mesh_parts),
    "heightfield": Kind(2, _heights, lambda shape, mass: _heights(shape).mass_properties(mass), _heights_parts),
}
"""Name of a kind -> what it means."""

BUILT_IN = frozenset(KINDS)


def register(name: str, solid: type[Solid]) -> None:
    """Add a kind of shape whose sizes say everything; names of the package's own kinds are refused."""
    if name in BUILT_IN:
        raise ValueError(f"'{name}' is a kind of shape of the package; choose another name")
    KINDS[name], SHAPE_SIZES[name] = plain(solid), solid.size_count


def solid_of(shape: Shape | Solid) -> Solid:
    """Return the solid of a model's shape, in the shape's frame."""
    return shape if isinstance(shape, Solid) else KINDS[shape.kind].solid(shape)
