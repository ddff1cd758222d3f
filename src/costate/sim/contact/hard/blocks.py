"""The rows of hard contact, and the blocks whose laws they follow."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
from casadi import SX

from costate.model import Model
from costate.sim.contact.detect import Contact
from costate.sim.contact.hard.law import Block
from costate.sim.contact.newton.weights import InverseWeights, inverse_weights
from costate.sim.contact.rows import Row
from costate.sim.forces.equality import Equation
from costate.sim.setup import Setup

TURNS = 0.1
"""Part of how easily a link turns, at the distance of its mass from its middle, that counts for how easily its points move."""
UNMOVED = 1e-12
"""Part of how much a velocity moves the point of a contact, squared, below which it does not move it along the normal."""


def blocks_of(setup: Setup, contacts: Sequence[Contact], rows: Sequence[Row], held: Sequence[Equation]) -> list[Block]:
    """Return the blocks of contacts, limits and friction of joints (rows.py), then those of equality constraints."""
    model = setup.scene.model
    touched = {name for c in contacts for name in (c.link_a, c.link_b)}
    weights = inverse_weights(model, [x.name for x in model.links[1:] if held or x.name in touched], setup.tendons)
    found, at = list[Block](), 0
    for c in contacts:
        ease = sum(_of_link(model, weights, name) for name in (c.link_a, c.link_b)) or 1.0
        size = 3 if c.rubs else 1
        found.append(Block("contact" if c.rubs else "push", tuple(range(at, at + size)), ease))
        at += size
    for row in rows[at:]:
        found.append(Block("push" if row.kind == "limit" else "rub", (at,), _of_joint(model, weights, row.joint)))
        at += 1
    for e in held:
        ease = sum(_of_joint(model, weights, name) for name in e.lengths) or _of_links(model, weights, e) or 1.0
        found += [Block("hold", (at + k,), ease) for k in range(e.dim)]
        at += e.dim
    return found


def _of_link(model: Model, weights: InverseWeights, link: str) -> float:
    """Return about how easily the points of a link move [1/kg]; 0 if it is fixed."""
    slide, turn = weights.links.get(link, (0.0, 0.0))
    inertia = model.link(link).inertia
    spread = float(inertia.matrix.trace()) / (2 * inertia.mass) if inertia.mass else 0.0
    return max(slide, TURNS * turn * spread)


def _of_joint(model: Model, weights: InverseWeights, name: str) -> float:
    """Return how easily a joint or a tendon moves."""
    if name in weights.lengths:
        return weights.lengths[name] or 1.0
    at = {j.name: k for j, k in zip(model.joints, model.v_index, strict=True)}
    return float(weights.coordinates[at[name]])


def _of_links(model: Model, weights: InverseWeights, e: Equation) -> float:
    if not e.is_angular:
        return sum(_of_link(model, weights, name) for name in e.links)
    # The rows of a rotation are half its angles: see equality.py.
    return sum(weights.links.get(name, (0.0, 0.0))[1] for name in e.links) / 4


def moving_gap(row: Row, far: float) -> SX:
    """Return the distance of a row; `far` where velocities move its point, but not along its normal: such a row can do nothing (a
    block on a rail along a slope), but the friction of its endless impulse could."""
    if row.point is None:
        return row.gap
    return ca.if_else(ca.sumsqr(row.J) > UNMOVED * ca.sumsqr(row.point), row.gap, far)
