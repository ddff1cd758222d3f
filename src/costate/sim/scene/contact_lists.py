"""Contact lists of robots' files: pairs of shapes that touch in a way of their own, and pairs that never touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from costate.model import Model, Shape
from costate.model.surface import Surface

if TYPE_CHECKING:
    from costate.sim.scene.scene import Collider

Pair = tuple[int, int]
"""Indices of colliders, the smaller one first."""


@dataclass(frozen=True)
class ContactLists:
    """Pairs of colliders with rules of their own."""

    listed: Mapping[Pair, Surface]
    excluded: Set[Pair]


def contact_lists(models: Mapping[str, Model], colliders: Sequence[Collider]) -> ContactLists:
    """Collect the lists of all models, which are given by the names of their robots."""
    listed: dict[Pair, Surface] = {}
    excluded: set[Pair] = set()
    for robot, model in models.items():
        own = [(k, c) for k, c in enumerate(colliders) if c.owner == robot or _stands_in(model, c)]
        links: dict[str, list[int]] = {}
        shapes: dict[str, list[int]] = {}
        for k, c in own:
            link = c.link.removeprefix(f"{robot}/") if c.owner == robot else model.links[0].name
            links.setdefault(link, []).append(k)
            if isinstance(c.shape, Shape):
                shapes.setdefault(c.shape.name, []).append(k)
        for a, b in model.excluded:
            excluded.update(_pairs(links.get(a, ()), links.get(b, ())))
        for pair in model.listed:
            first, second = (shapes.get(name, ()) for name in pair.shapes)
            listed.update(dict.fromkeys(_pairs(first, second), pair.surface))
    return ContactLists(listed, excluded)


def _stands_in(model: Model, c: Collider) -> bool:
    """Return whether scenery is a shape of the file's world, which a robot with a floating base does not bring itself."""
    return any(c.shape is x for x in model.links[0].collisions)


def _pairs(first: Iterable[int], second: Iterable[int]) -> Iterable[Pair]:
    return ((min(i, j), max(i, j)) for i, j in product(first, second))
