"""Depths that cross 0 within a step: which, in which direction, and when."""

from __future__ import annotations

import casadi as ca
from casadi import SX

TINY = 1e-30
"""Acceleration in place of none, where one is divided by [m/s^2]."""


def crossing(depth: SX, rate: SX, after: SX, dt: float) -> tuple[SX, SX, SX]:
    """Return how depths cross 0 in the step that ended, or else in this one: half the sign (1/2 begins, -1/2 ends, 0 neither),
    whether it is the step that ended, and the speed. rate, after: rates of the depths before and after the step; all (n,)."""
    begins, ends = ca.logic_and(depth < 0, depth > rate * dt), ca.logic_and(depth >= 0, depth < rate * dt)
    past = ca.logic_or(begins, ends)
    to = depth + dt * after
    begins_now, ends_now = ca.logic_and(depth >= 0, to < 0), ca.logic_and(depth < 0, to >= 0)
    sign = ca.if_else(past, begins - ends, begins_now - ends_now) / 2
    return sign, past, ca.fabs(ca.if_else(past, rate, after))


def phase(depth: SX, rate: SX, after: SX, sign: SX, past: SX, dt: float) -> SX:
    """Return the part of a step since the crossing, at the step's start or at its end; 0 where there is none."""
    way = ca.if_else(past, rate, after) * dt
    at = ca.if_else(past, depth, depth + dt * after)
    return ca.if_else(sign != 0, at / ca.if_else(sign != 0, way, 1), 0)


def bounded(sign: SX, speed: SX, change: SX, dt: float) -> SX:
    """Return signs, smaller where a force changes the row's speed by more than the speed within a step. change: acceleration of
    the rows by the forces of all that begins or ends."""
    return sign * speed / ca.fmax(ca.fmax(speed, dt * ca.fabs(change)), TINY)
