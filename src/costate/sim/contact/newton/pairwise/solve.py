"""Newton's method pair by pair: the iterations of ../solve.py, with contacts as walks over pairs that touch.

Limits, friction and equalities of joints and tendons are rows of a small `Problem`, which is straight-line code. Derivatives of the
solution solve one system with the Hessian found there, and go on backwards through the pairs that touch, from poses to forces in
one piece: nothing is kept of a contact but its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.derive import jvp
from costate.kernel.ir.program import Program, Var
from costate.kernel.tracing import body_program
from costate.physics.algebra.ltl import factor
from costate.sim.contact.newton.pairwise.bends import Bends
from costate.sim.contact.newton.pairwise.movers import SIX, Movers
from costate.sim.contact.newton.pairwise.places import Places, Vars, joined
from costate.sim.contact.newton.pairwise.stages import Pushes
from costate.sim.contact.newton.problem import Data, Problem
from costate.sim.contact.newton.solve import FAR, REACHED, line_step

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

SMALL = 6
"""Vectors of the small problem: see Data.flat."""
FLAGS = 2
"""Vectors of flags: pairs that touch, and contact points."""


@dataclass(frozen=True, eq=False)
class PairSolver:
    """The programs that solve the problems of one world.

    numbers: those of the small problem; axes; poses, sizes; own numbers of pairs, middle, velocities; bounding boxes.
    """

    problem: Problem
    """Problem of all constraints but contacts."""
    places: Places
    pushes: Pushes
    options: Newton

    @property
    def movers(self) -> Movers:
        return self.pushes.movers

    @cached_property
    def bends(self) -> Bends:
        return Bends(self.movers, tuple(self.pushes.bent()))

    @cached_property
    def sizes(self) -> list[int]:
        """Sizes of the numbers."""
        poses, shapes, boxes = (x.numel() for x in self.places.pairs.shape_numbers())
        own, bodies = self.places.pairs.own_numbers().numel(), self.movers.size
        return [*self.problem.sizes, SIX * len(self.movers.axes), poses, shapes, own, 3, bodies, boxes]

    @property
    def flag_sizes(self) -> list[int]:
        return [sum(self.places.counts), sum(self.pushes.counts)]

    def program(self) -> Program:
        """Build (numbers) -> (a, flags of pairs that touch, flags of contact points)."""
        b = ProgramBuilder("newton")
        data = b.inputs(*self.sizes)
        axes, poses, sizes, own, middle, v, boxes = data[SMALL:]
        near = self.places.near(b, poses, boxes)
        points = self.places.points(b, near, poses, sizes)
        flags = self.places.touching(b, near, points)
        on = self.pushes.flags(b, flags[1])
        rows = self.pushes.rows(b, on, joined(b, points), own, middle, v)
        return b.program(self._iterated(b, on, rows, own, axes, data[:SMALL]), *flags)

    def near(self, b: ProgramBuilder, start: Var, on: Vars, rows: Vars, own: Var, axes: Var, flat: Vars) -> Var:
        """Add the accelerations for these contact points, found from those of a problem much like it. Their derivative is that of
        one more step of Newton's method."""
        given = [start, *on, *rows, own, axes, *flat]
        inner = ProgramBuilder("near")
        first, *rest = inner.inputs(*(x.size for x in given))
        k = len(on)
        ons, found, (points, lines, *small) = rest[:k], rest[k : 2 * k], rest[2 * k :]
        solved = inner.program(self._iterated(inner, ons, found, points, lines, small, first))
        none = ProgramBuilder("none")
        none.inputs(*(x.size for x in given), *(2 * [start.size]))
        adjoint = none.program(*(none.zeros(x.size) for x in given))
        (a,) = b.custom(solved, *given, tangent=lambda *_: SX.zeros(start.size), adjoint=adjoint)
        wrenches, bends, _ = self.pushes.terms(b, on, rows, own, b.trace(self.movers.twists, axes, a))
        entries = self.entries(b, on, rows, axes, bends)
        slope, x = b.trace(self._slope, a, axes, wrenches, *flat)
        return b.add(a, b.custom(self.system(), entries, x, slope, flat[0], *flat[2:4], flat[5])[0])

    def _iterated(
        self, b: ProgramBuilder, on: Vars, rows: Vars, own: Var, axes: Var, flat: Vars, start: Var | None = None
    ) -> Var:
        """Add Newton's iterations, from a start or from the accelerations without constraints."""
        free = b.trace(self.problem.free, *flat[:2])
        a = start or free
        costs = self.pushes.costs(b, on, rows, own, b.trace(self.movers.twists, axes, a))
        least, busy = b.trace(self._scale, costs, b.epsilon(), free, a, *flat)
        busy = b.constant([1.0]) if start else busy
        groups = self.bends.flags(b, joined(b, on))
        jacobians = self.bends.jacobians(b, groups, joined(b, rows), axes)
        shared = [least, *on, *rows, *groups, *jacobians, own, axes, *flat]
        body = self._iteration()
        (a, _), _ = b.while_loop(lambda a, busy, *_: busy, body, self.options.iterations, [a, busy], shared)
        return a

    def entries(self, b: ProgramBuilder, on: Vars, rows: Vars, axes: Var, bends: Var) -> Var:
        """Add the entries of the contacts' part of the Hessian."""
        groups = self.bends.flags(b, joined(b, on))
        return self.bends.entries(b, groups, self.bends.jacobians(b, groups, joined(b, rows), axes), bends)

    # --- constraints of joints ------------------------------------------------------------------------------------

    def deviations(self, flat: Sequence[SX], a: SX) -> SX:
        """Return the deviations of the small problem."""
        return self._small(flat, a)[1]

    def _small(self, flat: Sequence[SX], a: SX) -> tuple[Data, SX]:
        """Return the small problem's numbers in their shapes, and its deviations."""
        d = self.problem.data(*flat)
        return d, d.deviations(a) if self.problem.n else SX(0, 1)

    def _scale(self, costs: SX, spacing: SX, free: SX, a: SX, *flat: SX) -> tuple[SX, SX]:
        """Return the decrease of the cost that is negligible, and whether there is anything to do. free: accelerations without
        constraints."""
        p, (d, x) = self.problem, self._small(flat, a)
        every = [c.value(v, w, own) for g in p.groups for c, v, w, own in p.blocks(g, x[g.rows], d.D[g.span], d.mu)]
        cost = sum(every, costs)
        return ca.fmax(self.options.tolerance, REACHED * spacing**2) * (ca.dot(d.f, free) + cost), ca.if_else(
            cost > 0, 1, 0
        )

    def _pull(self, flat: Sequence[SX], a: SX) -> SX:
        """Return the generalised forces that are not balanced, but for those of contacts."""
        d, x = self._small(flat, a)
        inertia = self.problem.mass(flat[0]) @ a - d.f
        return -inertia if not self.problem.n else -self.problem.gradient(d, a, x)

    # --- an iteration ---------------------------------------------------------------------------------------------

    def _iteration(self) -> Program:
        """Build (a, busy, least, flags, rows, flags of groups, Jacobians, own, axes, numbers of the small problem) -> (a, busy)."""
        k, groups = len(self.pushes.laws), [len(members) for members in self.bends.groups.values()]
        b = ProgramBuilder("iteration")
        of_laws, of_groups = [*self.pushes.counts, *self.pushes.row_sizes], [*groups, *self.bends.jacobian_sizes]
        sizes = [*of_laws, *of_groups, self.sizes[SMALL + 3], self.sizes[SMALL], *self.sizes[:SMALL]]
        a, _, least, *rest = b.inputs(self.problem.nv, 1, 1, *sizes)
        on, rows, rest = rest[:k], rest[k : 2 * k], rest[2 * k :]
        group_on, jacobians = rest[: len(groups)], rest[len(groups) : 2 * len(groups)]
        own, axes, *flat = rest[2 * len(groups) :]
        wrenches, bends, xs = self.pushes.terms(b, on, rows, own, b.trace(self.movers.twists, axes, a))
        entries = self.bends.entries(b, group_on, jacobians, bends)
        slope, x = b.trace(self._slope, a, axes, wrenches, *flat)
        (step,) = b.custom(self.system(), entries, x, slope, flat[0], *flat[2:4], flat[5])
        smooth, y = b.trace(self._smooth, a, step, slope, *flat)
        ys = self.pushes.along(b, on, rows, b.trace(self.movers.twists, axes, step))
        state = self._line_search(b, [smooth, x, y, flat[3], flat[5], own, *on, *rows, *xs, *ys])
        return b.program(*b.trace(_stepped, a, step, state, smooth, least))

    def _slope(self, a: SX, axes: SX, wrenches: SX, *flat: SX) -> tuple[SX, SX]:
        """Return minus the slope of the cost, (nv,), and the deviations of the small problem."""
        return self._pull(flat, a) + self.movers.generalised(axes, wrenches), self._small(flat, a)[1]

    def system(self) -> Program:
        """Build (entries of the contacts' part, deviations of the small problem, right-hand side, M, J, D, mu) -> solution of the
        Hessian's system. Everything that solves it shares its code."""
        p, n = self.problem, self.problem.sizes
        entries = self.bends.size

        def solved(entries: SX, x: SX, right: SX, m: SX, j: SX, D: SX, mu: SX) -> SX:
            d = p.data(m, right, j, D, x, mu)
            H = p.hessian(d, x) + SX(self.bends.pattern, entries[: self.bends.pattern.nnz()])
            return factor(H).solve(right)

        return body_program(solved, [entries, p.n, p.nv, n[0], n[2], n[3], n[5]])

    def _smooth(self, a: SX, step: SX, slope: SX, *flat: SX) -> tuple[SX, SX]:
        """Return the slope of the smooth part along a step at 0, its change, and the slope of the whole cost at 0; then the change
        of the small problem's deviations."""
        p, d = self.problem, self.problem.data(*flat)
        M = p.mass(flat[0])
        slopes = ca.vertcat(ca.dot(step, M @ a - d.f), ca.dot(step, M @ step), -ca.dot(step, slope))
        return slopes, ca.vertcat(*d.J) @ step if p.n else SX(0, 1)

    def _line_search(self, b: ProgramBuilder, shared: Vars) -> Var:
        """Add Newton's method in one dimension, as in ../solve.py."""
        k = len(self.pushes.laws)
        start = b.constant([1.0, 0.0, FAR, 1.0, 0.0])
        body = ProgramBuilder("line")
        state, smooth, x, y, weights, mu, own, *rest = body.inputs(start.size, *(v.size for v in shared))
        on, rows, xs, ys = (rest[n * k : (n + 1) * k] for n in range(4))
        small = body.trace(self._slopes, weights, mu, x, y, state)
        found = self.pushes.slopes(body, on, rows, own, xs, ys, state)
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

    def balance(self) -> Program:
        """Build (numbers, a, flags) -> generalised forces that are not balanced, zero at the solution."""
        b = ProgramBuilder("balance")
        *data, a, pairs, each = b.inputs(*self.sizes, self.problem.nv, *self.flag_sizes)
        axes, poses, sizes, own, middle, v, _ = data[SMALL:]
        points = joined(b, self.places.points(b, self.places.split(b, pairs), poses, sizes))
        moving = b.trace(self.movers.twists, axes, a)
        wrenches = self.pushes.wrenches(b, self.pushes.flags(b, each), points, own, middle, v, moving)
        return b.program(b.trace(self._slope, a, axes, wrenches, *data[:SMALL])[0])

    def tangent(self) -> Program:
        """Build (numbers, a, flags, tangents of the numbers) -> tangents of a and flags."""
        n = len(self.sizes)
        b = ProgramBuilder("tangent")
        given = b.inputs(*self.sizes, self.problem.nv, *self.flag_sizes, *self.sizes)
        data, (a, *flags), dots = given[:n], given[n : n + 1 + FLAGS], given[n + 1 + FLAGS :]
        moving = range(n - 1)  # bounding boxes move nothing
        (moved,) = b.call(jvp(self.balance(), moving), *data, a, *flags, *dots[:-1])
        found = self._solved(b, data, a, flags)
        return b.program(found.solve(moved), *(b.zeros(flag.size) for flag in flags))

    def adjoint(self) -> Program:
        """Build (numbers, a, flags, seeds of a and flags) -> gradients of the numbers."""
        n, m = len(self.sizes), 1 + FLAGS
        b = ProgramBuilder("adjoint")
        given = b.inputs(*self.sizes, *(2 * [self.problem.nv, *self.flag_sizes]))
        data, (a, *flags), (seed, *_) = given[:n], given[n : n + m], given[n + m :]
        axes, poses, sizes, own, middle, v, boxes = data[SMALL:]
        found = self._solved(b, data, a, flags)
        costate = found.solve(seed)
        seeds = b.trace(self.movers.twists, axes, costate)
        read = [found.points, own, middle, v, found.moving]
        points, *back, moving = self.pushes.backward(b, found.on, read, seeds)
        shapes = self.places.backward(b, self.places.split(b, flags[0]), poses, sizes, points)
        *small, of_axes = b.trace(self._pulled, costate, moving, found.wrenches, a, axes, *data[:SMALL])
        return b.program(*small, of_axes, *shapes, *back, b.zeros(boxes.size))

    def _pulled(self, costate: SX, moving: SX, wrenches: SX, a: SX, axes: SX, *flat: SX) -> list[SX]:
        """Return the gradients of the small problem's numbers and of the axes. moving: gradient of the bodies' accelerations."""
        power = ca.dot(costate, self._slope(a, axes, wrenches, *flat)[0])
        power = power + ca.dot(moving, self.movers.twists(axes, a))
        return [ca.densify(ca.gradient(power, x)) for x in (*flat, axes)]

    def _solved(self, b: ProgramBuilder, data: Vars, a: Var, flags: Vars) -> _Solution:
        """Add what derivatives need at the solution."""
        axes, poses, sizes, own, middle, v, _ = data[SMALL:]
        flat, on = data[:SMALL], self.pushes.flags(b, flags[1])
        points = joined(b, self.places.points(b, self.places.split(b, flags[0]), poses, sizes))
        rows = self.pushes.rows(b, on, points, own, middle, v)
        moving = b.trace(self.movers.twists, axes, a)
        wrenches, bends, _ = self.pushes.terms(b, on, rows, own, moving)
        entries = self.entries(b, on, rows, axes, bends)
        x = b.trace(lambda a, *flat: self.deviations(flat, a), a, *flat)

        def solve(right: Var) -> Var:
            return b.custom(self.system(), entries, x, right, flat[0], *flat[2:4], flat[5])[0]

        return _Solution(points, moving, on, wrenches, solve)


@dataclass(frozen=True, eq=False)
class _Solution:
    """Quantities at a solution that its derivatives need."""

    points: Var
    """Contact points of all pairs that touch."""
    moving: Var
    """Accelerations of all bodies."""
    on: Vars
    """Flags of the contact points of every law."""
    wrenches: Var
    solve: Callable[[Var], Var]
    """Function that adds the solution of the Hessian's system with a right-hand side."""


def _stepped(a: SX, step: SX, state: SX, smooth: SX, least: SX) -> tuple[SX, SX]:
    """Take the step; go on unless it was the last."""
    small = -smooth[2] <= least
    return a + state[0] * step, ca.if_else(ca.logic_or(state[4] > 0, small), 0, 1)
