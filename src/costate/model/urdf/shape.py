"""The <visual> and <collision> elements of URDF: shapes and their colours."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from costate.core.arrays import Array, Color
from costate.model.document import Node
from costate.model.errors import Assumptions
from costate.model.shape import Shape
from costate.model.transform import Transform
from costate.model.urdf.element import add, number, read_origin, row, write_origin
from costate.model.urdf.mesh_path import Places

SIZES: dict[str, tuple[tuple[str, int], ...]] = {
    "sphere": (("radius", 1),),
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "ellipsoid": (("size", 3),),
    "plane": (),
    "mesh": (("scale", 3),),
}
"""Attributes that hold the sizes of each kind of shape, and how many numbers each has."""

_NOT_FOUND = "mesh files not found, so these shapes cannot be used"


@dataclass(frozen=True)
class ShapeContext:
    """Parts of a file that its shapes refer to."""

    places: Places
    materials: dict[str, Color]
    assumed: Assumptions


def read_materials(root: Node) -> dict[str, Color]:
    """Return all named colours of a file: the global materials, and those defined where they are first used."""
    materials: dict[str, Color] = {}
    for element in root.element.iter("material"):
        node = Node(element, root.file)
        color = _color(node)
        if color and node.element.get("name"):
            materials.setdefault(node.name(), color)
    return materials


def read_shapes(link: Node, tag: str, context: ShapeContext, friction: float | None) -> tuple[Shape, ...]:
    """Return the shapes of a link in its elements of a tag, "visual" or "collision"."""
    shapes = []
    for node in link.children(tag):
        geometry = node.require("geometry")
        form = next(geometry.children(), None) or geometry.fail(f"is empty; one of {', '.join(SIZES)} is expected")
        if form.tag in SIZES:
            shapes.append(_read(node, form, context, friction))
        else:
            context.assumed.note("shapes of an unknown kind, left out", f"<{form.tag}> (link {link.name()!r})")
    return tuple(shapes)


def _read(node: Node, form: Node, context: ShapeContext, friction: float | None) -> Shape:
    own = node.number("friction", -1.0)
    mesh = uri = None
    if form.tag == "mesh":
        uri = form.text("filename")
        mesh, refused = context.places.find(uri)
        if mesh is None:
            link = node.element.getparent().get("name")
            what = f"mesh files not read, so these shapes cannot be used: each {refused}" if refused else _NOT_FOUND
            context.assumed.note(what, f"{uri} (link {link!r})")
    pose = read_origin(node)
    if "from" in form.element.attrib:
        size, along = _bar(form)
        pose = pose @ along
    else:
        size = _size(form)
    return Shape(
        kind=form.tag,
        size=size,
        pose=pose,
        name=node.text("name", ""),
        color=_material(node, context),
        mesh=mesh,
        uri=uri,
        friction=own if own >= 0.0 else friction,
        end_radius=_end_radius(form),
    )


def _size(form: Node) -> Array:
    if form.tag == "mesh":
        return form.vector("scale", (1.0, 1.0, 1.0))
    sizes = [form.vector(a, (np.nan,) * n) if n > 1 else [form.number(a)] for a, n in SIZES[form.tag]]
    size = np.concatenate([np.zeros(0), *sizes])
    if not np.all(size >= 0.0):
        names = " and ".join(attribute for attribute, _ in SIZES[form.tag])
        form.fail(f"has the size {size}; {names} must be given and not negative")
    return size


def _bar(form: Node) -> tuple[Array, Transform]:
    """Return the sizes and the pose of a cylinder or capsule that is given by the two ends of its axis."""
    if form.tag not in ("cylinder", "capsule") or "length" in form.element.attrib:
        form.fail('has the attribute "from"; only a cylinder or capsule without "length" may have one')
    start, end = (form.vector(name, (np.nan,) * 3) for name in ("from", "to"))
    radius = form.number("radius")
    if np.isnan(end).any() or np.array_equal(start, end) or radius < 0.0:
        form.fail('needs a radius that is not negative, and "from" and "to" that differ')
    bar = Shape.between(form.tag, radius, start, end)
    return bar.size, bar.pose


def _end_radius(form: Node) -> float | None:
    """Return the radius at "to" of a bar that tapers in pictures."""
    if "from" not in form.element.attrib or "end_radius" not in form.element.attrib:
        return None
    radius = form.number("end_radius")
    if not radius > 0.0:
        form.fail("needs a positive end_radius")
    return radius


def _color(node: Node) -> Color | None:
    color = node.child("color")
    if color is None:
        return None
    r, g, b, a = color.vector("rgba", (1.0, 1.0, 1.0, 1.0))
    return float(r), float(g), float(b), float(a)


def _material(node: Node, context: ShapeContext) -> Color | None:
    material = node.child("material")
    if material is None:
        return None
    name = material.text("name", "")
    color = _color(material) or context.materials.get(name)
    if color is None and name and material.child("texture") is None:
        context.assumed.note("materials without a colour, drawn in the default one", name)
    return color


def write_shape(node: Any, shape: Shape, path: Path) -> None:
    """Fill a <visual> or <collision> element of the file that will be written to a path."""
    if shape.name:
        node.set("name", shape.name)
    if shape.friction is not None:
        node.set("friction", number(shape.friction))
    write_origin(node, shape.pose)
    form = add(add(node, "geometry"), shape.kind)
    if shape.kind == "mesh":
        form.set("filename", _mesh_name(shape, path))
    at = 0
    for attribute, count in SIZES[shape.kind]:
        form.set(attribute, row(shape.size[at : at + count]))
        at += count
    if shape.color:
        # A name of its own per colour, for readers that take equal names for equal materials.
        material = add(node, "material", name="rgba_" + "_".join(f"{c:.6g}" for c in shape.color))
        add(material, "color", rgba=row(shape.color))


def _mesh_name(shape: Shape, path: Path) -> str:
    if shape.mesh is None:
        return shape.uri or ""
    mesh, folder = Path(shape.mesh).resolve(), path.resolve().parent
    return os.path.relpath(mesh, folder) if folder in mesh.parents else str(mesh)
