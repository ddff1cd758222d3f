"""The hands: a Shadow hand on a UR5, or on a fixed forearm; which links may touch, and where they start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from costate.core.fork import cached_property
from costate.model import Joint, Model, Transform, load_model
from costate.model.rotation import about_axis

FINGERS = ("FF", "MF", "RF", "LF")
COUPLED = {f"{finger}J0": f"{finger}J1" for finger in FINGERS}
"""Joints that follow another one: the tendons of the Shadow hand bend the last two joints of a finger together."""
TILT = np.radians(25.7)
"""Angle of the hand below the horizontal [rad]."""
UR5 = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
ARM_HOME = dict(zip(UR5, (0.083, -1.551, 1.882, 0.118, 1.646, 0.036), strict=True))
"""Joints of the UR5 that hold the hand over the origin, palm down, fingers along x [rad]."""
OPEN = {"J2": 0.1, "J1": 0.3, "J0": 0.3}
THUMB = {"THJ4": 0.2, "THJ3": 1.2, "THJ2": 0.2, "THJ1": 0.1, "THJ0": -0.3}
"""Joints of the open hand [rad]."""
ASIDE = {"THJ4": -0.5, "THJ3": 1.08, "THJ2": 0.0, "THJ1": -0.22, "THJ0": -0.77}
"""Joints of a thumb beside a cylinder of 40 mm radius under the palm; that of the open hand would be within it [rad]."""
FURTHER = {"THJ4": -0.67, "THJ3": 1.022, "THJ2": -0.029, "THJ1": -0.211, "THJ0": -0.795}
"""The same beside a cylinder of 48 mm radius [rad]."""
WIDE = {
    **dict(zip(UR5, (0.0816, -1.5494, 1.8375, 0.1608, 1.6447, 0.0354), strict=True)),
    **{f"{finger}{joint}": angle for finger in FINGERS for joint, angle in (("J2", 0.02), ("J1", 0.2), ("J0", 0.2))},
    "THJ1": 0.3,
}
"""Joints of a hand over a cube of 72 mm, which no link touches wherever it lies (within 10 mm along x and y, any yaw) [rad]."""
STRONG = {"WRJ": 10.0, "TH": 3.0, "": 2.0}
"""Start of a joint's name -> torque that its motor can give [N m]; the first row that fits counts."""


@dataclass(frozen=True)
class Capsule:
    """A link of a finger as what touches: a line from the link's origin along its z axis, and a radius around it."""

    link: str
    radius: float
    """Radius [m]."""
    length: float
    """Length of the line [m]."""


@dataclass(frozen=True, eq=False)
class Hand:
    """A robot that manipulates."""

    model: Model
    base: Transform
    """Pose of its root in the world."""
    arm: int
    """Number of joints of the arm; those of the hand follow."""

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, in the order of the coordinates."""
        return tuple(j.name for j in self.model.joints if j.nv)

    @cached_property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints that have a command of their own."""
        return tuple(name for name in self.joints if name not in COUPLED)

    @cached_property
    def coupling(self) -> np.ndarray:
        """Matrix (joints, driven) from commands to joints."""
        rows = [self.driven.index(COUPLED.get(name, name)) for name in self.joints]
        return np.eye(len(self.driven))[rows]

    @cached_property
    def tips(self) -> tuple[Capsule, ...]:
        """The five last links, which may hold an object."""
        return tuple(self._capsule(f"{finger}distal") for finger in ("ff", "mf", "rf", "lf", "th"))

    @cached_property
    def others(self) -> tuple[Capsule, ...]:
        """Other links of the fingers, which must keep away."""
        return tuple(
            self._capsule(f"{f}{part}") for f in ("ff", "mf", "rf", "lf", "th") for part in ("middle", "proximal")
        )

    def _capsule(self, name: str) -> Capsule:
        link = next(link for link in self.model.links if link.name == name)
        radius, length = (float(x) for x in link.collisions[0].size[:2])
        return Capsule(name, radius, length)

    @cached_property
    def home(self) -> np.ndarray:
        """Joints at the start, the hand open [rad]."""
        assert self.model.home is not None
        return self.model.home


def shadow_hand() -> Model:
    """Return the built-in hand, open, with torques that its motors can give."""
    model = load_model("shadow_hand")
    joints = tuple(replace(j, max_effort=np.full(1, _strength(j.name))) if j.nv else j for j in model.joints)
    return _at(replace(model, joints=joints), {})


def hand_on_arm(joints: Mapping[str, float] | None = None) -> Hand:
    """Return the Shadow hand on a UR5 that stands on the floor.

    joints: name -> angle at the start [rad], where it is not that of the open hand.
    """
    arm, hand = load_model("ur5"), shadow_hand()
    half = tuple(
        replace(j, lower=np.maximum(j.lower, -np.pi), upper=np.minimum(j.upper, np.pi)) if j.nv else j
        for j in arm.joints
    )
    mount = Joint("mount", "fixed", "tool0", hand.links[0].name)
    whole = replace(
        arm, name="ur5_shadow", links=(*arm.links, *hand.links), joints=(*half, mount, *hand.joints), home=None
    )
    return Hand(
        _at(whole, {**ARM_HOME, **(joints or {})}), Transform(translation=np.array([-0.75, -0.15, 0.0])), len(ARM_HOME)
    )


def hand_alone(joints: Mapping[str, float] | None = None) -> Hand:
    """Return the Shadow hand on a forearm that does not move, over the origin, fingers along -y.

    joints: name -> angle at the start [rad], where it is not that of the open hand.
    """
    turn = about_axis((1, 0, 0), float(np.pi / 2 + TILT))
    return Hand(_at(shadow_hand(), joints or {}), Transform(turn, np.array([-0.01, 0.30, 0.24])), 0)


def _at(model: Model, joints: Mapping[str, float]) -> Model:
    """Return a robot with a home: the angles given, else those of the open hand."""
    return replace(model, home=np.array([joints.get(j.name, _opened(j.name)) for j in model.joints if j.nv]))


def _strength(name: str) -> float:
    return next(torque for start, torque in STRONG.items() if name.startswith(start))


def _opened(name: str) -> float:
    return THUMB.get(name, OPEN.get(name[2:], 0.0) if name[:2] in FINGERS else 0.0)
