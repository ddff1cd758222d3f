"""The choice between solving contact pair by pair (step.py) and by rows of one system (dense.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costate.collision.narrow import is_plain, point_program
from costate.sim.setup import SHAPE_PARAMETERS, Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

MANY = 24
"""Number of pairs of shapes above which a world is solved pair by pair by itself: building rows costs the square of it."""
BODY_PARAMETERS = ("mass", "com", "inertia", "rotation", "translation", "gravity")


def is_pairwise(options: PGS, setup: Setup) -> bool:
    """Return whether a world is solved pair by pair. Raises an error where that is asked for and not possible."""
    if options.mapped is False or (options.mapped is None and len(setup.scene.pairs) <= MANY):
        return False
    reason = why_not(setup)
    if options.mapped and reason:
        raise ValueError(f"this world cannot be solved pair by pair: {reason}. Leave PGS(mapped=None)")
    return reason is None


def why_not(setup: Setup) -> str | None:
    """Return what keeps a world from being solved pair by pair, or None."""
    scene = setup.scene
    fixed = [j.name for j in scene.model.joints if j.kind != "floating" or j.mimic]
    if scene.robots or fixed or setup.drives or setup.constraints or setup.tendons:
        return "it holds more than free bodies and scenery (robots, joints, actuators or constraints)"
    if setup.integrator != "semi_implicit":
        return f"its integrator is '{setup.integrator}', not 'semi_implicit'"
    if not scene.pairs:
        return "nothing in it can touch"
    kinds = {p.partition(":")[0] for p in setup.parameters}
    other = kinds - {*setup.contact.parameters, *SHAPE_PARAMETERS, *BODY_PARAMETERS} | (kinds & {"damping"})
    if other:
        return f"it has parameters of joints: {', '.join(sorted(other))}"
    solids = {k: scene.colliders[k].solid for pair in scene.pairs for k in pair}
    composed = [scene.colliders[k].name for k, solid in solids.items() if not is_plain(solid)]
    if composed:
        return f"{', '.join(composed)} is a composition of shapes"
    bare = [(i, j) for i, j in scene.pairs if not point_program(solids[i], solids[j]).out_sizes[0]]
    if bare:
        return f"{' and '.join(scene.colliders[k].name for k in bare[0])} have no points to touch each other by"
    return None
