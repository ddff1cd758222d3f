"""Shapes of links: what is drawn, and what may touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from costate.core.arrays import Array, Color
from costate.core.constants import settle
from costate.core.names import unknown
from costate.model.errors import ModelError
from costate.model.rotation import aligning_z
from costate.model.surface import Surface
from costate.model.transform import Transform, place

SHAPE_SIZES: dict[str, int] = {
    "sphere": 1,
    "box": 3,
    "cylinder": 2,
    "capsule": 2,
    "ellipsoid": 3,
    "mesh": 3,
    "plane": 0,
    "socket": 4,
    "chamfered_socket": 5,
    "heightfield": 2,
}
"""Number of sizes of each kind of shape; `Shape.size` says what they mean."""


@dataclass(frozen=True, eq=False)
class Shape:
    """One visual or collision shape of a link."""

    kind: str
    """Kind, a key of SHAPE_SIZES. Cylinders and capsules lie along z, centred; the normal of a plane is z."""
    size: Array
    """Sizes [m]. sphere: (radius,); box: full edge lengths (3,); cylinder, capsule: (radius, length), a capsule's length
    without its caps; ellipsoid: semi-axes (3,); mesh: scale factors (3,); plane: (); heightfield: lengths along x and y (2,);
    socket: (radius of the bore, outer radius, depth of the bore, thickness of the floor), its origin at the mouth, z up;
    chamfered_socket: the same and the width of its chamfer."""
    pose: Transform = field(default_factory=Transform)
    """Pose in the link frame."""
    name: str = ""
    color: Color | None = None
    """Red, green, blue and opacity in [0, 1]."""
    mesh: str | None = None
    """Path of the mesh file, for kind mesh; None if it was not found (see `mesh_file`)."""
    uri: str | None = None
    """Name of the mesh in the robot file: package://..., file://... or a path."""
    friction: float | None = None
    """Coefficient of sliding friction, if the file gives one."""
    surface: Surface | None = None
    """Contact properties, if the file gives them (MJCF)."""
    heights: Array | None = None
    """Heights of a heightfield [m], evenly over its rectangle around the origin, edges included, shape (nx, ny); solid below."""
    contact: str = "hull"
    """Part of a mesh that others touch: "hull", its convex hull, or "grid", its distance sampled on a grid."""
    rounding: float = 0.0
    """Radius of the edges of a box or cylinder in pictures [m]; what touches it meets sharp ones."""
    end_radius: float | None = None
    """Radius of the upper end of a cylinder or capsule in pictures [m], if it tapers; what touches it meets one that does not."""

    def __post_init__(self) -> None:
        place(self, "pose", f"the pose of a {self.kind}", "position:SHAPE")
        settle(self, {"size": "size:SHAPE", "friction": "friction:SHAPE"}, f"a {self.kind}")
        object.__setattr__(self, "size", np.atleast_1d(np.asarray(self.size, float)))
        if self.kind not in SHAPE_SIZES:
            raise ModelError(f"shape {self.name!r}: {unknown('kind', self.kind, SHAPE_SIZES)}")
        if self.size.shape != (SHAPE_SIZES[self.kind],):
            raise ModelError(
                f"shape {self.name!r}: a {self.kind} has {SHAPE_SIZES[self.kind]} sizes; {self.size.shape} given"
            )

    @staticmethod
    def between(
        kind: str, radius: float, start: ArrayLike, end: ArrayLike, color: Color | None = None, name: str = ""
    ) -> Shape:
        """Return a cylinder or capsule whose axis runs between two points in the link frame [m]."""
        a, b = np.asarray(start, float), np.asarray(end, float)
        pose = Transform(aligning_z(b - a), (a + b) / 2)
        return Shape(kind, np.array([radius, np.linalg.norm(b - a)]), pose, name, color)

    def mesh_file(self) -> Path:
        """Return the mesh file, which is needed now. A model loads without it, because dynamics does not use it."""
        if self.mesh is None or not Path(self.mesh).is_file():
            raise ModelError(
                f"the mesh {self.uri or self.mesh!r} was not found, or is outside of the robot's folders; pass the folders of "
                "its packages as package_dirs when loading the robot"
            )
        return Path(self.mesh)
