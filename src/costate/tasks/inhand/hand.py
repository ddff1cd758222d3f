"""Hands that lie with their palm up: where they are, what of them may touch an object, and where their fingers wait."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.core.names import unknown
from costate.model import Link, Model, Transform, load_model
from costate.model.shape import Shape
from costate.physics.kinematics import link_poses
from costate.physics.params import Parameters

SPACING = 0.02
"""Distance between the balls that stand for a box [m], about."""
FURTHEST = 0.023
"""Largest distance between the balls that stand for a capsule [m]."""
NEAR = 3
"""Links that are at most so many joints apart do not touch each other."""
PALM_UP = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
"""Rotation from the Allegro hand's palm, whose x axis is its normal, to the world: fingers along x, palm up."""


@dataclass(frozen=True)
class Ball:
    """A ball that is fixed to a link: what the prediction knows of the link's shape."""

    link: str
    center: tuple[float, float, float]
    """Centre in the link's frame [m]."""
    radius: float
    """Radius [m]."""
    tip: bool = False
    """True for fingertips, which are drawn to the object."""


@dataclass(frozen=True, eq=False)
class Hand:
    """A hand with a fixed palm."""

    model: Model
    base: Transform
    """Pose of its root in the world."""
    palm: str
    """Link whose first shape, a box, carries the object."""
    touching: tuple[str, ...]
    """Links of the fingers that may touch the object."""
    tips: tuple[str, ...]
    """Links whose outer end is a fingertip, one for each finger."""
    home: np.ndarray
    """Joints that the fingers wait at [rad]."""
    place: tuple[float, float]
    """Middle of the place for objects on the palm, in the world [m]."""
    stiffness: float = 1.5
    """Stiffness of the servos [N m/rad]."""
    damping: float = 0.1
    """Damping of the servos [N m s/rad]."""
    effort: float = 0.7
    """Largest torque of a motor [N m]."""
    slope: float = 0.0
    """Slope of the palm down to the fingers [degrees]. The world's axes are those of the palm: it is gravity that is turned."""

    @cached_property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """Pairs of links that do not touch each other: those of one finger near each other, and palm and bases."""
        parent = {j.child: j.parent for j in self.model.joints}
        pairs = []
        for link in parent:
            above, steps = link, 0
            while above in parent and steps < NEAR:
                above, steps = parent[above], steps + 1
                pairs.append((above, link))
        return tuple(pairs)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, in the order of the coordinates."""
        return tuple(j.name for j in self.model.joints if j.nv)

    @property
    def down(self) -> np.ndarray:
        """Direction of gravity, (3,)."""
        slope = np.radians(self.slope)
        return np.array([np.sin(slope), 0.0, -np.cos(slope)])

    @cached_property
    def surface(self) -> Shape:
        """The box that carries the object, at its pose in the world."""
        shape = self._link(self.palm).collisions[0]
        model, name = self.model, self.palm
        R, p = (np.array(ca.evalf(x)) for x in link_poses(model, Parameters.of(model), SX(self.home), [name])[name])
        A, a = self.base.rotation @ R, self.base.translation + self.base.rotation @ p.ravel()
        pose = Transform(A @ shape.pose.rotation, a + A @ shape.pose.translation)
        return replace(shape, pose=pose)

    @cached_property
    def top(self) -> float:
        """Height of the palm [m]."""
        pose, size = self.surface.pose, self.surface.size
        return float(pose.translation[2] + np.abs(pose.rotation[2]) @ size / 2)

    @cached_property
    def balls(self) -> tuple[Ball, ...]:
        """Balls along all links that may touch."""
        found = []
        for name in self.touching:
            own = [ball for shape in self._link(name).collisions for ball in along(name, shape)]
            if name in self.tips:
                last = max(own, key=lambda b: b.center[2])
                own[own.index(last)] = Ball(last.link, last.center, last.radius, tip=True)
            found += own
        return tuple(found)

    def _link(self, name: str) -> Link:
        return next(link for link in self.model.links if link.name == name)


def along(link: str, shape: Shape) -> list[Ball]:
    """Return balls along the z axis of a box, capsule or sphere.

    The outer end of a capsule is among them. Its inner end is not: it lies within the end of the link before it or, for the first
    link of a finger, in the palm, where it would lift an object that the prediction lets lie on the palm's plane.
    """
    if shape.kind == "sphere":
        return [Ball(link, _point(shape, 0.0), float(shape.size[0]))]
    if shape.kind == "capsule":
        radius, length = (float(x) for x in shape.size)
        places = np.linspace(-0.5, 0.5, math.ceil(length / FURTHEST) + 1)[1:] * length
    else:
        radius, length = float(shape.size[:2].mean() / 2), float(shape.size[2])
        count = max(round(length / SPACING), 1)
        places = (np.arange(count) + 0.5 - count / 2) * length / count
    return [Ball(link, _point(shape, z), radius) for z in places]


def _point(shape: Shape, z: float) -> tuple[float, float, float]:
    x, y, z = (float(c) for c in shape.pose.translation + shape.pose.rotation @ np.array([0.0, 0.0, z]))
    return x, y, z


def allegro() -> Hand:
    """Return the Allegro hand: index, middle and ring finger along x, the thumb on the side of positive y."""
    model = load_model("allegro_hand")
    ends = (11, 7, 3, 15)
    touching = [f"link_{k}.0" for k in (9, 10, 11, 5, 6, 7, 1, 2, 3, 12, 13, 14, 15)] + [
        f"link_{k}.0_tip" for k in ends
    ]
    index, middle, ring = (0.3, 1.2, 1.4, 0.9), (0.0, 0.36, 1.5, 1.12), (-0.3, 1.03, 1.53, 1.07)
    thumb = (0.27, 1.1, 0.6, 1.6)
    return Hand(
        model,
        Transform(PALM_UP),
        "palm_link",
        tuple(touching),
        tuple(f"link_{k}.0_tip" for k in ends),
        np.array([*index, *middle, *ring, *thumb]),
        (-0.02, -0.005),
    )


HELD = ("WRJ1", "WRJ0", "LFJ4", "THJ2")
"""Joints of the Shadow hand that are held at zero: the wrist, the little finger's palm, and a thumb joint that hardly moves."""


def shadow() -> Hand:
    """Return the Shadow hand: first to little finger along x, the thumb on the side of negative y.

    Every joint of a finger has a servo of its own here, although a tendon couples the outer two in the real hand.
    """
    model = load_model("shadow_hand")
    joints = tuple(replace(j, kind="fixed") if j.name in HELD else j for j in model.joints)
    first, middle, ring = (0.08, 0.36, 1.49, 1.4), (-0.02, 0.09, 1.4, 1.33), (-0.09, 0.09, 1.32, 1.37)
    little, thumb = (-0.23, 0.31, 1.46, 1.41), (-0.24, 0.62, -0.42, -1.57)
    fingers = ("ff", "mf", "rf", "lf", "th")
    return Hand(
        replace(model, joints=joints),
        Transform(np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]), np.array([-0.38, 0.0, 0.0])),
        "palm",
        tuple(f"{f}{part}" for f in fingers for part in ("proximal", "middle", "distal")),
        tuple(f"{f}distal" for f in fingers),
        np.array([*first, *middle, *ring, *little, *thumb]),
        (-0.015, 0.0),
        slope=30.0,
    )


HANDS = {"allegro": allegro, "shadow": shadow}
"""Name of a hand -> function that makes it."""


def hand_named(name: str) -> Hand:
    """Return a hand by name."""
    if name not in HANDS:
        raise ValueError(unknown("hand", name, HANDS))
    return HANDS[name]()
