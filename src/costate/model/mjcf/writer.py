"""Links, joints and shapes as elements of MJCF, from which scenes for MuJoCo are made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from costate.model.errors import ModelError
from costate.model.joint import Joint
from costate.model.model import Link, Model
from costate.model.shape import Shape
from costate.model.transform import Transform

JOINTS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "floating": "free", "spherical": "ball"}
"""MuJoCo's kind of joint by ours. A planar joint would be three of its joints."""
PRIMITIVES = ("sphere", "box", "cylinder", "capsule", "ellipsoid")


def add_body(parent: ET.Element, joint: Joint, link: Link, limits: bool = True, friction: bool = True) -> ET.Element:
    """Add a link and the joint that moves it, with the limits and the friction of the joint if they are asked for."""
    body = ET.SubElement(parent, "body", {"name": link.name} | pose(joint.origin))
    if joint.kind != "fixed":
        kind = {"name": joint.name, "type": JOINTS[joint.kind]}
        ET.SubElement(body, "joint", kind | _joint_numbers(joint, limits, friction))
    if link.inertia.mass > 0:
        I = link.inertia.matrix
        full = numbers((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
        mass = {"pos": numbers(link.inertia.com), "mass": repr(float(link.inertia.mass)), "fullinertia": full}
        ET.SubElement(body, "inertial", mass)
    return body


def _joint_numbers(joint: Joint, limits: bool, friction: bool) -> dict[str, str]:
    given = {k: repr(float(getattr(joint, k))) for k in ("damping", "armature", "stiffness")}
    if joint.nv != 1:
        return given
    given |= {"axis": numbers(joint.axis), "springref": repr(float(joint.rest))}
    if limits and np.isfinite([joint.lower[0], joint.upper[0]]).all():
        given["range"] = numbers((joint.lower[0], joint.upper[0]))
    if friction:
        given["frictionloss"] = repr(float(joint.friction))
    return given


def add_geom(body: ET.Element, shape: Shape, at: Transform, **attributes: str) -> ET.Element:
    """Add a shape. It touches only what a <pair> lists it with, unless attributes give it a contype or conaffinity."""
    form = {"type": shape.kind, "size": _size(shape), "contype": "0", "conaffinity": "0"}
    return ET.SubElement(body, "geom", form | pose(at) | attributes)


def _size(shape: Shape) -> str:
    """Return the sizes as MuJoCo wants them: half lengths."""
    s = shape.size
    if shape.kind in ("mesh", "socket", "chamfered_socket"):
        raise ModelError(f"shape {shape.name!r}: MJCF has no primitive for a {shape.kind}; make it of boxes")
    if shape.kind == "plane":
        return "0 0 1"
    if shape.kind == "box":
        return numbers(s / 2)
    return numbers(s if shape.kind in ("sphere", "ellipsoid") else (s[0], s[1] / 2))


def pose(at: Transform) -> dict[str, str]:
    """Return the attributes of a pose: a position, and an orientation as two of its axes, which needs no quaternion."""
    return {"pos": numbers(at.translation), "xyaxes": numbers(at.rotation.T[:2].ravel())}


def numbers(values: Iterable[float]) -> str:
    """Return numbers as text, with all their digits."""
    return " ".join(repr(float(v)) for v in values)


def write_mjcf(model: Model, path: str | Path) -> None:
    """Write a robot as MJCF: links, joints and shapes that are no meshes. It moves as the model does: damping, friction, armature,
    springs and gravity are kept; joints that follow others, actuators and pictures are not."""
    if any(joint.mimic is not None for joint in model.joints):
        raise ModelError(f"{model.name}: joints that follow others cannot be written as MJCF here; write a URDF")
    root = ET.Element("mujoco", model=model.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=numbers(model.gravity))
    places = {model.links[0].name: ET.SubElement(root, "worldbody")}
    for joint in model.joints:  # parents come first
        link = model.link(joint.child)
        body = places[link.name] = add_body(places[joint.parent], joint, link)
        for shape in link.collisions:
            if shape.kind in PRIMITIVES:
                add_geom(body, shape, shape.pose)
    ET.indent(root)
    Path(path).write_text(ET.tostring(root, encoding="unicode") + "\n", encoding="utf-8")
