"""Franka Emika Panda with its hand: seven joints and a gripper whose fingers move together."""

from __future__ import annotations

from dataclasses import replace
from math import pi

from costate.model.builtin.parts import DARK, GREY, WHITE, Y, box, capsule, cylinder, joint, link, moments_of, robot
from costate.model.model import Mimic, Model

SOURCE = (
    "franka_ros, as shipped in diff_robot_data of differentiable-robot-model: masses, centres of mass, joints, limits. "
    "That file has placeholders (0.1 kg m^2) as inertias; here they follow from the masses and our shapes"
)

# name, mass [kg], centre of mass [m], shapes
_LINKS = (
    ("panda_link0", 2.9, (0, 0, 0.05), [cylinder(0.08, (0, 0, 0), (0, 0, 0.14), WHITE),
                                        box((0.11, 0.16, 0.06), (-0.09, 0, 0.03), WHITE)]),
    ("panda_link1", 2.7, (0, -0.04, -0.05), [capsule(0.06, (0, 0, -0.19), (0, 0, 0), WHITE),
                                             capsule(0.06, (0, 0, 0), (0, -0.06, 0), WHITE)]),
    ("panda_link2", 2.73, (0, -0.04, 0.06), [capsule(0.06, (0, 0, 0), (0, 0, 0.06), WHITE),
                                             capsule(0.06, (0, 0, 0), (0, -0.19, 0), WHITE)]),
    ("panda_link3", 2.04, (0.01, 0.01, -0.05), [capsule(0.055, (0, 0, -0.10), (0, 0, 0), WHITE),
                                                capsule(0.055, (0, 0, 0), (0.0825, 0.04, 0), WHITE)]),
    ("panda_link4", 2.08, (-0.03, 0.03, 0.02), [capsule(0.055, (0, 0, 0), (0, 0, 0.05), WHITE),
                                                capsule(0.055, (0, 0, 0), (-0.0825, 0.12, 0), WHITE)]),
    ("panda_link5", 3.0, (0, 0.04, -0.12), [capsule(0.05, (0, 0, -0.24), (0, 0.02, -0.16), WHITE),
                                            capsule(0.04, (0, 0.06, -0.15), (0, 0.05, 0.0), WHITE)]),
    ("panda_link6", 1.3, (0.04, 0, 0), [capsule(0.05, (0, 0, -0.02), (0, 0, 0.02), WHITE),
                                        capsule(0.045, (0, 0, 0), (0.088, 0, 0), WHITE)]),
    ("panda_link7", 0.2, (0, 0, 0.08), [cylinder(0.045, (0, 0, 0.05), (0, 0, 0.107), GREY)]),
    ("panda_hand", 0.81, (0, 0, 0.04), [box((0.06, 0.20, 0.055), (0, 0, 0.03), WHITE)]),
    ("panda_leftfinger", 0.1, (0, 0.01, 0.02), [box((0.02, 0.016, 0.045), (0, 0.009, 0.025), DARK)]),
    ("panda_rightfinger", 0.1, (0, -0.01, 0.02), [box((0.02, 0.016, 0.045), (0, -0.009, 0.025), DARK)]),
)  # fmt: skip

# xyz [m], rpy [rad], lower, upper [rad]
_JOINTS = (
    ((0, 0, 0.333), (0, 0, 0), -2.9671, 2.9671),
    ((0, 0, 0), (-pi / 2, 0, 0), -1.8326, 1.8326),
    ((0, -0.316, 0), (pi / 2, 0, 0), -2.9671, 2.9671),
    ((0.0825, 0, 0), (pi / 2, 0, 0), -3.1416, 0.0873),
    ((-0.0825, 0.384, 0), (-pi / 2, 0, 0), -2.9671, 2.9671),
    ((0, 0, 0), (pi / 2, 0, 0), -0.0873, 3.8223),
    ((0.088, 0, 0), (pi / 2, 0, 0), -2.9671, 2.9671),
)
_FINGER = (0.0, 0.04, 0.2, 20.0)


def panda() -> Model:
    links = [link(name, mass, com, moments_of(shapes, mass), shapes) for name, mass, com, shapes in _LINKS]
    links += [link("panda_link8"), link("panda_virtual_ee_link")]
    joints = []
    for i, (xyz, rpy, lower, upper) in enumerate(_JOINTS, start=1):
        limits = (lower, upper, *((2.3925, 87.0) if i < 5 else (2.871, 12.0)))
        ends = f"panda_link{i - 1}", f"panda_link{i}"
        joints.append(joint(f"panda_joint{i}", "revolute", *ends, xyz, rpy, limits=limits))
    hand, left, right, out = "panda_hand", "panda_leftfinger", "panda_rightfinger", (0, 0, 0.0584)
    follower = joint("panda_finger_joint2", "prismatic", hand, right, out, axis=(0, -1, 0), limits=_FINGER)
    joints += [
        joint("panda_joint8", "fixed", "panda_link7", "panda_link8", (0, 0, 0.107)),
        joint("panda_hand_joint", "fixed", "panda_link8", hand, rpy=(0, 0, -pi / 4)),
        joint("panda_finger_joint1", "prismatic", hand, left, out, axis=Y, limits=_FINGER),
        replace(follower, mimic=Mimic("panda_finger_joint1")),
        joint("panda_virtual_ee_joint", "fixed", hand, "panda_virtual_ee_link", (0, 0, 0.105)),
    ]
    home = (0, -pi / 4, 0, -3 * pi / 4, 0, pi / 2, pi / 4, 0.02)
    return robot("panda", links, joints, SOURCE, home)
