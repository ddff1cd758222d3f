"""The <link> elements of URDF: inertia and shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.model.document import Node
from costate.model.model import Inertia, Link
from costate.model.transform import Transform
from costate.model.urdf.element import add, number, read_origin, write_origin
from costate.model.urdf.shape import ShapeContext, read_shapes, write_shape


def read_link(node: Node, context: ShapeContext) -> Link:
    """Return the link of a <link> element."""
    contact = node.child("contact")
    lateral = contact.child("lateral_friction") if contact else None
    friction = lateral.number("value") if lateral else None
    return Link(
        name=node.name(),
        inertia=_inertia(node),
        visuals=read_shapes(node, "visual", context, None),
        collisions=read_shapes(node, "collision", context, friction),
    )


def _inertia(node: Node) -> Inertia:
    inertial = node.child("inertial")
    if inertial is None:
        return Inertia()
    mass = inertial.require("mass").number("value")
    tensor = inertial.child("inertia")
    if tensor is None and mass != 0.0:
        inertial.fail("has a mass but no <inertia> element; add one")
    if mass < 0.0:
        inertial.fail(f"has the mass {mass}; it must not be negative")
    matrix = _matrix(tensor) if tensor else np.zeros((3, 3))
    pose = read_origin(inertial)
    return Inertia(mass, pose.translation, pose.rotation @ matrix @ pose.rotation.T)


def _matrix(node: Node) -> Array:
    xx, yy, zz = (node.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (node.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def write_link(root: Any, link: Link, moves: bool, path: Path) -> None:
    """Add a <link> element. A massless link that moves says so, or readers would take it for an omission."""
    node = add(root, "link", name=link.name)
    inertia = link.inertia
    if moves or inertia.mass or np.any(inertia.matrix) or np.any(inertia.com):
        inertial = add(node, "inertial")
        write_origin(inertial, Transform(translation=inertia.com))
        add(inertial, "mass", value=number(inertia.mass))
        entries = {
            f"i{a}{b}": inertia.matrix["xyz".index(a), "xyz".index(b)] for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
        }
        add(inertial, "inertia", **{name: number(value) for name, value in entries.items()})
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for shape in shapes:
            write_shape(add(node, tag), shape, path)
