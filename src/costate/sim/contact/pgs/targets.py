"""Targets of hard contact: the velocity that a row must reach at least by the end of a motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.sim.contact.pgs.law import UNMOVED

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

TOUCH = 1e-7
"""Distance at which shapes touch [m or rad]."""
HARDLY = 0.1
"""Part of a contact point's mobility below which a row is said to hardly move it."""
CLOSED, STRUCK = 1.0, 2.0
"""Marks of rows: the motion before has closed it; it has had its part in the impact just now."""
FAR = 1e9
"""Speed that no row has [m/s or rad/s]: rows that are left out may approach as fast."""


@dataclass(frozen=True, eq=False)
class Motion:
    """A stretch of a substep, without impacts in between."""

    h: SX | float
    """Duration [s]."""
    dt: float
    """Time step of the substep that it is part of [s]."""
    last: SX | float = 0.0
    """1 where the rest of the substep goes by without impacts."""


@dataclass(frozen=True, eq=False)
class Target:
    """The part of a row in what comes next, and its aim in a motion."""

    touches: SX
    """1 where the shapes touch."""
    waits: SX
    """1 where the row takes no part in the motion before its impact."""
    strikes: SX
    """1 where its impact is now."""
    speed: SX
    """Speed to be reached at least at the end of a motion [m/s or rad/s]."""
    undo: SX
    """Speed that undoes overlap; of shapes that are apart, the one at which they would just touch."""


def target_of(gap: SX, marked: SX, speeds: tuple[SX, SX], ease: SX, motion: Motion, options: PGS) -> Target:
    """Return the target of a normal or limit row.

    marked: CLOSED, STRUCK or 0; speeds: at the start, and at the end without impulses; ease: A[k, k]
    over the mobility of its point in any direction. What is apart may come as near as touching. If it comes fast, that is an
    impact, whose time is looked for even where shapes touch already: it may be now, or somewhat earlier, but it depends on the
    state, and so do velocities after it.
    """
    before, after = speeds
    least = -options.restitution_speed
    near = gap <= TOUCH
    touches = ca.logic_or(near, marked > 0)
    strikes = ca.logic_and(ca.logic_and(touches, before < least), marked < STRUCK)
    fast = ca.if_else(near, ca.logic_and(before < least, gap > before * motion.dt), ca.fmin(before, after) < least)
    waits = ca.logic_and(ca.logic_and(fast, marked == 0), ca.logic_not(motion.last))
    # A row that hardly moves its point would need much energy for the same speed: it gets as much as an easy one.
    gentle = ca.sqrt(ca.fmin(ca.fmax(ease / HARDLY, UNMOVED), 1))
    undo = gentle * ca.fmin(ca.fmax(-gap - options.slop, 0) * (options.erp / motion.dt), options.max_correction)
    undo = SX(0) if options.correction == "none" else undo
    nearer = -gap / motion.h
    speed = SX(0) if options.correction == "split" else undo
    return Target(
        touches,
        waits,
        ca.logic_and(strikes, ca.logic_not(ca.logic_or(waits, motion.last))),
        ca.if_else(waits, -FAR, ca.if_else(touches, speed, nearer)),
        ca.if_else(touches, undo, nearer),
    )
