"""Constraint rows: contacts, joint limits and joint friction as bounds on velocities J v."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.pairs import tangents
from costate.physics.algebra import quaternion
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses
from costate.physics.tree import ROOT
from costate.sim.contact.detect import Contact
from costate.sim.forces.lengths import Length, Sum
from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class Row:
    """A scalar constraint. Impulses are along J^T."""

    kind: str
    """Kind: normal | tangent | limit | friction."""
    J: SX
    """Jacobian (1, nv)."""
    gap: SX
    """Distance to the bound [m or rad]; 0 for tangents and friction."""
    contact: int = -1
    """Number of the normal row of a tangent."""
    bound: SX | None = None
    """Bound of a tangent: its friction coefficient; of friction: its largest impulse [N m s or N s]."""
    bounces: bool = False
    point: SX | None = None
    """Jacobian of the relative velocity of a normal row's contact point, (3, nv)."""
    joint: str = ""
    """Joint or tendon of a limit or of friction."""


def constraint_rows(s: Symbols, q: SX, contacts: list[Contact], dt: float | SX) -> list[Row]:
    """Return all rows at a configuration: a normal and two tangents per contact, then limits, then friction of joints. dt:
    duration of the motion that they are rows of [s]."""
    rows: list[Row] = []
    bodies = body_poses(s.tree, q)
    for t in contacts:
        c = t.geometry
        J = relative_jacobian(s, bodies, t)
        normal = len(rows)
        rows.append(Row("normal", c.normal.T @ J, c.gap, bounces=True, point=J))
        if t.rubs:
            rows += [Row("tangent", d.T @ J, SX(0), normal, t.friction) for d in tangents(c.normal)]
    if s.setup.contact.joint_limits:
        rows += limit_rows(s, q)
    if s.setup.contact.joint_friction:
        rows += friction_rows(s, dt)
    return rows


def relative_jacobian(s: Symbols, bodies: list, t: Contact) -> SX:
    """Return the Jacobian (3, nv) of the velocity of link a against link b, each at its own surface: so an impact later in the step
    has the right levers."""
    J = SX(3, s.setup.nv)
    c = t.geometry
    for link, sign in ((t.link_a, 1), (t.link_b, -1)):
        body = s.tree.links[link][0]
        if body != ROOT:
            surface = c.point + c.normal * (sign * c.gap / 2)
            J = J + sign * point_jacobian(s.tree, bodies, body, surface)[:3, :]
    return J


def limit_rows(s: Symbols, q: SX, both: Collection[str] = ()) -> list[Row]:
    """Return one row per limited joint or tendon, for whichever limit is nearer. both: those that get a row for each limit."""
    model = s.setup.scene.model
    lengths: list[tuple[str, Length, float, float]] = [
        (j.name, Sum(((iq, iv, 1.0),)), float(j.lower[0]), float(j.upper[0]))
        for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True)
        if j.nv == 1
    ]
    lengths += [(t.name, t.length, t.given.lower, t.given.upper) for t in s.setup.tendons]
    at, rows = s.at(q), list[Row]()
    for name, x, low, high in lengths:
        spans = [(low, np.inf), (-np.inf, high)] if name in both else [(low, high)]
        bounded = [span for span in spans if np.isfinite(span).any()]
        rows += [_limit_row(name, x.row(at), x.of(at), *span) for span in bounded]
    return rows + _angle_rows(s, q)


def _angle_rows(s: Symbols, q: SX) -> list[Row]:
    """Return one row per spherical joint with a largest angle."""
    model, rows = s.setup.scene.model, []
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        if j.kind != "spherical" or not np.isfinite(j.max_angle):
            continue
        turn = quaternion.log(q[iq : iq + 4])
        square = ca.dot(turn, turn)
        turned = square > 0
        angle = ca.if_else(turned, ca.sqrt(ca.if_else(turned, square, 1)), 0)
        J = SX(1, model.nv)
        J[0, iv : iv + 3] = -ca.if_else(turned, turn.T / ca.if_else(turned, angle, 1), SX([[1, 0, 0]]))
        rows.append(Row("limit", J, j.max_angle - angle, joint=j.name))
    return rows


def _limit_row(name: str, J: SX, x: SX, low: float, high: float) -> Row:
    if np.isfinite(low) and np.isfinite(high):
        to_low = x - low < high - x
        sign = ca.if_else(to_low, 1, -1)
        return Row("limit", J * sign, ca.if_else(to_low, x - low, high - x), joint=name)
    if np.isfinite(low):
        return Row("limit", J, x - low, joint=name)
    return Row("limit", -J, high - x, joint=name)


def friction_rows(s: Symbols, dt: float | SX) -> list[Row]:
    """Return one row per coordinate of joints with Coulomb friction, and one per tendon with some."""
    model = s.setup.scene.model
    rows = []
    for j, iv in zip(model.joints, model.v_index, strict=True):
        friction = s.params["friction", j.name]
        if j.mimic or not friction.nnz():
            continue
        for k in range(iv, iv + j.nv):
            unit = SX(ca.Sparsity.triplet(1, model.nv, [0], [k]), 1)
            rows.append(Row("friction", unit, SX(0), bound=dt * friction, joint=j.name))
    for t in s.setup.tendons:
        if t.given.friction:
            bound = SX(dt * t.given.friction)
            rows.append(Row("friction", t.length.row(s.at(s.q)), SX(0), bound=bound, joint=t.name))
    return rows
