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

from costate.kernel.ir.program import Program, Var
from costate.sim.contact.pgs.pieces import Scope
from costate.sim.contact.pgs.targets import FAR

if TYPE_CHECKING:
    from costate.sim.contact.pgs.dense import Dense

ROUNDS = 60
"""Number of rounds of an impact at most."""
READ = ("j", "w", "system", "bounds", "touches", "restitution")
"""Values of a prepared piece that rounds read."""


def after_impact(dense: Dense, scope: Scope) -> tuple[Var, Var]:
    """Add the rounds of an impact; return the state after it, and all impulses."""
    b, nq = scope.b, dense.setup.nq
    start = [b.slice(scope["x"], nq, dense.setup.nv), b.zeros(dense.size)]

    def goes_on(v: SX, total: SX, j: SX, *more: SX) -> SX:
        touches, restitution = more[3:]
        again = ca.logic_or(ca.mmax(restitution) > 0, ca.norm_1(total) == 0)
        return ca.logic_and(again, ca.mmax(_approaching(dense, SX(dense.J.sparsity(), j) @ v, touches)))

    (v, total), _ = b.while_loop(goes_on, _round(dense, scope), ROUNDS, start, shared=scope.pick(READ))
    return b.concat(b.slice(scope["x"], 0, nq), v), total


def _approaching(dense: Dense, u: SX, touches: SX) -> SX:
    """Return flags of the rows that touch and approach fast, (hits,)."""
    least = -dense.options.restitution_speed
    return ca.vertcat(*(ca.logic_and(touches[i], u[k] < least) for i, k in enumerate(dense.striking)))


def _round(dense: Dense, scope: Scope) -> Program:
    """Return the program of one round: (v, total, READ) -> (v, total)."""
    sizes = {"v": dense.setup.nv, "total": dense.size}
    inner = Scope.of("round", sizes | {k: scope[k].size for k in READ})
    b, rows = inner.b, dense.rows
    rubs = [1.0 if r.kind == "tangent" else 0.0 for r in rows]

    def aims(v: SX, j: SX, bounds: SX, touches: SX, restitution: SX) -> list[SX]:
        u = SX(dense.J.sparsity(), j) @ v
        fast, c = _approaching(dense, u, touches), SX(u)
        bounces = ca.mmax(restitution) > 0
        for i, k in enumerate(dense.striking):
            own = restitution[i] if restitution.numel() > 1 else restitution
            bounce = own if rows[k].bounces else SX(0)
            strikes = ca.if_else(bounces, fast[i], touches[i])
            c[k] = ca.if_else(strikes, u[k] + bounce * ca.fmin(u[k], 0), FAR)
        return [u, c, bounds * ca.DM(rubs)]  # friction of joints has no impulse without duration

    u, c, bounds = b.trace(aims, *inner.pick(("v", "j", "bounds", "touches", "restitution")))
    start = b.zeros(dense.sweep.carry_size)
    end = b.scan(dense.sweep.function, dense.options.sweeps, start, shared=[inner["system"], c, bounds])[0][0]

    def after(v: SX, total: SX, j: SX, w: SX, u: SX, end: SX) -> list[SX]:
        impulse = end[: dense.size]
        change = SX(dense.W.sparsity(), w) @ impulse
        work, twice = ca.dot(impulse, u), ca.dot(impulse, SX(dense.J.sparsity(), j) @ change)
        part = lossless_part(work, twice)
        return [v + part * change, total + part * impulse]

    return b.program(*b.trace(after, *inner.pick(("v", "total", "j", "w")), u, end))


def lossless_part(work: SX, twice: SX) -> SX:
    """Return the part of some impulses that gains no energy. work: impulses . speeds before; twice: impulses . their changes."""
    gains = work + twice / 2 > 0
    return ca.if_else(gains, ca.fmax(-2 * work, 0) / ca.if_else(gains, twice, 1), 1)
