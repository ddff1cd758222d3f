"""Contact forces: walks over the contact points of every law, which leave out those that act in no sample of a vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.derive import vjp
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.newton.pairwise.bends import Place
from costate.sim.contact.newton.pairwise.kinds import Pairs
from costate.sim.contact.newton.pairwise.law import Law
from costate.sim.contact.newton.pairwise.movers import SIX, Movers
from costate.sim.contact.newton.pairwise.places import Vars, joined, total
from costate.sim.contact.pair_kinds import Read


@dataclass(frozen=True, eq=False)
class Pushes:
    """The stages of the contact points of a world. Lists have an entry for each law."""

    pairs: Pairs
    movers: Movers

    @property
    def laws(self) -> list[Law]:
        return self.pairs.laws

    @property
    def counts(self) -> list[int]:
        """Numbers of contact points."""
        return [len(law.members) for law in self.laws]

    @property
    def row_sizes(self) -> list[int]:
        """Sizes of the rows of all contact points."""
        return [len(law.members) * law.row for law in self.laws]

    def flags(self, b: ProgramBuilder, flags: Var) -> Vars:
        """Return the flags of every law, from those of all contact points."""
        return [b.trace(lambda x, at=list(law.members): x[at], flags) for law in self.laws]

    # --- reads ----------------------------------------------------------------------------------------------------

    def contacts(self, law: Law) -> np.ndarray:
        """Return the pairs of the contact points of a law."""
        return self.pairs.point_pair[list(law.members)]

    def bodies(self, pairs: Iterable[int]) -> np.ndarray:
        """Return the elements of both bodies of these pairs among spatial vectors of all bodies, (n, 12)."""
        both = [(t.link_a, t.link_b) for t in (self.pairs.contacts[n] for n in pairs)]
        slots = np.array([[self.movers.slot(link) for link in pair] for pair in both])
        return (slots[:, :, None] * SIX + np.arange(SIX)).reshape(len(both), -1)

    def both(self, law: Law, x: Var) -> list[Read]:
        table = self.bodies(self.contacts(law))
        return [(x, table[:, :SIX]), (x, table[:, SIX:])]

    def own(self, law: Law, own: Var) -> Read:
        return own, self.pairs.own_at[self.contacts(law)][:, None] + np.arange(law.own)

    def of_points(self, law: Law, points: Var, own: Var, middle: Var, v: Var) -> list[Read]:
        where = self.pairs.point_at[list(law.members)][:, None] + np.arange(law.width)
        everywhere = np.tile(np.arange(3), (len(law.members), 1))
        return [(points, where), self.own(law, own), (middle, everywhere), *self.both(law, v)]

    # --- stages ---------------------------------------------------------------------------------------------------

    def rows(
        self, b: ProgramBuilder, flags: Vars, points: Var, own: Var, middle: Var, v: Var, signs: Vars | None = None
    ) -> Vars:
        """Add the rows of all contact points. v: velocities of all bodies; signs: see Law.rows."""
        reads = [self.of_points(law, points, own, middle, v) for law in self.laws]
        for k, sign in enumerate(signs or ()):
            reads[k].append(each(sign, 1))
        return [b.walk(law.rows, flag, [], read)[2][0] for law, flag, read in zip(self.laws, flags, reads, strict=True)]

    def costs(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, a: Var) -> Var:
        """Add the sum of all costs. a: accelerations of all bodies."""
        tables = [np.zeros((n, 1), int) for n in self.counts]
        return self._summed(b, Law.value, flags, rows, own, a, 1, tables)

    def forces(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, a: Var) -> Var:
        """Add the forces along all rows, in the order of the pairs."""
        _, first = self.pairs.order()
        tables = [first[list(law.members)][:, None] + np.arange(law.dim) for law in self.laws]
        size = sum(len(law.members) * law.dim for law in self.laws)
        return self._summed(b, Law.forces, flags, rows, own, a, size, tables)

    def _summed(self, b: ProgramBuilder, body: Callable[..., Any], flags, rows, own, a, size: int, tables) -> Var:
        """Add the sum of what all contact points add to a vector."""
        found = []
        for law, flag, row, table in zip(self.laws, flags, rows, tables, strict=True):
            reads = [each(row, law.row), self.own(law, own), *self.both(law, a)]
            found += b.walk(lambda *given, law=law: body(law, *given), flag, [], reads, [(size, table)])[1]
        return total(b, found)

    def terms(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, a: Var) -> tuple[Var, Var, Vars]:
        """Add the wrenches on all bodies, how forces of a contact point change with x (law after law), and x of all rows."""
        wrenches, bends, xs = [], [], []
        for law, flag, row in zip(self.laws, flags, rows, strict=True):
            reads = [each(row, law.row), self.own(law, own), *self.both(law, a)]
            _, found, (bend, x) = b.walk(
                law.terms, flag, [], reads, [(self.movers.size, self.bodies(self.contacts(law)))]
            )
            wrenches += found
            bends.append(bend)
            xs.append(x)
        return total(b, wrenches), joined(b, bends), xs

    def along(self, b: ProgramBuilder, flags: Vars, rows: Vars, step: Var) -> Vars:
        """Add y = J step of all rows. step: of the accelerations of all bodies."""
        return [
            b.walk(law.along, flag, [], [each(row, law.row), *self.both(law, step)])[2][0]
            for law, flag, row in zip(self.laws, flags, rows, strict=True)
        ]

    def slopes(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, xs: Vars, ys: Vars, state: Var) -> Var:
        """Add the slope of the cost at a step of the line search, and its change."""
        found = []
        for law, flag, row, x, y in zip(self.laws, flags, rows, xs, ys, strict=True):
            n = len(law.members)
            shared = (state, np.tile(np.arange(state.size), (n, 1)))
            reads = [each(row, law.row), self.own(law, own), each(x, law.dim), each(y, law.dim), shared]
            found += b.walk(law.slopes, flag, [], reads, [(2, np.tile([0, 1], (n, 1)))])[1]
        return total(b, found)

    # --- derivatives ----------------------------------------------------------------------------------------------

    @cached_property
    def programs(self) -> list[Program]:
        """Programs (flags, contact points, own numbers, middle, velocities, accelerations) -> wrenches on all bodies."""
        size = self.movers.size
        points, own = sum(g.size for g in self.pairs.geometries), self.pairs.own_numbers().numel()
        made = []
        for law in self.laws:
            b = ProgramBuilder("pushes")
            flags, *given, a = b.inputs(len(law.members), points, own, 3, size, size)
            reads = [*self.of_points(law, *given), *self.both(law, a)]
            made.append(b.program(*b.walk(law.push, flags, [], reads, [(size, self.bodies(self.contacts(law)))])[1]))
        return made

    def wrenches(self, b: ProgramBuilder, flags: Vars, *given: Var) -> Var:
        """Add the wrenches on all bodies. given: contact points, own numbers, middle, velocities, accelerations."""
        return total(b, [b.call(p, flag, *given)[0] for p, flag in zip(self.programs, flags, strict=True)])

    def backward(self, b: ProgramBuilder, flags: Vars, given: Vars, seeds: Var) -> Vars:
        """Add the gradients of what wrenches are given, from those of the wrenches."""
        back = [vjp(p, range(1, 1 + len(given)), [0]) for p in self.programs]
        grads = [b.call(p, flag, *given, seeds) for p, flag in zip(back, flags, strict=True)]
        return [total(b, own) for own in zip(*grads, strict=True)]

    def bent(self) -> list[Place]:
        """Return where the numbers of every contact point are, law after law."""
        found, row, bend = [], 0, 0
        for law in self.laws:
            for a, b in self.bodies(self.contacts(law))[:, [0, SIX]] // SIX:
                found.append(Place((int(a), int(b)), law.dim, row, bend))
                row, bend = row + law.row, bend + law.bends
        return found


def each(x: Var, width: int) -> Read:
    return x, np.arange(x.size).reshape(-1, width)
