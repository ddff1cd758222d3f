"""Impacts: jumps of velocity without duration, at the configuration in which shapes touch.

In every round the rows that touch and approach fast strike together: each one must leave with its restitution, by the same sweeps
with the same friction as a motion. What they push may approach in turn, and strikes in the next round: so balls in a row that touch
pass the blow on. Without restitution all rows that touch take part in the only round there is. A round that would gain energy
(friction with levers can) is made smaller until it gains none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.impulsive import ROUNDS, lossless_part
from costate.sim.contact.records import flat, inside

if TYPE_CHECKING:
    from costate.sim.contact.pgs.stages import Piece
    from costate.sim.contact.pgs.step import Step


def after_impact(step: Step, b: ProgramBuilder, piece: Piece) -> tuple[Var, Var]:
    """Add the rounds of an impact, none where nothing strikes; return velocities of the carriers after it, and all impulses."""
    start = piece.placed.now, b.zeros(step.size), piece.points.strikes
    body = _round(step, *inside("round", (start, piece)))
    (now, total, _), _ = b.while_loop(
        lambda now, total, strikes, *_: strikes > 0, body, ROUNDS, list(start), flat(piece)
    )
    return now, total


def _round(step: Step, b: ProgramBuilder, given: tuple[tuple[Var, Var, Var], Piece]) -> Program:
    """Build (velocities, impulses, goes on; piece) -> the same after a round."""
    (now, total, _), piece = given
    visit, points, restitution = step.visit, piece.points, piece.given.restitution
    touches, system = step.own(points.touches), step.made(points.system)

    def walk(body: ca.Function, reads: list, **more) -> tuple[list[Var], list[Var], list[Var]]:
        return step.walk(b, piece.placed, body, points.touching, [], [*reads, system], **more)

    _, _, (u, c) = walk(visit.strike(), [step.moved(now), touches, step.shared(restitution)])
    still = step.still(b), b.zeros(step.size)
    change, impulses = step.sweeps(b, piece, points.touching, c, still, impact=True)
    reads = [step.moved(change), step.own(impulses), step.own(u)]
    _, (work,), _ = walk(visit.work(), reads, sums=[step.total(2)])
    part = b.trace(lambda x: lossless_part(x[0], x[1]), work)

    def grown(x: SX, more: SX, part: SX) -> SX:
        return x + part * more

    now = step.over_carriers(b, grown, [now, change], part)
    total = step.each(b, grown, [total, impulses], [part])
    _, (fast,), _ = walk(visit.still_strikes(), [step.moved(now), touches], sums=[step.total(1)])
    again = b.trace(lambda n, restitution: ca.logic_and(n > 0, restitution > 0), fast, restitution)
    return b.program(now, total, again)
