"""Joints between links.

To add a kind of joint: a row of JOINT_SIZES here, a row of `KINDS` in `physics/joints.py` with its motion, and a case in the
tests of both. Readers and writers, dynamics, contact and the viewer take it from these rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from costate.core.arrays import Array
from costate.core.constants import Constants, learnable, settle
from costate.core.names import unknown
from costate.model.errors import ModelError
from costate.model.surface import Bounds
from costate.model.transform import Transform, place

# Velocities of floating, planar and spherical joints are expressed in the child frame, so every kind has a constant
# motion subspace.
JOINT_SIZES: dict[str, tuple[int, int]] = {
    "fixed": (0, 0),
    "revolute": (1, 1),  # q: angle [rad]
    "continuous": (1, 1),  # as revolute, without position limits
    "prismatic": (1, 1),  # q: distance [m]
    "planar": (3, 3),  # q: x, y [m], angle [rad] in the plane normal to the axis; v: in the child frame
    "spherical": (4, 3),  # q: quaternion xyzw; v: angular velocity in the child frame
    "floating": (7, 6),  # q: position, quaternion xyzw; v: linear, angular in the child frame
}
"""Numbers of coordinates (nq) and of velocities (nv) of each kind of joint."""


def _none() -> Array:
    return np.zeros(0)


@dataclass(frozen=True)
class Mimic(Constants):
    """A joint that follows another one: q = multiplier * q[joint] + offset. It has no coordinate of its own."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint that connects a parent link to a child link."""

    name: str
    kind: str
    """Kind, a key of JOINT_SIZES."""
    parent: str
    child: str
    origin: Transform = field(default_factory=Transform)
    """Pose of the joint frame (= child link frame at q = 0) in the parent link frame."""
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    """Unit axis in the joint frame: of rotation, of translation, or the normal of a planar joint. Shape (3,)."""
    lower: Array = field(default_factory=_none)
    """Lower limits per velocity coordinate [rad or m], -inf where there is none. Shape (nv of the kind,): a mimic joint
    keeps its own limits, so use `Model.lower` for the limits of the coordinates."""
    upper: Array = field(default_factory=_none)
    """Upper limits, likewise."""
    max_velocity: Array = field(default_factory=_none)
    """Largest speed [rad/s or m/s], inf where there is none. Shape (nv,)."""
    max_effort: Array = field(default_factory=_none)
    """Largest torque or force [N m or N], inf where there is none. Shape (nv,)."""
    efforts: tuple[float, float] | None = None
    """Range of the torque of all actuators of a file together [N m or N] (MJCF actuatorfrcrange); None: that of max_effort."""
    carries: bool = False
    """True if the weight that is carried (`Link.carried`) counts as torque of its actuators (MJCF actuatorgravcomp)."""
    damping: float = 0.0
    """Viscous friction [N m s/rad or N s/m]: torque -damping * v."""
    friction: float = 0.0
    """Coulomb friction [N m or N]."""
    armature: float = 0.0
    """Rotor inertia seen at the joint [kg m^2 or kg], added to the diagonal of the mass matrix."""
    stiffness: float = 0.0
    """Stiffness of a spring [N m/rad or N/m]: torque -stiffness * (q - rest)."""
    rest: float = 0.0
    """Rest position of the spring [rad or m]."""
    rest_at: Array | None = None
    """Coordinates at which the spring of a spherical or floating joint rests, (nq,); None: the neutral ones."""
    max_angle: float = np.inf
    """Largest angle of a spherical joint [rad]."""
    mimic: Mimic | None = None
    bounds: Bounds | None = None
    """Softness of its limits and friction, if the file gives it (MJCF)."""

    def __post_init__(self) -> None:
        kinds = ("axis", "damping", "friction", "armature", "stiffness", "rest")
        place(self, "origin", f"the origin of joint '{self.name}'", learnable("translation", self.name))
        settle(self, {kind: learnable(kind, self.name) for kind in kinds}, f"joint '{self.name}'")
        if self.kind not in JOINT_SIZES:
            raise ModelError(f"joint {self.name!r}: {unknown('kind', self.kind, JOINT_SIZES)}")
        n = JOINT_SIZES[self.kind][1]
        for name, none in (("lower", -np.inf), ("upper", np.inf), ("max_velocity", np.inf), ("max_effort", np.inf)):
            limit = np.asarray(getattr(self, name), float)
            limit = np.full(n, none) if limit.size == 0 else np.broadcast_to(limit, (n,))
            object.__setattr__(self, name, limit)

    @property
    def nq(self) -> int:
        return 0 if self.mimic else JOINT_SIZES[self.kind][0]

    @property
    def nv(self) -> int:
        return 0 if self.mimic else JOINT_SIZES[self.kind][1]
