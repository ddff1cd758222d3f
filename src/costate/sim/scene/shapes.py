"""Shapes to build worlds from: primitives, and solids made of them by union, intersection, difference and offset.

    cup = difference(cylinder(0.05, 0.1), cylinder(0.04, 0.1, position=(0, 0, 0.02)))
    world = cs.World(..., scenery=[cs.Static("cup", cup), cs.Static("ground", plane())])

Lengths are in metres. Primitives are shapes of the model (drawn, with an inertia); what is made of them is a signed distance.
A kind of your own is a class that derives from `costate.collision.shapes.Solid` or `Convex`, made known by `register(name, class)`;
`shape(name, sizes)` is then a shape of that kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from costate.collision.kinds import register as register
from costate.collision.kinds import solid_of
from costate.collision.mesh.files import convex_parts
from costate.collision.shapes import Difference, Intersection, Moved, Offset, Solid, Union
from costate.core.arrays import Color
from costate.core.constants import constant
from costate.model import Shape, Transform
from costate.model.transform import placed

Vector = Sequence[float]


def sphere(
    radius: float, position: Vector = (0, 0, 0), *, friction: float | None = None, color: Color | None = None
) -> Shape:
    """Make a ball."""
    return shape("sphere", [radius], position, None, friction, color)


def box(
    size: Vector,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
) -> Shape:
    """Make a box of three edge lengths, centred. rpy: roll, pitch, yaw [rad]; or give a quaternion xyzw."""
    return shape("box", size, position, rpy, friction, color, quaternion)


def cylinder(
    radius: float,
    length: float,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
) -> Shape:
    """Make a cylinder along z, centred."""
    return shape("cylinder", [radius, length], position, rpy, friction, color, quaternion)


def capsule(
    radius: float,
    length: float,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
) -> Shape:
    """Make a cylinder along z with round ends; the length is without them."""
    return shape("capsule", [radius, length], position, rpy, friction, color, quaternion)


def ellipsoid(
    semi_axes: Vector,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
) -> Shape:
    """Make an ellipsoid of three semi-axes, centred."""
    return shape("ellipsoid", semi_axes, position, rpy, friction, color, quaternion)


def mesh(
    path: str | Path,
    scale: float | Vector = 1.0,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    contact: str = "hull",
    friction: float | None = None,
    color: Color | None = None,
) -> Shape:
    """Make a shape of a mesh file (STL, OBJ, DAE, PLY, glTF).

    contact: what others touch, "hull" (its convex hull, of at most 32 corners) or "grid" (its distance sampled on a grid: any
    shape, but only convex shapes can touch it).
    """
    factors = np.broadcast_to(np.asarray(constant(scale, "scale of a mesh"), float), 3).tolist()
    found = shape("mesh", factors, position, rpy, friction, color, quaternion)
    return replace(found, mesh=str(path), uri=str(path), contact=contact)


def decomposition(
    path: str | Path,
    scale: float | Vector = 1.0,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    threshold: float = 0.05,
    parts: int = -1,
    friction: float | None = None,
    color: Color | None = None,
) -> list[Shape]:
    """Make convex parts that together are a mesh, each a mesh of its own. Needs coacd.

    threshold: concavity that is left, 0.01 (many parts) to 1; parts: at most so many, -1 for no limit.
    """
    found = convex_parts(Path(path), threshold, parts)
    return [mesh(p, scale, position, rpy, quaternion=quaternion, friction=friction, color=color) for p in found]


def heightfield(
    heights: ArrayLike,
    size: Vector,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
) -> Shape:
    """Make a smooth surface through heights [m] (nx, ny), spread evenly over a rectangle of two lengths [m] around the origin; it
    is solid below, with upright sides."""
    values = np.asarray(constant(heights, "heights of a heightfield"), float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise ValueError(f"heights have shape {values.shape}; expected (nx, ny), at least 2 x 2")
    return replace(shape("heightfield", size, position, rpy, friction, color, quaternion), heights=values)


def plane(
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
) -> Shape:
    """Make a plane: everything below z = 0."""
    return shape("plane", [], position, rpy, friction, color, quaternion)


def socket(
    bore: float,
    radius: float,
    depth: float,
    floor: float,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
    chamfer: float = 0.0,
) -> Shape:
    """Make an upright cup: a cylinder with a bore from above, `floor` thick below it, its origin in the middle of the bore's mouth.

    chamfer: width and height of a chamfer of 45 degrees at the mouth [m].

    Contact with a cylinder that goes in with its lower end (its local -z) is exact for wall, chamfer and edge of the bore; floor,
    upper face and outside meet four points of its rim: see `costate.collision.formulas.cylinder_socket`.
    """
    sizes = [bore, radius, depth, floor]
    if chamfer:
        return shape("chamfered_socket", [*sizes, chamfer], position, rpy, friction, color, quaternion)
    return shape("socket", sizes, position, rpy, friction, color, quaternion)


def union(*parts: Shape | Solid) -> Solid:
    """Make a solid of everything that is in any of the parts."""
    return _fold(Union, parts)


def intersection(*parts: Shape | Solid) -> Solid:
    """Make a solid of everything that is in all of the parts. Its distance is a lower bound away from the surface."""
    return _fold(Intersection, parts)


def difference(whole: Shape | Solid, *parts: Shape | Solid) -> Solid:
    """Make a solid of the whole without the parts. Its distance is a lower bound away from the surface."""
    return _fold(Difference, (whole, *parts))


def offset(shape: Shape | Solid, by: float) -> Solid:
    """Grow a shape by a distance: edges become round. A negative one shrinks it."""
    return Offset(_solid(shape), constant(by, "distance of an offset", _COMPOSED))


def moved(
    shape: Shape | Solid,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    *,
    quaternion: Vector | None = None,
) -> Solid:
    """Move a shape to another pose."""
    return Moved(_solid(shape), _pose(position, rpy, quaternion, _COMPOSED))


def shape(
    kind: str,
    size: Vector,
    position: Vector = (0, 0, 0),
    rpy: Vector | None = None,
    friction: float | None = None,
    color: Color | None = None,
    quaternion: Vector | None = None,
) -> Shape:
    """Return a shape of any kind, also one that was added by `register`."""
    sizes = np.asarray(constant(size, f"size of a {kind}", "size:SHAPE"), float)
    if not np.all(sizes > 0):
        raise ValueError(f"sizes of a {kind} must be positive, got {tuple(size)}")
    return Shape(kind, sizes, _pose(position, rpy, quaternion, "position:SHAPE"), friction=friction, color=color)


_COMPOSED = "the numbers of composed shapes are constants, but a body or static shape made of it may move"


def _pose(position: Vector, rpy: Vector | None, quaternion: Vector | None, instead: str) -> Transform:
    position, rpy = constant(position, "position of a shape", instead), constant(rpy, "rpy of a shape", instead)
    if np.shape(position) != (3,) or (rpy is not None and np.shape(rpy) != (3,)):
        raise ValueError(
            f"position and rpy of a shape are 3 numbers each, got {position} and {rpy}; sizes go in one list: box((x, y, z))"
        )
    return placed("a shape", None, position, rpy, quaternion, instead)


def _solid(shape: Shape | Solid) -> Solid:
    """Return a shape as a solid in the frame that its pose is given in."""
    if isinstance(shape, Solid):
        return shape
    still = np.allclose(shape.pose.rotation, np.eye(3), atol=0) and not shape.pose.translation.any()
    return solid_of(shape) if still else Moved(solid_of(shape), shape.pose)


def _fold(kind: type[Union] | type[Intersection] | type[Difference], parts: Sequence[Shape | Solid]) -> Solid:
    if not parts:
        raise ValueError(f"a {kind.__name__.lower()} needs at least one part")
    whole = _solid(parts[0])
    for part in parts[1:]:
        whole = kind(whole, _solid(part))
    return whole
