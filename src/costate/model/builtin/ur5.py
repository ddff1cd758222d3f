"""Universal Robots UR5, six joints."""

from __future__ import annotations

from math import pi

from costate.model.builtin.parts import BLUE, GREY, WHITE, Y, capsule, cylinder, joint, link, robot
from costate.model.model import Model

SOURCE = (
    "ROS-Industrial ur_description: offsets, masses, centres of mass, limits, and inertias of cylinders; those of the "
    "wrists have a radius of 0.6 m there, which can only be a slip, and 0.06 m here as all the others"
)

_SHOULDER = (-2 * pi, 2 * pi, 3.15, 150.0)
_ELBOW = (-pi, pi, 3.15, 150.0)
_WRIST = (-2 * pi, 2 * pi, 3.2, 28.0)
_WRIST_INERTIA = (0.0025599, 0.0025599, 0.0021942)


def ur5() -> Model:
    down = (0.0, pi / 2, 0.0)
    links = (
        link("base_link", 4.0, inertia=(0.00443333156, 0.00443333156, 0.0072), shapes=[
            cylinder(0.075, (0, 0, 0), (0, 0, 0.035), GREY)]),
        link("shoulder_link", 3.7, inertia=(0.010267495893, 0.010267495893, 0.00666), shapes=[
            capsule(0.058, (0, 0, -0.01), (0, 0, 0.0), WHITE), cylinder(0.059, (0, 0.02, 0), (0, 0.075, 0), BLUE)]),
        link("upper_arm_link", 8.393, (0, 0, 0.28), (0.22689067591, 0.22689067591, 0.0151074), [
            capsule(0.057, (0, -0.02, 0), (0, 0.02, 0), WHITE),
            capsule(0.05, (0, 0, 0.05), (0, 0, 0.38), GREY),
            capsule(0.055, (0, -0.03, 0.425), (0, 0.02, 0.425), WHITE)]),
        link("forearm_link", 2.275, (0, 0, 0.25), (0.049443313556, 0.049443313556, 0.004095), [
            capsule(0.052, (0, -0.01, 0), (0, 0.03, 0), WHITE),
            capsule(0.042, (0, 0, 0.05), (0, 0, 0.36), GREY)]),
        link("wrist_1_link", 1.219, inertia=_WRIST_INERTIA, shapes=[capsule(0.042, (0, 0, 0), (0, 0.093, 0), WHITE)]),
        link("wrist_2_link", 1.219, inertia=_WRIST_INERTIA, shapes=[capsule(0.042, (0, 0, 0), (0, 0, 0.09465), WHITE)]),
        link("wrist_3_link", 0.1879, inertia=(0.00039459, 0.00039459, 0.00033822), shapes=[
            cylinder(0.037, (0, 0.04, 0), (0, 0.0823, 0), BLUE)]),
        link("ee_link"),
        link("tool0"),
    )  # fmt: skip
    joints = (
        joint("shoulder_pan_joint", "revolute", "base_link", "shoulder_link", (0, 0, 0.089159), limits=_SHOULDER),
        joint(
            "shoulder_lift_joint", "revolute", "shoulder_link", "upper_arm_link", (0, 0.13585, 0), down, Y, _SHOULDER
        ),
        joint("elbow_joint", "revolute", "upper_arm_link", "forearm_link", (0, -0.1197, 0.425), axis=Y, limits=_ELBOW),
        joint("wrist_1_joint", "revolute", "forearm_link", "wrist_1_link", (0, 0, 0.39225), down, Y, _WRIST),
        joint("wrist_2_joint", "revolute", "wrist_1_link", "wrist_2_link", (0, 0.093, 0), limits=_WRIST),
        joint("wrist_3_joint", "revolute", "wrist_2_link", "wrist_3_link", (0, 0, 0.09465), axis=Y, limits=_WRIST),
        joint("ee_fixed_joint", "fixed", "wrist_3_link", "ee_link", (0, 0.0823, 0), (0, 0, pi / 2)),
        joint("tool0_fixed_joint", "fixed", "wrist_3_link", "tool0", (0, 0.0823, 0), (-pi / 2, 0, 0)),
    )
    return robot("ur5", links, joints, SOURCE, home=(0, -pi / 2, pi / 2, -pi / 2, -pi / 2, 0))
