"""The constraints of the Newton model: Jacobians, reference accelerations and weights, by the rules of MuJoCo.

A violation r of a constraint asks for the acceleration aref = -b v - k d(r) r, with stiffness k and damping b from solref and the
impedance d(r) from solimp. Its weight is 1 / R with R = (1 - d) / d A, where A is an estimate of the inverse mass it acts on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.physics.algebra import quaternion
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses
from costate.physics.tree import ROOT
from costate.sim.contact.detect import Contact
from costate.sim.contact.newton.points import axes
from costate.sim.contact.newton.softness import Soft, Softnesses
from costate.sim.contact.newton.weights import InverseWeights, inverse_weights
from costate.sim.contact.rows import Row, friction_rows, limit_rows
from costate.sim.forces.equality import Equation, drift, equations
from costate.sim.setup import Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

LEAST_FRICTION = 1e-5
LEAST_R = 1e-15
"""Bounds MuJoCo puts on what files say."""


@dataclass(frozen=True, eq=False)
class Onset:
    """The moment at which a contact or limit begins or ends to act, seen from a step: see onset.py."""

    depth: SX
    """Distance from where it acts, negative where it does [m or rad]."""
    weight: SX
    """Weight at depth 0."""
    damping: SX
    """Damping b at depth 0, where aref = -b J v [1/s]."""


@dataclass(frozen=True, eq=False)
class Block:
    """A contact, limit, friction of a joint or tendon, or equality."""

    kind: str
    """Kind: contact | limit | friction | equality."""
    J: SX
    """Jacobian along its axes, (dim, nv). Contacts: normal, two of sliding, torsion, two of rolling."""
    target: SX
    """Reference acceleration aref, (dim,)."""
    weight: SX
    """Weight of the normal direction, or of each edge of a pyramid; 0 where the constraint does not act."""
    friction: tuple[SX, ...] = ()
    """Coefficient of every axis but the first; joint friction: the bound [N m or N]."""
    group: str = ""
    """Contacts of the same name are looked at together, or skipped together."""
    onset: Onset | None = None
    """Contacts and limits; all others act always."""

    @property
    def dim(self) -> int:
        return self.J.shape[0]


def row_kinds(options: Newton, s: Symbols, contacts: list[Contact]) -> list[str]:
    """Return the kinds of the rows of all constraints."""
    of_contact = ("normal", "tangent", "tangent", "torsion", "rolling", "rolling")
    kinds = [k for t in contacts if t.surface for k in of_contact[: t.surface.condim]]
    kinds += ["limit"] * len(limit_rows(s, s.q, _near_both(s))) if options.joint_limits else []
    return kinds + (["friction"] * len(friction_rows(s, 1.0)) if options.joint_friction else [])


def blocks(s: Symbols, contacts: list[Contact], options: Newton) -> list[Block]:
    """Return all constraints at the state of the symbols: contacts, limits and friction of joints and tendons, equalities."""
    dt = s.setup.dt
    ties = equations(s, s.q)
    held = {x for t in contacts for x in (t.link_a, t.link_b)} | {x for e in ties for x in e.links}
    weights = inverse_weights(s.setup.scene.model, sorted(held), s.setup.tendons)
    bodies = body_poses(s.tree, s.q)
    soft = Softnesses(s, options)
    found = [_contact(s, bodies, t, weights, options, soft.of_contact(t)) for t in contacts]
    model = s.setup.scene.model
    bounds = {j.name: j.bounds for j in model.joints} | {t.name: t.given.bounds for t in s.setup.tendons}
    if options.joint_limits:
        for row in limit_rows(s, s.q, _near_both(s)):
            own = bounds[row.joint]
            easy = weights.lengths.get(row.joint, _first_weight(row, weights))
            depth = row.gap - (own.margin if own else 0.0)
            softness = soft.of_bounds(row.joint, own, "limit")
            target, R = _soft(softness, depth, row.J @ s.v, SX(easy), dt)
            onset = Onset(depth, 1 / _soft(softness, SX(0), SX(0), SX(easy), dt)[1], damping_at_zero(softness, dt))
            found.append(Block("limit", row.J, target, ca.if_else(depth < 0, 1 / R, 0), onset=onset))
    if options.joint_friction:
        for row in friction_rows(s, 1.0):
            assert row.bound is not None
            easy = weights.lengths.get(row.joint, _first_weight(row, weights))
            J = _in_world(s, row.J)
            own = soft.of_bounds(row.joint, bounds[row.joint], "friction")
            target, R = _soft(own, SX(0), J @ s.v, SX(easy), dt)
            found.append(Block("friction", J, target, 1 / R, (row.bound,)))
    return found + [_equality(s, e, ties, weights, soft.of_equality(e.constraint.softness)) for e in ties]


def _near_both(s: Symbols) -> set[str]:
    """Return joints and tendons that may be within the margin of both their limits at once."""
    spans = [(j.name, j.bounds, j.lower, j.upper) for j in s.setup.scene.model.joints if j.nv == 1]
    spans += [(t.name, t.given.bounds, t.given.lower, t.given.upper) for t in s.setup.tendons]
    return {name for name, own, low, high in spans if own and 2 * own.margin > high - low}


def _first_weight(row: Row, weights: InverseWeights) -> float:
    """Return the inverse weight of a joint with several coordinates, that of the row's first one."""
    return float(weights.coordinates[row.J.sparsity().get_col()[0]])


def _in_world(s: Symbols, J: SX) -> SX:
    """Return the row (1, nv) of a linear velocity of a floating joint along that axis of the world, as MuJoCo has it; other rows
    unchanged."""
    model, (k, *_) = s.setup.scene.model, J.sparsity().get_col()
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        if j.kind == "floating" and iv <= k < iv + 3:
            J = SX(1, model.nv)
            J[0, iv : iv + 3] = quaternion.to_rotation(s.q[iq + 3 : iq + 7])[k - iv, :]
    return J


def _equality(s: Symbols, e: Equation, ties: list[Equation], weights: InverseWeights, soft: Soft) -> Block:
    """Return the block of an equality. As in MuJoCo, the impedance follows from the violation of all rows of a constraint
    together."""
    whole = ca.vertcat(*(x.r for x in ties if x.constraint is e.constraint))
    size = ca.fabs(whole) if whole.numel() == 1 else ca.sqrt(ca.dot(whole, whole) + 1e-30)
    d, k, b = soft.reference(size, s.setup.dt)
    easy = sum(weights.links[x][1 if e.is_angular else 0] for x in e.links)
    easy += sum(weights.lengths[x] for x in e.lengths)
    target = -b * (e.J @ s.v) - k * d * e.r
    if e.links:  # MuJoCo leaves the turning of coupled joints out
        target = target - drift(s, e.J)
    return Block("equality", e.J, target, 1 / ca.fmax((1 - d) / d * easy, LEAST_R))


def _contact(s: Symbols, bodies: list, t: Contact, weights: InverseWeights, options: Newton, softness: Soft) -> Block:
    assert t.surface is not None
    surface, c = t.surface, t.geometry
    easy = sum(weights.links[x][0] for x in (t.link_a, t.link_b))
    J = _frame_jacobian(s, bodies, t, options)
    friction = contact_friction(t)
    depth, dt = c.gap - surface.margin, s.setup.dt
    target, weight = contact_law(options, dt, depth, J @ s.v, friction, SX(easy), softness)
    _, first = contact_law(options, dt, SX(0), SX(0), friction, SX(easy), softness)
    onset = Onset(depth, first, damping_at_zero(softness, dt))
    return Block("contact", J, target, ca.if_else(depth < 0, weight, 0), friction, _group(s, t), onset)


def contact_friction(t: Contact) -> tuple[SX, ...]:
    """Return the coefficient of every axis of a contact but the first."""
    assert t.surface is not None
    sliding = ca.fmax(t.friction, LEAST_FRICTION)
    torsion, rolling = (SX(max(x, LEAST_FRICTION)) for x in t.surface.friction[1:])
    return (sliding, sliding, torsion, rolling, rolling)[: t.surface.condim - 1]


def contact_law(
    options: Newton, dt: float, depth: SX, speed: SX, friction: tuple[SX, ...], easy: SX, softness: Soft
) -> tuple[SX, SX]:
    """Return the reference acceleration (dim,) and the weight of a contact that acts. easy: inverse mass of both links."""
    assert options.impratio is not None
    pyramid = friction and options.cone == "pyramidal"
    A = easy * (1 + friction[0] ** 2) if pyramid else easy
    target, R = _soft(softness, depth, speed, A, dt)
    if pyramid:
        R = 2 * friction[0] ** 2 / options.impratio * R
    return target, 1 / R


def damping_at_zero(softness: Soft, dt: float) -> SX:
    """Return the damping b of a constraint at depth 0 [1/s]."""
    return SX(softness.reference(SX(0), dt)[2])


def _group(s: Symbols, t: Contact) -> str:
    """Return the group of a contact: all of a link's with the world, or all of its with other links."""
    moving = [x for x in (t.link_a, t.link_b) if s.tree.links[x][0] != ROOT]
    return f"{moving[0]} {'world' if len(moving) < 2 else 'others'}"


def _frame_jacobian(s: Symbols, bodies: list, t: Contact, options: Newton) -> SX:
    """Return the Jacobian (dim, nv) of the velocity of link a against link b at the contact, along normal and axes of friction,
    then about them."""
    J = SX(6, s.setup.nv)
    chains = [_chain(s, link) for link in (t.link_a, t.link_b)]
    shared = chains[0] & chains[1]  # what carries both does not move them against each other
    for link, sign in ((t.link_a, 1), (t.link_b, -1)):
        body = s.tree.links[link][0]
        if body != ROOT:
            J = J + sign * point_jacobian(s.tree, bodies, body, t.geometry.point)
    for k in shared:
        J[:, k] = SX(6, 1)
    J = ca.sparsify(J)
    slides, turns = friction_axes(t, options.cone)
    rows = [d.T @ J[:3, :] for d in (t.geometry.normal, *slides)] + [d.T @ J[3:, :] for d in turns]
    return ca.sparsify(ca.vertcat(*rows))


def friction_axes(t: Contact, cone: str | None) -> tuple[tuple[SX, ...], tuple[SX, ...]]:
    """Return the axes along which a contact slides, and about which it turns (torsion, rolling), world axes (3,)."""
    assert t.surface is not None
    return axes_of(t.geometry.normal, t.along, t.surface.condim, cone)


def axes_of(normal: SX, along: SX | None, condim: int, cone: str | None) -> tuple[tuple[SX, ...], tuple[SX, ...]]:
    """Return the axes along which a contact of so many dimensions slides, and about which it turns."""
    if condim == 1:
        return (), ()
    # A round cone does not ask which way its axes point.
    slides = axes(normal, along if cone == "pyramidal" else None)
    return slides, (normal, *slides)[: condim - 3]


def _chain(s: Symbols, link: str) -> set[int]:
    """Return the velocity coordinates that move a link, without those that mimic joints follow."""
    found: set[int] = set()
    i = s.tree.links[link][0]
    while i != ROOT:
        own = s.tree.bodies[i]
        if not own.is_mimic:
            found |= set(range(own.v_start, own.v_start + len(own.kind.linear) + len(own.kind.angular)))
        i = own.parent
    followed = {b.v_start for b in s.tree.bodies if b.is_mimic}
    return found - followed


def _soft(softness: Soft, depth: SX, speed: SX, A: SX, dt: float) -> tuple[SX, SX]:
    """Return (aref (dim,), R). Only the first axis is pushed back."""
    d, k, b = softness.reference(depth, dt)
    target = -b * speed
    target[0] = target[0] - k * d * depth
    return target, ca.fmax((1 - d) / d * A, LEAST_R)
