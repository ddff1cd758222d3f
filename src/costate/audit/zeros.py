"""Gradients that are zero by the choice of a model, why, and what to choose instead."""

from __future__ import annotations

from math import inf

from torch import Tensor

from costate.sim import World

APART = (
    "hard contact has no force before shapes touch; use contact=cs.Compliant(smoothing=...) with a smoothing of about the gap, "
    "or add a distance (world.gaps) to the loss"
)
STICKS = "nothing slides, and hard contact holds with any coefficient; use cs.Compliant(), or a motion that slides"
NO_BOUNCE = "no impact is faster than restitution_speed; start from a motion that bounces"
CLAMPED = (
    "the actuator is at its effort limit, where the control has no effect; use smaller controls, a larger limit "
    "(cs.Torque(limit=...)), or a penalty on controls beyond the limit"
)
NO_STIFFNESS = "the joint has no spring for it to shift"


def why_zero(world: World, name: str, state: Tensor, control: Tensor) -> str:
    """Explain why the gradient of an input of a step is zero; return "" where no rule is known. state: (nx,) or (steps, nx)."""
    kind = name.partition(":")[0]
    if kind == "control":
        return CLAMPED if any(d.limit < inf for d in world.setup.drives) else ""
    if kind == "rest":
        return NO_STIFFNESS
    if not world.setup.scene.pairs or not world.setup.contact.hard:
        return ""
    touching = bool((world.contacts(state, control).forces > 0).any())
    if kind in ("friction", "stiffness", "size", "position", "orientation", "restitution") and not touching:
        return APART
    if kind == "restitution":
        return NO_BOUNCE
    return STICKS if kind == "friction" else ""
