"""KUKA LBR iiwa 7 R800, seven joints."""

from __future__ import annotations

from math import pi

from costate.model.builtin.parts import DARK, GREY, ORANGE, WHITE, capsule, cylinder, degrees, joint, link, robot
from costate.model.model import Model

SOURCE = "iiwa_stack (IFL-CAMP), as shipped in diff_robot_data of differentiable-robot-model"

# name, mass [kg], centre of mass [m], xx yy zz xy xz yz [kg m^2], far end of the link [m]
_LINKS = (
    ("iiwa_link_1", 3.4525, (0, -0.03, 0.12), (0.02183, 0.007703, 0.02083, 0, 0, -0.003887), (0, 0, 0.19)),
    ("iiwa_link_2", 3.4821, (0.0003, 0.059, 0.042), (0.02076, 0.02179, 0.00779, 0, -0.003626, 0), (0, 0.21, 0)),
    ("iiwa_link_3", 4.05623, (0, 0.03, 0.13), (0.03204, 0.00972, 0.03042, 0, 0, 0.006227), (0, 0, 0.19)),
    ("iiwa_link_4", 3.4822, (0, 0.067, 0.034), (0.02178, 0.02075, 0.007785, 0, 0, -0.003625), (0, 0.21, 0)),
    ("iiwa_link_5", 2.1633, (0.0001, 0.021, 0.076), (0.01287, 0.005708, 0.01112, 0, 0, -0.003946), (0, 0.03, 0.19)),
    ("iiwa_link_6", 2.3466, (0, 0.0006, 0.0004), (0.006509, 0.006259, 0.004527, 0, 0, 0.00031891), (0, 0.02, 0.05)),
)

# xyz [m], rpy [rad], range [deg]
_JOINTS = (
    ((0, 0, 0.15), (0, 0, 0), 170),
    ((0, 0, 0.19), (pi / 2, 0, pi), 120),
    ((0, 0.21, 0), (pi / 2, 0, pi), 170),
    ((0, 0, 0.19), (pi / 2, 0, 0), 120),
    ((0, 0.21, 0), (-pi / 2, pi, 0), 170),
    ((0, 0.0607, 0.19), (pi / 2, 0, 0), 120),
    ((0, 0.081, 0.0607), (-pi / 2, pi, 0), 175),
)


def iiwa7() -> Model:
    base = [cylinder(0.10, (0, 0, 0), (0, 0, 0.10), WHITE), cylinder(0.07, (0, 0, 0.10), (0, 0, 0.15), GREY)]
    links = [link("iiwa_link_0", 5.0, (-0.1, 0, 0.07), (0.05, 0.06, 0.03), base)]
    for i, (name, mass, com, inertia, end) in enumerate(_LINKS):
        color, radius = (ORANGE if i in (1, 3) else WHITE), (0.068 if i < 4 else 0.06)
        links.append(link(name, mass, com, inertia, [capsule(radius, (0, 0, 0), end, color)]))
    flange = [cylinder(0.045, (0, 0, 0), (0, 0, 0.045), DARK)]
    links.append(link("iiwa_link_7", 3.129, (0, 0, 0.02), (0.01464, 0.01465, 0.002872, 0.0005912, 0, 0), flange))
    links.append(link("iiwa_link_ee"))
    joints = []
    for i, (xyz, rpy, angle) in enumerate(_JOINTS, start=1):
        lower, upper = degrees(-angle, angle)
        limits = (lower, upper, 10.0, 300.0)
        ends = f"iiwa_link_{i - 1}", f"iiwa_link_{i}"
        joints.append(joint(f"iiwa_joint_{i}", "revolute", *ends, xyz, rpy, limits=limits, damping=0.5))
    joints.append(joint("iiwa_joint_ee", "fixed", "iiwa_link_7", "iiwa_link_ee", (0, 0, 0.045)))
    return robot("iiwa7", links, joints, SOURCE, home=(0, 0.6, 0, -1.4, 0, 1.1, 0))
