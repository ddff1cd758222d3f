"""Drawings: the shapes of a model as instances of meshes, each fixed to a link.

Each kind of shape says by which parts it is drawn (`parts` of its solid). Most are unit meshes with a scale, so that a scene of any
number of links shares a few meshes: viewers move thousands of instances of one mesh in one go.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from costate.collision.kinds import KINDS
from costate.collision.mesh.rounded import rounded_box, rounded_cylinder, tapered_capsule
from costate.collision.mesh.triangles import Mesh, unit_box
from costate.collision.shapes import Part
from costate.core.arrays import Array, Color
from costate.model import Link, Model, ModelError, Shape, Transform

PALETTE: tuple[Color, ...] = (
    (0.30, 0.50, 0.78, 1.0),
    (0.93, 0.55, 0.20, 1.0),
    (0.35, 0.65, 0.42, 1.0),
    (0.78, 0.36, 0.36, 1.0),
    (0.55, 0.45, 0.72, 1.0),
    (0.45, 0.62, 0.66, 1.0),
)
"""Colours of shapes that have none, link by link."""

COLLISION: Color = (0.95, 0.35, 0.25, 0.45)
"""Colour of collision shapes, which are drawn over the visual ones."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A mesh, scaled, coloured, and fixed to a link."""

    mesh: str
    """A key of `Drawing.meshes`."""
    link: int
    name: str
    """Name of the link."""
    pose: Array
    """Pose in the link frame, [R | p], shape (3, 4)."""
    scale: Array
    """Factors along the axes of the mesh, shape (3,)."""
    color: Color


@dataclass(frozen=True, eq=False)
class Drawing:
    """Everything that is drawn of a model."""

    links: tuple[str, ...]
    meshes: dict[str, Mesh]
    instances: tuple[Instance, ...]
    ground: float | None = None
    """Height of a horizontal plane among the shapes [m]."""

    @cached_property
    def link_index(self) -> np.ndarray:
        return np.array([i.link for i in self.instances], int)

    @cached_property
    def local(self) -> Array:
        """Poses in the link frames, shape (instances, 3, 4)."""
        return np.array([i.pose for i in self.instances]).reshape(-1, 3, 4)

    @cached_property
    def scales(self) -> Array:
        return np.array([i.scale for i in self.instances]).reshape(-1, 3)

    @cached_property
    def colors(self) -> Array:
        """RGBA in [0, 1], shape (instances, 4)."""
        return np.array([i.color for i in self.instances]).reshape(-1, 4)

    def place(self, link_poses: Array) -> Array:
        """Return poses of the instances in the world, (..., instances, 3, 4), from those of the links, (..., links, 3, 4)."""
        at = link_poses[..., self.link_index, :, :]
        R, p = at[..., :3], at[..., 3]
        rotation = R @ self.local[:, :, :3]
        position = np.einsum("...nij,nj->...ni", R, self.local[:, :, 3]) + p
        return np.concatenate([rotation, position[..., None]], -1)


def model_of(source: Any) -> Model:
    """Return the model behind a world, a robot or a model."""
    if isinstance(source, Model):
        return source
    if hasattr(source, "setup"):
        return source.setup.scene.model
    if hasattr(source, "model"):
        return source.model
    raise ValueError(f"a world, a robot or a model can be drawn; {type(source).__name__} given")


def draw_model(model: Model, collisions: bool = False) -> Drawing:
    """Draw the visual shapes of a model (the collision shapes of links without), or its collision shapes.

    A mesh file that is missing or cannot be read is warned of and drawn as a box with the inertia of its link.
    """
    return draw_links(model.links, collisions)


def draw_links(links: Sequence[Link], collisions: bool = False) -> Drawing:
    """Draw links, the first of which may hold the ground; otherwise as `draw_model` does."""
    sketch = _Sketch()
    for k, link in enumerate(links):
        shapes = link.collisions if collisions else (link.visuals or link.collisions)
        for shape in shapes:
            if k == 0 and _is_ground(shape):
                height = float(shape.pose.translation[2])
                sketch.ground = height if sketch.ground is None else max(height, sketch.ground)
            else:
                sketch.add(k, link, shape, COLLISION if collisions else shape.color or PALETTE[k % len(PALETTE)])
    return Drawing(tuple(link.name for link in links), sketch.meshes, tuple(sketch.instances), sketch.ground)


def _is_ground(shape: Shape) -> bool:
    return shape.kind == "plane" and shape.pose.rotation[2, 2] > 1 - 1e-9


@dataclass
class _Sketch:
    """A drawing in the making."""

    meshes: dict[str, Mesh] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    ground: float | None = None

    def add(self, k: int, link: Link, shape: Shape, color: Color) -> None:
        """Add the parts of a shape of link number k; a box with the link's inertia where they cannot be had."""
        try:
            parts = _finished(shape) or KINDS[shape.kind].parts(shape)
            for part in parts:
                if part.name not in self.meshes:
                    self.meshes[part.name] = part.mesh()
            pose = shape.pose
        except (ModelError, ImportError, ValueError, OSError) as error:
            warnings.warn(f"link {link.name!r} is drawn as a box: {error}", stacklevel=5)
            pose, edges = inertia_box(link)
            parts = [Part("box", unit_box, edges)]
            self.meshes.setdefault("box", unit_box())
        for part in parts:
            at = pose @ part.pose
            matrix = np.concatenate([at.rotation, np.reshape(at.translation, (3, 1))], axis=1)
            scale = np.broadcast_to(np.asarray(part.scale, float), 3)
            self.instances.append(Instance(part.name, k, link.name, matrix, scale, color))


def _finished(shape: Shape) -> list[Part]:
    """Return the parts of a shape that has rounded edges or tapers; none for others."""
    size, edge = tuple(map(float, shape.size)), shape.rounding
    if shape.kind == "box" and edge:
        return [_own("rounded box", lambda: rounded_box(shape.size, edge), (*size, edge))]
    if shape.kind in ("cylinder", "capsule") and (edge or shape.end_radius is not None):
        r, length = size
        end = r if shape.end_radius is None else shape.end_radius
        if shape.kind == "cylinder":
            return [_own("rounded bar", lambda: rounded_cylinder(r, end, length, edge), (r, end, length, edge))]
        if shape.end_radius is not None and abs(r - end) < length:
            return [_own("tapered", lambda: tapered_capsule(r, end, length), (r, end, length))]
    return []


def _own(name: str, mesh: Callable[[], Mesh], sizes: tuple[float, ...]) -> Part:
    """Return a part with a mesh of its size, which equal ones share."""
    return Part(" ".join([name, *(f"{x:.6g}" for x in sizes)]), mesh)


def inertia_box(link: Link) -> tuple[Transform, Array]:
    """Return pose and edges of the even box that has a link's mass and inertia; a cube of 5 cm for a link without."""
    m, axes, moments = principal(link)
    if m <= 0 or moments.max() <= 0:
        return Transform(translation=np.asarray(link.inertia.com, float)), np.full(3, 0.05)
    edges = np.sqrt(np.maximum(6 * (moments.sum() - 2 * moments) / m, 1e-6))
    return Transform(axes, np.asarray(link.inertia.com, float)), edges


def inertia_ellipsoid(link: Link) -> tuple[Transform, Array] | None:
    """Return pose and semi-axes of the even ellipsoid that has a link's mass and inertia; None without a mass."""
    m, axes, moments = principal(link)
    if m <= 0 or moments.max() <= 0:
        return None
    semi = np.sqrt(np.maximum(2.5 * (moments.sum() - 2 * moments) / m, 1e-6))
    return Transform(axes, np.asarray(link.inertia.com, float)), semi


def principal(link: Link) -> tuple[float, Array, Array]:
    """Return mass, principal axes as columns of a rotation, and principal moments."""
    moments, axes = np.linalg.eigh(link.inertia.matrix)
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return link.inertia.mass, axes, moments
