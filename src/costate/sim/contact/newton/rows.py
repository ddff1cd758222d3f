"""The constraints of the Newton model: Jacobians, reference accelerations and weights, by the rules of MuJoCo.

A violation r of a constraint asks for the acceleration aref = -b v - k d(r) r, with stiffness k and damping b from solref and the
impedance d(r) from solimp. Its weight is 1 / R with R = (1 - d) / d A, where A is an estimate of the inverse mass it acts on.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.model.surface import Bounds, Softness
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses
from costate.physics.tree import ROOT
from costate.sim.contact.newton.places import axes
from costate.sim.contact.newton.weights import InverseWeights, inverse_weights
from costate.sim.contact.options import Newton
from costate.sim.contact.rows import friction_rows, limit_rows
from costate.sim.forces.equality import Equation, drift, equations
from costate.sim.setup import Contact, Symbols

LEAST_FRICTION = 1e-5
LEAST_R = 1e-15
IMPEDANCES = (1e-4, 0.9999)
"""Bounds MuJoCo puts on what files say."""


@dataclass(frozen=True, eq=False)
class Block:
    """One contact, limit, friction of a joint or tendon, or equality."""

    kind: str
    """contact | limit | friction | equality."""
    J: SX
    """Along its axes, (dim, nv). Contacts: normal, two of sliding, torsion, two of rolling."""
    target: SX
    """aref, (dim,)."""
    weight: SX
    """Of the normal direction, or of each edge of a pyramid; 0 where the constraint does not act."""
    friction: tuple[SX, ...] = ()
    """Coefficient of every axis but the first; joint friction: the bound [N m or N]."""
    group: str = ""
    """Contacts of the same name are looked at together, or skipped together."""

    @property
    def dim(self) -> int:
        return self.J.shape[0]


@dataclass(frozen=True)
class Options:
    """What counts for the whole problem."""

    cone: str
    impratio: float
    dt: float


def resolved(s: Symbols) -> Options:
    """Options of the model, of the robots' files where it leaves them open."""
    contact = s.setup.contact
    assert isinstance(contact, Newton)
    told = [r.model.physics for r in s.setup.scene.robots.values() if r.model.physics is not None]
    for name in ("cone", "impratio"):
        if getattr(contact, name) is None and len({getattr(t, name) for t in told}) > 1:
            raise ValueError(f"the robots' files differ in {name}: choose one with Newton({name}=...)")
    cone = contact.cone or (told[0].cone if told else "pyramidal")
    impratio = contact.impratio or (told[0].impratio if told else 1.0)
    return Options(cone, impratio, s.setup.dt)


def row_kinds(s: Symbols, touches: list[Contact]) -> list[str]:
    """What the rows of all constraints are."""
    contact = s.setup.contact
    assert isinstance(contact, Newton)
    of_contact = ("normal", "tangent", "tangent", "torsion", "rolling", "rolling")
    kinds = [k for t in touches if t.surface for k in of_contact[: t.surface.condim]]
    kinds += ["limit"] * len(limit_rows(s, s.q)) if contact.joint_limits else []
    return kinds + (["friction"] * len(friction_rows(s, 1.0)) if contact.joint_friction else [])


def blocks(s: Symbols, touches: list[Contact], options: Options) -> list[Block]:
    """All constraints at the state of the symbols: contacts, limits and friction of joints and tendons, equalities."""
    contact = s.setup.contact
    assert isinstance(contact, Newton)
    ties = equations(s, s.q)
    held = {x for t in touches for x in (t.link_a, t.link_b)} | {x for e in ties for x in e.links}
    weights = inverse_weights(s.setup.scene.model, sorted(held), s.setup.tendons)
    bodies = body_poses(s.tree, s.q)
    found = [_contact(s, bodies, t, weights, options) for t in touches]
    model = s.setup.scene.model
    own_bounds = [(j.name, j.bounds) for j in model.joints] + [(t.name, t.given.bounds) for t in s.setup.tendons]
    bounds = {name: own or Bounds(contact.softness, contact.softness) for name, own in own_bounds}
    if contact.joint_limits:
        for row in limit_rows(s, s.q):
            own = bounds[row.joint]
            easy = weights.lengths[row.joint]
            depth = row.gap - own.margin
            target, R = _soft(own.limit, depth, row.J @ s.v, SX(easy), options.dt)
            found.append(Block("limit", row.J, target, ca.if_else(depth < 0, 1 / R, 0)))
    if contact.joint_friction:
        for row in friction_rows(s, 1.0):
            assert row.bound is not None
            several = float(weights.coordinates[row.J.sparsity().get_col()[0]])
            easy = weights.lengths.get(row.joint, several)
            target, R = _soft(bounds[row.joint].friction, SX(0), row.J @ s.v, SX(easy), options.dt)
            found.append(Block("friction", row.J, target, 1 / R, (row.bound,)))
    return found + [_equality(s, e, ties, weights, options) for e in ties]


def _equality(s: Symbols, e: Equation, ties: list[Equation], weights: InverseWeights, options: Options) -> Block:
    """As MuJoCo has it: the impedance follows from the violation of all rows of a constraint together."""
    contact = s.setup.contact
    assert isinstance(contact, Newton)
    whole = ca.vertcat(*(x.r for x in ties if x.constraint is e.constraint))
    size = ca.fabs(whole) if whole.numel() == 1 else ca.sqrt(ca.dot(whole, whole) + 1e-30)
    d, k, b = _reference(e.constraint.softness or contact.softness, size, options.dt)
    easy = sum(weights.links[x][1 if e.is_angular else 0] for x in e.links)
    easy += sum(weights.lengths[x] for x in e.lengths)
    target = -b * (e.J @ s.v) - k * d * e.r
    if e.links:  # MuJoCo leaves the turning of coupled joints out
        target = target - drift(s, e.J)
    return Block("equality", e.J, target, 1 / ca.fmax((1 - d) / d * easy, LEAST_R))


def _contact(s: Symbols, bodies: list, t: Contact, weights: InverseWeights, options: Options) -> Block:
    assert t.surface is not None
    surface, c = t.surface, t.geometry
    dim = surface.condim
    easy = sum(weights.links[x][0] for x in (t.link_a, t.link_b))
    J = _frame_jacobian(s, bodies, t, options)
    depth = c.gap - surface.margin
    sliding = ca.fmax(t.friction, LEAST_FRICTION)
    torsion, rolling = (SX(max(x, LEAST_FRICTION)) for x in surface.friction[1:])
    friction = (sliding, sliding, torsion, rolling, rolling)[: dim - 1]
    pyramid = dim > 1 and options.cone == "pyramidal"
    A = easy * (1 + sliding**2) if pyramid else SX(easy)
    target, R = _soft(surface.softness, depth, J @ s.v, A, options.dt)
    if pyramid:
        R = 2 * sliding**2 / options.impratio * R
    return Block("contact", J, target, ca.if_else(depth < 0, 1 / R, 0), friction, _group(s, t))


def _group(s: Symbols, t: Contact) -> str:
    """What a link touches the world with; what it touches other links with."""
    moving = [x for x in (t.link_a, t.link_b) if s.tree.links[x][0] != ROOT]
    return f"{moving[0]} {'world' if len(moving) < 2 else 'others'}"


def _frame_jacobian(s: Symbols, bodies: list, t: Contact, options: Options) -> SX:
    """Velocity of link a against link b at the contact, along normal and axes of friction, then about them, (dim, nv)."""
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


def friction_axes(t: Contact, cone: str) -> tuple[tuple[SX, ...], tuple[SX, ...]]:
    """Axes of a contact along which it slides, and about which it turns (torsion, rolling), world axes (3,)."""
    assert t.surface is not None
    if t.surface.condim == 1:
        return (), ()
    n = t.geometry.normal
    # A round cone does not ask which way its axes point.
    slides = axes(n, t.along if cone == "pyramidal" else None)
    return slides, (n, *slides)[: t.surface.condim - 3]


def _chain(s: Symbols, link: str) -> set[int]:
    """Velocity coordinates that move a link; those that also follow others (mimic joints) left out."""
    found: set[int] = set()
    i = s.tree.links[link][0]
    while i != ROOT:
        own = s.tree.bodies[i]
        if not own.is_mimic:
            found |= set(range(own.v_start, own.v_start + len(own.kind.linear) + len(own.kind.angular)))
        i = own.parent
    followed = {b.v_start for b in s.tree.bodies if b.is_mimic}
    return found - followed


def _soft(softness: Softness, depth: SX, speed: SX, A: SX, dt: float) -> tuple[SX, SX]:
    """(aref (dim,), R). Only the first axis is pushed back."""
    d, k, b = _reference(softness, depth, dt)
    target = -b * speed
    target[0] = target[0] - k * d * depth
    return target, ca.fmax((1 - d) / d * A, LEAST_R)


def _reference(softness: Softness, depth: SX, dt: float) -> tuple[SX, float, float]:
    """Impedance d, stiffness k and damping b."""
    low, high = IMPEDANCES
    d0, d1, width, middle, power = softness.solimp
    d0, d1 = (min(max(d, low), high) for d in (d0, d1))
    d = _impedance(d0, d1, max(width, 0.0), min(max(middle, low), high), max(power, 1.0), depth)
    time, ratio = softness.solref
    if time > 0:
        time = max(time, 2 * dt)
        k, b = 1 / (d1 * time * ratio) ** 2, 2 / (d1 * time)
    else:
        k, b = -time / d1**2, -ratio / d1
    return d, k, b


def _impedance(d0: float, d1: float, width: float, middle: float, power: float, depth: SX) -> SX:
    if d0 == d1 or width <= 1e-15:
        return SX((d0 + d1) / 2)
    x = ca.fmin(ca.fabs(depth) / width, 1)
    if power == 1:
        return d0 + (d1 - d0) * x
    rise = x**power / middle ** (power - 1)
    settle = 1 - (1 - x) ** power / (1 - middle) ** (power - 1)
    return d0 + (d1 - d0) * ca.if_else(x <= middle, rise, settle)
