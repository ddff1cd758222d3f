"""Hard contact of many free bodies: the same substep as dense.py, one program for all pairs of a kind.

bodies:   motion without contact, poses                            a map over bodies
near:     bounding boxes that could meet within the step           a map over pairs
points:   contact points of the near pairs, with their systems     a walk over pairs, by kind
sweeps:   impulses, and the changes of velocity they make          a walk over groups of contact points, `sweeps` times
finish:   positions and velocities                                 a map over bodies

The code is as long as that of one body, one pair of each kind and one visit; memory is a few numbers per contact point. Pairs that
are far apart cost a look at their boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT, POSE, pose
from costate.collision.pairs import tangents
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.model import substep_inputs, substep_outputs
from costate.sim.contact.pair_kinds import Kind
from costate.sim.contact.pgs.pairwise.bodies import CONSTANTS, INERTIA, NV, RECORD, Moving, OneBody
from costate.sim.contact.pgs.pairwise.pairs import Pairs
from costate.sim.contact.pgs.pairwise.points import SYSTEM, Visit, prepare
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


class PairwiseStep:
    """Builds the stages of a step."""

    def __init__(self, options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]):
        self.setup, self.b, self.options = setup, b, options
        self.symbols = Symbols(setup)
        self.pairs = Pairs(setup, self.symbols)
        self.moving = Moving(setup)
        self.one = OneBody(setup)
        self.x = args[0]
        self._constants(args)
        self._free()

    def _constants(self, args: Sequence[Var]) -> None:
        """What may be a parameter, once for all bodies, shapes and pairs."""
        s = self.symbols
        frictions = [s.friction_between(*pair) for pair in self.setup.scene.pairs]
        distinct = {str(f): f for f in frictions}
        self.friction_of = np.array([list(distinct).index(str(f)) for f in frictions])
        restitution = s.contact_value("restitution")
        self.bounces = not (restitution.is_constant() and float(restitution) == 0)
        numbers = [
            self.moving.constants(s),
            *self.pairs.shape_constants(),
            ca.vertcat(*distinct.values()),
            restitution,
            ca.densify(s.params["gravity", ""]),
        ]
        found = self.b.call(ca.Function("constants", s.inputs, [ca.densify(x) for x in numbers]), *args)
        self.constants, self.local, self.sizes, self.boxes, self.friction, self.restitution, self.gravity = found

    def _of_bodies(self) -> list[tuple[Var, np.ndarray]]:
        """State, constants and gravity of every body."""
        n = self.moving.count
        rows = np.arange(n)[:, None] * CONSTANTS + np.arange(CONSTANTS)
        return [(self.x, self.moving.coordinates()), (self.constants, rows), (self.gravity, _same(n, 3))]

    def _free(self) -> None:
        b = self.b
        self.velocity, poses, records, speeds = b.map(self.one.free(), self._of_bodies(), [None] * 4)
        world = ca.Function("world", [], [ca.vertcat(1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0), SX.zeros(RECORD)])
        pose_of_world, record_of_world = b.call(world)
        self.records = b.concat(records, record_of_world)
        links = self.pairs.links()
        on = b.concat(poses, pose_of_world), self._of_links(links, POSE)
        (self.poses,) = b.map(_on_link(), [on, (self.local, _rows(len(links), POSE))], [None])
        v = SX.sym("v", self.moving.count)
        # Two bodies that come towards each other, each as fast as the fastest is.
        (self.reach,) = b.call(ca.Function("reach", [v], [2 * self.setup.dt * ca.mmax(v)]), speeds)

    def _of_links(self, links: Sequence[str], width: int, start: int = 0, size: int | None = None) -> np.ndarray:
        """Return the table of numbers start .. start + size of the bodies of some links, with `width` numbers per body."""
        numbers = np.array([self.moving.number(link) for link in links])
        return numbers[:, None] * width + start + np.arange(width - start if size is None else size)

    # --- contact points ---------------------------------------------------------------------------------------------------

    def points(self) -> tuple[Var, list[Var]]:
        """Return flags of the groups (in order), and the numbers the solver reads of them by kind: system, c, push, rest."""
        total: Var | None = None
        columns: list[list[Var]] = [[] for _ in range(4)]
        for kind in self.pairs.kinds:
            flags, rows = self._kind(kind)
            total = flags if total is None else self.b.add(total, flags)
            for column, row in zip(columns, rows, strict=True):
                column.append(row)
        assert total is not None
        return total, [self.b.concat(*c) if c[1:] else c[0] for c in columns]

    def _kind(self, kind: Kind) -> tuple[Var, list[Var]]:
        b, pairs, members = self.b, self.pairs, list(kind.members)
        n = len(members)
        bodies = [self._of_links(links, RECORD)[members] for links in pairs.sides()]
        reads = pairs.geometry(kind, self.poses, self.sizes)
        reads += [(self.records, bodies[0]), (self.records, bodies[1])]
        reads += [(self.restitution, _same(n, 1)), (self.reach, _same(n, 1))]
        flags = pairs.near(b, kind, self.poses, self.boxes, self.reach)
        _, (active,), rows = b.walk(self._preparation(kind), flags, [], reads, [(pairs.count, pairs.groups(kind))])
        return active, rows

    def _preparation(self, kind: Kind) -> Program:
        """(geometry, both bodies, restitution, reach) -> (flags of the instances, system, c, push, rest)."""
        b = ProgramBuilder("places")
        sizes = (*kind.program.in_sizes, RECORD, RECORD, 1, 1)
        args = [b.input(f"i{k}", n) for k, n in enumerate(sizes)]
        (found,) = b.call(kind.program, *args[:4])
        places, a, c = SX.sym("places", found.size), SX.sym("a", RECORD), SX.sym("b", RECORD)
        restitution, reach = SX.sym("e"), SX.sym("reach")
        bounce = restitution if self.bounces else SX(0)
        ready = [
            prepare(places[POINT * k : POINT * (k + 1)], a, c, bounce, self.options, self.setup.dt)
            for k in range(kind.points)
        ]
        step = self.pairs.together
        gaps = [ca.mmin(ca.vertcat(*(p.gap for p in ready[k : k + step]))) for k in range(0, len(ready), step)]
        columns = [[p.system for p in ready], [p.c for p in ready], [p.push for p in ready], [p.rest for p in ready]]
        outputs = [ca.vertcat(*gaps) < reach, *(ca.vertcat(*column) for column in columns)]
        fn = ca.Function("prepare", [places, a, c, restitution, reach], [ca.densify(x) for x in outputs])
        for k, x in enumerate(b.call(fn, found, *args[4:])):
            b.output(f"o{k}", x)
        return b.program()

    # --- impulses -------------------------------------------------------------------------------------------------

    def _read(self, value: Var, width: int) -> tuple[Var, np.ndarray]:
        """Numbers of the places of every instance, from a vector that is ordered by kind."""
        width *= self.pairs.together
        return value, self.pairs.made_at[:, None] * width + np.arange(width)

    def _of_groups(self) -> tuple[np.ndarray, list[tuple[Var, np.ndarray]]]:
        """Table of the twists of both bodies, and their inertias."""
        owner = self.pairs.owner
        twists = np.concatenate([self._of_links(links, NV)[owner] for links in self.pairs.sides()], axis=1)
        return twists, [(self.records, self._of_links(x, RECORD, 3, INERTIA)[owner]) for x in self.pairs.sides()]

    @property
    def _impulses(self) -> np.ndarray:
        return _rows(self.pairs.count, 3 * self.pairs.together)

    def still(self) -> Var:
        """Twists that have not changed, of all bodies and the world."""
        return self.b.zeros(NV * (self.moving.count + 1))

    def sweeps(self, flags: Var, system: Var, c: Var, start: tuple[Var, Var], rounds: int) -> tuple[Var, Var]:
        """Twists and impulses after some sweeps."""
        twists, inertias = self._of_groups()
        states = [(start[0], twists), (start[1], self._impulses)]
        body = Visit(self.pairs.together, self.options).sweep()
        found, _, _ = self.b.walk(body, flags, states, self._reads(system, c, inertias), rounds=rounds)
        return found[0], found[1]

    def residual(self, flags: Var, system: Var, c: Var, end: tuple[Var, Var]) -> Var:
        """Largest speed by which one more sweep would change a row."""
        twists, inertias = self._of_groups()
        states = [(end[0], twists), (end[1], self._impulses), (self.b.zeros(1), _same(self.pairs.count, 1))]
        body = Visit(self.pairs.together, self.options).sweep(watch=True)
        return self.b.walk(body, flags, states, self._reads(system, c, inertias))[0][2]

    def _reads(self, system: Var, c: Var, inertias: list) -> list[tuple[Var, np.ndarray]]:
        friction = self.friction_of[self.pairs.owner][:, None]
        return [self._read(system, SYSTEM), self._read(c, 3), (self.friction, friction), *inertias]

    def applied(self, flags: Var, system: Var, impulses: Var, weights: Var | None = None) -> Var:
        """Twists after impulses, times weights."""
        twists, inertias = self._of_groups()
        reads = [(impulses, self._impulses), self._read(system, SYSTEM), *inertias]
        reads += [] if weights is None else [self._read(weights, 1)]
        body = Visit(self.pairs.together, self.options).apply(weights is not None)
        return self.b.walk(body, flags, [(self.still(), twists)], reads)[0][0]

    def masked(self, flags: Var, impulses: Var) -> Var:
        """Impulses of instances that take part."""
        flag, x = SX.sym("flag"), SX.sym("x", 3 * self.pairs.together)
        body = ca.Function("masked", [flag, x], [ca.if_else(flag, x, 0)])
        return self.b.map(body, [(flags, _rows(self.pairs.count, 1)), (impulses, self._impulses)], [None])[0]

    def finish(self, change: Var, mean: Var) -> Var:
        """The next state. change, mean: of the twists, at the end of the step and on its mean."""
        n = self.moving.count
        twists = _rows(n, NV)
        inputs = [*self._of_bodies(), (self.velocity, twists), (change, twists), (mean, twists)]
        return self.b.map(self.one.finish(), inputs, [(self.setup.nx, self.moving.coordinates())])[0]


def pairwise_substep(options: PGS, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`. Its carry are the impulses to start from."""
    s = Symbols(setup)
    pairs = Pairs(setup, s)
    size = 3 * pairs.together * pairs.count
    b = ProgramBuilder("substep")
    carry, args = substep_inputs(b, s, size if options.warms(setup) else 0)
    step = PairwiseStep(options, setup, b, args)
    flags, (system, c, push, rest) = step.points()
    first = step.masked(flags, carry) if carry.size else b.zeros(size)
    twists = step.applied(flags, system, first) if carry.size else step.still()
    end = step.sweeps(flags, system, c, (twists, first), options.sweeps)
    change, impulses = end
    mean = step.applied(flags, system, impulses, rest) if step.bounces else change
    if options.correction == "split":
        pushed, _ = step.sweeps(flags, system, push, (step.still(), b.zeros(size)), options.sweeps)
        mean = b.add(mean, pushed)
    residual = step.residual(flags, system, c, end)
    return substep_outputs(b, step.finish(change, mean), impulses if carry.size else carry, impulses, residual)


def pairwise_gaps(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> Var:
    """Add the distances of all contact points, in the order of the pairs."""
    point = SX.sym("point", POINT)
    found = _all_points(options, setup, b, args)
    return b.map(ca.Function("gap", [point], [point[0]]), [(found, _rows(found.size // POINT, POINT))], [None])[0]


def pairwise_seen(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var], impulses: Var) -> list[Var]:
    """Add points, normals, gaps, normal forces, friction forces and torques of all contacts."""
    found = _all_points(options, setup, b, args)
    n = found.size // POINT
    place, impulse = SX.sym("place", POINT), SX.sym("impulse", 3)
    gap, point, normal = ca.vertsplit(place, [0, 1, 4, POINT])
    force = impulse / setup.dt
    rub = sum((d * force[1 + k] for k, d in enumerate(tangents(normal))), SX.zeros(3))
    body = ca.Function("where", [place, impulse], [point, normal, gap, force[0], rub, SX.zeros(3)])
    return b.map(body, [(found, _rows(n, POINT)), (impulses, _rows(n, 3))], [None] * 6)


def _all_points(options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> Var:
    step = PairwiseStep(options, setup, b, args)
    return step.pairs.all_points(b, step.poses, step.sizes)


def _on_link() -> ca.Function:
    """Pose of a shape from those of its link and in its link."""
    x, y = SX.sym("x", POSE), SX.sym("y", POSE)
    (R, p), (turn, at) = pose(x), pose(y)
    return ca.Function("on_link", [x, y], [ca.vertcat(ca.vec(R @ turn), p + R @ at)])


def _rows(count: int, width: int) -> np.ndarray:
    return np.arange(count * width).reshape(count, width)


def _same(count: int, width: int) -> np.ndarray:
    """The same numbers for all instances."""
    return np.tile(np.arange(width), (count, 1))
