"""Scenes: everything a world holds as one model, and which shapes may touch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from costate.collision.kinds import KINDS, solid_of
from costate.collision.shapes import Solid
from costate.model import Model, Shape, Transform
from costate.model.merge import WORLD, merge
from costate.model.surface import Surface
from costate.robot import Robot
from costate.sim.arguments import check_gravity, check_parts
from costate.sim.scene.coincident import merge_coincident
from costate.sim.scene.contact_lists import ContactLists, contact_lists
from costate.sim.scene.parts import Body, Static


@dataclass(frozen=True, eq=False)
class Collider:
    """A shape of a link that may touch others."""

    name: str
    """Name: link/number."""
    link: str
    owner: str
    """Robot, body or scenery it belongs to."""
    shape: Shape | Solid
    pose: Transform
    """Pose in the link."""
    friction: float | None
    """Friction coefficient; None: that of the world."""

    @property
    def surface(self) -> Surface | None:
        """Surface that its file gives it, if it does."""
        return self.shape.surface if isinstance(self.shape, Shape) else None

    @property
    def priority(self) -> int:
        return self.surface.priority if self.surface else 0

    def meets(self, other: Collider) -> bool:
        """Return whether the files let the two touch."""
        mine, theirs = self.surface, other.surface
        if mine is not None and theirs is not None:
            return mine.meets(theirs)
        told = mine or theirs
        return told is None or bool(told.contype or told.conaffinity)

    @property
    def is_endless(self) -> bool:
        """True for a plane: two of them never touch each other."""
        return isinstance(self.shape, Shape) and KINDS[self.shape.kind].is_endless

    @property
    def solid(self) -> Solid:
        return solid_of(self.shape)


@dataclass(frozen=True, eq=False)
class Scene:
    """One model of everything, and the pairs of shapes that may touch."""

    model: Model
    robots: Mapping[str, Robot]
    colliders: tuple[Collider, ...]
    pairs: tuple[tuple[int, int], ...]
    """Indices of colliders."""
    listed: Mapping[tuple[int, int], Surface] = field(default_factory=dict)
    """Pairs that touch in a way of their own."""


PairRule = Callable[[str, str], bool]
"""Function of two names of links (or pieces of scenery) that says whether they may touch."""

Collide = PairRule | Sequence[tuple[str, str]]
"""A rule, or the pairs that may touch and no others: names of shapes, links, robots, bodies or scenery."""


def make_scene(
    robots: Mapping[str, Robot],
    poses: Mapping[str, Transform],
    bodies: Sequence[Body],
    scenery: Sequence[Static],
    gravity: Sequence[float],
    self_collision: bool | Iterable[str],
    collide: Collide | None,
    moved: Collection[str] = (),
) -> Scene:
    """Return the scene of a world. moved: names of shapes that parameters move, which need not stay where they are."""
    check_parts(bodies, Body, "bodies")
    check_parts(scenery, Static, "scenery")
    names = [*robots, *(b.name for b in bodies), *(s.name for s in scenery)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"names in a world must differ, but {', '.join(twice)} appears more than once: rename one")
    parts = [(n, r.model, poses.get(n, Transform())) for n, r in robots.items()]
    parts += [(b.name, b.model(), Transform()) for b in bodies]
    seen = [_placed(s) for s in scenery if isinstance(s.shape, Shape) and s.visible]
    model = merge(WORLD, parts, seen, check_gravity(gravity))
    colliders = (*_moving_colliders(model, bodies), *map(_static_collider, scenery))
    with_self = set(robots) if self_collision is True else set(self_collision or ())
    unknown = sorted(with_self - set(robots))
    if unknown:
        raise ValueError(f"self_collision names {', '.join(unknown)}; robots are {', '.join(robots)}")
    lists = contact_lists({name: r.model for name, r in robots.items()}, colliders)
    touching = {name for name, r in robots.items() if r.model.physics and r.model.physics.neighbours_touch}
    pairs = tuple(_pairs(model, colliders, {b.name for b in bodies}, with_self, collide, lists, touching))
    once = merge_coincident(model, colliders, pairs, lists.listed, moved)
    return Scene(once.model, robots, once.colliders, once.pairs, once.listed)


def _placed(s: Static) -> Shape:
    assert isinstance(s.shape, Shape)
    return replace(s.shape, pose=s.placed, name=s.name)


def _static_collider(s: Static) -> Collider:
    own = s.shape.friction if isinstance(s.shape, Shape) else None
    return Collider(s.name, WORLD, s.name, s.shape, s.placed, s.friction if own is None else own)


def _moving_colliders(model: Model, bodies: Sequence[Body]) -> list[Collider]:
    """List the shapes of the links of robots and bodies; solids of bodies are not in the model."""
    found = []
    by_name = {b.name: b for b in bodies}
    for link in model.links[1:]:
        owner = link.name.split("/")[0]
        body = by_name.get(owner) if link.name.endswith("/body") else None
        for k, shape in enumerate(body.shapes if body else link.collisions):
            plain = isinstance(shape, Shape)
            friction = shape.friction if plain and shape.friction is not None else body.friction if body else None
            pose = shape.pose if plain else Transform()
            found.append(Collider(f"{link.name}/{k}", link.name, owner, shape, pose, friction))
    return found


def _pairs(
    model: Model,
    colliders: Sequence[Collider],
    bodies: set[str],
    with_self: set[str],
    collide: Collide | None,
    lists: ContactLists,
    touching: set[str],
) -> Iterable[tuple[int, int]]:
    """Yield pairs of shapes that move against each other: those named, or those that the rule and common sense allow.

    touching: robots whose files let links touch that a joint connects.
    """
    group = _rigid_groups(model)
    neighbours = _neighbours(model, group)
    named = None if collide is None or callable(collide) else named_pairs(colliders, collide)
    for (i, a), (j, b) in combinations(enumerate(colliders), 2):
        links = frozenset((group[a.link], group[b.link]))
        if len(links) == 1 or (a.is_endless and b.is_endless):
            continue
        if named is not None:
            if (i, j) in named:
                yield i, j
            continue
        if a.owner == b.owner and a.owner not in with_self:
            continue
        if (i, j) not in lists.listed:
            if not a.meets(b) or (i, j) in lists.excluded:
                continue
            # The first moving link of a fixed-base robot always touches what its base stands on.
            on_base = WORLD in (a.link, b.link) and not {a.owner, b.owner} & bodies and not _floats(model, links)
            near = links in neighbours and (a.owner == b.owner or on_base) and not _as_in_mujoco(a, b, links)
            if near and a.owner not in touching:
                continue
        if collide is None or (callable(collide) and collide(_rule_name(a), _rule_name(b))):
            yield i, j


def _as_in_mujoco(a: Collider, b: Collider, links: frozenset[str]) -> bool:
    """Return whether two shapes touch by MuJoCo's rule: a link touches what does not move even where a joint connects them, and
    files exclude what they do not want."""
    return WORLD in links and a.surface is not None and b.surface is not None


def _rule_name(c: Collider) -> str:
    return c.name if c.link == WORLD else c.link


def named_pairs(colliders: Sequence[Collider], pairs: Sequence[tuple[str, str]]) -> set[tuple[int, int]]:
    """Return indices of colliders whose shape, link or owner is named, the smaller one first."""
    found: dict[str, list[int]] = {}
    for k, c in enumerate(colliders):
        for name in {c.name, c.link, c.owner}:
            found.setdefault(name, []).append(k)
    for name in (n for pair in pairs for n in pair):
        if name not in found:
            raise ValueError(f"collide= names '{name}', which has no shapes; there are {', '.join(found)}")
    return {(min(i, j), max(i, j)) for x, y in pairs for i in found[x] for j in found[y]}


def _rigid_groups(model: Model) -> dict[str, str]:
    """Return link -> the first link that it is rigidly connected to."""
    group = {model.links[0].name: model.links[0].name}
    for j in model.joints:
        group[j.child] = group[j.parent] if j.kind == "fixed" else j.child
    return group


def _neighbours(model: Model, group: Mapping[str, str]) -> set[frozenset[str]]:
    """Return groups that a joint connects, or several in a row with nothing but massless links between them."""
    empty = {x.name for x in model.links[1:] if x.inertia.mass == 0 and not x.collisions}
    above: dict[str, str] = {}
    found = set()
    for j in model.joints:
        parent = above.get(j.parent, group[j.parent])
        if j.child in empty and j.kind != "fixed":
            above[j.child] = parent
        found |= {frozenset((parent, group[j.child])), frozenset((group[j.parent], group[j.child]))}
    return found


def _floats(model: Model, links: frozenset[str]) -> bool:
    """Return whether the link that is moved in the world floats freely."""
    return any(j.child in links and j.kind == "floating" for j in model.joints)
