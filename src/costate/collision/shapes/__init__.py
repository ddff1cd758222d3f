"""Solids: what a shape is made of, one file for each kind."""

from costate.collision.shapes.box import Box
from costate.collision.shapes.capsule import Capsule
from costate.collision.shapes.chamfered_socket import ChamferedSocket
from costate.collision.shapes.compose import Difference, Intersection, Moved, Offset, Union
from costate.collision.shapes.convex import Convex
from costate.collision.shapes.cylinder import Cylinder
from costate.collision.shapes.ellipsoid import Ellipsoid
from costate.collision.shapes.field import Field
from costate.collision.shapes.plane import Plane
from costate.collision.shapes.socket import Socket
from costate.collision.shapes.solid import FAR, TINY, Number, Part, Solid, length, resized, size_symbols, sizes
from costate.collision.shapes.sphere import Sphere

__all__ = [
    "FAR",
    "TINY",
    "Box",
    "Capsule",
    "ChamferedSocket",
    "Convex",
    "Cylinder",
    "Difference",
    "Ellipsoid",
    "Field",
    "Intersection",
    "Moved",
    "Number",
    "Offset",
    "Part",
    "Plane",
    "Socket",
    "Solid",
    "Sphere",
    "Union",
    "length",
    "resized",
    "size_symbols",
    "sizes",
]
