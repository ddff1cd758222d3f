"""Hard contact by sweeps: a substep in pieces, motions cut at the impacts between them.

    while time is left:
        look      where shapes are; contact points of pairs that could meet; which of them touch, and strike      pairs.py
        impact    where some strike: velocities jump, no time goes by                                           impact.py
        prepare   motion without contact; the speed that every row must reach                                bodies/, trees/
        solve     sweeps over groups of contact points: impulses, and the changes of velocity they make          visit.py
        finish    go along that motion until the next impact, or the substep's end

An impact sees the configuration and the velocities of its own time, and what is left of the substep goes on from there. So its
derivative is that of the motion: the time of impact depends on the state, and is found by Newton's method on the true distances. A
motion solves for the velocity v' at the end of the time h that is left, as a substep without impacts would, and goes along

    v(t) = v + t (v' - v) / h,     q(t) = q + t (base + t slope)

up to the first time t at which a row that approaches fast closes. Where it has closed already, that time is zero or just before,
and its derivative is the same.

The code is as long as that of one pair of each kind and one visit; memory is a few numbers per contact point. Pairs that are far
apart cost a look at their boxes. What carries contacts (free bodies or trees of links) is a storage of its own, and a subclass of
`Step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.pair_kinds import Kind, Read, same_for_all
from costate.sim.contact.pgs.impact import after_impact
from costate.sim.contact.pgs.pairs import joined
from costate.sim.contact.pgs.stages import Aims, Carry, Free, G, Motion, P, Piece, Points
from costate.sim.contact.pgs.storage import Storage
from costate.sim.contact.pgs.targets import STRUCK
from costate.sim.contact.pgs.times import until
from costate.sim.contact.records import flat, inside

REACH = 2
"""Reach in units of the way of the fastest shape: two may come towards each other, each as fast as the fastest is."""
FASTER = 2
"""Largest factor by which impacts may raise the speed of the fastest shape within a piece."""


class Step(Storage[G, P]):
    """The stages of a substep."""

    def substep(self, b: ProgramBuilder, args: Sequence[Var], start: Var) -> tuple[Var, Var, Var, Var]:
        """Add a substep; return the state, impulses and residual after it, and impulses to start the next one from. start: impulses
        to start from, if any."""
        dt, given = self.setup.dt, self.given(b, args)
        forces = self.each(b, lambda p: p / dt, [start]) if start.size else start
        clock = b.constant([dt, 0])
        carry = Carry(self.moving(b, args), clock, b.zeros(self.hits), b.zeros(self.size), b.zeros(1), forces)
        limit = 2 * (self.options.impacts or 0) + 1
        body = self.piece(carry, given)
        found, _ = b.while_loop(lambda x, clock, *_: clock[0] > 0, body, limit, flat(carry), flat(given))
        end = Carry(*found)
        ready = self.each(b, lambda f: f * dt, [end.start]) if start.size else start
        return end.x, end.sums, end.residual, ready

    def piece(self, carry: Carry, given: G) -> Program:
        """Return the program of a piece: (carry, given) -> carry."""
        b, (carry, given) = inside("piece", (carry, given))
        piece = self.impact(b, self.look(b, carry, given))
        return b.program(*flat(self.finish(b, self.solve(b, piece, self.prepare(b, piece)))))

    # --- look -----------------------------------------------------------------------------------------------------

    def look(self, b: ProgramBuilder, carry: Carry, given: G) -> Piece[G, P]:
        placed, free = self.place(b, carry.x, carry.clock, given)
        flags, system, gap = self._points(b, placed, given, self.reach(b, free, carry.clock, FASTER))
        reads = [
            self.moved(placed.now),
            self.made(gap),
            self.own(carry.marks),
            self.shared(carry.clock),
            self.made(system),
        ]
        sums = [self.sum_of(self.hits), self.sum_of(self.count), self.total(1)]
        touch = self.visit.touch(self.setup.dt)
        _, (touches, touching, number), _ = self.walk(b, placed, touch, flags, [], reads, sums=sums)
        strikes = b.trace(lambda n: n > 0, number)
        return Piece(carry, given, placed, free, Points(flags, system, gap, touches, touching, strikes))

    def reach(self, b: ProgramBuilder, free: Free, clock: Var, faster: float = 1) -> Var:
        """Add the distance within which shapes may meet in the time left [m]."""
        most = self.options.max_correction if self.options.correction == "split" else 0.0
        return b.trace(lambda v, clock: REACH * clock[0] * (faster * v + most), free.fastest, clock)

    def _points(self, b: ProgramBuilder, placed: P, given: G, reach: Var) -> tuple[Var, Var, Var]:
        """Add flags of the groups within reach (in order), and by kind: what visits read of their points, and gaps."""
        pairs, total = self.pairs, list[Var]()
        found: list[list[Var]] = []
        for kind in pairs.kinds:
            near = pairs.near(b, kind, placed.poses, given.boxes, reach)
            program, reads = self._preparation(b, placed, kind, reach)
            reads = [*pairs.geometry(kind, placed.poses, given.sizes), *reads]
            _, (active,), rows = b.walk(program, near, [], reads, [(pairs.count, pairs.groups(kind))])
            total = [b.add(total[0], active)] if total else [active]
            found.append(rows)
        joints = self.joint_groups(placed)
        if joints:
            found.append(joints)
            total.append(b.constant(np.ones(self.count - pairs.count)))
        system, gap = (joined(b, column) for column in zip(*found, strict=True))
        return joined(b, total), system, gap

    def _preparation(self, b: ProgramBuilder, placed: P, kind: Kind, reach: Var) -> tuple[Program, list[Read]]:
        """Return the program (geometry, reach, reads) -> (flags of the groups, systems, gaps) of a kind, and its reads."""
        function, reads = self.preparation(b, placed, kind)
        reads = [(reach, same_for_all(len(kind.members), 1)), *reads]

        def ready(points: SX, reach: SX, *given: SX) -> list[SX]:
            each = ca.vertsplit(points, POINT)
            gaps = ca.vertcat(*(point[0] for point in each))
            flags = [ca.mmin(group) < reach for group in ca.vertsplit(gaps, self.pairs.together)]
            return [ca.vertcat(*flags), ca.vertcat(*(function(point, *given) for point in each)), gaps]

        inner = ProgramBuilder("points")
        geometry, more = inner.like(kind.program), inner.inputs(*(table.shape[1] for _, table in reads))
        return inner.program(*inner.trace(ready, *inner.call(kind.program, *geometry), *more)), reads

    # --- impact ---------------------------------------------------------------------------------------------------

    def impact(self, b: ProgramBuilder, piece: Piece[G, P]) -> Piece[G, P]:
        """Add the impact with which a piece begins, if there is one."""
        carry, strikes = piece.carry, piece.points.strikes
        now, impulses = after_impact(self, b, piece)
        marks = [carry.marks, piece.points.touches]
        after = replace(
            carry,
            x=self.with_velocity(b, carry.x, now, piece.given),
            clock=b.trace(lambda clock, strikes: clock + ca.vertcat(0, strikes), carry.clock, strikes),
            marks=self.each(b, lambda x, y, strikes: ca.if_else(strikes, STRUCK * y, x), marks, [strikes]),
            sums=b.add(carry.sums, impulses),
        )
        return replace(piece, carry=after, placed=replace(piece.placed, now=now))

    # --- prepare --------------------------------------------------------------------------------------------------

    def prepare(self, b: ProgramBuilder, piece: Piece[G, P]) -> tuple[Free, Aims]:
        """Add the motion without contact over the time that is left, and what its rows must reach."""
        points, clock, n = piece.points, piece.clock, self.count
        free = self.free(b, piece.carry.x, clock, piece.given)
        reads = [self.moved(piece.placed.now), self.moved(free.velocity), self.made(points.gap)]
        reads += [self.own(piece.carry.marks), self.shared(clock), self.shared(self.reach(b, free, clock))]
        reads += [self.made(points.system)]
        sums = [self.sum_of(self.hits), self.sum_of(n), self.sum_of(n)]
        aims = self.visit.aims(self.setup.dt, self._split, self._explicit)
        _, (waits, near, waiting), (c, *sides) = self.walk(b, piece.placed, aims, points.flags, [], reads, sums=sums)
        return free, Aims(waits, near, waiting, c, tuple(sides))

    @property
    def _split(self) -> bool:
        return self.options.correction == "split"

    @property
    def _explicit(self) -> bool:
        return self.setup.method.travels_before

    # --- solve ----------------------------------------------------------------------------------------------------

    def solve(self, b: ProgramBuilder, piece: Piece[G, P], prepared: tuple[Free, Aims]) -> Motion[G, P]:
        """Add the sweeps of a motion over all the time that is left."""
        free, aims = prepared
        end = self.sweeps(b, piece, aims.near, aims.c, self._start(b, piece, aims.near))
        still = self.still(b), b.zeros(self.size)
        others = [self.sweeps(b, piece, aims.near, side, still)[0] for side in aims.sides]
        residual = self._residual(b, piece, aims, end)
        now, after = piece.placed.now, b.add(free.velocity, end[0])
        base, goal = now, after
        if self._split:
            base = b.add(base, others[0])
        if self._explicit:
            base, goal = b.add(base, others[-1]), now

        def slope(v: SX, end: SX, drift: SX, clock: SX) -> SX:
            return (end + drift - v) / clock[0]

        along = self.over_carriers(b, slope, [now, goal, free.drift], piece.clock)
        waiting = tuple(b.map(ca.mmax, [(aims.waits, self.hits_of(kind))], [None])[0] for kind in self.pairs.kinds)
        return Motion(piece, aims, waiting, after, base, along, end[1], residual)

    def _start(self, b: ProgramBuilder, piece: Piece[G, P], near: Var) -> tuple[Var, Var]:
        """Add what sweeps start from: changes of velocity, and impulses."""
        start = piece.carry.start
        if not start.size:
            return self.still(b), b.zeros(self.size)
        reads = [self.own(near), self.own(start), self.shared(piece.clock)]
        (first,) = b.map(lambda flag, x, clock: ca.if_else(flag, x * clock[0], 0), reads, [None])
        reads, states = [self.own(first), self.made(piece.points.system)], [self.moved(self.still(b))]
        return self.walk(b, piece.placed, self.visit.apply(), near, states, reads)[0][0], first

    def sweeps(
        self, b: ProgramBuilder, piece: Piece[G, P], flags: Var, c: Var, start: tuple[Var, Var], impact: bool = False
    ) -> tuple[Var, Var]:
        """Add the sweeps: changes of velocity, and impulses."""
        states, body = [self.moved(start[0]), self.own(start[1])], self.visit.sweep(impact=impact)
        change, impulses = self.walk(
            b, piece.placed, body, flags, states, self._reads(piece, c), rounds=self.options.sweeps
        )[0]
        return change, impulses

    def _residual(self, b: ProgramBuilder, piece: Piece[G, P], aims: Aims, end: tuple[Var, Var]) -> Var:
        """Add the largest speed by which one more sweep would change a row."""
        states, body = [self.moved(end[0]), self.own(end[1]), self.shared(b.zeros(1))], self.visit.sweep(watch=True)
        return self.walk(b, piece.placed, body, aims.near, states, self._reads(piece, aims.c))[0][2]

    def _reads(self, piece: Piece[G, P], c: Var) -> list[Read]:
        friction = piece.given.friction, self.frictions()[1][:, None]
        return [self.made(piece.points.system), self.own(c), friction]

    # --- finish ---------------------------------------------------------------------------------------------------

    def finish(self, b: ProgramBuilder, motion: Motion[G, P]) -> Carry:
        """Add the way along a motion until the next impact."""
        carry, clock = motion.piece.carry, motion.piece.clock
        tau, marks = until(self, b, motion)

        def after(clock: SX, tau: SX, old: SX, residual: SX) -> list[SX]:
            left = ca.if_else(tau < clock[0], clock[0] - tau, 0)
            return [ca.vertcat(left, clock[1] + 1), ca.fmax(old, residual)]

        def grown(p: SX, new: SX, tau: SX, clock: SX) -> SX:
            return p + new * (tau / clock[0])

        sums = self.each(b, grown, [carry.sums, motion.impulses], [tau, clock])
        start = carry.start
        if start.size:
            start = self.each(b, lambda p, clock: p / clock[0], [motion.impulses], [clock])
        later, worst = b.trace(after, clock, tau, carry.residual, motion.residual)
        return Carry(self.travel(b, motion, tau), later, marks, sums, worst, start)
