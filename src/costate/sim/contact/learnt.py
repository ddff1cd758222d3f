"""Networks that act on contacts, and the forces of all networks of a step.

Compliant() hands its forces and stiffness to networks itself. Models that solve for their forces (Hard, PGS, Newton) take what
networks add as forces that act from the start of the substep on:

    normal   f n,   f = gate * network            sliding   -f v_t / sqrt(|v_t|^2 + SLOW^2)

The gate 1 / (1 + exp(gap / reach)) lets shapes go that part. A coefficient of friction is changed for every model alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.augment.quantities import QUANTITIES
from costate.augment.wiring import Wiring
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses
from costate.physics.tree import ROOT
from costate.sim.contact.detect import Contact

if TYPE_CHECKING:
    from costate.sim.contact.model import ContactModel
    from costate.sim.contact.rows import Row
    from costate.sim.setup import Symbols

SLOW = 1e-2
"""Sliding speed below which friction that a network adds fades out [m/s]."""
STILL = 1e-6
"""Sliding speed below which its direction is not looked at [m/s]: where the root of its square has a derivative."""

FORCES = ("normal_force", "friction_force")
"""Quantities that are forces: of models that do not hand them to networks, networks add forces beside theirs."""
ONLY = {"contact_stiffness": "Compliant()", "restitution": "Hard()"}
"""Quantities that some contact models have, and the one to use."""


def names(t: Contact) -> tuple[str, ...]:
    """Return the names by which a contact may be meant."""
    return (t.link_a, t.link_b, *t.shapes)


def contact_inputs(s: Symbols, t: Contact) -> tuple[dict[str, SX], SX]:
    """Return the inputs of networks that a contact knows, and the Jacobian (3, nv) of its relative velocity."""
    bodies, J = body_poses(s.tree, s.q), SX(3, s.setup.nv)
    c = t.geometry
    for link, sign in ((t.link_a, 1), (t.link_b, -1)):
        body = s.tree.links[link][0]
        if body != ROOT:
            J = J + sign * point_jacobian(s.tree, bodies, body, c.point)[:3, :]
    velocity = J @ s.v
    leaving = ca.dot(c.normal, velocity)
    sliding = velocity - leaving * c.normal
    return {"depth": -c.gap, "approach": -leaving, "slip": ca.sqrt(ca.sumsqr(sliding) + STILL**2)}, J


def with_learnt_friction(s: Symbols, contacts: list[Contact]) -> list[Contact]:
    """Return contacts with their coefficients of friction after networks."""
    if not s.wired.has("friction_coefficient"):
        return contacts
    found = []
    for t in contacts:
        if s.wired.of("friction_coefficient", *names(t)):
            known, _ = contact_inputs(s, t)
            motion = s.motion(s.q, s.v)
            t = replace(t, friction=s.wired.change("friction_coefficient", names(t), t.friction, motion, known))
        found.append(t)
    return found


def learnt_forces(s: Symbols, q: SX, v: SX) -> SX | None:
    """Return the generalised forces of all networks that add forces of their own, (nv,); None where there are none."""
    total = s.wired.forces(s.motion(q, v))
    added = [x for x in FORCES if x not in s.setup.contact.learns and s.wired.has(x)]
    if not added:
        return total
    total = SX(s.setup.nv, 1) if total is None else total
    for t in s.contacts():
        known, J = contact_inputs(s, t)
        for w, vector in (pair for x in added for pair in s.wired.of(x, *names(t))):
            force = gate(w, t) * w.output(vector, s.motion(q, v), t.link_a, {**s.wired.known, **known})
            total = total + J.T @ (force * _direction(w, t, J @ v))
    return total


@dataclass(frozen=True, eq=False)
class Learnt:
    """The networks of contacts, for a contact model that hands its own quantities to them."""

    s: Symbols
    contacts: dict[int, Contact]
    """Contacts by the number of their normal row."""

    @staticmethod
    def of(s: Symbols, rows: Sequence[Row], contacts: Sequence[Contact]) -> Learnt:
        normals = [k for k, row in enumerate(rows) if row.kind == "normal"]
        return Learnt(s, dict(zip(normals, contacts, strict=True)))

    def change(self, quantity: str, row: int, value: SX, more: dict[str, SX] | None = None) -> SX:
        """Return a quantity of a contact after networks; of other rows as it is. row: number of the normal row; more: further
        inputs by name."""
        t, wired = self.contacts.get(row), self.s.wired
        if t is None or not wired.of(quantity, *names(t)):
            return value
        known, _ = contact_inputs(self.s, t)
        fades = (lambda w: gate(w, t)) if quantity in FORCES else None
        motion = self.s.motion(self.s.q, self.s.v)
        return wired.change(quantity, names(t), value, motion, known | (more or {}), fades)


def gate(w: Wiring, t: Contact) -> SX:
    """Return 1 where shapes overlap, falling to 0 over the reach of a network as they part."""
    return 1 / (1 + ca.exp(t.geometry.gap / w.plan.reach))


def _direction(w: Wiring, t: Contact, velocity: SX) -> SX:
    """Return the direction of a network's force on a contact, (3,)."""
    n = t.geometry.normal
    if w.quantity == "normal_force":
        return n
    sliding = velocity - ca.dot(n, velocity) * n
    return -sliding / ca.sqrt(ca.sumsqr(sliding) + SLOW**2)


def check_contact_network(model: ContactModel, w: Wiring, pairs: Sequence[object]) -> None:
    """Raise an error where a contact model has no such quantity, or cannot be without its own."""
    if QUANTITIES[w.quantity].owner != "contact":
        return
    if not model.acts or not pairs:
        why = "has no contact model" if not model.acts else "has no shapes that can touch each other"
        raise ValueError(f"the world {why}, so there is no '{w.quantity}' for a network to act on")
    if w.quantity in ONLY and w.quantity not in model.learns:
        what = QUANTITIES[w.quantity].what.partition(",")[0]
        raise ValueError(f"{model.name} has no {what}: use contact={ONLY[w.quantity]} with networks for it")
    if w.plan.replace and w.quantity in FORCES and w.quantity not in model.learns:
        raise ValueError(
            f"{model.name} solves for its forces, so a network can add to its '{w.quantity}' but not replace it: leave "
            "replace=False, or use contact=Compliant()"
        )
    if "normal_force" in w.network.inputs and w.quantity != "friction_force":
        raise ValueError("input 'normal_force' is for networks of the friction force")
    if "normal_force" in w.network.inputs and w.quantity not in model.learns:
        raise ValueError(
            f"{model.name} finds its normal forces after its networks: use the input 'depth' or 'approach'"
        )
