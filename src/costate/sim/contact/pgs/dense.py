"""Hard contact by rows of one system: the contact problem of a motion, and of an impact, as expressions.

    v' = v_free + W lambda,   W = M^-1 J^T,   J v' >= target,   lambda >= 0   (friction: |lambda_t| <= mu lambda_n)

The sweeps are a scan whose carried state is lambda; its adjoint is the reversed sweeps. pieces.py says how a substep is made of
motions and impacts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import Factor
from costate.sim.contact.learnt import Learnt
from costate.sim.contact.model import ContactModel, substep_inputs
from costate.sim.contact.pgs.impact import after_impact
from costate.sim.contact.pgs.pieces import Pieces, Scope, closing, least, meeting
from costate.sim.contact.pgs.sweep import Sweep, blocks, make_sweep, nonzeros
from costate.sim.contact.pgs.targets import STRUCK, Motion, Target, target_of
from costate.sim.contact.rows import Row, constraint_rows
from costate.sim.forces.equality import Tied
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import Free, free_motion
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


def dense_substep(options: PGS, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`. Its carry are the impulses to start from.

    residual: largest speed [m/s or rad/s] by which one more sweep would change a row, (1,).
    """
    dense = Dense(options, replace(setup, duration=SX.sym("h")))
    s = Symbols(setup)
    b = ProgramBuilder("substep")
    carry, args = substep_inputs(b, s, dense.size if options.warms(setup) else 0)
    if not dense.rows:
        return without_rows(b, s, args, carry, options)
    x, impulses, residual, ready = dense.substep(b, args, carry)
    return b.program(x, ready, impulses, residual)


def without_rows(b: ProgramBuilder, s: Symbols, args: list[Var], carry: Var, options: ContactModel) -> Program:
    """Build the substep of a world in which nothing can touch, and no joint has a limit or friction."""
    free = free_motion(s, s.q, s.v, s.u, joint_friction=not options.joint_friction)
    after = advance(s.setup, s.q, free.travelled(s, free.velocity), free.velocity, s.setup.dt)
    (x,) = s.call(b, "free", [after], args)
    return b.program(x, carry, b.zeros(1), b.zeros(1))


class Dense(Pieces):
    """The stages of a substep whose rows are one system."""

    def __init__(self, options: PGS, setup: Setup):
        super().__init__(options, setup)
        s = self.symbols = Symbols(setup)
        self.contacts = s.contacts()
        self.rows = constraint_rows(s, s.q, self.contacts, setup.h)
        self.size = len(self.rows)
        self.striking = [k for k, r in enumerate(self.rows) if r.kind in ("normal", "limit")]
        self.hits = len(self.striking)
        self.marks = SX.sym("marks", self.hits)
        self.number = SX.sym("number")

    @cached_property
    def free(self) -> Free:
        s = self.symbols
        return free_motion(s, s.q, s.v, s.u, joint_friction=not self.options.joint_friction)

    @cached_property
    def J(self) -> SX:
        return ca.vertcat(*(r.J for r in self.rows))

    @cached_property
    def W(self) -> SX:
        """Changes of velocity by unit impulses M^-1 J^T, (nv, n)."""
        return ca.sparsify(ca.horzcat(*(_sparse_solve(self.free.factor, r.J.T) for r in self.rows)))

    @cached_property
    def gap(self) -> SX:
        return ca.vertcat(SX(0, 1), *(self.rows[k].gap for k in self.striking))

    @cached_property
    def references(self) -> SX:
        """Mobility of the point of every row in all directions together, of mechanisms without their constraints, (n,)."""
        factor = self.free.factor.free if isinstance(self.free.factor, Tied) else self.free.factor
        own = [r.J @ _sparse_solve(factor, r.J.T) for r in self.rows]
        for group in blocks(self.rows):
            smooth = len(group) == 1 and self.rows[group[0]].kind == "normal"
            total = _mobility(factor, self.rows[group[0]]) if smooth else sum((own[k] for k in group), SX(0))
            for k in group:
                own[k] = total
        return ca.vertcat(*own)

    @cached_property
    def sweep(self) -> Sweep:
        return make_sweep(self.rows, self.J, self.W, self.references, self.options)

    # --- stages ---------------------------------------------------------------------------------------------------

    def _call(self, scope: Scope, name: str, outputs: list[SX], x: Var | None = None) -> list[Var]:
        """Add expressions of the state (or of another one) and of what the scope holds."""
        h, number = (scope.b.slice(scope["clock"], k, 1) for k in (0, 1))
        more = {h: self.setup.duration, number: self.number, scope["marks"]: self.marks}
        return self.symbols.call(scope.b, name, outputs, self.inputs(scope, x), more)

    def piece(self, scope: Scope) -> Program:
        self._prepare(scope)
        if not self.hits:
            return scope.b.program(*self.motion(scope))
        inside = scope.inside("impact"), scope.inside("motion")
        branches = inside[0].b.program(*self._impact(inside[0])), inside[1].b.program(*self.motion(inside[1]))
        return scope.b.program(*scope.b.cond(scope["strikes"], *branches, *scope.values.values()))

    def _impact(self, scope: Scope) -> list[Var]:
        """Add an impact; return the values of CARRY after it."""
        b = scope.b
        x, impulses = after_impact(self, scope)
        clock = b.trace(lambda c: ca.vertcat(c[0], c[1] + 1), scope["clock"])
        marks = b.trace(lambda touches: STRUCK * touches, scope["touches"])
        return [x, clock, marks, b.add(scope["sums"], impulses), *scope.pick(("residual", "start"))]

    def _prepare(self, scope: Scope) -> None:
        """Set what the methods below read of the contact problem at the state."""
        s, options = self.symbols, self.options
        before, speed = self.J @ s.v, self.J @ self.free.velocity
        motion = Motion(self.setup.h, self.setup.dt, self.number >= 2 * (options.impacts or 0))
        ease = ca.diag(self.J @ self.W) / self.references
        aims = [
            target_of(self.gap[i], self.marks[i], (before[k], speed[k]), ease[k], motion, options)
            for i, k in enumerate(self.striking)
        ]
        outputs = {
            "v_free": self.free.velocity,
            "drift": self.free.drift,
            "w": nonzeros(self.W),
            "j": nonzeros(self.J),
            "system": self.sweep.system,
            "bounds": _bounds(self.rows),
            "gap": self.gap,
            "touches": ca.vertcat(SX(0, 1), *(aim.touches for aim in aims)),
            "waits": ca.vertcat(SX(0, 1), *(aim.waits for aim in aims)),
            "strikes": ca.mmax(ca.vertcat(0, *(aim.strikes for aim in aims))),
            "restitution": self._restitution(),
        } | self._sides(before, speed, aims)
        for name, value in zip(outputs, self._call(scope, "prepare", list(outputs.values())), strict=True):
            scope[name] = value

    def _restitution(self) -> SX:
        """Return the restitution of all contacts; where networks act on it, that of every row that strikes, (hits,)."""
        s = self.symbols
        same = s.contact_value("restitution")
        if not s.wired.has("restitution"):
            return same
        learnt = Learnt.of(s, self.rows, self.contacts)
        return ca.vertcat(*(learnt.change("restitution", k, same) for k in self.striking))

    def _sides(self, before: SX, speed: SX, aims: list[Target]) -> dict[str, SX]:
        """Return the right-hand sides of the sweeps: speeds less targets `c`, `push` for split corrections, and `jump` for explicit
        integration, whose positions move with the velocity of the start."""
        sides = {"c": SX(speed)}
        sides |= {"push": SX.zeros(self.size)} if self.options.correction == "split" else {}
        sides |= {"jump": SX(before)} if self.setup.method.travels_before else {}
        for k, aim in zip(self.striking, aims, strict=True):
            for name, at in (("c", speed), ("jump", before)):
                if name in sides:
                    sides[name][k] = at[k] - aim.speed
            if "push" in sides:
                sides["push"][k] = -aim.undo
        return sides

    def solve(self, scope: Scope) -> tuple[Var, Var]:
        b, n = scope.b, self.size
        ends = {name: self._swept(scope, name) for name in ("c", "push", "jump") if name in scope.values}
        solved = {name: b.slice(end, 0, n) for name, end in ends.items()}
        (again,) = b.call(self.sweep.function, ends["c"], *scope.pick(("system", "c", "bounds")))
        residual = b.trace(lambda x, y, s: ca.mmax(ca.fabs(y - x)[:n] / s[-n:]), ends["c"], again, scope["system"])
        nq, explicit, pattern = self.setup.nq, "jump" in ends, self.W.sparsity()
        J = self.J.sparsity()

        def path(x: SX, clock: SX, v_free: SX, drift: SX, w: SX, j: SX, impulse: SX, *more: SX) -> list[SX]:
            W, rows, v = SX(pattern, w), SX(J, j)[self.striking, :], x[nq:]
            after = v_free + W @ impulse
            base, slope = v, (after + drift - v) / clock[0]
            if explicit:
                base, slope = v + W @ more[-1], drift / clock[0]
            if "push" in ends:
                base = base + W @ more[0]
            return [after, base, slope, rows @ base, rows @ slope]

        values = scope.pick(("x", "clock", "v_free", "drift", "w", "j"))
        found = b.trace(path, *values, *solved.values())
        for name, value in zip(("after", "base", "slope", "base_speed", "slope_speed"), found, strict=True):
            scope[name] = value
        return solved["c"], residual

    def _swept(self, scope: Scope, side: str) -> Var:
        """Add the sweeps of a right-hand side."""
        b, start = scope.b, scope.b.zeros(self.sweep.carry_size)
        if side == "c" and scope["start"].size:
            pattern, velocities = self.W.sparsity(), self.sweep.carry_size > self.size

            def begun(forces: SX, clock: SX, w: SX) -> SX:
                impulse = forces * clock[0]
                return ca.vertcat(impulse, SX(pattern, w) @ impulse) if velocities else impulse

            start = b.trace(begun, *scope.pick(("start", "clock", "w")))
        shared = scope.pick(("system", side, "bounds"))
        return b.scan(self.sweep.function, self.options.sweeps, start, shared=shared)[0][0]

    def travel(self, scope: Scope, tau: Var) -> Var:
        nq = self.setup.nq

        def moved(x: SX, clock: SX, after: SX, base: SX, slope: SX, tau: SX) -> SX:
            v = x[nq:] + tau / clock[0] * (after - x[nq:])
            return advance(self.setup, x[:nq], base + tau * slope, v, tau)

        return scope.b.trace(moved, *scope.pick(("x", "clock", "after", "base", "slope")), tau)

    def estimate(self, scope: Scope) -> Var:
        def first(clock: SX, gap: SX, waits: SX, base: SX, slope: SX) -> SX:
            h = clock[0]
            return least([h, *(meeting(gap[k], base[k], slope[k], waits[k], h) for k in range(self.hits))])

        return scope.b.trace(first, *scope.pick(("clock", "gap", "waits", "base_speed", "slope_speed")))

    def closer(self, scope: Scope) -> tuple[Var, Var]:
        nq = self.setup.nq

        def ahead(x: SX, base: SX, slope: SX, tau: SX) -> SX:
            return advance(self.setup, x[:nq], base + tau * slope, base + 2 * tau * slope, tau)

        def first(tau: SX, clock: SX, waits: SX, gap: SX, rate: SX) -> list[SX]:
            times = [closing(tau, gap[k], rate[k], waits[k], clock[0], -self.setup.dt) for k in range(self.hits)]
            return [least([clock[0], *times]), ca.vertcat(*times)]

        x = scope.b.trace(ahead, *scope.pick(("x", "base", "slope", "tau")))
        gaps = self._call(scope, "look", [self.gap, self.J[self.striking, :] @ self.symbols.v], x)
        tau, times = scope.b.trace(first, *scope.pick(("tau", "clock", "waits")), *gaps)
        return tau, times


def _mobility(factor: Factor, row: Row) -> SX:
    """Return how easily the point of a contact moves, summed over three directions."""
    assert row.point is not None
    each = [row.point[k, :] for k in range(3)]
    return sum((x @ _sparse_solve(factor, x.T) for x in each), SX(0))


def _sparse_solve(factor: Factor | Tied, column: SX) -> SX:
    return ca.sparsify(factor.solve(column))


def _bounds(rows: list[Row]) -> SX:
    """Return friction coefficients and bounds, one per row (0 where there is none)."""
    return ca.vertcat(*(SX(0) if r.bound is None else r.bound for r in rows))
