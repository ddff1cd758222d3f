"""Hard contact pair by pair: the same substep as dense.py, one program for all pairs of a kind.

free:     motion without contact, poses of shapes                  body_step.py (free bodies), tree_step.py (everything)
near:     bounding boxes that could meet within the step           a map over pairs
points:   contact points of the near pairs, with their systems     a walk over pairs, by kind
sweeps:   impulses, and the changes of velocity they make          a walk over groups of contact points, `sweeps` times
finish:   positions and velocities                                 body_step.py, tree_step.py

The code is as long as that of one pair of each kind and one visit; memory is a few numbers per contact point. Pairs that are far
apart cost a look at their boxes. What carries contacts (free bodies or trees of links) is a storage of its own: a subclass of
`PairwiseStep` here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.pair_kinds import Kind, Read
from costate.sim.contact.pgs.pairwise.pairs import Pairs, joined
from costate.sim.contact.pgs.pairwise.visit import Visit
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


class PairwiseStep(ABC):
    """The stages of a substep. A subclass sets the fields below, and implements what depends on the storage."""

    visit: Visit
    count: int
    """Number of groups, those of joints included."""
    carriers: int
    """Number of carriers that move; one more stands for what does not."""
    poses: Var
    sizes: Var
    boxes: Var
    reach: Var
    """Distance within which shapes are looked at [m]."""
    friction: Var
    """Distinct friction coefficients."""
    friction_of: np.ndarray
    """Number of the coefficient of every group."""
    restitution: Var
    bounces: bool

    def __init__(self, options: PGS, setup: Setup, b: ProgramBuilder):
        self.options, self.setup, self.b = options, setup, b
        self.symbols = Symbols(setup)
        self.pairs = Pairs(setup, self.symbols)

    # --- what depends on the storage ------------------------------------------------------------------------------

    @abstractmethod
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the carriers of both sides of every group."""

    @abstractmethod
    def preparation(self, kind: Kind) -> tuple[Program, list[Read]]:
        """Return the program (geometry, reads) -> (flags of the groups, system, c, push, rest, ...) of a kind, and its reads."""

    def joint_groups(self) -> list[Var]:
        """Return system, c, push, rest, ... of groups that do not come from pairs: they always take part."""
        return []

    def more(self) -> list[Read]:
        """Return further numbers of the groups that visits read."""
        return []

    @abstractmethod
    def finish(self, change: Var, mean: Var) -> Var:
        """Add the next state. change, mean: of the carriers' velocities, at the end of the step and on its mean."""

    # --- constants ------------------------------------------------------------------------------------------------

    def frictions(self, more: int = 0) -> SX:
        """Return the distinct friction coefficients, and note that of every group; `more` groups without any follow."""
        found = [self.symbols.friction_between(*pair) for pair in self.setup.scene.pairs]
        distinct = {str(f): f for f in found}
        numbers = np.array([list(distinct).index(str(f)) for f in found])[self.pairs.owner]
        self.friction_of = np.concatenate([numbers, np.full(more, len(distinct))]).astype(int)
        return ca.vertcat(*distinct.values(), *([SX(0)] if more else []))

    def bounce(self) -> SX:
        """Return the coefficient of restitution, and note whether anything bounces."""
        found = self.symbols.contact_value("restitution")
        self.bounces = not (found.is_constant() and float(found) == 0)
        return found

    @property
    def correction_speed(self) -> float:
        """Largest speed [m/s] at which a split correction may move shapes on top of their velocities."""
        return self.options.max_correction if self.options.correction == "split" else 0.0

    # --- contact points -------------------------------------------------------------------------------------------

    def points(self) -> tuple[Var, list[Var]]:
        """Add flags of the groups (in order), and the numbers the solver reads of them by kind: system, c, push, rest, ..."""
        b, pairs = self.b, self.pairs
        total: Var | None = None
        found: list[list[Var]] = []
        for kind in pairs.kinds:
            near = pairs.near(b, kind, self.poses, self.boxes, self.reach)
            program, reads = self.preparation(kind)
            reads = [*pairs.geometry(kind, self.poses, self.sizes), *reads]
            _, (active,), rows = b.walk(program, near, [], reads, [(pairs.count, pairs.groups(kind))])
            total = active if total is None else b.add(total, active)
            found.append(rows)
        assert total is not None
        joints = self.joint_groups()
        if joints:
            found.append(joints)
            total = b.concat(total, b.constant(np.ones(self.count - pairs.count)))
        return total, [joined(b, column) for column in zip(*found, strict=True)]

    # --- impulses -------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of impulses: three per contact point."""
        return 3 * self.pairs.together * self.count

    @property
    def _impulses(self) -> np.ndarray:
        return rows_of(self.count, 3 * self.pairs.together)

    @property
    def _made_at(self) -> np.ndarray:
        return np.concatenate([self.pairs.made_at, np.arange(self.pairs.count, self.count)])

    def _read(self, value: Var) -> Read:
        """Return the numbers of every group, from a vector that is ordered by kind."""
        width = value.size // self.count
        return value, self._made_at[:, None] * width + np.arange(width)

    def _moved(self) -> np.ndarray:
        """Return the table of the velocities of both carriers of every group."""
        width = self.visit.width
        return np.concatenate([side[:, None] * width + np.arange(width) for side in self.sides()], axis=1)

    def still(self) -> Var:
        """Add velocities that have not changed, of all carriers and of what does not move."""
        return self.b.zeros(self.visit.width * (self.carriers + 1))

    def _reads(self, system: Var, c: Var) -> list[Read]:
        friction = self.friction, self.friction_of[:, None]
        return [self._read(system), self._read(c), friction, *self.more()]

    def sweeps(self, flags: Var, system: Var, c: Var, start: tuple[Var, Var]) -> tuple[Var, Var]:
        """Add the sweeps: changes of velocity, and impulses."""
        states = [(start[0], self._moved()), (start[1], self._impulses)]
        rounds = self.options.sweeps
        found, _, _ = self.b.walk(self.visit.sweep(), flags, states, self._reads(system, c), rounds=rounds)
        return found[0], found[1]

    def residual(self, flags: Var, system: Var, c: Var, end: tuple[Var, Var]) -> Var:
        """Add the largest speed by which one more sweep would change a row."""
        states = [(end[0], self._moved()), (end[1], self._impulses), (self.b.zeros(1), np.zeros((self.count, 1), int))]
        return self.b.walk(self.visit.sweep(watch=True), flags, states, self._reads(system, c))[0][2]

    def applied(self, flags: Var, system: Var, impulses: Var, weights: Var | None = None) -> Var:
        """Add the changes of velocity by impulses, times weights."""
        reads = [(impulses, self._impulses), self._read(system), *self.more()]
        reads += [] if weights is None else [self._read(weights)]
        body = self.visit.apply(weights is not None)
        return self.b.walk(body, flags, [(self.still(), self._moved())], reads)[0][0]

    def masked(self, flags: Var, impulses: Var) -> Var:
        """Add the impulses of groups that take part, 0 for all others."""
        inputs = [(flags, rows_of(self.count, 1)), (impulses, self._impulses)]
        return self.b.map(lambda flag, x: ca.if_else(flag, x, 0), inputs, [None])[0]


def solved(step: PairwiseStep, carry: Var) -> tuple[Var, Var, Var]:
    """Add the stages after free motion: return the next state, impulses and residual. carry: impulses to start from, if any."""
    b = step.b
    flags, (system, c, push, rest, *jumps) = step.points()
    first = step.masked(flags, carry) if carry.size else b.zeros(step.size)
    moved = step.applied(flags, system, first) if carry.size else step.still()
    end = step.sweeps(flags, system, c, (moved, first))
    change, impulses = end
    jumped, jump = end
    for side in jumps:
        jumped, jump = step.sweeps(flags, system, side, (step.still(), b.zeros(step.size)))
    mean = step.applied(flags, system, jump, rest) if step.bounces else jumped
    if step.options.correction == "split":
        pushed, _ = step.sweeps(flags, system, push, (step.still(), b.zeros(step.size)))
        mean = b.add(mean, pushed)
    return step.finish(change, mean), impulses, step.residual(flags, system, c, end)


def rows_of(count: int, width: int) -> np.ndarray:
    """Return the table of consecutive elements, `width` per instance."""
    return np.arange(count * width).reshape(count, width)


def same_for_all(count: int, width: int) -> np.ndarray:
    """Return the table of the same elements for all instances."""
    return np.tile(np.arange(width), (count, 1))
