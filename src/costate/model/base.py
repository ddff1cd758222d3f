"""Fixed and floating bases."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

import numpy as np

from costate.model.errors import ModelError, ModelWarning
from costate.model.floating import float_in_world, neutral_home
from costate.model.joint import Joint
from costate.model.model import Link, Model

WORLD = "world"
FLOATING_JOINT = "floating_base"


def with_floating_base(model: Model, floating: bool | None) -> Model:
    """Return the model with a base that floats (True) or is fixed to the world (False); None leaves it as it is.

    The coordinates of a floating base are its pose in the world; a pose that the file gives its joint becomes where it starts.
    """
    if floating is not None and floating != model.floating_base:
        model = _float(model) if floating else _fix(model)
    joints, home = float_in_world(model.links[0].name, model.joints, model.home)
    if joints != model.joints:
        model = replace(model, joints=joints, home=home)
    if model.floating_base and _massless_base(model):
        warnings.warn(
            f"{model.name}: the floating base {model.joints[0].child!r} has no mass, nor have the links fixed to it: forward "
            "dynamics may be singular and return NaN (give the base a mass and an inertia)",
            ModelWarning,
            stacklevel=3,
        )
    return model


def _massless_base(model: Model) -> bool:
    """Return whether the base and all that is fixed to it have neither mass nor rotational inertia."""
    base = {model.joints[0].child}
    for joint in model.joints[1:]:  # parents come first
        if joint.kind == "fixed" and joint.parent in base:
            base.add(joint.child)
    inertias = [link.inertia for link in model.links if link.name in base]
    return not any(inertia.mass or inertia.matrix.any() for inertia in inertias)


def _float(model: Model) -> Model:
    root = model.links[0]
    first = [j for j in model.joints if j.parent == root.name]
    if root.name == WORLD and root.inertia.mass == 0.0 and len(first) == 1 and first[0].kind == "fixed":
        # The file holds the robot to its own world link: let go there.
        freed = Joint(first[0].name, "floating", WORLD, first[0].child, first[0].origin)
        home = None if model.home is None else np.concatenate([neutral_home([freed]), model.home])
        return replace(model, joints=(freed, *model.joints[1:]), home=home, keyframes=())
    if root.name == WORLD and model.physics is not None:
        # The world of MJCF is the ground on which its bodies stand, not a part of the robot.
        raise ModelError(
            f"{model.name}: only a single body that is fixed to the world can be let go; give the body to free a "
            "<freejoint/> in the file"
        )
    world = _free_name(WORLD, [link.name for link in model.links])
    joint = Joint(_free_name(FLOATING_JOINT, [j.name for j in model.joints]), "floating", world, root.name)
    return replace(model, links=(Link(world), *model.links), joints=(joint, *model.joints), home=None, keyframes=())


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return the name, with the lowest number from 2 on that makes it unique if it is taken."""
    candidates = chain([name], (f"{name}_{i}" for i in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _fix(model: Model) -> Model:
    first = model.joints[0]
    fixed = Joint(first.name, "fixed", first.parent, first.child, first.origin)
    home = None if model.home is None else model.home[first.nq :]
    keyframes = tuple(replace(k, q=k.q[first.nq :], v=k.v[first.nv :]) for k in model.keyframes)
    return replace(model, joints=(fixed, *model.joints[1:]), home=home, keyframes=keyframes)
