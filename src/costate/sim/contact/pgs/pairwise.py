"""Hard contact of many free bodies: the same step as pgs.py, one program for all pairs of a kind.

bodies:   motion without contact, poses                            a map over bodies
near:     bounding boxes that could meet within the step           a map over pairs
places:   where the near ones touch, and what the solver reads     a walk over pairs, by kind
sweeps:   impulses, and what they change of the velocities         a walk over places, `sweeps` times
finish:   positions and velocities                                 a map over bodies

Code is as long as one body, one pair of each kind and one visit are; memory is a few numbers per place. Pairs that are far apart
cost a look at their boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT, POSE, pose
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.options import PGS
from costate.sim.contact.pgs.pairwise_bodies import CONSTANTS, INERTIA, NV, RECORD, Moving, OneBody
from costate.sim.contact.pgs.pairwise_pairs import Kind, Pairs
from costate.sim.contact.pgs.pairwise_places import SYSTEM, Visit, prepare
from costate.sim.setup import Setup, Symbols


class MappedStep:
    """Builds the stages of a step."""

    def __init__(self, setup: Setup, b: ProgramBuilder, args: Sequence[Var]):
        assert isinstance(setup.contact, PGS)
        self.setup, self.b, self.options = setup, b, setup.contact
        self.symbols = Symbols(setup)
        self.pairs = Pairs(setup, self.symbols)
        self.moving: Moving = self.pairs.moving
        self.one = OneBody(setup)
        self.x = args[0]
        self._constants(args)
        self._free()

    def _constants(self, args: Sequence[Var]) -> None:
        """What may be a parameter, once for all bodies, shapes and pairs."""
        s = self.symbols
        colliders = self.setup.scene.colliders
        frictions = [s.friction_of(*(colliders[k] for k in p)) for p in self.setup.scene.pairs]
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
        shapes = len(self.pairs.shapes)
        links = b.concat(poses, pose_of_world), self.pairs.shape_links()
        (self.poses,) = b.map(_on_link(), [links, (self.local, _rows(shapes, POSE))], [None])
        v = SX.sym("v", self.moving.count)
        # Two bodies that come towards each other, each as fast as the fastest is.
        (self.reach,) = b.call(ca.Function("reach", [v], [2 * self.setup.dt * ca.mmax(v)]), speeds)

    # --- places ---------------------------------------------------------------------------------------------------

    def places(self) -> tuple[Var, list[Var]]:
        """Flags of the instances (in order), and what the solver reads of them, kind after kind: system, c, push, rest."""
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
        bodies = [t[members] for t in pairs.bodies(RECORD)]
        reads = pairs.geometry(b, kind, self.poses, self.sizes)
        reads += [(self.records, bodies[0]), (self.records, bodies[1])]
        reads += [(self.restitution, _same(n, 1)), (self.reach, _same(n, 1))]
        flags = pairs.near(b, kind, self.poses, self.boxes, self.reach)
        _, (active,), rows = b.walk(self._preparation(kind), flags, [], reads, [(pairs.count, pairs.instances(kind))])
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
            for k in range(kind.places)
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

    def _of_instances(self) -> tuple[np.ndarray, list[tuple[Var, np.ndarray]]]:
        """Table of the twists of both bodies, and their inertias."""
        owner = self.pairs.owner
        twists = np.concatenate([t[owner] for t in self.pairs.bodies(NV)], axis=1)
        return twists, [(self.records, t[owner]) for t in self.pairs.bodies(RECORD, 3, INERTIA)]

    @property
    def _impulses(self) -> np.ndarray:
        return _rows(self.pairs.count, 3 * self.pairs.together)

    def still(self) -> Var:
        """Twists that have not changed, of all bodies and the world."""
        return self.b.zeros(NV * (self.moving.count + 1))

    def sweeps(self, flags: Var, system: Var, c: Var, start: tuple[Var, Var], rounds: int) -> tuple[Var, Var]:
        """Twists and impulses after some sweeps."""
        twists, inertias = self._of_instances()
        states = [(start[0], twists), (start[1], self._impulses)]
        body = Visit(self.pairs.together, self.options).sweep()
        found, _, _ = self.b.walk(body, flags, states, self._reads(system, c, inertias), rounds=rounds)
        return found[0], found[1]

    def residual(self, flags: Var, system: Var, c: Var, end: tuple[Var, Var]) -> Var:
        """Largest speed by which one more sweep would change a row."""
        twists, inertias = self._of_instances()
        states = [(end[0], twists), (end[1], self._impulses), (self.b.zeros(1), _same(self.pairs.count, 1))]
        body = Visit(self.pairs.together, self.options).sweep(watch=True)
        return self.b.walk(body, flags, states, self._reads(system, c, inertias))[0][2]

    def _reads(self, system: Var, c: Var, inertias: list) -> list[tuple[Var, np.ndarray]]:
        friction = self.friction_of[self.pairs.owner][:, None]
        return [self._read(system, SYSTEM), self._read(c, 3), (self.friction, friction), *inertias]

    def applied(self, flags: Var, system: Var, impulses: Var, weights: Var | None = None) -> Var:
        """Twists after impulses, times weights."""
        twists, inertias = self._of_instances()
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


def mapped_step(setup: Setup, warm: bool = False) -> Program:
    """One substep as a program, as `pgs_step`: (x, [start], u, parameters, wrenches) -> (x', impulses, residual)."""
    b = ProgramBuilder("step")
    sizes = [x.numel() for x in Symbols(setup).inputs]
    args = [b.input("i0", sizes[0])]
    pairs = Pairs(setup, Symbols(setup))
    start = b.input("start", 3 * pairs.together * pairs.count) if warm else None
    args += [b.input(f"i{k}", n) for k, n in enumerate(sizes) if k]
    step = MappedStep(setup, b, args)
    sweeps = step.options.sweeps
    flags, (system, c, push, rest) = step.places()
    first = b.zeros(3 * pairs.together * pairs.count) if start is None else step.masked(flags, start)
    twists = step.still() if start is None else step.applied(flags, system, first)
    end = step.sweeps(flags, system, c, (twists, first), sweeps)
    change, impulses = end
    mean = step.applied(flags, system, impulses, rest) if step.bounces else change
    if step.options.correction == "split":
        zero = b.zeros(first.size)
        pushed, _ = step.sweeps(flags, system, push, (step.still(), zero), sweeps)
        mean = b.add(mean, pushed)
    b.output("x", step.finish(change, mean))
    b.output("impulses", impulses)
    b.output("residual", step.residual(flags, system, c, end))
    return b.program()


def mapped_places(setup: Setup, b: ProgramBuilder, args: Sequence[Var]) -> Var:
    """POINT numbers of all places, in the order of the pairs."""
    step = MappedStep(setup, b, args)
    return step.pairs.all_places(b, step.poses, step.sizes)


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


__all__ = ["MappedStep", "mapped_places", "mapped_step"]
