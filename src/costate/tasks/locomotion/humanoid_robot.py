"""The robot of the humanoid: 13 parts, 21 hinges, from published sizes (Tassa et al., 2018; Xu et al., 2022).

A part's frame is where its hinges meet. x points ahead, y to the left, z up; at q = 0 it stands straight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from costate.core.arrays import Vector
from costate.model.builtin.parts import SAND, X, Y, Z, capsule, joint, link, robot, solid, sphere
from costate.model.joint import Joint
from costate.model.model import Link, Model
from costate.model.shape import Shape

DENSITY = 1000.0
"""Density of all parts [kg/m^3]."""
DAMPING = 0.1
"""Damping of all hinges [N m s/rad]."""
SCALE = 0.35
"""Factor of all strengths."""
STANDING = 1.285
"""Height of the torso that stands straight [m]."""


class Hinge(NamedTuple):
    """A hinge."""

    name: str
    axis: Vector
    lower: float
    upper: float
    """Range [deg]."""
    strength: float
    """Torque of an action of 1, before SCALE [N m]."""
    stiffness: float = 10.0
    """Stiffness of its spring [N m/rad]."""
    armature: float = 0.01
    """Inertia of its motor [kg m^2]."""


def humanoid() -> Model:
    """Return the robot."""
    body = [capsule(0.07, (0, -0.07, 0), (0, 0.07, 0)), capsule(0.06, (-0.01, -0.06, -0.12), (-0.01, 0.06, -0.12))]
    links = [link("ground"), solid("torso", [*body, sphere(0.09, (0, 0, 0.19), SAND)], DENSITY)]
    joints = [joint("root", "floating", "ground", "torso")]
    for part in (_abdomen(), _leg("right", -1), _leg("left", 1), _arm("right", -1), _arm("left", 1)):
        for more, hinges in part:
            links += more
            joints += hinges
    home = [0, 0, STANDING, 0, 0, 0, 1] + [0] * 21
    return robot("humanoid", links, joints, "Tassa et al., 2018; Xu et al., 2022", home)


Part = tuple[list[Link], list[Joint]]


def _abdomen() -> Iterator[Part]:
    waist = [capsule(0.06, (0, -0.06, -0.065), (0, 0.06, -0.065))]
    hinges = [Hinge("abdomen_z", Z, -45, 45, 200, 20, 0.02), Hinge("abdomen_y", Y, -75, 30, 200, 20)]
    yield _part("lower_waist", "torso", (-0.01, 0, -0.195), hinges, waist)
    hips = [capsule(0.09, (-0.02, -0.07, -0.1), (-0.02, 0.07, -0.1))]
    yield _part("pelvis", "lower_waist", (0, 0, -0.13), [Hinge("abdomen_x", X, -35, 35, 200)], hips)


def _leg(side: str, y: int) -> Iterator[Part]:
    """Give the parts of a leg. y: 1 left, -1 right; axes are mirrored, so that equal angles are equal poses."""
    hinges = [
        Hinge(f"{side}_hip_x", (-y, 0, 0), -25, 5, 200),
        Hinge(f"{side}_hip_z", (0, 0, -y), -60, 35, 200),
        Hinge(f"{side}_hip_y", Y, -80, 20, 600, 20),
    ]
    thigh = [capsule(0.06, (0, 0, 0), (0, -0.01 * y, -0.34))]
    yield _part(f"{side}_thigh", "pelvis", (0, 0.1 * y, -0.14), hinges, thigh)
    knee, shin = Hinge(f"{side}_knee", (0, -1, 0), -160, 2, 400, 5, 0.007), capsule(0.049, (0, 0, -0.02), (0, 0, -0.32))
    yield _part(f"{side}_shin", f"{side}_thigh", (0, -0.01 * y, -0.383), [knee], [shin])
    ankle = [
        Hinge(f"{side}_ankle_y", Y, -50, 50, 100, 2, 0.006),
        Hinge(f"{side}_ankle_x", (1, 0, 0.5), -50, 50, 100, 2, 0.006),
    ]
    outer = capsule(0.027, (-0.07, 0.02 * y, -0.08), (0.14, 0.04 * y, -0.08), SAND)
    inner = capsule(0.027, (-0.07, 0, -0.08), (0.14, -0.02 * y, -0.08), SAND)
    yield _part(f"{side}_foot", f"{side}_shin", (0, 0, -0.33), ankle, [outer, inner])


def _arm(side: str, y: int) -> Iterator[Part]:
    hinges = [
        Hinge(f"{side}_shoulder1", (-2 * y, 1, -y), -60, 60, 100),
        Hinge(f"{side}_shoulder2", (0, -1, -y), -60, 60, 100),
    ]
    upper = [capsule(0.04, (0, 0, 0), (0.16, 0.16 * y, -0.16))]
    yield _part(f"{side}_upper_arm", "torso", (0, 0.17 * y, 0.06), hinges, upper)
    lower = [
        capsule(0.031, (0.01, -0.01 * y, 0.01), (0.17, -0.17 * y, 0.17)),
        sphere(0.04, (0.18, -0.18 * y, 0.18), SAND),
    ]
    elbow = Hinge(f"{side}_elbow", (0, -1, -y), -90, 50, 200, 2, 0.006)
    yield _part(f"{side}_lower_arm", f"{side}_upper_arm", (0.18, 0.18 * y, -0.18), [elbow], lower)


def _part(name: str, parent: str, at: Vector, hinges: Sequence[Hinge], shapes: Sequence[Shape]) -> Part:
    """Return a part and the hinges by which it hangs on another one, with links without mass between them."""
    names = [f"{name}_{k}" for k in range(1, len(hinges))] + [name]
    links = [link(n) for n in names[:-1]] + [solid(name, shapes, DENSITY)]
    joints = []
    for hinge, before, after in zip(hinges, [parent, *names], names, strict=False):
        limits = (math.radians(hinge.lower), math.radians(hinge.upper), math.inf, SCALE * hinge.strength)
        place, axis = (at if before == parent else (0, 0, 0)), hinge.axis
        told: Any = {"damping": DAMPING, "armature": hinge.armature, "stiffness": hinge.stiffness}
        joints.append(joint(hinge.name, "revolute", before, after, place, axis=axis, limits=limits, **told))
    return links, joints
