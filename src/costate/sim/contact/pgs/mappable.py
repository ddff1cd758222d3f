"""Which worlds are solved pair by pair (mapped.py) instead of by rows of one system (pgs.py)."""

from __future__ import annotations

from costate.collision.narrow import is_plain, point_program
from costate.sim.contact.options import PGS
from costate.sim.setup import CONTACT_PARAMETERS, SHAPE_PARAMETERS, Setup

MANY = 24
"""Pairs of shapes from which on a world is mapped by itself: building rows costs the square of their number."""
BODY_PARAMETERS = ("mass", "com", "inertia", "rotation", "translation", "gravity")


def is_mapped(setup: Setup) -> bool:
    """Raises where it is asked for and not possible."""
    contact = setup.contact
    if not isinstance(contact, PGS) or contact.mapped is False:
        return False
    if contact.mapped is None and len(setup.scene.pairs) <= MANY:
        return False
    reason = why_not(setup)
    if contact.mapped and reason:
        raise ValueError(f"this world cannot be solved pair by pair: {reason}. Leave PGS(mapped=None)")
    return reason is None


def why_not(setup: Setup) -> str | None:
    """What keeps a world from being mapped."""
    scene = setup.scene
    fixed = [j.name for j in scene.model.joints if j.kind != "floating" or j.mimic]
    if scene.robots or fixed or setup.drives or setup.constraints or setup.tendons:
        return "it holds more than free bodies and scenery (robots, joints, actuators or constraints)"
    if setup.integrator != "semi_implicit":
        return f"its integrator is '{setup.integrator}', not 'semi_implicit'"
    if not scene.pairs:
        return "nothing in it can touch"
    kinds = {p.partition(":")[0] for p in setup.parameters}
    other = kinds - {*CONTACT_PARAMETERS, *SHAPE_PARAMETERS, *BODY_PARAMETERS} | (kinds & {"damping"})
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
