"""A substep of hard contact: one configuration, one contact problem, and one more where something strikes.

    look      distances of all rows and their rates at the start; from them the time tau of the first impact
    (impact_time.py) prepare   masses, forces, rows at the configuration of that time; tau = 0 where nothing strikes
    solve     impact   M v+ = M v + tau F + J' l          velocities jump; only where a row that touches approaches fast
              motion   M v' = M v+ + (T - tau) F+ + J' l     F+: forces at v+
    finish    q' = q(tau) + (T - tau) v'; overlap is undone in positions alone                                       (correct.py)

The motion before an impact needs no problem of its own: its forces act for less than a step, and masses and rows of the time of
impact serve for all. Velocities before and after the impact are those of its time, which depends on the state: so derivatives are
those of the motion. What approaches slowly may come as near as touching within a step (Stewart and Trinkle, 1996).

With `impacts` > 1 a substep goes on after an impact, piece by piece, as long as another one follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import factor
from costate.sim.contact.hard.blocks import blocks_of, moving_gap
from costate.sim.contact.hard.correct import Correction, Lift
from costate.sim.contact.hard.impact_time import until
from costate.sim.contact.hard.law import Block
from costate.sim.contact.hard.problem import Problem
from costate.sim.contact.hard.solve import EXACT, WANTED, Solver, nonzeros
from costate.sim.contact.impulsive import ROUNDS, lossless_part, without_rows
from costate.sim.contact.learnt import Learnt
from costate.sim.contact.model import substep_inputs
from costate.sim.contact.newton.weights import inverse_weights
from costate.sim.contact.rows import constraint_rows
from costate.sim.forces.equality import equations, rates
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import loads
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.hard.model import Hard

TOUCH = 1e-5
"""Distance at which shapes touch [m or rad]."""
STRUCK = 1e-7
"""Distance at which shapes strike each other where some bounce [m or rad]."""
REST = 0.5
"""Time constant in which shapes that rest come to touch exactly [s]. Without it distances would creep to and fro across TOUCH."""
FAR = 1e9
"""Distance or speed that no row has [m or rad, m/s or rad/s]: rows that are left out may approach as fast."""
WEIGHT = 9.81
"""Acceleration that impulses of what touches are first guessed to hold against [m/s^2]."""
SPREAD = 10.0
"""Speed by the largest of an impact and by its restitution at which rows that touch, but do not strike yet, may approach in its
round. At restitution 0 none may, as without restitution."""


class Prepared(NamedTuple):
    """The contact problem at a configuration: masses M, momentum M v, forces F, drift of positions (bias.py), Jacobian J; gaps,
    rates J v of the rows that can strike, bounds; restitutions; targets of equality constraints."""

    m: Var
    momentum: Var
    force: Var
    drift: Var
    j: Var
    gap: Var
    rate: Var
    bounds: Var
    restitution: Var
    held: Var


class Clock(NamedTuple):
    """State at the time tau [s] of an impact or 0; time T [s] that was left before it; number of impacts so far."""

    x: Var
    T: Var
    tau: Var
    count: Var


def hard_substep(options: Hard, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`.

    residual: largest speed [m/s or rad/s] by which a row misses its law, (1,).
    """
    b = ProgramBuilder("substep")
    stages = Stages(options, setup)
    carry, args = substep_inputs(b, stages.symbols)
    if not stages.n:
        return without_rows(b, Symbols(setup), args, carry, options)
    moving = setup.nq + setup.nv
    x = b.slice(args[0], 0, moving) if setup.na else args[0]
    found = stages.piece(b, args, x, b.constant([setup.dt]), b.zeros(1))
    if stages.impacts > 1 and stages.hits:
        more = ProgramBuilder("more")
        xm, T, count, impulses, residual, *own = more.inputs(*(v.size for v in found), *(a.size for a in args))
        x, T, count, new, left = stages.piece(more, own, xm, T, count)
        worst = more.trace(ca.fmax, residual, left)
        body = more.program(x, T, count, more.add(impulses, new), worst)
        found, _ = b.while_loop(lambda x, T, *_: T > 0, body, stages.impacts, found, args)
    x, _, _, impulses, residual = found
    return b.program(x, carry, impulses, residual)


class Stages:
    """The stages of a substep."""

    def __init__(self, options: Hard, setup: Setup):
        self.options, self.impacts = options, options.impacts_of(setup)
        self.setup = replace(setup, duration=SX.sym("h")) if self.impacts > 1 else setup
        s = self.symbols = Symbols(self.setup)
        contacts = s.contacts()
        self.rows = constraint_rows(s, s.q, contacts, self.setup.h)
        held = equations(s, s.q)
        self.n = len(self.rows) + sum(e.dim for e in held)
        if self.n:  # before all that costs more: it refuses robots that are too large
            load = loads(s, s.q, s.v, s.u, joint_friction=not options.joint_friction)
            self.M, self.force, self.drift = load.M, load.force, load.drift
        self.blocks = blocks_of(setup, contacts, self.rows, held)
        self.rubbing = [b.kind == "rub" for b in self.blocks]
        self.striking = [k for k, r in enumerate(self.rows) if r.kind in ("normal", "limit")]
        self.hits = len(self.striking)
        self.bounces = options.bounces(setup)
        if not self.n:
            return
        self.J = ca.sparsify(ca.vertcat(*(r.J for r in self.rows), *(e.J for e in held)))
        self.gap = ca.vertcat(SX(0, 1), *(moving_gap(self.rows[k], FAR) for k in self.striking))
        self.held = -rates(s, held) * ca.vertcat(*(e.r for e in held)) if held else SX(0, 1)
        self.bounds = ca.vertcat(*(self._bound(block) for block in self.blocks))
        self.learnt = Learnt.of(s, self.rows, contacts)
        light = tuple(inverse_weights(setup.scene.model, [], setup.tendons).coordinates.tolist())
        self.problem = Problem(ca.tril(self.M).sparsity(), self.J.sparsity(), tuple(self.blocks), light)
        wanted = options.tolerance, max(options.tolerance, WANTED[1])
        self.solver = Solver(self.problem, options.iterations, options.rounds, wanted)
        self.striker = replace(self.solver, wanted=EXACT) if self.bounces else self.solver
        self.lift = Lift(self)

    def _bound(self, block: Block) -> SX:
        """Return the friction coefficient of a contact, or the largest impulse of a joint's friction; 0 for others."""
        row = block.rows[1] if block.kind == "contact" else block.rows[0]
        bound = self.rows[row].bound if row < len(self.rows) else None
        return SX(0) if bound is None else bound

    # --- look ---------------------------------------------------------------------------------------------------------

    def inputs(self, b: ProgramBuilder, args: Sequence[Var], x: Var) -> list[Var]:
        """Return the values of Symbols.inputs at other positions and velocities."""
        na, moving = self.setup.na, self.setup.nq + self.setup.nv
        return [b.concat(x, b.slice(args[0], moving, na)) if na else x, *args[1:]]

    def look(self, b: ProgramBuilder, args: Sequence[Var], x: Var) -> list[Var]:
        """Add distances and rates of the rows that can strike, (hits,) each."""
        outputs = [self.gap, self.J[self.striking, :] @ self.symbols.v]
        return self.symbols.call(b, "look", outputs, self.inputs(b, args, x))

    # --- prepare ------------------------------------------------------------------------------------------------------

    def _at(self, b: ProgramBuilder, name: str, outputs: list[SX], args: Sequence[Var], x: Var, T: Var) -> list[Var]:
        h = self.setup.duration
        return self.symbols.call(b, name, outputs, self.inputs(b, args, x), {} if h is None else {T: h})

    def prepare(self, b: ProgramBuilder, args: Sequence[Var], x: Var, T: Var) -> Prepared:
        s, M = self.symbols, self.M
        restitution = self._restitution() if self.bounces else SX(0, 1)
        outputs = [nonzeros(ca.tril(M)), M @ s.v, self.force, self.drift, nonzeros(self.J), self.gap]
        outputs += [self.J[self.striking, :] @ s.v, self.bounds, restitution, self.held]
        return Prepared(*self._at(b, "prepare", outputs, args, x, T))

    def _restitution(self) -> SX:
        """Return the restitution of every row that can strike, (hits,)."""
        same, found = self.symbols.contact_value("restitution"), []
        for k in self.striking:
            found.append(self.learnt.change("restitution", k, same) if self.rows[k].bounces else SX(0))
        return ca.vertcat(SX(0, 1), *found)

    # --- a piece of a substep: the whole of it, where no second impact follows ------------------------------------------

    def piece(self, b: ProgramBuilder, args: Sequence[Var], x: Var, T: Var, count: Var) -> list[Var]:
        """Add a piece; return the state after it, the time that is left, the number of impacts, impulses and residual."""
        nq, nv = self.setup.nq, self.setup.nv
        strikes = bool(self.impacts and self.hits)
        at, tau, misses = until(self, b, args, x, T) if strikes else (x, b.zeros(1), b.zeros(self.hits))
        clock = Clock(at, T, tau, count)
        found = self.prepare(b, args, at, T)
        v, impulses, left = b.slice(at, nq, nv), b.zeros(self.n), b.zeros(1)
        hit = b.zeros(1)
        if strikes:
            ahead = b.trace(lambda T, tau: T - tau, T, tau)
            hit = b.trace(self._hit, found.gap, found.rate, found.restitution, ahead)
            branches = self._struck(found, clock, args)
            momentum, force, drift, v, impulses, left = b.cond(hit, *branches, *found, *clock, *args)
            found = found._replace(momentum=momentum, force=force, drift=drift)
        targets, again = b.trace(self._targets, *found, v, T, tau, hit, count, misses)
        if self.impacts < 2 or not strikes:
            return self._motion(b, found, clock, args, targets, v, impulses, left)
        ends = [targets, v, impulses, left]
        return b.cond(again, *self._going_on(found, clock, ends, args), *found, *clock, *ends, *args)

    def _going_on(
        self, found: Prepared, clock: Clock, ends: Sequence[Var], args: Sequence[Var]
    ) -> tuple[Program, Program]:
        """Return the branches after an impact: another piece from the time of this one, or the motion that ends the substep."""
        sizes = [v.size for v in (*found, *clock, *ends, *args)]
        b, nq, n, m = ProgramBuilder("again"), self.setup.nq, len(found), len(found) + len(clock)
        given = b.inputs(*sizes)
        at = Clock(*given[n:m])
        _, v, impulses, left = given[m : m + len(ends)]
        rest, count = b.trace(lambda T, tau, count: [T - tau, count + 1], at.T, at.tau, at.count)
        again = b.program(b.concat(b.slice(at.x, 0, nq), v), rest, count, impulses, left)
        e = ProgramBuilder("end")
        given = e.inputs(*sizes)
        ended = self._motion(
            e, Prepared(*given[:n]), Clock(*given[n:m]), given[m + len(ends) :], *given[m : m + len(ends)]
        )
        return again, e.program(*ended)

    # --- impact -------------------------------------------------------------------------------------------------------

    def _touches(self, gap: SX, e: SX) -> SX:
        return gap <= (ca.if_else(ca.mmax(e) > 0, STRUCK, TOUCH) if e.numel() else TOUCH)

    def _hit(self, gap: SX, rate: SX, e: SX, left: SX) -> SX:
        """Return whether a row that touches approaches fast, and closes in the time that is left."""
        closes = ca.logic_and(self._touches(gap, e), gap <= ca.fmax(-rate * left, STRUCK))
        return ca.mmax(ca.logic_and(closes, rate < -self.options.restitution_speed))

    def _struck(self, found: Prepared, clock: Clock, args: Sequence[Var]) -> tuple[Program, Program]:
        """Return the branches (values of `found` and `clock`, args) -> momentum, forces, drift, velocities after an impact,
        impulses and residual: with an impact, and without."""
        sizes = [v.size for v in (*found, *clock, *args)]
        n, m, nq, nv = len(found), len(clock), self.setup.nq, self.setup.nv
        b = ProgramBuilder("impact")
        given = b.inputs(*sizes)
        own, at = Prepared(*given[:n]), Clock(*given[n : n + m])
        momentum, v, impulses, left = self._impact(b, own, at)
        after = b.concat(b.slice(at.x, 0, nq), v)
        force, drift = self._at(b, "forces", [self.force, self.drift], given[n + m :], after, at.T)
        yes = b.program(momentum, force, drift, v, impulses, left)
        k = ProgramBuilder("none")
        given = k.inputs(*sizes)
        own, at = Prepared(*given[:n]), Clock(*given[n : n + m])
        # A row that was to strike, but does not at the time that was found: forces act until then all the same.
        momentum = k.trace(lambda p, f, tau: p + tau * f, own.momentum, own.force, at.tau)
        no = k.program(momentum, own.force, own.drift, k.slice(at.x, nq, nv), k.zeros(self.n), k.zeros(1))
        return yes, no

    def _impact(self, b: ProgramBuilder, found: Prepared, clock: Clock) -> tuple[Var, Var, Var, Var]:
        """Add an impact; return momentum and velocity after it, impulses and residual.

        Without restitution all rows that touch take part in its only round. With restitution those that approach fast strike; what
        they push may approach in turn, and strikes in the next round: so balls in a row pass the blow on. A round that would gain
        energy (restitution, friction and levers together can) is made smaller until it gains none.
        """
        v0 = b.slice(clock.x, self.setup.nq, self.setup.nv)
        part = b.trace(lambda T, tau: ca.fmax(tau / T, 0), clock.T, clock.tau)
        momentum = b.trace(lambda p, f, tau: p + tau * f, found.momentum, found.force, clock.tau)
        if not self.bounces:
            return self._round(b, found, momentum, v0, part)
        carry = [momentum, v0, b.zeros(self.n), b.zeros(1), part]
        body = ProgramBuilder("round")
        p, v, total, left, part, *own = body.inputs(*(c.size for c in carry), *(f.size for f in found))
        p, v, impulses, new = self._round(body, Prepared(*own), p, v, part)
        worst = body.trace(ca.fmax, left, new)
        body = body.program(p, v, body.add(total, impulses), worst, body.zeros(1))

        def goes_on(p: SX, v: SX, total: SX, left: SX, part: SX, *given: SX) -> SX:
            own = _symbols(given)
            rate = self.problem.rows(own.j)[self.striking, :] @ v
            again = ca.logic_and(ca.mmax(own.restitution) > 0, self._hit(own.gap, rate, own.restitution, SX(0)))
            return ca.logic_or(ca.norm_1(total) == 0, again)

        (momentum, v, total, left, _), _ = b.while_loop(goes_on, body, ROUNDS, carry, list(found))
        return momentum, v, total, left

    def _round(self, b: ProgramBuilder, found: Prepared, p: Var, v: Var, part: Var) -> tuple[Var, Var, Var, Var]:
        """Add a round of an impact: see `_impact`. part: that of the bounds of joint friction."""

        def aims(p: SX, v: SX, part: SX, *given: SX) -> list[SX]:
            own = _symbols(given)
            J = self.problem.rows(own.j)
            u, before, t = J @ v, own.rate, SX.zeros(self.n)
            touches, most = self._touches(own.gap, own.restitution), SX(0)
            strikes, spread = touches, SX(0)
            if self.bounces:
                before = J[self.striking, :] @ factor(self.problem.mass(own.m)).solve(p)
                most = ca.mmax(own.restitution)
                fast = ca.logic_and(touches, before < -self.options.restitution_speed)
                strikes = ca.if_else(most > 0, fast, touches)
                spread = SPREAD * most * ca.fmin(ca.mmin(before), 0)
            for i, k in enumerate(self.striking):
                up = ca.fmax(-own.restitution[i] * before[i], 0) if self.bounces else SX(0)
                t[k] = ca.if_else(strikes[i], up, ca.if_else(touches[i], spread, -FAR))
            for k in range(len(self.rows), self.n):
                t[k] = u[k]
            guess = [ca.if_else(touches[i], 1, 0) for i in range(self.hits)]
            return [t, self._scaled(own.bounds, part), self._guess(guess, SX(WEIGHT * self.setup.dt))]

        t, bounds, start = b.trace(aims, p, v, part, *found)
        numbers = [found.m, p, found.j, t, bounds]
        after, impulses, left = self.lift.lossless(b, self.striker.add(b, numbers, v, start), numbers)

        def ends(p: SX, m: SX, j: SX, after: SX, impulses: SX) -> list[SX]:
            M = self.problem.mass(m)
            if not self.bounces:
                return [M @ after, after, impulses]
            J, before = self.problem.rows(j), factor(M).solve(p)
            work, twice = ca.dot(impulses, J @ before), ca.dot(impulses, J @ (after - before))
            gains, part = work + twice / 2 > 0, lossless_part(work, twice)
            after = ca.if_else(gains, before + part * (after - before), after)
            return [M @ after, after, ca.if_else(gains, part * impulses, impulses)]

        momentum, after, impulses = b.trace(ends, p, found.m, found.j, after, impulses)
        return momentum, after, impulses, left

    # --- motion -------------------------------------------------------------------------------------------------------

    def _targets(self, *given: SX) -> list[SX]:
        """Return the targets of all rows in the motion that ends a substep, and whether another impact comes before that."""
        *numbers, v, T, tau, hit, count, misses = given
        own, left, t = _symbols(numbers), T - tau, SX.zeros(self.n)
        speed, again = self.problem.rows(own.j)[self.striking, :] @ v, SX(0)
        strikes, slop = bool(self.impacts), self.options.slop
        most = ca.mmax(own.restitution) if self.bounces else SX(0)
        for i, k in enumerate(self.striking):
            gap, touches = own.gap[i], own.gap[i] <= TOUCH
            fast = speed[i] < -self.options.restitution_speed if strikes else SX(0)
            reached = gap < -speed[i] * left
            # What is apart may come as near as touching. What is fast, but would not have met, waits for the next step: it may
            # overlap by what is left alone. What bounces is not held back at all, nor what only seems to meet by its rate at the
            # start, as a rim that passes an edge.
            passes = ca.logic_and(ca.logic_and(fast, reached), ca.logic_and(misses[i], ca.logic_not(hit)))
            near, late = -gap / left, -(gap + slop) / left
            if self.bounces:
                late = ca.if_else(most > 0, -FAR, late)
            later = ca.logic_and(fast, ca.logic_not(reached))
            waits = fast if self.impacts > 1 else later
            # However near: an impact at rest's distance would have neither its speed nor its time.
            rests = ca.logic_and(touches, ca.logic_not(ca.logic_and(later, gap > STRUCK)))
            apart = ca.if_else(passes, -FAR, ca.if_else(waits, late, near))
            t[k] = ca.if_else(rests, -ca.fmax(gap, -slop) / REST, apart)
            meets = (
                ca.logic_and(fast, reached) if self.bounces else ca.logic_and(ca.logic_and(fast, reached), gap > TOUCH)
            )
            again = ca.fmax(again, meets)
        t[len(self.rows) :] = own.held
        return [t, ca.logic_and(ca.logic_and(again, hit), count < self.impacts - 1)]

    def _motion(
        self,
        b: ProgramBuilder,
        found: Prepared,
        clock: Clock,
        args: Sequence[Var],
        targets: Var,
        v: Var,
        impulses: Var,
        left: Var,
    ) -> list[Var]:
        """Add the motion that ends a substep; return what `piece` does."""

        def numbers(p: SX, force: SX, bounds: SX, gap: SX, T: SX, tau: SX) -> list[SX]:
            touches = [gap[i] <= TOUCH for i in range(self.hits)]
            return [p + (T - tau) * force, self._scaled(bounds, 1 - tau / T), self._guess(touches, WEIGHT * (T - tau))]

        values = [found.momentum, found.force, found.bounds, found.gap, clock.T, clock.tau]
        p, bounds, start = b.trace(numbers, *values)
        own = [found.m, p, found.j, targets, bounds]
        after, new, residual = solved = self.solver.add(b, own, v, start)
        if self.hits:
            after, new, residual, targets = self.lift.bounded(b, own, solved)
        travelled = after
        if self.setup.method.travels_before:
            own[1] = found.momentum
            travelled, _, _ = self.solver.add(b, own, v, b.zeros(self.n))
        if self.hits:
            travelled = Correction(self).add(b, found, clock, [travelled, after, new, targets], args)
        x = b.trace(self.finish, clock.x, clock.T, clock.tau, travelled, found.drift, after)
        worst = b.trace(ca.fmax, left, residual)
        return [x, b.zeros(1), clock.count, b.add(impulses, new), worst]

    def finish(self, x: SX, T: SX, tau: SX, travelled: SX, drift: SX, after: SX) -> SX:
        # The drift is that of the whole time, and grows with it.
        return advance(self.setup, x[: self.setup.nq], travelled + (1 - tau / T) * drift, after, T - tau)

    def _scaled(self, bounds: SX, part: SX) -> SX:
        """Return bounds, those of joint friction for a part of the time."""
        return ca.vertcat(*(bounds[k] * part if rubs else bounds[k] for k, rubs in enumerate(self.rubbing)))

    def _guess(self, touches: Sequence[SX], speed: SX) -> SX:
        """Return impulses to start from: rows that touch take up a speed."""
        found = SX.zeros(self.n)
        for i, k in enumerate(self.striking):
            found[k] = ca.if_else(touches[i], speed / self.problem.ease[k], 0)
        return found


class _Symbols(NamedTuple):
    """The values of `Prepared` as symbols."""

    m: SX
    momentum: SX
    force: SX
    drift: SX
    j: SX
    gap: SX
    rate: SX
    bounds: SX
    restitution: SX
    held: SX


def _symbols(given: Sequence[SX]) -> _Symbols:
    return _Symbols(*given)
