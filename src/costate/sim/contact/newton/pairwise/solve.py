"""Newton's method pair by pair: the iterations of ../solve.py, with contacts as walks over pairs that touch.

Limits, friction and equalities of joints and tendons are rows of a small `Problem`, which is straight-line code. Derivatives of the
solution solve one system with the Hessian found there, and go on backwards through the pairs that touch, from poses to forces in
one piece: nothing is kept of a contact but its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import factor
from costate.sim.contact.newton.pairwise.bends import Bends
from costate.sim.contact.newton.pairwise.stages import Contacts, Vars, joined
from costate.sim.contact.newton.problem import Data, Problem
from costate.sim.contact.newton.solve import FAR, SINGLE, line_step

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

ROWS = 6
"""Vectors of the small problem: see Data.flat."""


@dataclass(frozen=True, eq=False)
class PairSolver:
    """The programs that solve the problems of one world."""

    problem: Problem
    """Problem of all constraints but contacts."""
    contacts: Contacts
    options: Newton

    @cached_property
    def bends(self) -> Bends:
        c = self.contacts
        links = [c.pairs.contacts[n] for kind in c.kinds for n in kind.kind.members]
        return Bends(c.movers, tuple((c.movers.slot(t.link_a), c.movers.slot(t.link_b)) for t in links))

    @cached_property
    def sizes(self) -> list[int]:
        """Sizes of the numbers of a problem: those of the small one, axes, shapes, own numbers of pairs, middle, velocities."""
        axes = 6 * len(self.contacts.movers.axes)
        return [*self.problem.sizes, axes, *self.contacts.pushes[0].in_sizes[1:5]]

    def program(self) -> Program:
        """Build (numbers) -> (a, flags of pairs that touch)."""
        b, c = ProgramBuilder("newton"), self.contacts
        data = b.inputs(*self.sizes)
        axes, shapes, own = data[ROWS : ROWS + 3]
        touch, rows = c.rows(b, c.near(b, shapes), *data[ROWS + 1 :])
        flags = joined(b, touch)
        groups = self.bends.flags(b, flags)
        a = b.trace(self.problem.free, *data[:2])
        costs = c.costs(b, touch, rows, own, b.trace(c.movers.twists, axes, a))
        # Two stages, so that the sum is rounded as the kernel's numbers are: in float32 it is 1.
        least, busy = b.trace(self._scale, costs, b.constant([1 + 2**-40]), a, *data[:ROWS])
        shared = [least, *touch, *groups, *rows, own, axes, *data[:ROWS]]
        (a, _), _ = b.while_loop(lambda a, busy, *_: busy, self._iteration(), self.options.iterations, [a, busy], shared)
        return b.program(a, flags)

    # --- constraints of joints ------------------------------------------------------------------------------------

    def _small(self, flat: Sequence[SX], a: SX) -> tuple[Data, SX]:
        """Return the small problem's numbers in their shapes, and its deviations."""
        d = self.problem.data(*flat)
        return d, d.deviations(a) if self.problem.n else SX(0, 1)

    def _scale(self, costs: SX, probe: SX, a: SX, *flat: SX) -> tuple[SX, SX]:
        """Return the decrease of the cost that is negligible, and whether there is anything to do."""
        p, (d, x) = self.problem, self._small(flat, a)
        every = [c.value(v, w, own) for g in p.groups for c, v, w, own in p.blocks(g, x[g.rows], d.D[g.span], d.mu)]
        cost = sum(every, costs)
        tolerance = ca.if_else(probe > 1, self.options.tolerance, max(self.options.tolerance, SINGLE))
        return tolerance * (ca.dot(d.f, a) + cost), ca.if_else(cost > 0, 1, 0)

    def _pull(self, flat: Sequence[SX], a: SX) -> SX:
        """Return the generalised forces that are not balanced, but for those of contacts."""
        d, x = self._small(flat, a)
        inertia = self.problem.mass(flat[0]) @ a - d.f
        return -inertia if not self.problem.n else -self.problem.gradient(d, a, x)

    def _hessian(self, flat: Sequence[SX], a: SX, entries: SX) -> SX:
        d, x = self._small(flat, a)
        return self.problem.hessian(d, x) + SX(self.bends.pattern, entries)

    # --- an iteration ---------------------------------------------------------------------------------------------

    def _iteration(self) -> Program:
        """Build (a, busy, least, flags, flags of groups, rows, own, axes, numbers) -> (a, busy)."""
        c, k = self.contacts, len(self.contacts.kinds)
        b = ProgramBuilder("iteration")
        groups = [len(members) for members in self.bends.groups.values()]
        sizes = [1, *c.counts, *groups, *c.sizes, self.sizes[ROWS + 2], self.sizes[ROWS], *self.sizes[:ROWS]]
        a, _, least, *rest = b.inputs(self.problem.nv, 1, *sizes)
        touch, group_flags, rows = rest[:k], rest[k : k + len(groups)], rest[k + len(groups) : 2 * k + len(groups)]
        own, axes, *flat = rest[2 * k + len(groups) :]
        pushes, bends, xs = c.terms(b, touch, rows, own, b.trace(c.movers.twists, axes, a))
        entries = self.bends.entries(b, group_flags, bends, axes)
        step, smooth, x, y = b.trace(self._direction, a, axes, pushes, entries, *flat)
        ys = c.along(b, touch, rows, b.trace(c.movers.twists, axes, step))
        state = self._line_search(b, [smooth, x, y, flat[3], flat[5], own, *touch, *rows, *xs, *ys])
        return b.program(*b.trace(_stepped, a, step, state, smooth, least))

    def _direction(self, a: SX, axes: SX, pushes: SX, entries: SX, *flat: SX) -> tuple[SX, SX, SX, SX]:
        """Return Newton's step; along it the slope of the smooth part at 0, its change, and the slope of the whole cost at 0;
        deviations of the small problem, and their change."""
        p, (d, x) = self.problem, self._small(flat, a)
        M = p.mass(flat[0])
        pull = M @ a - d.f
        slope = -self._pull(flat, a) - self.contacts.movers.generalised(axes, pushes)
        step = -factor(self._hessian(flat, a, entries)).solve(ca.densify(slope))
        y = ca.vertcat(*d.J) @ step if p.n else SX(0, 1)
        return step, ca.vertcat(ca.dot(step, pull), ca.dot(step, M @ step), ca.dot(step, slope)), x, y

    def _line_search(self, b: ProgramBuilder, shared: Vars) -> Var:
        """Add Newton's method in one dimension, as in ../solve.py."""
        k = len(self.contacts.kinds)
        start = b.constant([1.0, 0.0, FAR, 1.0, 0.0])
        body = ProgramBuilder("line")
        state, smooth, x, y, weights, mu, own, *rest = body.inputs(start.size, *(v.size for v in shared))
        touch, rows, xs, ys = (rest[n * k : (n + 1) * k] for n in range(4))
        small = body.trace(self._slopes, weights, mu, x, y, state)
        found = self.contacts.slopes(body, touch, rows, own, xs, ys, state)
        after = body.program(body.trace(line_step, state, smooth, small, found))
        (end,), _ = b.while_loop(lambda state, *_: state[3], after, self.options.line_search, start, shared)
        return end

    def _slopes(self, D: SX, mu: SX, x: SX, y: SX, state: SX) -> SX:
        """Return the slope of the small problem's cost at the step, and its change."""
        p, total = self.problem, SX.zeros(2)
        for g in p.groups:
            both = zip(p.blocks(g, x[g.rows], D[g.span], mu), p.blocks(g, y[g.rows], D[g.span], mu), strict=True)
            for (cost, at, w, own), (_, rate, _, _) in both:
                total = total + ca.vertcat(*cost.along(at, rate, state[0], w, own))
        return total

    # --- derivatives ----------------------------------------------------------------------------------------------

    def tangent(self) -> Program:
        """Build (numbers, a, flags, tangents of numbers) -> tangents of a and flags."""
        n = len(self.sizes)
        b, balance = ProgramBuilder("tangent"), self.balance()
        given = b.inputs(*self.sizes, *balance.in_sizes[n:], *self.sizes)
        data, (a, flags), dots = given[:n], given[n : n + 2], given[n + 2 :]
        (moved,) = b.call(jvp(balance, range(n)), *data, a, flags, *dots)
        return b.program(self._solved(b, data, a, flags, moved), b.zeros(flags.size))

    def adjoint(self) -> Program:
        """Build (numbers, a, flags, seeds of a and flags) -> gradients of the numbers."""
        n, c = len(self.sizes), self.contacts
        b = ProgramBuilder("adjoint")
        balance_sizes = [self.problem.nv, sum(c.counts)]
        given = b.inputs(*self.sizes, *balance_sizes, *balance_sizes)
        data, a, flags, seed = given[:n], given[n], given[n + 1], given[n + 2]
        costate = self._solved(b, data, a, flags, seed)
        return b.program(*b.call(vjp(self.balance(), range(n), [0]), *data, a, flags, costate))

    def balance(self) -> Program:
        """Build (numbers, a, flags) -> generalised forces that are not balanced, zero at the solution."""
        b, c = ProgramBuilder("balance"), self.contacts
        *data, a, flags = b.inputs(*self.sizes, self.problem.nv, sum(c.counts))
        axes = data[ROWS]
        wrenches = c.wrenches(b, c.split(b, flags), data[ROWS + 1 :], b.trace(c.movers.twists, axes, a))
        pull = b.trace(lambda a, *flat: self._pull(flat, a), a, *data[:ROWS])
        return b.program(b.add(pull, b.trace(c.movers.generalised, axes, wrenches)))

    def _solved(self, b: ProgramBuilder, data: Vars, a: Var, flags: Var, right: Var) -> Var:
        """Add the solution of the Hessian's system with a right-hand side."""
        c, axes, own = self.contacts, data[ROWS], data[ROWS + 2]
        split = c.split(b, flags)
        _, rows = c.rows(b, split, *data[ROWS + 1 :])
        _, bends, _ = c.terms(b, split, rows, own, b.trace(c.movers.twists, axes, a))
        entries = self.bends.entries(b, self.bends.flags(b, flags), bends, axes)

        def solved(a: SX, entries: SX, right: SX, *flat: SX) -> SX:
            return factor(self._hessian(flat, a, entries)).solve(right)

        return b.trace(solved, a, entries, right, *data[:ROWS])


def _stepped(a: SX, step: SX, state: SX, smooth: SX, least: SX) -> tuple[SX, SX]:
    """Take the step; go on unless it was the last."""
    small = -smooth[2] <= least
    return a + state[0] * step, ca.if_else(ca.logic_or(state[4] > 0, small), 0, 1)
