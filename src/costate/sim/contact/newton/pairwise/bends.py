"""The contacts' part of the Hessian: what pairs of bodies resist each other by, seen from the joints that move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.sim.contact.newton.pairwise.law import BENDS
from costate.sim.contact.newton.pairwise.movers import SIX, Movers

PADDED = 4
"""Multiple to which the numbers of axes are raised, by axes that move nothing: fewer programs."""
Column = tuple[int, int]
"""Number of an axis, and 1 if it moves the second body, else 0."""


@dataclass(frozen=True, eq=False)
class Bends:
    """Pairs of bodies, and the axes that move one of two against the other."""

    movers: Movers
    bodies: tuple[tuple[int, int], ...]
    """Places of both bodies of every contact point."""

    @cached_property
    def _columns(self) -> dict[tuple[int, int], list[Column]]:
        """Two bodies -> the axes that move one against the other, in the order of their coordinates."""
        found = {}
        for pair in set(self.bodies):
            a, b = (set(self.movers.chain(slot)) for slot in pair)
            own = [(n, 0) for n in a - b] + [(n, 1) for n in b - a]
            found[pair] = sorted(own, key=lambda column: self.movers.axes[column[0]].coordinate)
        return found

    @cached_property
    def groups(self) -> dict[int, list[int]]:
        """Number of axes, padded -> the contact points with so many."""
        found: dict[int, list[int]] = {}
        for n, pair in enumerate(self.bodies):
            found.setdefault(-(-len(self._columns[pair]) // PADDED) * PADDED, []).append(n)
        return dict(sorted(found.items()))

    def _coordinates(self, n: int) -> list[int]:
        return [self.movers.axes[axis].coordinate for axis, _ in self._columns[self.bodies[n]]]

    @cached_property
    def pattern(self) -> ca.Sparsity:
        """Pattern of the Hessian's part, lower triangle (nv, nv)."""
        entries = sorted({e for n in range(len(self.bodies)) for e in _lower(self._coordinates(n))})
        rows, columns = ([e[k] for e in entries] for k in (0, 1))
        return ca.Sparsity.triplet(self.movers.tree.nv, self.movers.tree.nv, rows, columns)

    def flags(self, b: ProgramBuilder, flags: Var) -> list[Var]:
        """Return the flags of every group, from those of all contact points."""
        return [b.trace(lambda x, at=members: x[at], flags) for members in self.groups.values()]

    def entries(self, b: ProgramBuilder, flags: Sequence[Var], bends: Var, axes: Var) -> Var:
        """Add the entries of the Hessian's part, then some of axes that move nothing. bends: BENDS numbers of every contact
        point; axes: those of the joints."""
        signs, axes = b.constant([1.0, -1.0]), b.concat(axes, b.zeros(SIX))
        total = b.zeros(self.size)
        for flag, (size, members) in zip(flags, self.groups.items(), strict=True):
            columns = [self._padded(n, size) for n in members]
            axis_at = [[SIX * axis + k for axis, _ in own for k in range(SIX)] for own in columns]
            reads = [
                (bends, np.array(members)[:, None] * BENDS + np.arange(BENDS)),
                (axes, np.array(axis_at)),
                (signs, np.array([[side for _, side in own] for own in columns])),
            ]
            table = np.array([self._targets(n, size) for n in members])
            ((total,), _, _) = b.walk(_added, flag, [(total, table)], reads)
        return total

    def _padded(self, n: int, size: int) -> list[Column]:
        own = self._columns[self.bodies[n]]
        return own + [(len(self.movers.axes), 0)] * (size - len(own))

    def _targets(self, n: int, size: int) -> list[int]:
        """Return where the entries of a contact point go; those of axes that move nothing beyond the others, each its own."""
        own = self._coordinates(n)
        targets = [self._where[e] for e in _lower(own)]
        spare = size * (size + 1) // 2 - len(targets)
        return targets + list(range(self.pattern.nnz(), self.pattern.nnz() + spare))

    @property
    def size(self) -> int:
        """Number of entries, those of axes that move nothing included."""
        return self.pattern.nnz() + max(n * (n + 1) // 2 for n in self.groups)

    @cached_property
    def _where(self) -> dict[tuple[int, int], int]:
        """Number of every entry of the pattern."""
        entries = zip(self.pattern.row(), self.pattern.get_col(), strict=True)
        return {e: k for k, e in enumerate(entries)}


def _lower(coordinates: Sequence[int]) -> list[tuple[int, int]]:
    """Return the entries of the lower triangle, row by row. Coordinates increase."""
    return [(row, column) for n, row in enumerate(coordinates) for column in coordinates[: n + 1]]


def _added(entries: SX, bend: SX, axes: SX, signs: SX) -> SX:
    """Return entries with S' K S added, lower triangle row by row. bend: lower triangle of K (6, 6)."""
    K = SX(SIX, SIX)
    for n, (i, j) in enumerate((i, j) for i in range(SIX) for j in range(i + 1)):
        K[i, j] = K[j, i] = bend[n]
    S = [signs[k] * axis for k, axis in enumerate(ca.vertsplit(axes, SIX))]
    KS = [K @ axis for axis in S]
    return entries + ca.vertcat(*(ca.dot(S[i], KS[j]) for i in range(len(S)) for j in range(i + 1)))
