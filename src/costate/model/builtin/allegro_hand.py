"""Wonik Robotics Allegro hand (left), four fingers of four joints."""

from __future__ import annotations

from math import pi

from costate.model.builtin.parts import DARK, WHITE, X, Y, Z, box, joint, link, robot, sphere
from costate.model.model import Model

SOURCE = (
    "allegro_hand_description (SimLab), as shipped in diff_robot_data of differentiable-robot-model, with small "
    "damping; its Coulomb friction, larger than what the motors can overcome, is left out"
)

# Per joint of a finger: length of the bone it moves [m], mass [kg], xx yy zz [kg m^2], lower, upper [rad]
_FINGER = (
    (0.0164, 0.0119, (1.01666658333e-06, 6.47677333333e-07, 1.01666658333e-06), -0.47, 0.47),
    (0.0540, 0.0650, (7.95654166667e-05, 2.47088833333e-05, 7.95654166667e-05), -0.196, 1.61),
    (0.0384, 0.0355, (2.63979183333e-05, 1.34948516667e-05, 2.63979183333e-05), -0.174, 1.709),
    (0.0267, 0.0096, (4.701248e-06, 3.649312e-06, 4.701248e-06), -0.227, 1.618),
)
_THUMB = (
    (0.0455, 0.0176, (1.89273333333e-05, 1.43008213333e-05, 1.89273333333e-05), 0.263, 1.396),
    (0.0177, 0.0119, (4.24250866667e-06, 4.52362633333e-06, 4.24250866667e-06), -0.105, 1.163),
    (0.0514, 0.0380, (4.30439933333e-05, 1.44451933333e-05, 4.30439933333e-05), -0.189, 1.644),
    (0.0423, 0.0388, (3.29223173333e-05, 1.47493026667e-05, 3.29223173333e-05), -0.162, 1.719),
)

# First joint number; where the finger starts on the palm: xyz [m], rpy [rad]
_FINGERS = ((8, (0, 0.0435, -0.001542), (-pi / 36, 0, 0)), (4, (0, 0, 0.0007), (0, 0, 0)),
            (0, (0, -0.0435, -0.001542), (pi / 36, 0, 0)))  # fmt: skip
_TIP = 0.012


def allegro_hand() -> Model:
    palm = [box((0.0408, 0.113, 0.095), (-0.0093, 0, -0.0475), DARK)]
    links, joints = [link("palm_link", 0.4154, (0, 0, 0.0475), 0.0001, palm)], []
    for number, xyz, rpy in _FINGERS:
        places = [(xyz, rpy, Z), *(((0, 0, bone[0]), (0, 0, 0), Y) for bone in _FINGER[:3])]
        _finger(links, joints, number, _FINGER, places)
    thumb_start = ((-0.0182, -0.019333, -0.045987), (0, -95 * pi / 180, pi / 2), X)
    places = [thumb_start, ((-0.027, -0.005, 0.0399), (0, 0, 0), (0.0, 0.0, -1.0)),
              ((0, 0, 0.0177), (0, 0, 0), Y), ((0, 0, 0.0514), (0, 0, 0), Y)]  # fmt: skip
    _finger(links, joints, 12, _THUMB, places)
    return robot("allegro_hand", links, joints, SOURCE)


def _finger(links, joints, number: int, bones, places) -> None:
    """Add a finger: its joints number, number + 1, ... and a round fixed tip."""
    parent = "palm_link"
    for k, ((length, mass, inertia, lower, upper), (xyz, rpy, axis)) in enumerate(zip(bones, places, strict=True)):
        name = f"{number + k}.0"
        thumb_base = bones is _THUMB and k == 0
        bone = box((0.0358, 0.034, 0.0455), (-0.0179, -0.009, 0.0145), DARK) if thumb_base else box(
            (0.0196, 0.0275, length), (0, 0, length / 2), DARK)  # fmt: skip
        links.append(link(f"link_{name}", mass, inertia=inertia, shapes=[bone]))
        limits = (lower, upper, 7.0, 15.0)
        joints.append(joint(f"joint_{name}", "revolute", parent, f"link_{name}", xyz, rpy, axis, limits, damping=0.1))
        parent = f"link_{name}"
    tip = sphere(_TIP, color=WHITE, name=f"{parent}_tip")
    links.append(link(f"{parent}_tip", 0.0168, inertia=9.68e-07, shapes=[tip]))
    joints.append(joint(f"joint_{number + 3}.0_tip", "fixed", parent, f"{parent}_tip", (0, 0, bones[3][0])))
