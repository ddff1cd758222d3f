"""Scenes: everything a world holds as one model, and which shapes may touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from costate.model import Inertia, Joint, Link, Model, Shape, Transform
from costate.model.merge import WORLD, merge
from costate.robot import Robot


@dataclass(frozen=True, eq=False)
class Body:
    """A free rigid body."""

    name: str
    shapes: Sequence[Shape]
    mass: float
    """[kg]."""
    inertia: np.ndarray | None = None
    """About the centre of mass, which is the origin [kg m^2], shape (3, 3); None: that of the first shape, solid and even."""
    joint: str = "floating"
    """How it may move in the world: a joint kind, "floating", "planar", "prismatic", ..."""
    axis: Sequence[float] = (0.0, 0.0, 1.0)
    """Of a joint that has one."""
    pose: Transform = field(default_factory=Transform)
    """Of the joint's frame in the world."""

    def model(self) -> Model:
        matrix = solid_inertia(self.shapes[0], self.mass) if self.inertia is None else np.asarray(self.inertia, float)
        link = Link("body", Inertia(self.mass, np.zeros(3), matrix), tuple(self.shapes), tuple(self.shapes))
        axis = np.asarray(self.axis, float)
        joint = Joint("joint", self.joint, WORLD, "body", self.pose, axis / np.linalg.norm(axis))
        return Model(self.name, (Link(WORLD), link), (joint,))


@dataclass(frozen=True, eq=False)
class Static:
    """A shape that does not move."""

    name: str
    shape: Shape
    pose: Transform = field(default_factory=Transform)


def solid_inertia(shape: Shape, mass: float) -> np.ndarray:
    """Of an even solid about its centre, in the axes of its link [kg m^2]."""
    s = np.asarray(shape.size, float)
    if shape.kind == "sphere":
        local = np.full(3, 0.4 * mass * s[0] ** 2)
    elif shape.kind == "box":
        local = mass / 12 * (np.sum(s**2) - s**2)
    elif shape.kind in ("cylinder", "capsule"):
        r, h = s
        if shape.kind == "capsule":
            h = h + 4 / 3 * r  # a cylinder of the same volume
        local = mass * np.array([(3 * r**2 + h**2) / 12] * 2 + [r**2 / 2])
    else:
        raise ValueError(f"the inertia of a {shape.kind} must be given: Body(..., inertia=...)")
    R = shape.pose.rotation
    return R @ np.diag(local) @ R.T


@dataclass(frozen=True, eq=False)
class Collider:
    """A shape of a link that may touch others."""

    name: str
    """link/number."""
    link: str
    owner: str
    """Robot, body or scenery it belongs to."""
    shape: Shape


@dataclass(frozen=True, eq=False)
class Scene:
    """One model of everything, and the pairs of shapes that may touch."""

    model: Model
    robots: Mapping[str, Robot]
    colliders: tuple[Collider, ...]
    pairs: tuple[tuple[int, int], ...]
    """Indices of colliders."""


PairRule = Callable[[str, str], bool]
"""Whether two links, by name, may touch."""


def make_scene(
    robots: Mapping[str, Robot],
    poses: Mapping[str, Transform],
    bodies: Sequence[Body],
    scenery: Sequence[Static],
    gravity: Sequence[float],
    self_collision: bool | Iterable[str],
    collide: PairRule | None,
) -> Scene:
    names = [*robots, *(b.name for b in bodies), *(s.name for s in scenery)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"names in a world must differ, but {', '.join(twice)} appears more than once: rename one")
    parts = [(n, r.model, poses.get(n, Transform())) for n, r in robots.items()]
    parts += [(b.name, b.model(), Transform()) for b in bodies]
    model = merge(WORLD, parts, [_placed(s) for s in scenery], np.asarray(gravity, float))
    colliders = _colliders(model, scenery)
    with_self = set(robots) if self_collision is True else set(self_collision or ())
    pairs = tuple(_pairs(model, colliders, with_self, collide))
    return Scene(model, robots, colliders, pairs)


def _placed(s: Static) -> Shape:
    pose = s.pose @ s.shape.pose
    return Shape(s.shape.kind, s.shape.size, pose, s.name, s.shape.color, s.shape.mesh, friction=s.shape.friction)


def _colliders(model: Model, scenery: Sequence[Static]) -> tuple[Collider, ...]:
    found = []
    for link in model.links:
        for k, shape in enumerate(link.collisions):
            owner = shape.name if link.name == WORLD else link.name.split("/")[0]
            name = shape.name if link.name == WORLD else f"{link.name}/{k}"
            found.append(Collider(name, link.name, owner, shape))
    return tuple(found)


def _pairs(model: Model, colliders: Sequence[Collider], with_self: set[str], collide: PairRule | None):
    """Pairs of shapes on links that move against each other: of different owners, or of one that collides with itself unless the
    links are neighbours."""
    group = _rigid_groups(model)
    neighbours = {frozenset((group[j.parent], group[j.child])) for j in model.joints}
    for (i, a), (j, b) in combinations(enumerate(colliders), 2):
        if group[a.link] == group[b.link] or (a.shape.kind == "plane" and b.shape.kind == "plane"):
            continue
        same = a.owner == b.owner
        if same and (a.owner not in with_self or frozenset((group[a.link], group[b.link])) in neighbours):
            continue
        base = frozenset((group[a.link], group[b.link])) in neighbours and WORLD in (group[a.link], group[b.link])
        if base and not _floats(model, a.link if b.link == WORLD else b.link):
            continue  # the first moving link of a fixed-base robot touches what its base stands on
        if collide is None or collide(a.link if a.link != WORLD else a.name, b.link if b.link != WORLD else b.name):
            yield i, j


def _rigid_groups(model: Model) -> dict[str, str]:
    """Link -> the link it is rigidly connected to that comes first."""
    group = {model.links[0].name: model.links[0].name}
    for j in model.joints:
        group[j.child] = group[j.parent] if j.kind == "fixed" else j.child
    return group


def _floats(model: Model, link: str) -> bool:
    """Whether the link is moved in the world by more than a joint of one coordinate."""
    joint = next(j for j in model.joints if j.child == link)
    return joint.nv != 1 or joint.name.endswith("/joint")
