"""The stages of a world's contacts: walks over the pairs of every kind, which leave out pairs that no sample of a vector needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.newton.pairwise.contact import BENDS, PairContact
from costate.sim.contact.newton.pairwise.kinds import Pairs, near
from costate.sim.contact.newton.pairwise.movers import SIX, Movers
from costate.sim.contact.pair_kinds import Read

Vars = list[Var]


@dataclass(frozen=True, eq=False)
class Contacts:
    """All contacts of a world. Lists have an entry for each kind of pair."""

    pairs: Pairs
    movers: Movers
    kinds: tuple[PairContact, ...]

    @property
    def counts(self) -> list[int]:
        """Numbers of pairs."""
        return [len(c.kind.members) for c in self.kinds]

    @property
    def sizes(self) -> list[int]:
        """Sizes of what the rows of all pairs of a kind have."""
        return [n * c.kind.points * c.row for n, c in zip(self.counts, self.kinds, strict=True)]

    def _bodies(self, c: PairContact, side: int) -> np.ndarray:
        """Return the elements of the first or second body of every pair among spatial vectors of all bodies."""
        contacts = [self.pairs.contacts[n] for n in c.kind.members]
        slots = [self.movers.slot((t.link_a, t.link_b)[side]) for t in contacts]
        return np.array(slots)[:, None] * SIX + np.arange(SIX)

    def _both(self, c: PairContact, x: Var) -> list[Read]:
        return [(x, self._bodies(c, side)) for side in (0, 1)]

    # --- where ----------------------------------------------------------------------------------------------------

    def near(self, b: ProgramBuilder, shapes: Var) -> Vars:
        """Add flags: 1 where two shapes may be within their margin."""
        return [b.map(partial(near, c.kind), self.pairs.bounds(c.kind, shapes), [None])[0] for c in self.kinds]

    def rows(self, b: ProgramBuilder, flags: Vars, shapes: Var, own: Var, middle: Var, v: Var) -> tuple[Vars, Vars]:
        """Add flags, 1 where shapes touch, and the rows of pairs. v: velocities of all bodies."""
        touch, rows = [], []
        for c, flag, n in zip(self.kinds, flags, self.counts, strict=True):
            reads = self._reads(c, shapes, own, middle, v)
            _, (found,), (made,) = b.walk(c.rows(), flag, [], reads, [(n, np.arange(n)[:, None])])
            touch.append(found)
            rows.append(made)
        return touch, rows

    def _reads(self, c: PairContact, shapes: Var, own: Var, middle: Var, v: Var) -> list[Read]:
        everywhere = np.tile(np.arange(3), (len(c.kind.members), 1))
        return [*self.pairs.geometry(c.kind, shapes), self.pairs.own(c.kind, own), (middle, everywhere), *self._both(c, v)]

    def split(self, b: ProgramBuilder, flags: Var) -> Vars:
        """Return the flags of the kinds from those of all pairs."""
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        return [b.slice(flags, int(at), n) for at, n in zip(ends, self.counts, strict=False)]

    # --- how hard -------------------------------------------------------------------------------------------------

    def costs(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, a: Var) -> Var:
        """Add the sum of all costs. a: accelerations of all bodies."""
        return self._total(b, [self._sum(b, c.value, *given, a, 1) for c, *given in self._kinds(flags, rows, own)])

    def terms(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, a: Var) -> tuple[Var, Var, Vars]:
        """Add the wrenches on all bodies, how those of a pair change with its accelerations (BENDS each), and x of all rows."""
        wrenches, bends, xs = [], [], []
        for c, flag, row, read in self._kinds(flags, rows, own):
            sums = [(self.movers.size, self._bodies(c, side)) for side in (0, 1)]
            reads = [self._of_rows(c, row), read, *self._both(c, a)]
            _, found, (bend, x) = b.walk(c.terms, flag, [], reads, sums)
            wrenches += found
            bends.append(bend)
            xs.append(x)
        return self._total(b, wrenches), joined(b, bends), xs

    def along(self, b: ProgramBuilder, flags: Vars, rows: Vars, step: Var) -> Vars:
        """Add y = J step of all rows. step: of the accelerations of all bodies."""
        return [
            b.walk(c.along, flag, [], [self._of_rows(c, row), *self._both(c, step)])[2][0]
            for c, flag, row in zip(self.kinds, flags, rows, strict=True)
        ]

    def slopes(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, xs: Vars, ys: Vars, state: Var) -> Var:
        """Add the slope of the cost at a step of the line search, and its change."""
        found = []
        for (c, flag, row, read), x, y in zip(self._kinds(flags, rows, own), xs, ys, strict=True):
            n = len(c.kind.members)
            each = [(v, np.arange(n * c.n).reshape(n, c.n)) for v in (x, y)]
            shared = (state, np.tile(np.arange(state.size), (n, 1)))
            reads = [self._of_rows(c, row), read, *each, shared]
            _, (total,), _ = b.walk(c.slopes, flag, [], reads, [(2, np.tile([0, 1], (n, 1)))])
            found.append(total)
        return self._total(b, found)

    def forces(self, b: ProgramBuilder, flags: Vars, rows: Vars, own: Var, a: Var) -> Var:
        """Add the forces along all rows, in the order of the pairs."""
        counts = np.zeros(len(self.pairs.pairs), int)
        for c in self.kinds:
            counts[list(c.kind.members)] = c.n
        first, total, found = np.cumsum(counts) - counts, int(counts.sum()), []
        for c, flag, row, read in self._kinds(flags, rows, own):
            reads = [self._of_rows(c, row), read, *self._both(c, a)]
            table = first[list(c.kind.members)][:, None] + np.arange(c.n)
            found.append(b.walk(c.forces, flag, [], reads, [(total, table)])[1][0])
        return self._total(b, found)

    def wrenches(self, b: ProgramBuilder, flags: Vars, given: Sequence[Var], a: Var) -> Var:
        """Add the wrenches on all bodies, from the beginning: differentiable. given: shapes, own numbers, middle, velocities."""
        return self._total(b, [b.call(p, f, *given, a)[0] for p, f in zip(self.pushes, flags, strict=True)])

    @cached_property
    def pushes(self) -> list[Program]:
        """Programs (flags, shapes, own numbers, middle, velocities, accelerations) -> wrenches on all bodies."""
        own = sum(c.kind.own * len(c.kind.members) for c in self.kinds)
        sizes = [self.pairs.shape_numbers().numel(), own, 3, self.movers.size, self.movers.size]
        made = []
        for c in self.kinds:
            b = ProgramBuilder("pushes")
            flags, *given, a = b.inputs(len(c.kind.members), *sizes)
            sums = [(self.movers.size, self._bodies(c, side)) for side in (0, 1)]
            reads = [*self._reads(c, *given), *self._both(c, a)]
            _, found, _ = b.walk(c.push(), flags, [], reads, sums)
            made.append(b.program(self._total(b, found)))
        return made

    def _sum(self, b: ProgramBuilder, body: Callable[..., Any], flag: Var, row: Var, read: Read, a: Var, n: int) -> Var:
        c = body.__self__  # type: ignore[attr-defined]
        reads = [self._of_rows(c, row), read, *self._both(c, a)]
        return b.walk(body, flag, [], reads, [(n, np.zeros((len(c.kind.members), n), int))])[1][0]

    def _kinds(self, flags: Vars, rows: Vars, own: Var) -> list[tuple[PairContact, Var, Var, Read]]:
        """Return every kind with its flags, its rows and the read of its own numbers."""
        zipped = zip(self.kinds, flags, rows, strict=True)
        return [(c, flag, row, self.pairs.own(c.kind, own)) for c, flag, row in zipped]

    def _of_rows(self, c: PairContact, rows: Var) -> Read:
        width = c.kind.points * c.row
        return rows, np.arange(rows.size).reshape(-1, width)

    def _total(self, b: ProgramBuilder, values: Sequence[Var]) -> Var:
        total = values[0]
        for v in values[1:]:
            total = b.add(total, v)
        return total


def joined(b: ProgramBuilder, values: Sequence[Var]) -> Var:
    """Return one vector of several."""
    return b.concat(*values) if values[1:] else values[0]
