"""Several robots in one model, side by side under one world link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from costate.core.arrays import Array
from costate.model.actuation import Actuator, GeneralActuator
from costate.model.base import WORLD, float_in_world, neutral_home
from costate.model.constraint import Constraint, Rename
from costate.model.joint import Joint, Mimic
from costate.model.model import Link, Model
from costate.model.shape import Shape
from costate.model.tendon import Tendon
from costate.model.transform import Transform


def merge(name: str, parts: Sequence[tuple[str, Model, Transform]], scenery: Sequence[Shape], gravity: Array) -> Model:
    """Return one model of all parts (name, model, pose of its root in the world).

    Links and joints are renamed "part/name"; the root carries the scenery's shapes. Coordinates come part after part; those of
    floating bases are poses in the world, and `home` has them where the parts are placed.
    """
    links = [Link(WORLD, collisions=tuple(scenery), visuals=tuple(scenery))]
    joints: list[Joint] = []
    home: list[Array] = []
    constraints: list[Constraint] = []
    tendons: list[Tendon] = []
    actuators: list[Actuator | GeneralActuator] = []
    for part, model, pose in parts:
        own_links, own_joints = _renamed(part, model, pose)
        links += own_links
        joints += own_joints
        home.append(neutral_home(model.joints) if model.home is None else np.asarray(model.home, float))
        link, joint = _renames(part, model, pose)
        constraints += [c.renamed(link, joint) for c in model.constraints]
        tendons += [t.renamed(joint, link) for t in model.tendons]
        actuators += [a.renamed(link, joint) for a in model.actuators]
    placed, start = float_in_world(WORLD, joints, np.concatenate([np.zeros(0), *home]))
    return Model(
        name,
        tuple(links),
        placed,
        gravity,
        home=start,
        constraints=tuple(constraints),
        tendons=tuple(tendons),
        actuators=tuple(actuators),
    )


def _renamed(part: str, model: Model, pose: Transform) -> tuple[list[Link], list[Joint]]:
    """Return the links and joints below the world link."""
    root = model.links[0].name
    floats = model.floating_base
    rename = {link.name: f"{part}/{link.name}" for link in model.links}
    if floats:
        rename[root] = WORLD
    links = [replace(link, name=rename[link.name]) for link in model.links[floats:]]
    joints = [] if floats else [Joint(f"{part}/base", "fixed", WORLD, rename[root], pose)]
    for j in model.joints:
        mimic = Mimic(f"{part}/{j.mimic.joint}", j.mimic.multiplier, j.mimic.offset) if j.mimic else None
        origin = pose @ j.origin if floats and j.parent == root else j.origin
        joints.append(
            replace(
                j, name=f"{part}/{j.name}", parent=rename[j.parent], child=rename[j.child], origin=origin, mimic=mimic
            )
        )
    return links, joints


def _renames(part: str, model: Model, pose: Transform) -> tuple[Rename, Rename]:
    """Return the functions that give links, and joints and tendons, the names they have in the whole."""
    root = model.links[0].name
    moved = not pose.is_identity()

    def link(name: str) -> str:
        if name != root or not model.floating_base:
            return f"{part}/{name}"
        if moved:
            raise ValueError(
                f"'{part}' is held to the world by a constraint, tendon or actuator of its file: it cannot be placed elsewhere "
                "by poses="
            )
        return WORLD

    return link, lambda name: f"{part}/{name}"
