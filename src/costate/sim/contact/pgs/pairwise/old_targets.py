"""Targets of hard contact: the velocity a row must reach, and when within the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.sim.contact.rows import Row

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


def target_of(row: Row, speed: SX, before: SX, restitution: SX, options: PGS, dt: float) -> tuple[SX, SX, SX]:
    """Return (velocity the row must reach, velocity that undoes overlap, part of the step after the impact).

    speed: along the row without impulses; before: at the start of the step, which tells an impact from rest under gravity.
    """
    if row.kind in ("tangent", "friction"):
        return SX(0), SX(0), SX(1)
    gap = row.gap
    undo = ca.fmin(ca.fmax(-gap - options.slop, 0) * (options.erp / dt), options.max_correction)
    # By itself, too, a correction may bring what is apart as near as touching.
    undo = SX(0) if options.correction == "none" else ca.if_else(gap > 0, -gap / dt, undo)
    overlapping = SX(0) if options.correction == "split" else undo
    resting = ca.if_else(gap > 0, -gap / dt, overlapping)  # what is apart may come as near as touching
    if not row.bounces or (restitution.is_constant() and float(restitution) == 0):
        return resting, undo, SX(1)
    meets = ca.logic_or(gap <= 0, gap + dt * speed < 0)
    strikes = ca.logic_and(ca.logic_and(before < -options.restitution_speed, speed < 0), meets)
    target = ca.if_else(strikes, ca.fmax(-restitution * speed, overlapping), resting)
    time = ca.if_else(ca.logic_and(strikes, gap > 0), gap / ca.if_else(strikes, -speed, 1), 0)
    return target, undo, 1 - time / dt
