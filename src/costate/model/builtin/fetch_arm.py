"""The arm of the Fetch mobile manipulator, seven joints, on its base; without gripper."""

from __future__ import annotations

from costate.model.builtin.parts import BLUE, GREY, INF, WHITE, X, Y, Z, box, capsule, cylinder, joint, link, robot
from costate.model.model import Model

SOURCE = "fetch_description (Fetch Robotics), as shipped in diff_robot_data of differentiable-robot-model"

# name, mass [kg], centre of mass [m], xx yy zz xy xz yz [kg m^2], far end [m], radius [m]
_LINKS = (
    ("shoulder_pan_link", 2.5587, (0.0927, -0.0056, 0.0564), (0.0043, 0.0087, 0.0087, -0.0001, 0.001, -0.0001),
     (0.117, 0, 0.06), 0.06),
    ("shoulder_lift_link", 2.6615, (0.1432, 0.0072, -0.0001), (0.0028, 0.0111, 0.0112, -0.0021, 0, 0),
     (0.219, 0, 0), 0.055),
    ("upperarm_roll_link", 2.3311, (0.1165, 0.0014, 0), (0.0019, 0.0045, 0.0047, -0.0001, 0, 0), (0.133, 0, 0), 0.058),
    ("elbow_flex_link", 2.1299, (0.1279, 0.0073, 0), (0.0024, 0.0082, 0.0084, -0.0016, 0, 0), (0.197, 0, 0), 0.055),
    ("forearm_roll_link", 1.6563, (0.1097, -0.0266, 0), (0.0016, 0.003, 0.0035, -0.0003, 0, 0), (0.1245, 0, 0), 0.055),
    ("wrist_flex_link", 1.725, (0.0882, 0.0009, -0.0001), (0.0018, 0.0042, 0.0042, -0.0001, 0, 0), (0.11, 0, 0), 0.052),
)  # fmt: skip

# name, child, xyz [m], axis, lower, upper [rad], velocity [rad/s], effort [N m]
_JOINTS = (
    ("shoulder_pan_joint", "shoulder_pan_link", (0.119525, 0, 0.84858), Z, -1.6056, 1.6056, 1.256, 33.82),
    ("shoulder_lift_joint", "shoulder_lift_link", (0.117, 0, 0.06), Y, -1.221, 1.518, 1.454, 131.76),
    ("upperarm_roll_joint", "upperarm_roll_link", (0.219, 0, 0), X, -INF, INF, 1.571, 76.94),
    ("elbow_flex_joint", "elbow_flex_link", (0.133, 0, 0), Y, -2.251, 2.251, 1.521, 66.18),
    ("forearm_roll_joint", "forearm_roll_link", (0.197, 0, 0), X, -INF, INF, 1.571, 29.35),
    ("wrist_flex_joint", "wrist_flex_link", (0.1245, 0, 0), Y, -2.16, 2.16, 2.268, 25.7),
    ("wrist_roll_joint", "wrist_roll_link", (0.1385, 0, 0), X, -INF, INF, 2.268, 7.36),
)


def fetch_arm() -> Model:
    base = [cylinder(0.28, (0, 0, 0.01), (0, 0, 0.36), GREY), box((0.22, 0.28, 0.60), (-0.06, 0, 0.66), WHITE)]
    base_inertia = (1.225, 1.2853, 0.987, 0.0099, 0.0062, -0.0034)
    links = [link("base_link", 70.1294, (-0.0036, 0, 0.0014), base_inertia, base)]
    for i, (name, mass, com, inertia, end, radius) in enumerate(_LINKS):
        links.append(link(name, mass, com, inertia, [capsule(radius, (0, 0, 0), end, BLUE if i % 2 else WHITE)]))
    flange = [cylinder(0.04, (-0.01, 0, 0), (0.025, 0, 0), GREY)]
    links += [link("wrist_roll_link", 0.1354, (0.0095, 0.0004, -0.0002), 0.0001, flange), link("virtual_ee_link")]
    joints, parent = [], "base_link"
    for name, child, xyz, axis, lower, upper, velocity, effort in _JOINTS:
        limits = (lower, upper, velocity, effort)
        kind, damping = ("continuous", 5.0) if upper == INF else ("revolute", 1.0)
        joints.append(joint(name, kind, parent, child, xyz, axis=axis, limits=limits, damping=damping))
        parent = child
    joints.append(joint("virtual_ee_joint", "fixed", parent, "virtual_ee_link", (0, 0, 0.045)))
    return robot("fetch_arm", links, joints, SOURCE, home=(0.0, 0.6, 0.0, 0.9, 0.0, 0.6, 0.0))
