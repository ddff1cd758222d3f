"""Hard contact pair by pair: the same substep as dense.py, one program for all pairs of a kind.

place:    poses of shapes, and velocities                          body_step.py (free bodies), tree_step.py (everything)
near:     bounding boxes that could meet within the piece          a map over pairs
points:   contact points of the near pairs, with their systems     a walk over pairs, by kind
impact:   if points that touch approach fast                       impact.py
free:     motion without contact                                   body_step.py, tree_step.py
sweeps:   impulses, and the changes of velocity they make          a walk over groups of contact points, `sweeps` times
until:    the time of the next impact                              walks over what waits for one
travel:   positions and velocities                                 body_step.py, tree_step.py

The code is as long as that of one pair of each kind and one visit; memory is a few numbers per contact point. Pairs that are far
apart cost a look at their boxes. A piece (see pieces.py) is an impact, if there is one, and the motion after it: so both use the
same contact points. What carries contacts (free bodies or trees of links) is a storage of its own: a subclass of `PairwiseStep`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.tracing import Body
from costate.sim.contact.pair_kinds import Kind, Read
from costate.sim.contact.pgs.pairwise.impact import after_impact
from costate.sim.contact.pgs.pairwise.pairs import Pairs, joined
from costate.sim.contact.pgs.pairwise.visit import Visit
from costate.sim.contact.pgs.pieces import Pieces, Scope, closing
from costate.sim.contact.pgs.targets import STRUCK
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

REACH = 2
"""Reach in units of the way of the fastest shape: two may come towards each other, each as fast as the fastest is."""
FASTER = 2
"""Largest factor by which impacts may raise the speed of the fastest shape within a piece."""


class PairwiseStep(Pieces):
    """The stages of a substep. A subclass sets the fields below, and implements what depends on the storage."""

    visit: Visit
    count: int
    """Number of groups, those of joints included."""
    carriers: int
    """Number of carriers that move; one more stands for what does not."""

    def __init__(self, options: PGS, setup: Setup):
        super().__init__(options, replace(setup, duration=SX.sym("h")))
        self.symbols = Symbols(self.setup)
        self.pairs = Pairs(self.setup, self.symbols)

    # --- what depends on the storage ------------------------------------------------------------------------------

    @abstractmethod
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the carriers of both sides of every group."""

    @abstractmethod
    def place(self, scope: Scope) -> None:
        """Set `poses`, velocities of the carriers `now`, what `free` sets, and what else the storage reads of a configuration."""

    @abstractmethod
    def preparation(self, scope: Scope, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        """Return the function (point, reads) -> numbers that visits read of a contact point, and its reads for pairs of a kind."""

    @abstractmethod
    def with_velocity(self, scope: Scope, now: Var) -> Var:
        """Add the state with other velocities of the carriers."""

    @abstractmethod
    def free(self, scope: Scope) -> None:
        """Set velocities of the carriers at the end without impulses `free`, and a bound `fastest` of the speed of shapes."""

    @abstractmethod
    def ahead(self, scope: Scope) -> None:
        """Set poses, velocities `now` and the configuration's numbers for the time `tau` of a motion."""

    @abstractmethod
    def rates(self, scope: Scope, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        """Return the function (point, reads) -> speed at which a contact point opens, and the reads for the pairs of a kind."""

    def joint_groups(self, scope: Scope) -> list[Var]:
        """Return systems and gaps of groups that do not come from pairs: they always take part."""
        return []

    def joint_rates(self, scope: Scope) -> tuple[Var, Var] | None:
        """Return gaps of these groups, and how fast they open, at the state of `ahead`."""
        return None

    def more(self, scope: Scope) -> list[Read]:
        """Return further numbers of the groups that visits read."""
        return []

    # --- constants ------------------------------------------------------------------------------------------------

    def frictions(self, joints: int = 0) -> tuple[SX, np.ndarray]:
        """Return the distinct friction coefficients, and the number of that of every group; groups of joints have none."""
        found = [self.symbols.friction_between(*pair) for pair in self.setup.scene.pairs]
        distinct = {str(f): f for f in found}
        numbers = np.array([list(distinct).index(str(f)) for f in found])[self.pairs.owner]
        whole = np.concatenate([numbers, np.full(joints, len(distinct))]).astype(int)
        return ca.vertcat(*distinct.values(), *([SX(0)] if joints else [])), whole

    def constants(self, b: ProgramBuilder, args: Sequence[Var]) -> dict[str, Var]:
        numbers = self.numbers()
        function = ca.Function("constants", self.symbols.inputs, [ca.densify(x) for x in numbers.values()])
        return dict(zip(numbers, b.call(function, *args), strict=True))

    def numbers(self) -> dict[str, SX]:
        """Return numbers that may depend on parameters, but not on the state."""
        local, sizes, boxes = self.pairs.shape_constants()
        friction, restitution = (
            self.frictions(self.count - self.pairs.count)[0],
            self.symbols.contact_value("restitution"),
        )
        return {"local": local, "sizes": sizes, "boxes": boxes, "friction": friction, "restitution": restitution}

    def shapes_at(self, b: ProgramBuilder, args: Sequence[Var]) -> list[Var]:
        """Add poses and sizes of all shapes. args: values of Symbols.inputs."""
        x, shared = self.split(b, args)
        scope = Scope(b, {"x": x, "clock": b.constant([self.setup.dt, 0])} | shared | self.constants(b, args))
        self.place(scope)
        return scope.pick(("poses", "sizes"))

    # --- groups of contact points ---------------------------------------------------------------------------------

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of impulses: three per contact point."""
        return 3 * self.hits

    @property
    def hits(self) -> int:  # type: ignore[override]
        return self.pairs.together * self.count

    def each(self, b: ProgramBuilder, fn: Callable[..., SX], vectors: Sequence[Var], shared: Sequence[Var] = ()) -> Var:
        reads = [self.own(v) for v in vectors] + [(v, same_for_all(self.count, v.size)) for v in shared]
        return b.map(fn, reads, [None])[0]

    def own(self, value: Var) -> Read:
        """Return the numbers of every group, from a vector in the order of the groups."""
        return value, rows_of(self.count, value.size // self.count)

    def made(self, value: Var) -> Read:
        """Return the numbers of every group, from a vector that is ordered by kind."""
        width = value.size // self.count
        order = np.concatenate([self.pairs.made_at, np.arange(self.pairs.count, self.count)])
        return value, order[:, None] * width + np.arange(width)

    def shared(self, value: Var) -> Read:
        """Return numbers that all groups share."""
        return value, same_for_all(self.count, value.size)

    def moved(self, value: Var) -> Read:
        """Return the velocities of both carriers of every group."""
        width = self.visit.width
        return value, np.concatenate([side[:, None] * width + np.arange(width) for side in self.sides()], axis=1)

    def still(self, b: ProgramBuilder) -> Var:
        """Add velocities that have not changed, of all carriers and of what does not move."""
        return b.zeros(self.visit.width * (self.carriers + 1))

    def over_carriers(self, b: ProgramBuilder, fn: Callable[..., SX], values: Sequence[Var], *shared: Var) -> Var:
        """Add a function of the velocities of each carrier."""
        n = self.carriers + 1
        reads = [(v, rows_of(n, self.visit.width)) for v in values] + [(v, same_for_all(n, v.size)) for v in shared]
        return b.map(fn, reads, [None])[0]

    def walk(
        self, scope: Scope, body: Body, flags: Var, states: Sequence[Read], reads: Sequence[Read], **more
    ) -> tuple[list[Var], list[Var], list[Var]]:
        """Add a walk over groups: final states, sums and rows."""
        return scope.b.walk(body, flags, states, [*reads, *self.more(scope)], **more)

    def total(self, size: int) -> tuple[int, np.ndarray]:
        """Return the table of a sum over all groups."""
        return size, same_for_all(self.count, size)

    def sum_of(self, size: int) -> tuple[int, np.ndarray]:
        """Return the table of numbers of each group, which are 0 where a group is left out. Flags are such sums, which need no
        derivative."""
        return size, rows_of(self.count, size // self.count)

    # --- contact points -------------------------------------------------------------------------------------------

    def _prepare(self, scope: Scope) -> None:
        self.place(scope)
        scope["reach"] = self.reach(scope, FASTER)
        scope["flags"], (scope["system"], scope["gap"]) = self._points(scope)
        reads = [self.moved(scope["now"]), self.made(scope["gap"]), self.own(scope["marks"])]
        reads += [self.shared(scope["clock"]), self.made(scope["system"])]
        sums = [self.sum_of(self.hits), self.sum_of(self.count), self.total(1)]
        touch = self.visit.touch(self.setup.dt)
        _, found, _ = self.walk(scope, touch, scope["flags"], [], reads, sums=sums)
        scope["touches"], scope["touching"], number = found
        scope["strikes"] = scope.b.trace(lambda n: n > 0, number)

    def reach(self, scope: Scope, faster: float = 1) -> Var:
        """Add the distance within which shapes may meet in the time left [m]."""
        most = self.options.max_correction if self.options.correction == "split" else 0.0
        names = "fastest", "clock"
        return scope.b.trace(lambda v, clock: REACH * clock[0] * (faster * v + most), *scope.pick(names))

    def _points(self, scope: Scope) -> tuple[Var, list[Var]]:
        """Add flags of the groups within reach (in order), and by kind: what visits read of their points, and gaps."""
        b, pairs = scope.b, self.pairs
        total: Var | None = None
        found: list[list[Var]] = []
        for kind in pairs.kinds:
            near = pairs.near(b, kind, *scope.pick(("poses", "boxes", "reach")))
            program, reads = self._preparation(scope, kind)
            reads = [*pairs.geometry(kind, *scope.pick(("poses", "sizes"))), *reads]
            _, (active,), rows = b.walk(program, near, [], reads, [(pairs.count, pairs.groups(kind))])
            total = active if total is None else b.add(total, active)
            found.append(rows)
        assert total is not None
        joints = self.joint_groups(scope)
        if joints:
            found.append(joints)
            total = b.concat(total, b.constant(np.ones(self.count - pairs.count)))
        return total, [joined(b, column) for column in zip(*found, strict=True)]

    def _preparation(self, scope: Scope, kind: Kind) -> tuple[Program, list[Read]]:
        """Return the program (geometry, reach, reads) -> (flags of the groups, systems, gaps) of a kind, and its reads."""
        function, reads = self.preparation(scope, kind)
        reads = [(scope["reach"], same_for_all(len(kind.members), 1)), *reads]

        def ready(points: SX, reach: SX, *given: SX) -> list[SX]:
            each = ca.vertsplit(points, POINT)
            gaps = ca.vertcat(*(point[0] for point in each))
            flags = [ca.mmin(group) < reach for group in ca.vertsplit(gaps, self.pairs.together)]
            return [ca.vertcat(*flags), ca.vertcat(*(function(point, *given) for point in each)), gaps]

        b = ProgramBuilder("points")
        geometry, more = b.like(kind.program), b.inputs(*(table.shape[1] for _, table in reads))
        return b.program(*b.trace(ready, *b.call(kind.program, *geometry), *more)), reads

    # --- a piece --------------------------------------------------------------------------------------------------

    def piece(self, scope: Scope) -> Program:
        b = scope.b
        self._prepare(scope)
        scope["now"], impulses = after_impact(self, scope)
        scope["x"], scope["sums"] = self.with_velocity(scope, scope["now"]), b.add(scope["sums"], impulses)
        marks = scope.pick(("marks", "touches"))
        scope["marks"] = self.each(
            b, lambda x, y, strikes: ca.if_else(strikes, STRUCK * y, x), marks, [scope["strikes"]]
        )
        counted = scope.pick(("clock", "strikes"))
        scope["clock"] = b.trace(lambda clock, strikes: clock + ca.vertcat(0, strikes), *counted)
        return b.program(*self.motion(scope))

    def solve(self, scope: Scope) -> tuple[Var, Var]:
        b, n, explicit = scope.b, self.count, self.setup.method.travels_before
        self.free(scope)
        split = self.options.correction == "split"
        sums = [self.sum_of(self.hits), self.sum_of(n), self.sum_of(n)]
        reads = [self.moved(scope["now"]), self.moved(scope["free"]), self.made(scope["gap"]), self.own(scope["marks"])]
        reads += [self.shared(scope["clock"]), self.shared(self.reach(scope)), self.made(scope["system"])]
        aims = self.visit.aims(self.setup.dt, split, explicit)
        _, (waits, near, waiting), (c, *sides) = self.walk(scope, aims, scope["flags"], [], reads, sums=sums)
        scope["waits"], scope["waiting"] = waits, waiting
        end = self.sweeps(scope, near, c, self._start(scope, near))
        others = [self.sweeps(scope, near, side, (self.still(b), b.zeros(self.size)))[0] for side in sides]
        self._path(scope, end[0], others[0] if split else None, others[-1] if explicit else None)
        return end[1], self._residual(scope, near, c, end)

    def _start(self, scope: Scope, near: Var) -> tuple[Var, Var]:
        """Add what sweeps start from: changes of velocity, and impulses."""
        b = scope.b
        if not scope["start"].size:
            return self.still(b), b.zeros(self.size)
        reads = [self.own(near), self.own(scope["start"]), self.shared(scope["clock"])]
        (first,) = b.map(lambda flag, x, clock: ca.if_else(flag, x * clock[0], 0), reads, [None])
        reads = [self.own(first), self.made(scope["system"])]
        return self.walk(scope, self.visit.apply(), near, [self.moved(self.still(b))], reads)[0][0], first

    def _reads(self, scope: Scope, c: Var) -> list[Read]:
        friction = scope["friction"], self.frictions(self.count - self.pairs.count)[1][:, None]
        return [self.made(scope["system"]), self.own(c), friction]

    def sweeps(self, scope: Scope, flags: Var, c: Var, start: tuple[Var, Var], impact: bool = False) -> tuple[Var, Var]:
        """Add the sweeps: changes of velocity, and impulses."""
        states = [self.moved(start[0]), self.own(start[1])]
        body, rounds = self.visit.sweep(impact=impact), self.options.sweeps
        change, impulses = self.walk(scope, body, flags, states, self._reads(scope, c), rounds=rounds)[0]
        return change, impulses

    def _residual(self, scope: Scope, flags: Var, c: Var, end: tuple[Var, Var]) -> Var:
        """Add the largest speed by which one more sweep would change a row."""
        states = [self.moved(end[0]), self.own(end[1]), self.shared(scope.b.zeros(1))]
        return self.walk(scope, self.visit.sweep(watch=True), flags, states, self._reads(scope, c))[0][2]

    def _path(self, scope: Scope, change: Var, push: Var | None, jump: Var | None) -> None:
        """Set velocities of the carriers at the end of a motion `after`, and its path `base` and `slope` (see pieces.py)."""
        b, now = scope.b, scope["now"]
        after = scope["after"] = b.add(scope["free"], change)
        scope["base"] = now if jump is None else b.add(now, jump)
        if push is not None:
            scope["base"] = b.add(scope["base"], push)
        end = now if jump is not None else after

        def slope(v: SX, end: SX, drift: SX, clock: SX) -> SX:
            return (end + drift - v) / clock[0]

        scope["slope"] = self.over_carriers(b, slope, [now, end, scope["drift"]], scope["clock"])

    # --- the time of the next impact ------------------------------------------------------------------------------

    def estimate(self, scope: Scope) -> Var:
        b = scope.b
        for k, kind in enumerate(self.pairs.kinds):
            scope[f"waiting{k}"] = b.map(ca.mmax, [(scope["waits"], self._hits_of(kind))], [None])[0]
        reads = [
            self.moved(scope["base"]),
            self.moved(scope["slope"]),
            self.made(scope["gap"]),
            self.own(scope["waits"]),
        ]
        reads += [self.shared(scope["clock"]), self.made(scope["system"])]
        states = [self.shared(b.slice(scope["clock"], 0, 1))]
        return self.walk(scope, self.visit.first_meeting(), scope["waiting"], states, reads)[0][0]

    def _hits_of(self, kind: Kind) -> np.ndarray:
        """Return the table of the contact points of every pair of a kind, in the order of the groups."""
        first = self.pairs.groups(kind)[:, :1] * self.pairs.together
        return first + np.arange(kind.points)

    def closer(self, scope: Scope) -> tuple[Var, Var]:
        b = scope.b
        self.ahead(scope)
        first, times = b.slice(scope["clock"], 0, 1), scope["times"]
        for k, kind in enumerate(self.pairs.kinds):
            function, reads = self.rates(scope, kind)
            n, hits = len(kind.members), self._hits_of(kind)
            reads = [
                (scope["waits"], hits),
                *((scope[x], same_for_all(n, scope[x].size)) for x in ("tau", "clock")),
                *reads,
            ]
            geometry = self.pairs.geometry(kind, *scope.pick(("poses", "sizes")))
            states = [(first, same_for_all(n, 1)), (times, hits)]
            program = self._closing(kind, function, [table.shape[1] for _, table in reads])
            first, times = b.walk(program, scope[f"waiting{k}"], states, [*geometry, *reads])[0]
        joints = self.joint_rates(scope)
        if joints is not None:
            start = self.pairs.together * self.pairs.count
            waits = b.slice(scope["waits"], start, self.hits - start)
            first, found = b.trace(self._earliest, first, *scope.pick(("tau", "clock")), waits, *joints)
            times = b.concat(b.slice(times, 0, start), found)
        return first, times

    def _closing(self, kind: Kind, function: Callable[..., SX], widths: Sequence[int]) -> Program:
        """Build (first, times, geometry, waits, tau, clock, reads) -> (first, times) of a kind."""
        b = ProgramBuilder("closing")
        first, _ = b.inputs(1, kind.points)
        geometry, more = b.like(kind.program), b.inputs(*widths)

        def times(first: SX, points: SX, waits: SX, tau: SX, clock: SX, *given: SX) -> list[SX]:
            rates = [function(point, *given) for point in ca.vertsplit(points, POINT)]
            return self._earliest(first, tau, clock, waits, points[0::POINT], ca.vertcat(*rates))

        return b.program(*b.trace(times, first, *b.call(kind.program, *geometry), *more))

    def _earliest(self, first: SX, tau: SX, clock: SX, waits: SX, gap: SX, rate: SX) -> list[SX]:
        """Return the earliest time at which some rows close, if it is before the first so far, and the times of all."""
        n, earliest = gap.numel(), -self.setup.dt
        times = [closing(tau, gap[k], rate[k], waits[k], clock[0], earliest) for k in range(n)]
        for time in times:
            first = ca.fmin(first, time)
        return [first, ca.vertcat(*times)]


def rows_of(count: int, width: int) -> np.ndarray:
    """Return the table of consecutive elements, `width` per instance."""
    return np.arange(count * width).reshape(count, width)


def same_for_all(count: int, width: int) -> np.ndarray:
    """Return the table of the same elements for all instances."""
    return np.tile(np.arange(width), (count, 1))
