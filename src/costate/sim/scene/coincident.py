"""Static shapes that coincide: what touches one of them touches all, and would be held by each of them.

The ground of a file comes with a robot that is fixed to it, may be given as scenery as well, and comes again with a second robot of
that file. Shapes that are alike in everything count once; those that only lie in the same place are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from costate.core.arrays import Array
from costate.model import Model, Shape, Transform
from costate.model.merge import WORLD
from costate.model.surface import Surface

if TYPE_CHECKING:
    from costate.sim.scene.scene import Collider

NEAR = 1e-9
"""Largest difference of poses [m or 1] and sizes [m] of shapes that coincide."""

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Merged:
    """Shapes and pairs, each once."""

    model: Model
    colliders: tuple[Collider, ...]
    pairs: tuple[Pair, ...]
    listed: Mapping[Pair, Surface]


def merge_coincident(
    model: Model,
    colliders: Sequence[Collider],
    pairs: Sequence[Pair],
    listed: Mapping[Pair, Surface],
    moved: Collection[str] = (),
) -> Merged:
    """Return what is left when of static shapes that are alike only one is kept, scenery before those of robots.

    moved: names of shapes that parameters move, which are left alone.
    """
    kept = _kept(model, colliders, moved)
    _refuse(colliders, pairs, kept)
    same = {k: first for k, (first, alike) in kept.items() if alike}
    left = [k for k in range(len(colliders)) if same.get(k, k) == k]
    number = {k: left.index(same.get(k, k)) for k in range(len(colliders))}

    def renumbered(pair: Pair) -> Pair:
        i, j = number[pair[0]], number[pair[1]]
        return min(i, j), max(i, j)

    return Merged(
        _without(model, [colliders[k] for k in same]),
        tuple(colliders[k] for k in left),
        tuple(dict.fromkeys(map(renumbered, pairs))),
        {renumbered(pair): surface for pair, surface in listed.items()},
    )


def _kept(model: Model, colliders: Sequence[Collider], moved: Collection[str]) -> dict[int, tuple[int, bool]]:
    """Return static shape -> the one before it with which it coincides, and whether the two touch alike."""
    poses = _static_poses(model)
    still = [(k, c) for k, c in enumerate(colliders) if c.link in poses and c.name not in moved]
    places = {k: _place(c, poses[c.link] @ c.pose) for k, c in still}
    order = sorted(places, key=lambda k: colliders[k].link != WORLD)  # scenery first
    found: dict[int, tuple[int, bool]] = {}
    for i, j in combinations(order, 2):
        if i not in found and j not in found and _coincide(colliders[i], colliders[j], places[i], places[j]):
            found[j] = i, _touch_alike(colliders[i], colliders[j])
    return found


def _static_poses(model: Model) -> dict[str, Transform]:
    """Return link -> pose in the world, for all links that do not move."""
    poses = {model.links[0].name: Transform()}
    for j in model.joints:
        if j.kind == "fixed" and j.parent in poses:
            poses[j.child] = poses[j.parent] @ j.origin
    return poses


def _place(c: Collider, pose: Transform) -> Array:
    """Return the numbers that say where a shape is, and how large."""
    if c.is_endless:  # a plane is the same wherever in it its origin lies
        normal = pose.rotation[:, 2]
        return np.append(normal, normal @ pose.translation)
    size = c.shape.size if isinstance(c.shape, Shape) else np.zeros(0)
    return np.concatenate([size, pose.rotation.ravel(), pose.translation])


def _coincide(a: Collider, b: Collider, at: Array, other: Array) -> bool:
    x, y = a.shape, b.shape
    if not isinstance(x, Shape) or not isinstance(y, Shape):
        return x is y and at.shape == other.shape and bool(np.abs(at - other).max() < NEAR)
    if (x.kind, x.mesh, x.contact) != (y.kind, y.mesh, y.contact) or np.abs(at - other).max() >= NEAR:
        return False
    return x.heights is y.heights or np.array_equal(x.heights, y.heights)  # type: ignore[arg-type]


def _touch_alike(a: Collider, b: Collider) -> bool:
    return a.surface == b.surface and a.friction == b.friction


def _refuse(colliders: Sequence[Collider], pairs: Sequence[Pair], kept: Mapping[int, tuple[int, bool]]) -> None:
    """Raise an error where something would touch two shapes in one place that are not alike."""
    touching: dict[int, set[int]] = {}
    for i, j in pairs:
        touching.setdefault(i, set()).add(j)
        touching.setdefault(j, set()).add(i)
    for k, (first, alike) in kept.items():
        both = touching.get(k, set()) & touching.get(first, set())
        if both and not alike:
            a, b, touched = colliders[first], colliders[k], colliders[min(both)]
            raise ValueError(
                f"the static shapes '{a.name}' and '{b.name}' lie in the same place and have different friction or softness; "
                f"'{touched.name}' would touch both at once: leave one of them out, or name the pairs that may touch by collide="
            )


def _without(model: Model, left_out: Sequence[Collider]) -> Model:
    """Return the model without shapes that another one stands for."""
    if not left_out:
        return model
    gone = {id(c.shape) for c in left_out if c.link != WORLD}
    links = [
        replace(
            link,
            visuals=tuple(s for s in link.visuals if id(s) not in gone),
            collisions=tuple(s for s in link.collisions if id(s) not in gone),
        )
        if any(c.link == link.name for c in left_out)
        else link
        for link in model.links
    ]
    return replace(model, links=tuple(links))
