"""The time of the first impact in a substep, along the velocities of its start.

It is found on the true distances, by two of Newton's steps from the estimate with the rates of the start. Where a row that is
about to strike has closed already, the time is just before the start: it depends on the state, and so do velocities after it. Only
the last of Newton's steps is differentiated, which is enough: its derivative is that of the time itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.impulsive import least
from costate.sim.integrate.advance import advance

if TYPE_CHECKING:
    from costate.sim.contact.hard.step import Stages

SLOWER = 0.1
"""Part of the speed of an impact that a row must keep on its way to count."""


def until(stages: Stages, b: ProgramBuilder, args: Sequence[Var], x: Var, T: Var) -> tuple[Var, Var, Var]:
    """Add the first impact within the time T: return the state at its time, and that time [s]; x and 0 where there is none. And
    flags (hits,) of rows which would meet by their rate at the start, but not by that at the time that was found."""
    dt, speed, n = stages.setup.dt, stages.options.restitution_speed, stages.hits

    def first(gap: SX, rate: SX, T: SX) -> list[SX]:
        times = []
        for k in range(n):
            near = ca.logic_and(gap[k] > rate[k] * dt, gap[k] < -rate[k] * T)
            fast = ca.logic_and(rate[k] < -speed, near)
            times.append(ca.if_else(fast, -gap[k] / ca.if_else(fast, rate[k], 1), 2 * T))
        tau = least(times)
        return [tau, tau < T, ca.vertcat(*(t < 2 * T for t in times))]

    tau, strikes, waits = b.trace(first, *stages.look(b, args, x), T)
    given = [tau, waits, T, x, *args]
    refined = _refined(stages, [v.size for v in given])
    x, tau, misses = b.cond(strikes, refined, lambda tau, waits, T, x, *_: [x, SX.zeros(1), SX.zeros(n)], *given)
    return x, tau, misses


def _refined(stages: Stages, sizes: Sequence[int]) -> Program:
    """Return the program (estimate, rows that count, T, x, args) -> state and time of the impact, rows that miss."""
    near = ProgramBuilder("near")
    tau, waits, T, x, *args = near.inputs(*sizes)
    rough = near.program(_newton(stages, near, tau, waits, T, x, args)[0])
    b = ProgramBuilder("refined")
    tau, *more = b.inputs(*sizes)
    (tau,) = b.custom(
        rough, tau, *more, tangent=lambda *_: SX.zeros(1), adjoint=lambda *_: [SX.zeros(n) for n in sizes]
    )
    waits, T, x, *args = more
    tau, misses = _newton(stages, b, tau, waits, T, x, args)
    tau = b.trace(lambda tau, T: ca.if_else(tau < T, tau, 0), tau, T)
    return b.program(b.trace(lambda x, tau: moved(stages, x, tau), x, tau), tau, misses)


def _newton(
    stages: Stages, b: ProgramBuilder, tau: Var, waits: Var, T: Var, x: Var, args: Sequence[Var]
) -> tuple[Var, Var]:
    """Add one of Newton's steps: every row that counts says when it would close, and the earliest one wins. Return it, and flags of
    the rows that close too late or never."""
    slow, dt = -SLOWER * stages.options.restitution_speed, stages.setup.dt

    def step(tau: SX, gap: SX, rate: SX, waits: SX, T: SX) -> list[SX]:
        times = []
        for k in range(stages.hits):
            closes = ca.logic_and(waits[k], rate[k] < slow)
            times.append(ca.if_else(closes, tau - gap[k] / ca.if_else(closes, rate[k], 1), 2 * T))
        misses = [ca.logic_and(waits[k], t > T) for k, t in enumerate(times)]
        return [ca.fmax(least(times), -dt), ca.vertcat(*misses)]

    at = b.trace(lambda x, tau: moved(stages, x, tau), x, tau)
    sooner, misses = b.trace(step, tau, *stages.look(b, args, at), waits, T)
    return sooner, misses


def moved(stages: Stages, x: SX, tau: SX) -> SX:
    """Return the state after a time tau of uniform motion."""
    nq, nv = stages.setup.nq, stages.setup.nv
    v = x[nq : nq + nv]
    return advance(stages.setup, x[:nq], v, v, tau)
