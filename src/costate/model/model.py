"""What a robot is: links, joints, inertias and shapes, as plain constant data.

A `Model` is a kinematic tree in topological order: every joint's parent link comes before its child, and joint i moves
link i + 1; link 0 is the root. Readers (`urdf.py`, `mjcf.py`) make models, `physics` computes with them, nothing here
computes dynamics. Frames, orders and units are written down in docs/conventions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from costate.model.errors import ModelError
from costate.model.surface import Bounds, Listed, Physics, Surface

if TYPE_CHECKING:
    from costate.model.constraint import Constraint
    from costate.model.tendon import FixedTendon

Array = NDArray[np.float64]

# Joint kind -> (coordinates nq, velocities nv). Velocities of floating, planar and spherical joints are expressed in
# the child frame, so every kind has a constant motion subspace.
JOINT_SIZES: dict[str, tuple[int, int]] = {
    "fixed": (0, 0),
    "revolute": (1, 1),  # q: angle [rad]
    "continuous": (1, 1),  # as revolute, without position limits
    "prismatic": (1, 1),  # q: distance [m]
    "planar": (3, 3),  # q: x, y [m], angle [rad] in the plane normal to the axis; v: in the child frame
    "spherical": (4, 3),  # q: quaternion xyzw; v: angular velocity in the child frame
    "floating": (7, 6),  # q: position, quaternion xyzw; v: linear, angular in the child frame
}

# Shape kind -> how many sizes it has; what they mean is said at Shape.size.
SHAPE_SIZES: dict[str, int] = {
    "sphere": 1,
    "box": 3,
    "cylinder": 2,
    "capsule": 2,
    "ellipsoid": 3,
    "mesh": 3,
    "plane": 0,
    "socket": 4,
    "heightfield": 2,
}


def _eye() -> Array:
    return np.eye(3)


def _zeros() -> Array:
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class Transform:
    """Pose of a frame B in a frame A: p_A = rotation @ p_B + translation."""

    rotation: Array = field(default_factory=_eye)
    """R_AB, shape (3, 3)."""
    translation: Array = field(default_factory=_zeros)
    """p_AB [m], shape (3,)."""

    def __matmul__(self, other: Transform) -> Transform:
        return Transform(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)

    def inverse(self) -> Transform:
        return Transform(self.rotation.T, -self.rotation.T @ self.translation)


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass distribution of a link."""

    mass: float = 0.0
    """[kg]."""
    com: Array = field(default_factory=_zeros)
    """Centre of mass in the link frame [m], shape (3,)."""
    matrix: Array = field(default_factory=lambda: np.zeros((3, 3)))
    """Rotational inertia about the centre of mass, in the axes of the link frame [kg m^2], shape (3, 3)."""

    def __post_init__(self) -> None:
        # Rotating a symmetric matrix leaves it symmetric only up to rounding.
        object.__setattr__(self, "matrix", (self.matrix + self.matrix.T) / 2)


@dataclass(frozen=True, eq=False)
class Shape:
    """One visual or collision shape of a link."""

    kind: str
    """A key of SHAPE_SIZES. Cylinders and capsules lie along z, centred; the normal of a plane is z."""
    size: Array
    """sphere: (radius,); box: full edge lengths (3,); cylinder, capsule: (radius, length), a capsule's length without
    its caps; ellipsoid: semi-axes (3,); mesh: scale factors (3,); plane: ();
    heightfield: lengths along x and y (2,);
    socket: (radius of the bore, outer radius, depth of the bore, thickness of the floor), its origin at the mouth, z up. [m]"""
    pose: Transform = field(default_factory=Transform)
    """In the link frame."""
    name: str = ""
    color: tuple[float, float, float, float] | None = None
    """RGBA in [0, 1]."""
    mesh: str | None = None
    """Path of the mesh file, for kind mesh; None if it was not found (see `mesh_file`)."""
    uri: str | None = None
    """The mesh as the robot file names it: package://..., file://... or a path."""
    friction: float | None = None
    """Sliding friction coefficient, where the file gives one."""
    surface: Surface | None = None
    """How it touches others, where the file says so (MJCF)."""
    heights: Array | None = None
    """Of a heightfield [m], evenly over its rectangle around the origin, edges included, shape (nx, ny); solid below."""
    contact: str = "hull"
    """What others touch of a mesh: "hull", its convex hull, or "grid", its distance sampled on a grid."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", np.atleast_1d(np.asarray(self.size, float)))
        if self.kind not in SHAPE_SIZES:
            raise ModelError(
                f"shape {self.name!r}: kind {self.kind!r} is unknown; one of {', '.join(SHAPE_SIZES)} is expected"
            )
        if self.size.shape != (SHAPE_SIZES[self.kind],):
            raise ModelError(
                f"shape {self.name!r}: a {self.kind} has {SHAPE_SIZES[self.kind]} sizes; {self.size.shape} given"
            )

    def mesh_file(self) -> Path:
        """The mesh file, which is needed now. A model loads without it, for dynamics does not use it."""
        if self.mesh is None or not Path(self.mesh).is_file():
            raise ModelError(
                f"the mesh {self.uri or self.mesh!r} was not found; pass the folders of its packages as package_dirs "
                "when loading the robot"
            )
        return Path(self.mesh)


@dataclass(frozen=True, eq=False)
class Link:
    name: str
    inertia: Inertia = field(default_factory=Inertia)
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Mimic:
    """The joint follows another one: q = multiplier * q[joint] + offset. It has no coordinate of its own."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """Connects a parent link to a child link."""

    name: str
    kind: str
    """A key of JOINT_SIZES."""
    parent: str
    child: str
    origin: Transform = field(default_factory=Transform)
    """Pose of the joint frame (= child link frame at q = 0) in the parent link frame."""
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    """Unit axis in the joint frame: of rotation, of translation, or the normal of a planar joint. Shape (3,)."""
    lower: Array = field(default_factory=lambda: np.zeros(0))
    """Lower limits per velocity coordinate [rad or m], -inf where there is none. Shape (nv of the kind,): a mimic joint
    keeps its own limits, so use `Model.lower` for the limits of the coordinates."""
    upper: Array = field(default_factory=lambda: np.zeros(0))
    max_velocity: Array = field(default_factory=lambda: np.zeros(0))
    """[rad/s or m/s], inf where there is none. Shape (nv,)."""
    max_effort: Array = field(default_factory=lambda: np.zeros(0))
    """[N m or N], inf where there is none. Shape (nv,)."""
    damping: float = 0.0
    """Viscous friction [N m s/rad or N s/m]: torque -damping * v."""
    friction: float = 0.0
    """Coulomb friction [N m or N]."""
    armature: float = 0.0
    """Rotor inertia seen at the joint [kg m^2 or kg], added to the diagonal of the mass matrix."""
    stiffness: float = 0.0
    """Spring [N m/rad or N/m]: torque -stiffness * (q - rest)."""
    rest: float = 0.0
    """Rest position of the spring [rad or m]."""
    mimic: Mimic | None = None
    bounds: Bounds | None = None
    """How soft its limits and friction are, where the file says so (MJCF)."""

    def __post_init__(self) -> None:
        if self.kind not in JOINT_SIZES:
            raise ModelError(
                f"joint {self.name!r}: kind {self.kind!r} is unknown; one of {', '.join(JOINT_SIZES)} is expected"
            )
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


@dataclass(frozen=True)
class Actuator:
    """A motor or servo on a joint or tendon: torque = gear * control + offset - stiffness * position - damping * velocity."""

    name: str
    joint: str
    """Empty for one on a tendon."""
    gear: float = 1.0
    """[N m or N per unit of control]."""
    lower: float = -np.inf
    """Range of the control."""
    upper: float = np.inf
    tendon: str = ""
    offset: float = 0.0
    """[N m or N]."""
    stiffness: float = 0.0
    """[N m/rad or N/m]."""
    damping: float = 0.0
    """[N m s/rad or N s/m]."""
    weakest: float = -np.inf
    """Range of the torque [N m or N]."""
    strongest: float = np.inf


@dataclass(frozen=True, eq=False)
class Model:
    """A robot: a tree of links. `links[i + 1]` is moved by `joints[i]`; parents come before children.

    A robot with a floating base has a floating joint from the link "world" (massless, links[0]) to its base.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    """In world axes [m/s^2]. Shape (3,)."""
    source: str = ""
    """Where it came from: a path, or the publication its numbers are from."""
    home: Array | None = None
    """A sensible configuration to start from, where the source has one. Shape (nq,)."""
    actuators: tuple[Actuator, ...] = ()
    """The motors and servos, where the source lists them."""
    physics: Physics | None = None
    """How the source wants it simulated, where it says so (MJCF)."""
    constraints: tuple[Constraint, ...] = ()
    """What holds beside the joints: worlds keep to it, functions of a robot alone do not."""
    tendons: tuple[FixedTendon, ...] = ()
    """Likewise."""
    listed: tuple[Listed, ...] = ()
    """Pairs of shapes that touch in their own way."""
    excluded: tuple[tuple[str, str], ...] = ()
    """Pairs of links that do not touch."""

    def __post_init__(self) -> None:
        _check_tree(self)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {len(self.links)} links, nq={self.nq}, nv={self.nv})"

    @cached_property
    def nq(self) -> int:
        return sum(j.nq for j in self.joints)

    @cached_property
    def nv(self) -> int:
        return sum(j.nv for j in self.joints)

    @cached_property
    def q_index(self) -> tuple[int, ...]:
        """First coordinate of each joint (of the joint it follows, for a mimic joint)."""
        return self._index("nq")

    @cached_property
    def v_index(self) -> tuple[int, ...]:
        """First velocity of each joint (of the joint it follows, for a mimic joint)."""
        return self._index("nv")

    def _index(self, size: str) -> tuple[int, ...]:
        start: dict[str, int] = {}
        n = 0
        for j in self.joints:
            if not j.mimic:
                start[j.name] = n
                n += getattr(j, size)
        return tuple(start[j.mimic.joint if j.mimic else j.name] for j in self.joints)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Per joint, the index of the joint that moves its parent link; -1 for the root link."""
        index = {link.name: i - 1 for i, link in enumerate(self.links)}
        return tuple(index[j.parent] for j in self.joints)

    def parent(self, joint: int) -> int:
        """Index of the joint that moves the parent link of a joint; -1 for the root link."""
        return self.parents[joint]

    @cached_property
    def lower(self) -> Array:
        """Lower limits of all velocity coordinates, -inf where there is none. Shape (nv,)."""
        return self._limits("lower")

    @cached_property
    def upper(self) -> Array:
        return self._limits("upper")

    @cached_property
    def max_velocity(self) -> Array:
        return self._limits("max_velocity")

    @cached_property
    def max_effort(self) -> Array:
        return self._limits("max_effort")

    def _limits(self, name: str) -> Array:
        return np.concatenate([np.zeros(0)] + [getattr(j, name) for j in self.joints if not j.mimic])

    def link(self, name: str) -> Link:
        """The link of that name."""
        return _by_name(self.links, name, "link")

    def joint(self, name: str) -> Joint:
        """The joint of that name."""
        return _by_name(self.joints, name, "joint")

    @property
    def total_mass(self) -> float:
        """[kg], the root link included."""
        return sum(link.inertia.mass for link in self.links)

    @property
    def floating_base(self) -> bool:
        return bool(self.joints) and self.joints[0].kind == "floating"

    def with_gravity(self, gravity: Array) -> Model:
        """gravity: [m/s^2], shape (3,)."""
        found = np.asarray(gravity, float)
        if found.shape != (3,):
            raise ModelError(f"gravity is {gravity}; expected a vector of 3 numbers [m/s^2], such as (0, 0, -9.81)")
        return replace(self, gravity=found)


_Named = TypeVar("_Named", Link, Joint)


def _by_name(things: tuple[_Named, ...], name: str, what: str) -> _Named:
    for thing in things:
        if thing.name == name:
            return thing
    close = get_close_matches(name, [t.name for t in things], n=3) or [t.name for t in things][:10]
    raise KeyError(f"there is no {what} {name!r}; did you mean {', '.join(close)}?")


def _check_tree(model: Model) -> None:
    """The promises every algorithm relies on: names are unique, joint i moves link i + 1, parents come first."""
    if len(model.links) != len(model.joints) + 1:
        raise ModelError(
            f"{model.name}: {len(model.links)} links and {len(model.joints)} joints are no tree; links = joints + 1"
        )
    known = {model.links[0].name}
    by_name = {j.name: j for j in model.joints}
    for i, j in enumerate(model.joints):
        if j.child != model.links[i + 1].name:
            raise ModelError(
                f"{model.name}: joint {j.name!r} must move links[{i + 1}], {model.links[i + 1].name!r}, not {j.child!r}"
            )
        if j.parent not in known or j.child in known:
            raise ModelError(f"{model.name}: joint {j.name!r} must connect a link that came before it to a new one")
        known.add(j.child)
        if j.mimic and (j.mimic.joint not in by_name or by_name[j.mimic.joint].mimic or JOINT_SIZES[j.kind] != (1, 1)):
            raise ModelError(f"{model.name}: joint {j.name!r} must mimic a joint with a coordinate of its own")
    if len(by_name) != len(model.joints):
        raise ModelError(f"{model.name}: two joints have the same name")
    if model.home is not None and np.shape(model.home) != (model.nq,):
        raise ModelError(f"{model.name}: home must have shape ({model.nq},), not {np.shape(model.home)}")
