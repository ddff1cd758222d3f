"""Solids: signed distances, and everything else that the rest of the package asks a shape.

A distance is negative inside, exact outside for all but intersections and differences (where it is a lower bound), and its
gradient is the outward normal. Sizes are numbers or symbols. Derivatives are finite everywhere: square roots never see an exact
zero.

A new kind of solid is one class (see sphere.py for a short one) and one row of KINDS (kinds.py), or one call of
`costate.shapes.register` from outside the package. Only `distance` must be there. What else it says decides what it can do: points
let it touch others, an interval lets rays see it, mass properties give bodies an inertia, parts let it be drawn. Solids that derive
from Convex (convex.py) touch all other convex ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.collision.mesh.triangles import Mesh
from costate.collision.shapes.rays import FAR, Interval, first_hit
from costate.core.fork import tracing
from costate.model.transform import Transform

TINY = 1e-24
"""Square that is added under square roots [m^2]: less than rounding for lengths above a tenth of a millimetre, and large enough
that second derivatives at zero stay finite."""

Number = float | SX

Points = list[tuple[SX, Number]]
"""Points (3,) and the radii of balls around them [m]."""

S = TypeVar("S", bound="Solid")

MassProperties = tuple[NDArray[np.float64] | None, NDArray[np.float64]]
"""Centre of mass [m] (3,) and inertia about it [kg m^2] (3, 3), in the frame of the shape. The centre is None where it is the
shape's origin."""


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of a solid's surface, for pictures."""

    name: str
    """Name of its mesh: parts with the same name share one."""
    mesh: Callable[[], Mesh]
    scale: float | Sequence[float] | NDArray[np.float64] = 1.0
    """Factors along the axes of the mesh, one or (3,)."""
    pose: Transform = field(default_factory=Transform)
    """Pose of the mesh in the frame of the shape."""


class Solid(ABC):
    """A shape in its own frame. Its lengths are the fields of a dataclass, each a number or a column of numbers."""

    size_count: ClassVar[int] = 0
    """Number of sizes of a shape of this kind."""
    is_ball: ClassVar[bool] = False
    """True if its one point with its radius is all of it."""
    has_exact_distance: ClassVar[bool] = False
    """True if its distance is exact inside and outside, so that balls touch it by a formula."""
    facing: ClassVar[SX | None] = None
    """Outward normal (3,), for solids whose normal is the same everywhere (a plane)."""

    @classmethod
    def of_sizes(cls, sizes: SX) -> Self:
        """Return the solid of a shape with these sizes, (size_count,)."""
        return cls(*(sizes[k] for k in range(cls.size_count)))

    @abstractmethod
    def distance(self, p: SX) -> SX:
        """Return the signed distance [m] of a point (3,) in the shape's frame."""

    def normal(self, p: SX) -> SX:
        """Return the outward unit normal (3,) at a point."""
        x = SX.sym("x", 3)
        return ca.substitute(ca.gradient(self.distance(x), x), x, p)

    def points(self) -> Points:
        """Return points that stand for the surface when it touches another shape; none for hollow or endless solids."""
        return []

    def points_toward(self, d: SX) -> Points:
        """Return points by which it touches something flat that lies in the direction d (3,)."""
        return self.points()

    def centre(self) -> SX:
        """Return a point (3,) well inside."""
        return SX.zeros(3)

    def inner(self) -> SX:
        """Return the radius of a ball around `centre` that is all inside; 0 will do where `points_toward` are the same for all
        directions."""
        return SX(0)

    def bounding_sphere(self) -> tuple[SX, SX]:
        """Return middle (3,) and radius of a sphere around it; FAR where there is none."""
        return SX.zeros(3), SX(FAR)

    def bounding_box(self) -> tuple[SX, SX]:
        """Return middle (3,) and half the edges (3,) of a box around it, along its axes; FAR where there is none."""
        return SX.zeros(3), SX.ones(3) * FAR

    def interval(self, p: SX, d: SX) -> Interval:
        """Return the distances at which a ray from p along the unit vector d enters and leaves a convex solid."""
        raise TypeError(f"rays do not see a {type(self).__name__}: it has no interval()")

    def ray_distance(self, p: SX, d: SX) -> SX:
        """Return the distance [m] from p along the unit vector d to the surface; FAR where nothing is hit."""
        return first_hit(*self.interval(p, d))

    def mass_properties(self, mass: float) -> MassProperties:
        """Return centre of mass and inertia of an even solid of that mass [kg]."""
        raise ValueError(f"the inertia of a {type(self).__name__} must be given: Body(..., inertia=...)")

    def parts(self) -> list[Part]:
        """Return what is drawn of it."""
        raise ValueError(f"a {type(self).__name__} cannot be drawn: it has no parts()")


def length(v: SX) -> SX:
    """Return the length of a vector, with derivatives that are finite at zero."""
    return ca.sqrt(ca.dot(v, v) + TINY)


def from_faces(out: SX) -> SX:
    """Return the signed distance of a solid whose faces are at right angles, from the distances to them (n,), negative inside. On
    a face the normal is the face's."""
    nearest = out[0]
    for k in range(1, out.numel()):
        nearest = ca.fmax(nearest, out[k])
    outside = nearest > 0
    # Where the root is not wanted its argument is one, so that no derivative is formed at zero.
    return ca.if_else(outside, length(ca.if_else(outside, ca.fmax(out, 0), 1)), nearest)


# --- sizes ------------------------------------------------------------------------------------------------------------


@tracing
def sizes(solid: Solid) -> list[float]:
    """Return all lengths that a solid is made of, in the order of its fields, part after part [m]."""
    return [float(x) for x in np.array(ca.DM(size_symbols(solid))).ravel()]


def size_symbols(solid: Solid) -> SX:
    """Return the same lengths, as numbers or symbols, (n,)."""
    parts = [SX(0, 1)]
    for f in fields(solid):  # type: ignore[arg-type]
        value = getattr(solid, f.name)
        if isinstance(value, Solid):
            parts.append(size_symbols(value))
        elif _is_size(f, value):
            parts.append(ca.vec(SX(value)))
    return ca.vertcat(*parts)


def resized(solid: S, values: SX) -> S:
    """Return the same solid with other lengths, (n,) as `sizes` lists them."""
    changed: dict[str, Any] = {}
    at = 0
    for f in fields(solid):  # type: ignore[arg-type]
        value = getattr(solid, f.name)
        if not isinstance(value, Solid) and not _is_size(f, value):
            continue
        n = len(sizes(value)) if isinstance(value, Solid) else SX(value).numel()
        part = values[at : at + n]
        changed[f.name] = resized(value, part) if isinstance(value, Solid) else part
        at += n
    return replace(solid, **changed)  # type: ignore[type-var]


def _is_size(f: Any, value: Any) -> bool:
    """Return whether a field of a solid is lengths, not a pose nor samples."""
    return not isinstance(value, Transform | np.ndarray) and f.name != "spacing"
