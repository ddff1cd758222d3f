"""Parts of a world besides its robots: free bodies, and shapes that do not move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from costate.collision.kinds import KINDS
from costate.collision.shapes import Solid
from costate.core.constants import settle
from costate.model import Inertia, Joint, Link, Model, Shape, Transform
from costate.model.merge import WORLD
from costate.model.transform import Placement, placed
from costate.sim.arguments import into_state


@dataclass(frozen=True, eq=False, init=False)
class Body:
    """A free rigid body.

        cs.Body("ball", [cs.shapes.sphere(0.1)], mass=0.5, position=(0, 0, 1))

    It is placed by position= with rpy= or quaternion=, or by pose= in any form of docs/placing.md. The state of a floating body is
    its pose in the world, and `world.initial_state()` starts there; other joints move from there.
    """

    name: str
    shapes: Sequence[Shape | Solid]
    """Shapes made by `cs.shapes`."""
    mass: float
    """Mass [kg]."""
    inertia: np.ndarray | None
    """Inertia about the centre of mass, in the body's axes [kg m^2], shape (3, 3); None: that of the first shape, even all over."""
    com: Sequence[float]
    """Centre of mass in the body's frame [m]. Without an inertia, that of a mesh's hull is taken."""
    joint: str
    """Kind of the joint by which it moves in the world: "floating", "planar", "prismatic", ..."""
    axis: Sequence[float]
    """Axis of a joint that has one."""
    pose: Transform
    """Pose in the world at the start; of the joint's frame, if it does not float."""
    friction: float | None
    """Friction coefficient of its shapes that have none of their own."""

    def __init__(
        self,
        name: str,
        shapes: Sequence[Shape | Solid],
        mass: float,
        inertia: ArrayLike | None = None,
        com: ArrayLike = (0.0, 0.0, 0.0),
        joint: str = "floating",
        axis: ArrayLike = (0.0, 0.0, 1.0),
        pose: Placement | None = None,
        friction: float | None = None,
        *,
        position: ArrayLike | None = None,
        rpy: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
    ):
        what, turn = f"body '{name}'", f"translation:{name}/joint"
        at = placed(what, pose, position, rpy, quaternion, into_state(name) if joint == "floating" else turn)
        _set(self, name=name, shapes=shapes, mass=mass, inertia=inertia, com=com)
        _set(self, joint=joint, axis=axis, pose=at, friction=friction)
        inputs = {kind: f"{kind}:{name}/body" for kind in ("mass", "inertia", "com")}
        settle(self, inputs | {"axis": f"axis:{name}/joint", "friction": f"friction:{name}"}, what)

    def model(self) -> Model:
        """Return it as a model of one link."""
        if isinstance(self.shapes, Shape | Solid):
            raise TypeError(f"body '{self.name}': shapes is one shape; expected a list of them: [shape]")
        for number, shape in enumerate(self.shapes):
            check_shape(f"body '{self.name}': shapes[{number}]", shape)
        if not self.mass > 0 and self.joint != "fixed":
            raise ValueError(f"body '{self.name}' has mass {self.mass}; expected a positive one [kg]")
        if self.inertia is None and not self.shapes:
            raise ValueError(f"body '{self.name}' has no shape to take its inertia from: give Body(..., inertia=)")
        shapes = tuple(s for s in self.shapes if isinstance(s, Shape))
        link = Link("body", self._inertia(), shapes, shapes)
        axis = np.asarray(self.axis, float)
        joint = Joint("joint", self.joint, WORLD, "body", self.pose, axis / np.linalg.norm(axis))
        return Model(self.name, (Link(WORLD), link), (joint,))

    def _inertia(self) -> Inertia:
        com = np.asarray(self.com, float)
        if self.inertia is not None:
            return Inertia(self.mass, com, np.asarray(self.inertia, float))
        own, matrix = mass_properties(self.shapes[0], self.mass)
        return Inertia(self.mass, com if own is None else own, matrix)


@dataclass(frozen=True, eq=False, init=False)
class Static:
    """A shape that does not move, placed as a body is.

    cs.Static("table", cs.shapes.box((1, 1, 0.1)), position=(0, 0, 0.4))
    """

    name: str
    shape: Shape | Solid
    """Shapes made by `cs.shapes`."""
    pose: Transform
    """Pose in the world."""
    friction: float | None
    """Friction coefficient, unless the shape has its own."""
    visible: bool
    """True if it is drawn."""

    def __init__(
        self,
        name: str,
        shape: Shape | Solid,
        pose: Placement | None = None,
        friction: float | None = None,
        visible: bool = True,
        *,
        position: ArrayLike | None = None,
        rpy: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
    ):
        check_shape(f"static '{name}': shape", shape)
        at = placed(f"'{name}'", pose, position, rpy, quaternion, f"position:{name}")
        _set(self, name=name, shape=shape, pose=at, friction=friction, visible=visible)
        settle(self, {"friction": f"friction:{name}"}, f"'{name}'")

    @property
    def placed(self) -> Transform:
        """Pose of the shape in the world."""
        return self.pose @ self.shape.pose if isinstance(self.shape, Shape) else self.pose


def check_shape(what: str, shape: Any) -> None:
    """Raise an error unless something is one shape."""
    if not isinstance(shape, Shape | Solid):
        found = (
            "several shapes; give a cs.Static each" if isinstance(shape, list | tuple) else f"a {type(shape).__name__}"
        )
        raise TypeError(f"{what} is {found}; expected a shape that cs.shapes makes")


def _set(part: Body | Static, **values: Any) -> None:
    """Fill in the fields of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(part, name, value)


def mass_properties(shape: Shape | Solid, mass: float) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the centre of mass [m] (3,) of an even solid (None: its own origin) and its inertia about it [kg m^2] (3, 3), in the
    axes of its link."""
    if isinstance(shape, Solid):
        return shape.mass_properties(mass)
    com, matrix = KINDS[shape.kind].mass_properties(shape, mass)
    R = shape.pose.rotation
    return None if com is None else R @ com + shape.pose.translation, R @ matrix @ R.T


def solid_inertia(shape: Shape | Solid, mass: float) -> np.ndarray:
    """Return the inertia of an even solid about its centre of mass, in the axes of its link [kg m^2] (3, 3)."""
    return mass_properties(shape, mass)[1]
