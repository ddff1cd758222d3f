"""Shadow Dexterous Hand: a wrist of two joints and five fingers, 24 joints in all."""

from __future__ import annotations

import numpy as np

from costate.model.builtin.parts import DARK, GREY, INF, X, Y, box, capsule, cylinder, joint, link, robot
from costate.model.model import Inertia, Joint, Link, Model
from costate.model.rotation import from_wxyz

SOURCE = (
    "Shadow Robot's sr_description in the MuJoCo model of Kumar et al., as refined by OpenAI and shipped in "
    "gymnasium-robotics"
)

_TINY = 1e-05
"""Moment of inertia of all small parts about each axis [kg m^2]."""

# Parts of a finger: name, mass [kg], height of the centre of mass [m], radius and length of the bone [m]
_BONES = (
    ("knuckle", 0.008, 0.0, 0.0, 0.0),
    ("proximal", 0.014, 0.023, 0.01, 0.045),
    ("middle", 0.012, 0.012, 0.00805, 0.025),
    ("distal", 0.010, 0.015, 0.00705, 0.024),
)
# Where the knuckles are on the palm (the little finger's: on its metacarpal) [m]
_FINGERS = (
    ("ff", (0.033, 0, 0.095)),
    ("mf", (0.011, 0, 0.099)),
    ("rf", (-0.011, 0, 0.095)),
    ("lf", (-0.017, 0, 0.044)),
)

# The thumb: joint, part, mass, centre of mass, bone (radius, length), offset from the part before, axis, range [rad]
_THUMB = (
    ("THJ4", "thbase", 0.010, 0.0, None, (0.034, -0.009, 0.029), (0.0, 0.0, -1.0), (-1.047, 1.047)),
    ("THJ3", "thproximal", 0.016, 0.017, (0.013, 0.038), (0, 0, 0), X, (0.0, 1.222)),
    ("THJ2", "thhub", 0.002, 0.0, None, (0, 0, 0.038), X, (-0.209, 0.209)),
    ("THJ1", "thmiddle", 0.016, 0.016, (0.011, 0.032), (0, 0, 0), Y, (-0.524, 0.524)),
    ("THJ0", "thdistal", 0.016, 0.016, (0.00918, 0.026), (0, 0, 0.032), Y, (-1.571, 0.0)),
)


def shadow_hand() -> Model:
    forearm = [capsule(0.045, (0, 0, 0.03), (0, 0, 0.20), DARK, "forearm")]
    R = from_wxyz((0.982, -0.016, 0.0, -0.188))
    arm = Inertia(4.0, np.array([0.001, -0.002, 0.29]), R @ np.diag([0.01, 0.01, 0.0075]) @ R.T)
    palm = [
        box((0.064, 0.0222, 0.098), (0.011, 0, 0.038), DARK, "palm"),
        box((0.022, 0.0222, 0.05), (-0.032, 0, 0.014), DARK, "heel"),
    ]
    links: list[Link] = [
        Link("forearm", arm, tuple(forearm), tuple(forearm)),
        link("wrist", 0.3, (0.003, 0, 0.016), 0.001, [cylinder(0.015, (0, -0.02, 0), (0, 0.02, 0), GREY, "wrist")]),
        link("palm", 0.3, (0.006, 0, 0.036), 0.001, palm),
    ]
    joints = [
        _hinge("WRJ1", "forearm", "wrist", (0, 0, 0.256), Y, (-0.489, 0.14), 0.5, 0.005),
        _hinge("WRJ0", "wrist", "palm", (0, 0, 0.034), X, (-0.698, 0.489), 0.5, 0.005),
    ]
    metacarpal = [box((0.019, 0.0222, 0.05), (-0.0165, 0, 0.01), DARK, "lfmetacarpal")]
    for finger, at in _FINGERS:
        parent = "palm"
        if finger == "lf":
            links.append(link("lfmetacarpal", 0.075, (-0.014, 0.001, 0.014), _TINY, metacarpal))
            joints.append(_hinge("LFJ4", "palm", "lfmetacarpal", (-0.017, 0, 0.044), (0.571, 0, 0.821), (0, 0.785)))
            parent = "lfmetacarpal"
        _finger(links, joints, finger, parent, at)
    _thumb(links, joints)
    return robot("shadow_hand", links, joints, SOURCE)


def _hinge(name, parent, child, xyz, axis, limits, damping=0.1, armature=0.001, rpy=(0.0, 0.0, 0.0)) -> Joint:
    return joint(name, "revolute", parent, child, xyz, rpy, axis, (*limits, INF, INF), damping, 0.001, armature)


def _finger(links: list[Link], joints: list[Joint], finger: str, parent: str, at) -> None:
    """Knuckle (sideways), proximal, middle and distal bones, and the frame of the tip."""
    ranges = ((-0.349, 0.349), (0.0, 1.571), (0.0, 1.571), (0.0, 1.571))
    offsets = (at, (0, 0, 0), (0, 0, 0.045), (0, 0, 0.025))
    for k, (part, mass, height, radius, length) in enumerate(_BONES):
        name = finger + part
        # The first finger's middle bone is published with a slightly lower centre of mass.
        height = 0.011 if name == "ffmiddle" else height
        bone = [capsule(radius, (0, 0, 0), (0, 0, length), GREY, name)] if length else []
        links.append(link(name, mass, (0, 0, height), _TINY, bone))
        joints.append(_hinge(f"{finger.upper()}J{3 - k}", parent, name, offsets[k], X if k else Y, ranges[k]))
        parent = name
    links.append(link(f"{finger}tip"))
    joints.append(joint(f"{finger}tip_fixed", "fixed", parent, f"{finger}tip", (0, 0, 0.026)))


def _thumb(links: list[Link], joints: list[Joint]) -> None:
    parent = "palm"
    for name, part, mass, height, bone, at, axis, limits in _THUMB:
        shapes = [capsule(bone[0], (0, 0, 0), (0, 0, bone[1]), GREY, part)] if bone else []
        links.append(link(part, mass, (0, 0, height), _TINY, shapes))
        turn = (0, 0.785, 0) if part == "thbase" else (0, 0, 0)
        joints.append(_hinge(name, parent, part, at, axis, limits, rpy=turn))
        parent = part
    links.append(link("thtip"))
    joints.append(joint("thtip_fixed", "fixed", parent, "thtip", (0, 0, 0.0275)))
