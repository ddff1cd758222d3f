"""Writes URDF files, such that reading them gives the same robot.

What plain URDF cannot say is written in further attributes, which other readers pass over; docs/robots.md lists them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.model.model import Array, Joint, Link, Model, Shape, Transform
from costate.model.rotation import to_rpy

_UNLIMITED = np.finfo(float).max
"""Written for an infinite limit: other readers want a number."""
_EARTH = np.array([0.0, 0.0, -9.81])

# Attributes of a shape's element, and which of its sizes go into them.
_SIZES: dict[str, tuple[tuple[str, slice], ...]] = {
    "sphere": (("radius", slice(0, 1)),),
    "box": (("size", slice(0, 3)),),
    "cylinder": (("radius", slice(0, 1)), ("length", slice(1, 2))),
    "capsule": (("radius", slice(0, 1)), ("length", slice(1, 2))),
    "ellipsoid": (("size", slice(0, 3)),),
    "mesh": (("scale", slice(0, 3)),),
    "plane": (),
}


def write_urdf(model: Model, path: str | Path) -> None:
    """Write a robot to a URDF file. Meshes that lie below it are named relative to it, others by their full path."""
    path = Path(path)
    root = etree.Element("robot", name=model.name)
    if not np.array_equal(model.gravity, _EARTH):
        _add(root, "gravity", xyz=_row(model.gravity))
    moved_by = {j.child: j for j in model.joints}
    for link in model.links:
        _write_link(root, link, moved_by.get(link.name), path)
    for joint in model.joints:
        _write_joint(root, joint)
    path.write_bytes(etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="utf-8"))


def _write_link(root: Any, link: Link, joint: Joint | None, path: Path) -> None:
    node = _add(root, "link", name=link.name)
    inertia = link.inertia
    # A massless link that moves says so, or readers would take it for an omission.
    moves = joint is not None and joint.kind != "fixed"
    if moves or inertia.mass or np.any(inertia.matrix) or np.any(inertia.com):
        inertial = _add(node, "inertial")
        _origin(inertial, Transform(translation=inertia.com))
        _add(inertial, "mass", value=_number(inertia.mass))
        entries = {
            f"i{a}{b}": inertia.matrix["xyz".index(a), "xyz".index(b)] for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
        }
        _add(inertial, "inertia", **{name: _number(value) for name, value in entries.items()})
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for shape in shapes:
            _write_shape(_add(node, tag), shape, path)


def _write_shape(node: Any, shape: Shape, path: Path) -> None:
    if shape.name:
        node.set("name", shape.name)
    if shape.friction is not None:
        node.set("friction", _number(shape.friction))
    _origin(node, shape.pose)
    form = _add(_add(node, "geometry"), shape.kind)
    if shape.kind == "mesh":
        form.set("filename", _mesh_name(shape, path))
    for attribute, part in _SIZES[shape.kind]:
        form.set(attribute, _row(shape.size[part]))
    if shape.color:
        # A name of its own per colour, for readers that take equal names for equal materials.
        material = _add(node, "material", name="rgba_" + "_".join(f"{c:.6g}" for c in shape.color))
        _add(material, "color", rgba=_row(shape.color))


def _mesh_name(shape: Shape, path: Path) -> str:
    if shape.mesh is None:
        return shape.uri or ""
    mesh, folder = Path(shape.mesh).resolve(), path.resolve().parent
    return os.path.relpath(mesh, folder) if folder in mesh.parents else str(mesh)


def _write_joint(root: Any, joint: Joint) -> None:
    node = _add(root, "joint", name=joint.name, type=joint.kind)
    _origin(node, joint.origin)
    _add(node, "parent", link=joint.parent)
    _add(node, "child", link=joint.child)
    if joint.kind in ("revolute", "continuous", "prismatic", "planar"):
        _add(node, "axis", xyz=_row(joint.axis))
    if joint.kind != "fixed":
        _write_limits(node, joint)
    dynamics = {k: getattr(joint, k) for k in ("damping", "friction", "armature", "stiffness", "rest")}
    if any(dynamics.values()):
        _add(node, "dynamics", **{k: _number(v) for k, v in dynamics.items() if v or k in ("damping", "friction")})
    if joint.mimic:
        multiplier, offset = _number(joint.mimic.multiplier), _number(joint.mimic.offset)
        _add(node, "mimic", joint=joint.mimic.joint, multiplier=multiplier, offset=offset)


def _write_limits(node: Any, joint: Joint) -> None:
    limits = {"effort": joint.max_effort, "velocity": joint.max_velocity}
    if joint.kind != "continuous":
        limits |= {"lower": joint.lower, "upper": joint.upper}
    if joint.kind in ("revolute", "prismatic") or any(np.any(np.isfinite(v)) for v in limits.values()):
        _add(node, "limit", **{name: _row(np.clip(v, -_UNLIMITED, _UNLIMITED)) for name, v in limits.items()})


def _origin(node: Any, pose: Transform) -> None:
    rpy = np.zeros(3) if np.array_equal(pose.rotation, np.eye(3)) else to_rpy(pose.rotation)
    if np.any(rpy) or np.any(pose.translation):
        _add(node, "origin", xyz=_row(pose.translation), rpy=_row(rpy))


def _add(parent: Any, tag: str, **attributes: str) -> Any:
    return etree.SubElement(parent, tag, **attributes)


def _row(values: Array | Iterable[float]) -> str:
    return " ".join(_number(value) for value in values)


def _number(value: float) -> str:
    """The shortest decimal that reads back as the same number."""
    return repr(float(value) + 0.0)
