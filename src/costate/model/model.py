"""Robots as plain constant data: links, joints, inertias and shapes.

The whole package stands on this file. A `Model` is a kinematic tree in topological order: every joint's parent link comes
before its child, and joint i moves link i + 1; link 0 is the root. So an algorithm that walks over `joints` from front to
back visits parents first (positions, velocities), and from back to front visits children first (forces, inertias).

The coordinates q of all joints stand one after the other in the order of the joints, and so do the velocities v; `q_index`
and `v_index` say where each joint's begin. The two differ in length where a joint has a quaternion. A mimic joint has none of
its own: its index is that of the joint it follows.

Readers (`urdf`, `mjcf`, `builtin`) make models and `physics` computes with them; nothing here computes dynamics. Models are
immutable and compared by identity, so that what is compiled for one can be kept with it. Frames, orders and units are written
down in docs/conventions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from costate.core.arrays import Array
from costate.core.constants import Constants, constant, learnable, settle
from costate.core.names import unknown
from costate.model.actuation import Actuator, GeneralActuator
from costate.model.drag import Drag
from costate.model.errors import ModelError
from costate.model.joint import JOINT_SIZES, Joint, Mimic  # noqa: F401
from costate.model.shape import SHAPE_SIZES, Shape  # noqa: F401
from costate.model.surface import Listed, Physics
from costate.model.transform import Transform, zeros  # noqa: F401

if TYPE_CHECKING:
    from costate.model.constraint import Constraint
    from costate.model.tendon import Tendon

EARTH = np.array([0.0, 0.0, -9.81])
"""Gravity of the earth, in world axes [m/s^2]."""


@dataclass(frozen=True, eq=False)
class Inertia(Constants):
    """Mass distribution of a link."""

    mass: float = 0.0
    """Mass [kg]."""
    com: Array = field(default_factory=zeros)
    """Centre of mass in the link frame [m], shape (3,)."""
    matrix: Array = field(default_factory=lambda: np.zeros((3, 3)))
    """Rotational inertia about the centre of mass, in the axes of the link frame [kg m^2], shape (3, 3)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # A rotated symmetric matrix is symmetric only up to rounding.
        object.__setattr__(self, "matrix", (self.matrix + self.matrix.T) / 2)

    def _instead(self) -> dict[str, str]:
        return {
            name: learnable(kind, "LINK") for name, kind in (("mass", "mass"), ("com", "com"), ("matrix", "inertia"))
        }


@dataclass(frozen=True, eq=False)
class Link(Constants):
    """A rigid body of a robot, with the shapes that are drawn and those that may touch."""

    name: str
    inertia: Inertia = field(default_factory=Inertia)
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()
    drag: Drag | None = None
    """Resistance of a fluid. Worlds have it; functions of a robot alone do not."""
    carried: float = 0.0
    """Part of the weight that something carries (MJCF gravcomp). Worlds have it; functions of a robot alone do not."""


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A state of a robot that its file names (MJCF key), and controls to start with."""

    name: str
    q: Array
    """Configuration, shape (nq,)."""
    v: Array
    """Velocities, shape (nv,)."""
    activations: Array = field(default_factory=lambda: np.zeros(0))
    """Activations of the actuators that have one, in their order."""
    controls: Array = field(default_factory=lambda: np.zeros(0))
    """Controls of the file's actuators."""


@dataclass(frozen=True, eq=False)
class Model:
    """A robot: a tree of links. `links[i + 1]` is moved by `joints[i]`; parents come before children.

    A robot with a floating base has a floating joint from the link "world" (massless, links[0]) to its base. Where the file has
    a link of that name already, links[0] is called "world_2".
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    gravity: Array = field(default_factory=EARTH.copy)
    """Gravity in world axes [m/s^2]. Shape (3,)."""
    source: str = ""
    """Origin of the model: a path, or the publication its numbers are from."""
    home: Array | None = None
    """Configuration to start from, if the source has one. Shape (nq,)."""
    actuators: tuple[Actuator | GeneralActuator, ...] = ()
    """Motors and servos, if the source lists them."""
    physics: Physics | None = None
    """Settings of the simulation, if the source gives them (MJCF)."""
    constraints: tuple[Constraint, ...] = ()
    """Constraints besides the joints. Worlds keep them; functions of a robot alone do not."""
    tendons: tuple[Tendon, ...] = ()
    """Tendons over joints, or through space. Worlds have them; functions of a robot alone do not."""
    listed: tuple[Listed, ...] = ()
    """Pairs of shapes with contact properties of their own."""
    excluded: tuple[tuple[str, str], ...] = ()
    """Pairs of links that do not touch."""
    keyframes: tuple[Keyframe, ...] = ()
    """States that the source names."""

    def __post_init__(self) -> None:
        settle(self, {"gravity": "gravity"}, f"the model '{self.name}'")
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
        """Index of the first coordinate of each joint (of the joint it follows, for a mimic joint)."""
        return self._index("nq")

    @cached_property
    def v_index(self) -> tuple[int, ...]:
        """Index of the first velocity of each joint (of the joint it follows, for a mimic joint)."""
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
        """Index, per joint, of the joint that moves its parent link; -1 for the root link."""
        index = {link.name: i - 1 for i, link in enumerate(self.links)}
        return tuple(index[j.parent] for j in self.joints)

    def parent(self, joint: int) -> int:
        """Return the index of the joint that moves the parent link of a joint; -1 for the root link."""
        return self.parents[joint]

    @cached_property
    def lower(self) -> Array:
        """Lower limits of all velocity coordinates, -inf where there is none. Shape (nv,)."""
        return self._limits("lower")

    @cached_property
    def upper(self) -> Array:
        """Upper limits of all velocity coordinates, inf where there is none. Shape (nv,)."""
        return self._limits("upper")

    @cached_property
    def max_velocity(self) -> Array:
        """Largest speeds of all velocity coordinates, inf where there is none. Shape (nv,)."""
        return self._limits("max_velocity")

    @cached_property
    def max_effort(self) -> Array:
        """Largest torques or forces of all velocity coordinates, inf where there is none. Shape (nv,)."""
        return self._limits("max_effort")

    def _limits(self, name: str) -> Array:
        return np.concatenate([np.zeros(0)] + [getattr(j, name) for j in self.joints if not j.mimic])

    def link(self, name: str) -> Link:
        """Return the link of that name."""
        return _by_name(self.links, name, "link")

    def joint(self, name: str) -> Joint:
        """Return the joint of that name."""
        return _by_name(self.joints, name, "joint")

    @property
    def total_mass(self) -> float:
        """Mass of all links [kg], the root included."""
        return sum(link.inertia.mass for link in self.links)

    @property
    def floating_base(self) -> bool:
        return bool(self.joints) and self.joints[0].kind == "floating"

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """Return the model under another gravity [m/s^2], shape (3,)."""
        found = np.asarray(constant(gravity, "gravity", "gravity"), float)
        if found.shape != (3,):
            raise ModelError(f"gravity is {gravity}; expected a vector of 3 numbers [m/s^2], such as (0, 0, -9.81)")
        return replace(self, gravity=found)


_Named = TypeVar("_Named", Link, Joint)


def _by_name(things: tuple[_Named, ...], name: str, what: str) -> _Named:
    for thing in things:
        if thing.name == name:
            return thing
    raise KeyError(unknown(what, name, [t.name for t in things]))


def _check_tree(model: Model) -> None:
    """Check what every algorithm relies on: names are unique, joint i moves link i + 1, parents come first."""
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
