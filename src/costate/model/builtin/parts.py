"""Constructors for robots made in code: links, joints, and shapes that are both drawn and touched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from costate.core.arrays import Array, Color, Vector
from costate.model.joint import Joint
from costate.model.model import Inertia, Link, Model
from costate.model.rotation import from_rpy
from costate.model.shape import Shape
from costate.model.transform import Transform
from costate.model.tree import order

ORIGIN: Vector = (0.0, 0.0, 0.0)
X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)

WHITE: Color = (0.92, 0.92, 0.92, 1.0)
GREY: Color = (0.55, 0.57, 0.60, 1.0)
DARK: Color = (0.17, 0.18, 0.20, 1.0)
BLUE: Color = (0.35, 0.55, 0.80, 1.0)
ORANGE: Color = (0.95, 0.50, 0.15, 1.0)
SAND: Color = (0.80, 0.60, 0.40, 1.0)


# Shapes, all in the link frame [m].


def sphere(radius: float, at: Vector = ORIGIN, color: Color = GREY, name: str = "") -> Shape:
    """Return a ball."""
    return Shape("sphere", np.array([radius]), Transform(translation=np.array(at)), name, color)


def box(size: Vector, at: Vector = ORIGIN, color: Color = GREY, name: str = "", rpy: Vector = ORIGIN) -> Shape:
    """Return a box of given edge lengths."""
    return Shape("box", np.array(size), Transform(from_rpy(rpy), np.array(at)), name, color)


def capsule(radius: float, start: Vector, end: Vector, color: Color = GREY, name: str = "") -> Shape:
    """Return a round bar whose caps are centred on its two ends."""
    return Shape.between("capsule", radius, start, end, color, name)


def cylinder(radius: float, start: Vector, end: Vector, color: Color = GREY, name: str = "") -> Shape:
    """Return a round bar with flat ends."""
    return Shape.between("cylinder", radius, start, end, color, name)


# Links and joints.


def link(
    name: str,
    mass: float = 0.0,
    com: ArrayLike = ORIGIN,
    inertia: ArrayLike = 0.0,
    shapes: Sequence[Shape] = (),
    visuals: Sequence[Shape] | None = None,
) -> Link:
    """Return a link. inertia: one moment, three, or xx, yy, zz, xy, xz, yz, about the centre of mass [kg m^2]."""
    moments = np.atleast_1d(np.asarray(inertia, float))
    xx, yy, zz = moments[:3] if len(moments) >= 3 else np.repeat(moments, 3)
    xy, xz, yz = moments[3:] if len(moments) == 6 else np.zeros(3)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    seen = tuple(shapes if visuals is None else visuals)
    return Link(name, Inertia(mass, np.array(com, float), matrix), seen, tuple(shapes))


def solid(name: str, shapes: Sequence[Shape], density: float) -> Link:
    """Return a link made of homogeneous balls, cylinders and capsules. density: [kg/m^3]; where they overlap, both count."""
    volumes = np.array([_volume(s) for s in shapes])
    com = volumes @ np.array([s.pose.translation for s in shapes]) / volumes.sum()
    mass = density * float(volumes.sum())
    return link(name, mass, com, moments_of(shapes, mass), shapes)


def joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    xyz: Vector = ORIGIN,
    rpy: Vector = ORIGIN,
    axis: Vector = Z,
    limits: tuple[float, float, float, float] | None = None,
    damping: float = 0.0,
    friction: float = 0.0,
    armature: float = 0.0,
    stiffness: float = 0.0,
) -> Joint:
    """Return a joint. limits: lower, upper [rad or m], velocity, effort; None for no limits."""
    lower, upper, velocity, effort = [[value] for value in limits] if limits else [[]] * 4
    return Joint(
        name,
        kind,
        parent,
        child,
        Transform(from_rpy(rpy), np.array(xyz, float)),
        np.array(axis, float) / np.linalg.norm(axis),
        np.array(lower),
        np.array(upper),
        np.array(velocity),
        np.array(effort),
        damping=damping,
        friction=friction,
        armature=armature,
        stiffness=stiffness,
    )


def robot(
    name: str, links: Sequence[Link], joints: Sequence[Joint], source: str, home: ArrayLike | None = None
) -> Model:
    """Return a robot. Its links and joints may be given in any order."""
    ordered_links, ordered_joints = order(name, {part.name: part for part in links}, list(joints))
    q = None if home is None else np.asarray(home, float)
    return Model(name, ordered_links, ordered_joints, source=source, home=q)


def moments_of(bars: Sequence[Shape], mass: float) -> Array:
    """Return xx, yy, zz, xy, xz, yz of homogeneous balls, cylinders and capsules of a total mass about their centre of mass."""
    parts = [(_volume(s), s.pose.translation, _moments(s)) for s in bars]
    volume = sum(m for m, _, _ in parts)
    com = sum((m * p for m, p, _ in parts), np.zeros(3)) / volume
    M = np.zeros((3, 3))
    for (m, p, unit), s in zip(parts, bars, strict=True):
        d, R = p - com, s.pose.rotation
        M += m * (R @ np.diag(unit) @ R.T + d @ d * np.eye(3) - np.outer(d, d))
    M = (M + M.T) / 2 * mass / volume
    return np.array([M[0, 0], M[1, 1], M[2, 2], M[0, 1], M[0, 2], M[1, 2]])


def _volume(s: Shape) -> float:
    r, h = _tube(s)
    return np.pi * r**2 * h + (0.0 if s.kind == "cylinder" else 4 / 3 * np.pi * r**3)


def _moments(s: Shape) -> Array:
    """Return the principal moments per unit mass in the shape's frame [m^2]."""
    r, h = _tube(s)
    tube = np.array([(3 * r**2 + h**2) / 12] * 2 + [r**2 / 2])
    if s.kind == "cylinder":
        return tube
    # Two half spheres, together a ball of share b; each has its centre of mass 3/8 r beyond the end of the tube.
    b = (4 / 3 * r) / (h + 4 / 3 * r)
    across = 0.4 * r**2 + h**2 / 4 + 3 / 8 * h * r
    return (1 - b) * tube + b * np.array([across, across, 0.4 * r**2])


def _tube(s: Shape) -> tuple[float, float]:
    """Return radius and length of the tube between the caps; a ball has caps alone."""
    return (s.size[0], 0.0) if s.kind == "sphere" else (s.size[0], s.size[1])
