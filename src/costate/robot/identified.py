"""Identified parameters back in a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from costate.core.arrays import Array
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.physics.params import KINDS, Key


def with_parameters(model: Model, values: dict[Key, Array]) -> Model:
    """Return a model with some of its physical parameters replaced."""
    links = tuple(_with_link(link, values) for link in model.links)
    joints = tuple(_with_joint(joint, values) for joint in model.joints)
    gravity = np.asarray(values.get(("gravity", ""), model.gravity), float).reshape(3)
    return replace(model, links=links, joints=joints, gravity=gravity)


def _with_link(link: Link, values: dict[Key, Array]) -> Link:
    own = {kind: values[kind, link.name] for kind in ("mass", "com", "inertia") if (kind, link.name) in values}
    if not own:
        return link
    old = link.inertia
    mass = float(np.asarray(own.get("mass", old.mass)).reshape(()))
    com, matrix = np.asarray(own.get("com", old.com)).reshape(3), np.asarray(own.get("inertia", old.matrix))
    return replace(link, inertia=Inertia(mass, com, matrix.reshape(3, 3)))


def _with_joint(joint: Joint, values: dict[Key, Array]) -> Joint:
    own = {kind: x for (kind, owner), x in values.items() if owner == joint.name and KINDS[kind][0] == "joint"}
    if not own:
        return joint
    rotation = np.asarray(own.pop("rotation", joint.origin.rotation)).reshape(3, 3)
    translation = np.asarray(own.pop("translation", joint.origin.translation)).reshape(3)
    axis = np.asarray(own.pop("axis", joint.axis)).reshape(3)
    scalars = {kind: float(np.asarray(x).reshape(())) for kind, x in own.items()}
    return replace(joint, origin=Transform(rotation, translation), axis=axis / np.linalg.norm(axis), **scalars)


def impossible_links(model: Model, names: Iterable[str]) -> list[str]:
    """Return those of the links whose mass is negative or whose inertia no distribution of mass has."""
    found = []
    for name in names:
        inertia = model.link(name).inertia
        moments = np.linalg.eigvalsh(inertia.matrix)
        slack = 1e-9 * max(moments.max(), 0.0)
        if inertia.mass < 0 or moments[0] < -slack or moments[0] + moments[1] < moments[2] - slack:
            found.append(name)
    return found
