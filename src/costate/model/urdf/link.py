"""The <link> elements of URDF: inertia, shapes, colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from costate.model.document import Node
from costate.model.errors import Assumptions
from costate.model.mesh_path import find_mesh
from costate.model.model import Array, Inertia, Link, Shape, Transform
from costate.model.rotation import from_rpy

Color = tuple[float, float, float, float]

# Attributes that hold a shape's sizes, per kind; "size" is a vector of three. Meshes are read apart.
_SIZES: dict[str, tuple[str, ...]] = {
    "sphere": ("radius",),
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("size",),
    "plane": (),
    "mesh": (),
}

# Relative to the largest principal moment; files print about six digits.
_ROUNDED = 1e-5


@dataclass(frozen=True)
class LinkContext:
    """What reading a link needs to know about the rest of the file."""

    path: Path
    package_dirs: Sequence[str | Path]
    materials: dict[str, Color]
    assumed: Assumptions


def read_link(node: Node, context: LinkContext) -> Link:
    contact = node.child("contact")
    lateral = contact.child("lateral_friction") if contact else None
    friction = lateral.number("value") if lateral else None
    return Link(
        name=node.name(),
        inertia=_inertia(node, context.assumed),
        visuals=_shapes(node, "visual", context, None),
        collisions=_shapes(node, "collision", context, friction),
    )


def read_origin(node: Node) -> Transform:
    """Pose in the <origin> of an element; the identity if it has none."""
    origin = node.child("origin")
    if origin is None:
        return Transform()
    return Transform(from_rpy(origin.vector("rpy", (0.0, 0.0, 0.0))), origin.vector("xyz", (0.0, 0.0, 0.0)))


def read_materials(root: Node) -> dict[str, Color]:
    """All named colours of the file: the global materials, and those defined where they are first used."""
    materials: dict[str, Color] = {}
    for element in root.element.iter("material"):
        node = Node(element, root.file)
        color = _color(node)
        if color and node.element.get("name"):
            materials.setdefault(node.name(), color)
    return materials


def _color(node: Node) -> Color | None:
    color = node.child("color")
    if color is None:
        return None
    r, g, b, a = color.vector("rgba", (1.0, 1.0, 1.0, 1.0))
    return float(r), float(g), float(b), float(a)


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
    """No mass distribution has a negative moment, nor one that exceeds the sum of the other two."""
    low, middle, high = np.linalg.eigvalsh(matrix)
    if low < -_ROUNDED * abs(high) or high < 0.0:
        node.fail(f"has the principal moments {low:.6g}, {middle:.6g}, {high:.6g} kg m^2; none may be negative")
    if low + middle < high * (1 - _ROUNDED):
        assumed.note("inertias that no body can have (one principal moment exceeds the sum of the others), kept", link)
    if mass == 0.0 and high > 0.0:
        assumed.note("links with a rotational inertia but no mass, kept", link)


def _shapes(link: Node, tag: str, context: LinkContext, friction: float | None) -> tuple[Shape, ...]:
    shapes = []
    for node in link.children(tag):
        geometry = node.require("geometry")
        form = next(geometry.children(), None) or geometry.fail(f"is empty; one of {', '.join(_SIZES)} is expected")
        if form.tag in _SIZES:
            shapes.append(_shape(node, form, context, friction))
        else:
            context.assumed.note("shapes of an unknown kind, left out", f"<{form.tag}> (link {link.name()!r})")
    return tuple(shapes)


def _shape(node: Node, form: Node, context: LinkContext, friction: float | None) -> Shape:
    own = node.number("friction", -1.0)
    mesh = uri = None
    if form.tag == "mesh":
        uri = form.text("filename")
        mesh = find_mesh(uri, context.path, context.package_dirs)
        if mesh is None:
            link = node.element.getparent().get("name")
            context.assumed.note("mesh files not found, so these shapes cannot be used", f"{uri} (link {link!r})")
    return Shape(
        kind=form.tag,
        size=_size(form),
        pose=read_origin(node),
        name=node.text("name", ""),
        color=_material(node, context),
        mesh=mesh,
        uri=uri,
        friction=own if own >= 0.0 else friction,
    )


def _size(form: Node) -> Array:
    if form.tag == "mesh":
        return form.vector("scale", (1.0, 1.0, 1.0))
    sizes = [form.vector(a, (np.nan,) * 3) if a == "size" else [form.number(a)] for a in _SIZES[form.tag]]
    size = np.concatenate(sizes) if sizes else np.zeros(0)
    if not np.all(size >= 0.0):
        form.fail(f"has the size {size}; {' and '.join(_SIZES[form.tag])} must be given and not negative")
    return size


def _material(node: Node, context: LinkContext) -> Color | None:
    material = node.child("material")
    if material is None:
        return None
    name = material.text("name", "")
    color = _color(material) or context.materials.get(name)
    if color is None and name and material.child("texture") is None:
        context.assumed.note("materials without a colour, drawn in the default one", name)
    return color
