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
HARDLY = 0.05
"""Part of a contact point's mobility below which a row is said to hardly move it."""
FAR = 1e9
"""Speed less target of rows that are left out [m/s or rad/s]."""


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
    """The aim of a row."""

    speed: SX
    """Speed to be reached at least [m/s or rad/s]."""
    undo: SX
    """Speed that undoes overlap, or may be used up by it where there is none yet."""
    waits: SX
    """1 where the row does not take part before its impact."""


def target_of(gap: SX, closed: SX, speeds: tuple[SX, SX], ease: SX, motion: Motion, options: PGS) -> Target:
    """Return the target of a normal or limit row.

    closed: whether it touches; speeds: at the start, and at the end without impulses; ease: A[k, k] over the mobility of its point
    in any direction. What is apart may come as near as touching. If it comes fast, that is an impact to be found.
    """
    nearer = -gap / motion.h
    # A row that hardly moves its point would need much energy for the same speed: it gets as much as an easy one.
    gentle = ca.sqrt(ca.fmin(ca.fmax(ease / HARDLY, UNMOVED), 1))
    undo = gentle * ca.fmin(ca.fmax(-gap - options.slop, 0) * (options.erp / motion.dt), options.max_correction)
    undo = SX(0) if options.correction == "none" else undo
    fast = ca.fmin(*speeds) < -options.restitution_speed
    waits = ca.logic_and(ca.logic_and(ca.logic_not(closed), fast), ca.logic_not(motion.last))
    speed = SX(0) if options.correction == "split" else undo
    return Target(ca.if_else(closed, speed, nearer), ca.if_else(closed, undo, nearer), waits)
