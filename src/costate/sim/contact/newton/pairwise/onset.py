"""The time at which contacts begin or end, pair by pair: see ../onset.py. What is not near to its margin costs a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import BOX
from costate.collision.contact_point import pose
from costate.collision.narrow import POSE
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.spatial import cross
from costate.sim.contact.newton.crossing import bounded, crossing
from costate.sim.contact.newton.onset import Onsets, Rows, phases, velocity
from costate.sim.contact.newton.pairwise.kinds import Geometry
from costate.sim.contact.newton.pairwise.law import Law
from costate.sim.contact.newton.pairwise.movers import SIX, Movers
from costate.sim.contact.newton.pairwise.places import Vars, joined, near, total
from costate.sim.contact.newton.pairwise.solve import SMALL, PairSolver
from costate.sim.contact.newton.pairwise.stages import Pushes, each
from costate.sim.contact.newton.problem import Data
from costate.sim.contact.pair_kinds import Read, side_tables
from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class PairOnsets(Onsets):
    """The term for contacts that are solved pair by pair, and limits. Signs and the like are those of contact points, then those
    of the small problem.

    given: a; the step's inputs; the problem's numbers (see PairSolver); depths and what holds at depth 0, of the small problem;
    flags of pairs that touch, and of contact points.
    """

    s: Symbols
    data: Data
    solver: PairSolver
    numbers: Callable[[], list[SX]]
    """Numbers of the problem, as expressions."""

    @property
    def differentiated(self) -> int:  # type: ignore[override]
        return 1 + len(self.s.inputs)

    @property
    def pushes(self) -> Pushes:
        return self.solver.pushes

    @property
    def movers(self) -> Movers:
        return self.solver.movers

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.solver.problem)

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Numbers of contact points, and of blocks of the small problem that may begin or end."""
        return sum(self.pushes.counts), len(self.solver.problem.onsets)

    def _split(self, b: ProgramBuilder, x: Var) -> tuple[Var, Var]:
        n, m = self.counts
        return b.slice(x, 0, n), b.slice(x, n, m)

    # --- crossings ------------------------------------------------------------------------------------------------

    def crossings(self, b: ProgramBuilder, given: Sequence[Var]) -> tuple[Var, Var, Var]:
        a, numbers = given[0], given[self.differentiated :]
        axes, poses, sizes, _, middle, v, boxes, depth, _ = numbers[SMALL:-2]
        rates, dt = velocity(b, self.s, given), self.s.setup.dt
        after = b.trace(lambda axes, v, a: self.movers.twists(axes, v + dt * a), axes, rates, a)
        on = self._near(b, poses, boxes, middle, v, after)
        points = joined(b, self.solver.places.points(b, on, poses, sizes))
        flags = self.pushes.flags(b, self._of_points(b, on))
        n, found = self.counts[0], []
        for law, flag in zip(self.pushes.laws, flags, strict=True):
            table = np.array(law.members)[:, None]
            reads = self._way(law, points, middle, v, after)
            found.append(b.walk(law.crossing, flag, [], reads, 3 * [(n, table)])[1])
        of_points = [total(b, list(x)) for x in zip(*found, strict=True)]

        def small(a: SX, v: SX, j: SX, depth: SX) -> tuple[SX, SX, SX]:
            return crossing(depth, *self.rows.rates(self.rows.all(j), v, a, dt), dt)

        of_small = b.trace(small, a, rates, numbers[2], depth)
        return tuple(b.concat(x, y) for x, y in zip(of_points, of_small, strict=True))  # type: ignore[return-value]

    def _near(self, b: ProgramBuilder, poses: Var, boxes: Var, middle: Var, v: Var, after: Var) -> Vars:
        """Add flags of the pairs that may come within their margin, or leave it, within a step."""
        pairs, found = self.solver.places.pairs, []
        for g in pairs.geometries:
            members = [pairs.pairs[n] for n in g.members]
            reads = [(poses, t) for t in side_tables(pairs.places(POSE), members, (POSE, POSE))]
            reads += [(boxes, t) for t in side_tables(pairs.places(BOX), members, (BOX, BOX))]
            bodies = self.pushes.bodies(g.members)
            reads += [(x, t) for x in (v, after) for t in (bodies[:, :SIX], bodies[:, SIX:])]
            reads += [self.solver.places.margins(b, g), (middle, np.tile(np.arange(3), (len(members), 1)))]
            found += b.map(lambda *x, g=g: self._may_cross(g, x[:4], x[4:8], *x[8:]), reads, [None])
        return found

    def _may_cross(self, g: Geometry, shapes: Sequence[SX], twists: Sequence[SX], margin: SX, middle: SX) -> SX:
        """Return whether two shapes may come within their margin, or leave it, within a step. Each bounding box says how fast its
        points move against the other body.

        shapes: poses of both, boxes of both; twists: velocities of both before the step, and after it.
        """
        (x, y, s, t), (va, vb, wa, wb) = shapes, twists

        def fastest(at: SX, box: SX, twist: SX) -> SX:
            R, p = pose(at)
            arm = p + R @ box[:3] - middle
            return ca.norm_2(twist[:3] + cross(twist[3:], arm)) + ca.norm_2(twist[3:]) * ca.norm_2(box[3:])

        reach = [ca.fmin(fastest(x, s, d), fastest(y, t, d)) for d in (va - vb, wa - wb)]
        return near(g, x, y, s, t, margin + self.s.setup.dt * ca.fmax(*reach))

    def _of_points(self, b: ProgramBuilder, flags: Vars) -> Var:
        """Return the flags of all contact points from those of their pairs."""
        at = np.concatenate([
            start + np.repeat(np.arange(len(g.members)), g.points)
            for g, start in zip(self.solver.places.pairs.geometries, self._starts, strict=True)
        ])  # fmt: skip
        return b.trace(lambda x: x[at.tolist()], joined(b, flags))

    def _of_pairs(self, b: ProgramBuilder, flags: Var) -> Vars:
        """Return the flags of pairs from those of all contact points: 1 where any of a pair's has one."""

        def any_of(x: SX) -> SX:
            parts, at = [], 0
            for g in self.solver.places.pairs.geometries:
                for _ in g.members:
                    parts.append(ca.mmax(x[at : at + g.points]))
                    at += g.points
            return ca.vertcat(*parts)

        return self.solver.places.split(b, b.trace(any_of, flags))

    @cached_property
    def _starts(self) -> np.ndarray:
        counts = self.solver.places.counts
        return np.cumsum(counts) - np.array(counts)

    def _way(self, law: Law, points: Var, middle: Var, v: Var, after: Var) -> list[Read]:
        """Return what a law's crossings read: contact points, middle, velocities of both bodies before and after the step."""
        where, _, everywhere, *before = self.pushes.of_points(law, points, middle, middle, v)
        return [where, everywhere, *before, *self.pushes.both(law, after)]

    # --- the jump -------------------------------------------------------------------------------------------------

    def jump(self, sizes: Sequence[int]) -> Program:
        b, n = ProgramBuilder("jump"), sum(self.counts)
        *given, sign, speed = b.inputs(*sizes, n, n)
        numbers, flags = given[self.differentiated : -2], given[-1]
        flat, (axes, poses, shapes, own, middle, v, _, _, first) = numbers[:SMALL], numbers[SMALL:]
        mass, f, j, D, target, mu = flat
        (signs, small), (speeds, slow) = self._split(b, sign), self._split(b, speed)

        # Contact points: those that begin or end, with all others that act, and the others alone.
        every, others = b.trace(lambda x, s: (ca.fmax(x, s != 0), x * (s == 0)), flags, signs)
        crossed, on, left = (self.pushes.flags(b, x) for x in (b.trace(lambda s: s != 0, signs), every, others))
        points = joined(b, self.solver.places.points(b, self._of_pairs(b, every), poses, shapes))
        of_laws = self.pushes.flags(b, signs)
        rows = self.pushes.rows(b, on, points, own, middle, v, of_laws)

        # Accelerations with what begins or ends at depth 0, forces there, and the Hessian of all others.
        D0, target0 = b.trace(self.rows.at_zero, velocity(b, self.s, given), first, j, D, target, small)
        a0 = self.solver.near(b, given[0], on, rows, own, axes, [mass, f, j, D0, target0, mu])
        moving = b.trace(self.movers.twists, axes, a0)
        wrenches, bends, _ = self.pushes.terms(b, crossed, rows, own, moving)
        force = b.trace(self.rows.forces, a0, small, mass, f, j, D0, target0, mu)
        _, bends, _ = self.pushes.terms(b, left, rows, own, moving)
        entries = self.solver.entries(b, left, rows, axes, bends)
        x = b.trace(lambda a, *flat: self.solver.deviations(flat, a), a0, *flat)

        # How they move the rows, which bounds their signs.
        right = b.trace(self._generalised, axes, wrenches, j, force)
        y = self._solved(b, entries, x, right, small, flat)
        moved = b.trace(self.movers.twists, axes, y)
        found = []
        speed_of = self.pushes.flags(b, speeds)
        for k, law in enumerate(self.pushes.laws):
            reads = [each(rows[k], law.row), self.pushes.own(law, own), *self.pushes.both(law, moving)]
            reads += [*self.pushes.both(law, moved), each(of_laws[k], 1), each(speed_of[k], 1)]
            found += b.walk(law.jump, crossed[k], [], reads, [(SIX * self.counts[0], self._six(law))])[1]

        def scaled(force: SX, sign: SX, speed: SX, j: SX, y: SX) -> SX:
            change = self.rows.normals(self.rows.all(j)) @ y
            return force * self.rows.spread(bounded(sign, speed, change, self.s.setup.dt))

        return b.program(total(b, found), b.trace(scaled, force, small, slow, j, y), entries, x)

    def _six(self, law: Law) -> np.ndarray:
        """Return the six numbers of every contact point of a law, among those of all."""
        return np.array(law.members)[:, None] * SIX + np.arange(SIX)

    def _generalised(self, axes: SX, wrenches: SX, j: SX, force: SX) -> SX:
        """Return forces of joints (nv,) from wrenches on bodies and forces along rows of the small problem."""
        return self.movers.generalised(axes, wrenches) + ca.densify(self.rows.all(j).T @ force)

    def _solved(self, b: ProgramBuilder, entries: Var, x: Var, right: Var, sign: Var, flat: Sequence[Var]) -> Var:
        """Add H_off^-1 times a right-hand side (nv,). sign: of the small problem."""
        mass, _, j, D, _, mu = flat
        return b.custom(self.solver.system(), entries, x, right, mass, j, b.trace(self.rows.left, D, sign), mu)[0]

    # --- the term -------------------------------------------------------------------------------------------------

    def term(self, sizes: Sequence[int], jump: Sequence[int]) -> Program:
        b, n = ProgramBuilder("term"), sum(self.counts)
        *given, push, force, entries, x, sign, past = b.inputs(*sizes, *jump, n, n)
        flat, axes = given[self.differentiated :][:SMALL], given[self.differentiated + SMALL]
        (signs, small), (pasts, past_small) = self._split(b, sign), self._split(b, past)
        wrenches = self._wrenches(b, given, push, signs, pasts)
        phi = phases(b, self.s, self.data, self.rows, given, small, past_small)
        spread = b.trace(lambda phi, force: self.rows.spread(phi) * force, phi, force)
        right = b.trace(self._generalised, axes, wrenches, flat[2], spread)
        return b.program(self._solved(b, entries, x, right, small, flat))

    def _wrenches(self, b: ProgramBuilder, given: Sequence[Var], push: Var, sign: Var, past: Var) -> Var:
        """Add the wrenches of phases on all bodies, from a and the step's inputs."""
        dt = self.s.setup.dt
        numbers = self.s.call(b, "numbers", self.numbers()[SMALL:], given[1 : self.differentiated])
        axes, poses, sizes, _, middle, v, _ = numbers
        after = b.trace(
            lambda axes, v, a: self.movers.twists(axes, v + dt * a), axes, velocity(b, self.s, given), given[0]
        )
        crossed = b.trace(lambda s: s != 0, sign)
        points = joined(b, self.solver.places.points(b, self._of_pairs(b, crossed), poses, sizes))
        laws = zip(self.pushes.laws, *(self.pushes.flags(b, x) for x in (crossed, sign, past)), strict=True)
        found: list[Any] = []
        for law, flag, signs, pasts in laws:
            reads = [*self._way(law, points, middle, v, after), each(signs, 1), each(pasts, 1), (push, self._six(law))]
            table = self.pushes.bodies(self.pushes.contacts(law))
            found += b.walk(law.phase, flag, [], reads, [(self.movers.size, table)])[1]
        return total(b, found)
