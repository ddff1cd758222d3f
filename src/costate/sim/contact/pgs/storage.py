"""Carriers of contact, free bodies or trees of links, and the tables by which stages read the numbers of groups and carriers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.kernel.tracing import Body
from costate.sim.contact.pair_kinds import Kind, Read, rows_of, same_for_all
from costate.sim.contact.pgs.pairs import Pairs
from costate.sim.contact.pgs.stages import Free, G, Motion, P
from costate.sim.contact.pgs.visit import Visit
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


class Storage(ABC, Generic[G, P]):
    """A storage of bodies and contact points. A subclass sets the fields below."""

    visit: Visit
    count: int
    """Number of groups, those of joints included."""
    carriers: int
    """Number of carriers that move; one more stands for what does not."""

    def __init__(self, options: PGS, setup: Setup):
        self.options: PGS = replace(options, impacts=options.impacts_of(setup))
        self.setup = replace(setup, duration=SX.sym("h"))
        self.symbols = Symbols(self.setup)
        self.pairs = Pairs(self.setup, self.symbols)

    # --- what depends on the storage ------------------------------------------------------------------------------

    @abstractmethod
    def given(self, b: ProgramBuilder, args: Sequence[Var]) -> G:
        """Add what may depend on parameters, but not on the state. args: values of Symbols.inputs."""

    @abstractmethod
    def place(self, b: ProgramBuilder, x: Var, clock: Var, given: G) -> tuple[P, Free]:
        """Add a configuration, and the motion without contact from it."""

    @abstractmethod
    def free(self, b: ProgramBuilder, x: Var, clock: Var, given: G) -> Free:
        """Add the motion without contact."""

    @abstractmethod
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the carriers of both sides of every group."""

    @abstractmethod
    def preparation(self, b: ProgramBuilder, placed: P, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        """Return the function (point, reads) -> numbers that visits read of a contact point, and its reads for pairs of a kind."""

    @abstractmethod
    def with_velocity(self, b: ProgramBuilder, x: Var, now: Var, given: G) -> Var:
        """Add the state with other velocities of the carriers."""

    @abstractmethod
    def travel(self, b: ProgramBuilder, motion: Motion[G, P], tau: Var) -> Var:
        """Add the state after a time tau of a motion."""

    @abstractmethod
    def ahead(self, b: ProgramBuilder, motion: Motion[G, P], tau: Var) -> P:
        """Add the configuration at a time tau of a motion."""

    @abstractmethod
    def rates(self, b: ProgramBuilder, placed: P, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        """Return the function (point, reads) -> speed at which a contact point opens, and the reads for the pairs of a kind."""

    def joint_groups(self, placed: P) -> list[Var]:
        """Return systems and gaps of groups that do not come from pairs: they always take part."""
        return []

    def joint_rates(self, placed: P) -> tuple[Var, Var] | None:
        """Return gaps of these groups, and how fast they open."""
        return None

    def more(self, placed: P) -> list[Read]:
        """Return further numbers of the groups that visits read."""
        return []

    # --- inputs of a step ----------------------------------------------------------------------------------------

    def moving(self, b: ProgramBuilder, args: Sequence[Var]) -> Var:
        """Return positions and velocities: what pieces change. args: values of Symbols.inputs."""
        return b.slice(args[0], 0, self.setup.nq + self.setup.nv) if self.setup.na else args[0]

    def unchanged(self, b: ProgramBuilder, args: Sequence[Var]) -> tuple[Var, ...]:
        """Return what pieces do not change: see Given.inputs."""
        moving, na = self.setup.nq + self.setup.nv, self.setup.na
        return (*([b.slice(args[0], moving, na)] if na else []), *args[1:])

    def inputs(self, b: ProgramBuilder, x: Var, given: G) -> list[Var]:
        """Return the values of Symbols.inputs, at positions and velocities."""
        if not self.setup.na:
            return [x, *given.inputs]
        return [b.concat(x, given.inputs[0]), *given.inputs[1:]]

    # --- numbers of the groups ------------------------------------------------------------------------------------

    def frictions(self) -> tuple[SX, np.ndarray]:
        """Return the distinct friction coefficients, and the number of that of every group; groups of joints have none."""
        joints = self.count - self.pairs.count
        found = [self.symbols.friction_between(*pair) for pair in self.setup.scene.pairs]
        distinct = {str(f): f for f in found}
        numbers = np.array([list(distinct).index(str(f)) for f in found], int)[self.pairs.owner]
        whole = np.concatenate([numbers, np.full(joints, len(distinct), int)])
        return ca.vertcat(*distinct.values(), *([SX(0)] if joints else [])), whole

    def constants(self, b: ProgramBuilder, args: Sequence[Var], *own: SX) -> list[Var]:
        """Add the numbers of Given after its inputs, and those that a storage has for itself."""
        numbers = [*self.pairs.shape_constants(), self.frictions()[0], self.symbols.contact_value("restitution"), *own]
        return b.call(ca.Function("constants", self.symbols.inputs, [ca.densify(x) for x in numbers]), *args)

    def shapes_at(self, b: ProgramBuilder, args: Sequence[Var]) -> list[Var]:
        """Add poses and sizes of all shapes. args: values of Symbols.inputs."""
        given = self.given(b, args)
        placed, _ = self.place(b, self.moving(b, args), b.constant([self.setup.dt, 0]), given)
        return [placed.poses, given.sizes]

    @property
    def size(self) -> int:
        """Number of impulses: three per contact point."""
        return 3 * self.hits

    @property
    def hits(self) -> int:
        """Number of rows that can strike: one per contact point."""
        return self.pairs.together * self.count

    def hits_of(self, kind: Kind) -> np.ndarray:
        """Return the table of the contact points of every pair of a kind, in the order of the groups."""
        first = self.pairs.groups(kind)[:, :1] * self.pairs.together
        return first + np.arange(kind.points)

    # --- tables ---------------------------------------------------------------------------------------------------

    def each(self, b: ProgramBuilder, fn: Callable[..., SX], vectors: Sequence[Var], shared: Sequence[Var] = ()) -> Var:
        """Add a function of every element of some vectors, which are as long as all impulses or all rows that can strike, and of
        what all elements share."""
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
        self,
        b: ProgramBuilder,
        placed: P,
        body: Body,
        flags: Var,
        states: Sequence[Read],
        reads: Sequence[Read],
        **more,
    ) -> tuple[list[Var], list[Var], list[Var]]:
        """Add a walk over groups: final states, sums and rows."""
        return b.walk(body, flags, states, [*reads, *self.more(placed)], **more)

    def total(self, size: int) -> tuple[int, np.ndarray]:
        """Return the table of a sum over all groups."""
        return size, same_for_all(self.count, size)

    def sum_of(self, size: int) -> tuple[int, np.ndarray]:
        """Return the table of numbers of each group, which are 0 where a group is left out. Flags are such sums, which need no
        derivative."""
        return size, rows_of(self.count, size // self.count)
