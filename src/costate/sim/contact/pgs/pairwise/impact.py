"""Impacts solved pair by pair: the rounds of ../impact.py as walks over the groups that touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel.ir.program import Program, Var
from costate.sim.contact.pgs.impact import ROUNDS, lossless_part
from costate.sim.contact.pgs.pieces import Scope

if TYPE_CHECKING:
    from costate.sim.contact.pgs.pairwise.step import PairwiseStep


def after_impact(step: PairwiseStep, scope: Scope) -> tuple[Var, Var]:
    """Add the rounds of an impact, none where nothing strikes; return velocities of the carriers after it, and all impulses."""
    b = scope.b
    shared = {k: v for k, v in scope.values.items() if k not in ("now", "strikes")}
    carry = {"now": scope["now"], "total": b.zeros(step.size), "strikes": scope["strikes"]}
    inner = Scope.of("round", {k: v.size for k, v in (carry | shared).items()})
    (now, total, _), _ = b.while_loop(
        lambda now, total, strikes, *_: strikes > 0,
        _round(step, inner),
        ROUNDS,
        list(carry.values()),
        list(shared.values()),
    )
    return now, total


def _round(step: PairwiseStep, scope: Scope) -> Program:
    b, visit, flags = scope.b, step.visit, scope["touching"]
    touches, system = step.own(scope["touches"]), step.made(scope["system"])
    reads = [step.moved(scope["now"]), touches, step.shared(scope["restitution"]), system]
    _, _, (u, c) = step.walk(scope, visit.strike(), flags, [], reads)
    change, impulses = step.sweeps(scope, flags, c, (step.still(b), b.zeros(step.size)), impact=True)
    reads = [step.moved(change), step.own(impulses), step.own(u), system]
    _, (work,), _ = step.walk(scope, visit.work(), flags, [], reads, sums=[step.total(2)])
    part = b.trace(lambda x: lossless_part(x[0], x[1]), work)

    def grown(x: SX, more: SX, part: SX) -> SX:
        return x + part * more

    now = step.over_carriers(b, grown, [scope["now"], change], part)
    total = step.each(b, grown, [scope["total"], impulses], [part])
    reads = [step.moved(now), touches, system]
    _, (fast,), _ = step.walk(scope, visit.still_strikes(), flags, [], reads, sums=[step.total(1)])
    again = b.trace(lambda n, restitution: ca.logic_and(n > 0, restitution > 0), fast, scope["restitution"])
    return b.program(now, total, again)
