"""The time of the next impact: an estimate with the levers of the start, then Newton's steps on the true distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.pair_kinds import Kind, same_for_all
from costate.sim.contact.pgs.stages import G, Motion, P
from costate.sim.contact.records import flat, inside

if TYPE_CHECKING:
    from costate.sim.contact.pgs.step import Step

NEWTON = 4
"""Newton's steps for the time of an impact."""
CREEP = 1e-6
"""Speed of approach below which no time of impact is looked for [m/s or rad/s]."""
END = 1e-9
"""Part of the substep before its end in which an impact is left to the next one."""


def until(step: Step[G, P], b: ProgramBuilder, motion: Motion[G, P]) -> tuple[Var, Var]:
    """Add the time at which a motion ends, and marks of the rows that it closes, (hits,)."""
    tau = _estimate(step, b, motion)
    sooner = b.trace(lambda tau, clock: tau < clock[0], tau, motion.piece.clock)
    given = motion, tau
    kept, (_, same) = inside("keep", given)
    keep = kept.program(same, kept.zeros(step.hits))
    tau, marks = b.cond(sooner, _refined(step, *inside("refine", given)), keep, *flat(given))
    return tau, marks


def _estimate(step: Step[G, P], b: ProgramBuilder, motion: Motion[G, P]) -> Var:
    """Add the earliest time at which a row that waits closes, with the levers of the start; the end of the motion where none
    does."""
    piece, reads = motion.piece, [step.moved(motion.base), step.moved(motion.slope)]
    reads += [step.made(piece.points.gap), step.own(motion.aims.waits), step.shared(piece.clock)]
    reads += [step.made(piece.points.system)]
    states, flags = [step.shared(b.slice(piece.clock, 0, 1))], motion.aims.waiting
    return step.walk(b, piece.placed, step.visit.first_meeting(), flags, states, reads)[0][0]


def _refined(step: Step[G, P], b: ProgramBuilder, given: tuple[Motion[G, P], Var]) -> Program:
    """Build Newton's steps: every row that waits says when it would close, and the earliest one counts."""
    motion, tau = given
    start = tau, b.zeros(step.hits)
    body, ((tau, times), inner) = inside("newton", (start, motion))
    closer = body.program(*_closer(step, body, inner, tau, times))
    (tau, times), _, _ = b.scan(closer, NEWTON, list(start), shared=flat(motion))
    dt, clock = step.setup.dt, motion.piece.clock

    def is_sooner(tau: SX, clock: SX) -> SX:
        return tau < clock[0] - END * dt

    def mark(times: SX, waits: SX, tau: SX, clock: SX) -> SX:
        return ca.logic_and(ca.logic_and(waits, times <= tau), is_sooner(tau, clock))

    marks = step.each(b, mark, [times, motion.aims.waits], [tau, clock])
    end = b.trace(lambda tau, clock: ca.if_else(is_sooner(tau, clock), tau, clock[0]), tau, clock)
    return b.program(end, marks)


def _closer(step: Step[G, P], b: ProgramBuilder, motion: Motion[G, P], tau: Var, times: Var) -> tuple[Var, Var]:
    """Add one of Newton's steps for the time of an impact; return the time, and those of all rows, (hits,)."""
    piece, waits = motion.piece, motion.aims.waits
    placed, first = step.ahead(b, motion, tau), b.slice(piece.clock, 0, 1)
    for kind, waiting in zip(step.pairs.kinds, motion.waiting, strict=True):
        function, reads = step.rates(b, placed, kind)
        n, hits = len(kind.members), step.hits_of(kind)
        reads = [(waits, hits), *((x, same_for_all(n, x.size)) for x in (tau, piece.clock)), *reads]
        geometry = step.pairs.geometry(kind, placed.poses, piece.given.sizes)
        states = [(first, same_for_all(n, 1)), (times, hits)]
        program = _closing(step, kind, function, [table.shape[1] for _, table in reads])
        first, times = b.walk(program, waiting, states, [*geometry, *reads])[0]
    joints = step.joint_rates(placed)
    if joints is not None:
        start = step.pairs.together * step.pairs.count
        own = b.slice(waits, start, step.hits - start)
        first, found = b.trace(lambda *x: _earliest(-step.setup.dt, *x), first, tau, piece.clock, own, *joints)
        times = b.concat(b.slice(times, 0, start), found) if start else found
    return first, times


def _closing(step: Step[G, P], kind: Kind, function: Callable[..., SX], widths: Sequence[int]) -> Program:
    """Build (first, times, geometry, waits, tau, clock, reads) -> (first, times) of a kind."""
    b = ProgramBuilder("closing")
    first, _ = b.inputs(1, kind.points)
    geometry, more = b.like(kind.program), b.inputs(*widths)

    def times(first: SX, points: SX, waits: SX, tau: SX, clock: SX, *given: SX) -> list[SX]:
        rates = [function(point, *given) for point in ca.vertsplit(points, POINT)]
        return _earliest(-step.setup.dt, first, tau, clock, waits, points[0::POINT], ca.vertcat(*rates))

    return b.program(*b.trace(times, first, *b.call(kind.program, *geometry), *more))


def _earliest(earliest: float, first: SX, tau: SX, clock: SX, waits: SX, gap: SX, rate: SX) -> list[SX]:
    """Return the earliest time at which some rows close, if it is before the first so far, and the times of all."""
    n = gap.numel()
    times = [closing(tau, gap[k], rate[k], waits[k], clock[0], earliest) for k in range(n)]
    for time in times:
        first = ca.fmin(first, time)
    return [first, ca.vertcat(*times)]


def meeting(gap: SX, base: SX, slope: SX, waits: SX, h: SX) -> SX:
    """Return the first time at which gap + t base + t^2 slope = 0, or h where a row does not wait or they do not meet."""
    square = base**2 - 4 * slope * gap
    below = -base + ca.sqrt(ca.if_else(square > 0, square, 1))
    meets = ca.logic_and(ca.logic_and(waits, square > 0), below > CREEP)
    return ca.if_else(meets, 2 * gap / ca.if_else(meets, below, 1), h)


def closing(tau: SX, gap: SX, rate: SX, waits: SX, h: SX, earliest: float) -> SX:
    """Return when a row closes, by one of Newton's steps from the time tau; 2 h where it does not."""
    meets = ca.logic_and(waits, rate < -CREEP)
    return ca.if_else(meets, ca.fmax(tau - gap / ca.if_else(meets, rate, -1), earliest), 2 * h)
