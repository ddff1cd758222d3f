"""Fixed and floating bases.

The coordinates of a floating joint that hangs on the world are the pose of its link in the world, and nothing else. A file or a
user may give such a joint a pose of its own: it is where the link starts, so it moves from the joint to the configuration to start
from (`Model.home`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

import numpy as np

from costate.core.arrays import Array
from costate.model.errors import ModelError, ModelWarning
from costate.model.joint import Joint
from costate.model.model import Link, Model
from costate.model.rotation import from_wxyz
from costate.model.transform import Transform

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


def float_in_world(world: str, joints: Sequence[Joint], home: Array | None) -> tuple[tuple[Joint, ...], Array | None]:
    """Return joints and home such that coordinates of floating joints that hang on the world are poses in it.

    world: the root link. home: configuration to start from (nq,); None: the neutral one. Motions stay the same.
    """
    at = {world: Transform()}  # links that do not move
    found: list[Joint] = []
    start: Array | None = None if home is None else np.array(home, float)
    first = 0
    for j in joints:
        if j.kind == "fixed" and j.parent in at:
            at[j.child] = at[j.parent] @ j.origin
        elif j.kind == "floating" and j.parent in at and not (given := at[j.parent] @ j.origin).is_identity():
            start = neutral_home(joints) if start is None else start
            start[first : first + 7] = _seen_from(given, start[first : first + 7])
            rest = given.coordinates if j.rest_at is None else _seen_from(given, j.rest_at)
            j = replace(j, parent=world, origin=Transform(), rest_at=rest)
        found.append(j)
        first += j.nq
    return tuple(found), start


def neutral_home(joints: Sequence[Joint]) -> Array:
    """Return the configuration at which every link coincides with its joint's frame, shape (nq,)."""
    parts = [np.zeros(0)]
    for j in joints:
        quaternion = j.kind in ("floating", "spherical") and not j.mimic
        parts.append(np.r_[np.zeros(j.nq - 1), 1.0] if quaternion else np.zeros(j.nq))
    return np.concatenate(parts)


def _seen_from(frame: Transform, q: Array) -> Array:
    """Return coordinates of a floating joint in a frame as coordinates in the world."""
    return (frame @ Transform(from_wxyz(np.roll(q[3:], 1)), q[:3])).coordinates
