"""Fixed and floating bases."""

from __future__ import annotations

from dataclasses import replace

from costate.model.errors import ModelError
from costate.model.joint import Joint
from costate.model.model import Link, Model

WORLD = "world"
FLOATING_JOINT = "floating_base"


def with_floating_base(model: Model, floating: bool | None) -> Model:
    """Return the model with a base that floats (True) or is fixed to the world (False); None changes nothing."""
    if floating is None or floating == model.floating_base:
        return model
    return _float(model) if floating else _fix(model)


def _float(model: Model) -> Model:
    root = model.links[0]
    first = [j for j in model.joints if j.parent == root.name]
    if root.name == WORLD and root.inertia.mass == 0.0 and len(first) == 1 and first[0].kind == "fixed":
        # The file holds the robot to its own world link: let go there.
        freed = Joint(first[0].name, "floating", WORLD, first[0].child, first[0].origin)
        return replace(model, joints=tuple(freed if j is first[0] else j for j in model.joints), home=None)
    if any(link.name == WORLD for link in model.links):
        raise ModelError(
            f'{model.name}: a floating base needs the name "{WORLD}", which is taken; rename that link or load the '
            "robot with floating_base=False"
        )
    joint = Joint(FLOATING_JOINT, "floating", WORLD, root.name)
    return replace(model, links=(Link(WORLD), *model.links), joints=(joint, *model.joints), home=None)


def _fix(model: Model) -> Model:
    first = model.joints[0]
    fixed = Joint(first.name, "fixed", first.parent, first.child, first.origin)
    home = None if model.home is None else model.home[first.nq :]
    return replace(model, joints=(fixed, *model.joints[1:]), home=home)
