"""The <link> elements of URDF: inertia and shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.model.document import Node
from costate.model.errors import Assumptions
from costate.model.model import Inertia, Link
from costate.model.transform import Transform
from costate.model.urdf.element import add, number, read_origin, write_origin
from costate.model.urdf.shape import ShapeContext, read_shapes, write_shape

_ROUNDED = 1e-5
"""Error of printed inertias relative to the largest principal moment: files print about six digits."""


def read_link(node: Node, context: ShapeContext) -> Link:
    """Return the link of a <link> element."""
    contact = node.child("contact")
    lateral = contact.child("lateral_friction") if contact else None
    friction = lateral.number("value") if lateral else None
    return Link(
        name=node.name(),
        inertia=_inertia(node, context.assumed),
        visuals=read_shapes(node, "visual", context, None),
        collisions=read_shapes(node, "collision", context, friction),
    )


def _inertia(node: Node, assumed: Assumptions) -> Inertia:
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
    _check_matrix(tensor or inertial, node.name(), mass, matrix, assumed)
    pose = read_origin(inertial)
    return Inertia(mass, pose.translation, pose.rotation @ matrix @ pose.rotation.T)


def _matrix(node: Node) -> Array:
    xx, yy, zz = (node.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (node.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _check_matrix(node: Node, link: str, mass: float, matrix: Array, assumed: Assumptions) -> None:
    """Refuse negative moments, and note a moment that exceeds the sum of the other two: no mass distribution has these."""
    low, middle, high = np.linalg.eigvalsh(matrix)
    if low < -_ROUNDED * abs(high) or high < 0.0:
        node.fail(f"has the principal moments {low:.6g}, {middle:.6g}, {high:.6g} kg m^2; none may be negative")
    if low + middle < high * (1 - _ROUNDED):
        assumed.note("inertias that no body can have (one principal moment exceeds the sum of the others), kept", link)
    if mass == 0.0 and high > 0.0:
        assumed.note("links with a rotational inertia but no mass, kept", link)


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
