"""The contacts' part of the Hessian: what contact points resist by, seen from the joints that move one of two bodies against the
other. Jacobians are found once in a step; every iteration adds J' C J of the contact points that act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.sim.contact.newton.pairwise.movers import SIX, Movers

PADDED = 4
"""Multiple to which the numbers of axes are raised, by axes that move nothing: fewer programs."""
Column = tuple[int, int]
"""Number of an axis, and 1 if it moves the second body, else 0."""


@dataclass(frozen=True)
class Place:
    """Offsets of the numbers of a contact point, law after law."""

    bodies: tuple[int, int]
    """Places of both bodies."""
    dim: int
    row: int
    """First number of its rows, among those of all laws."""
    bend: int
    """First number of its C, among those of all laws."""


@dataclass(frozen=True, eq=False)
class Bends:
    """All contact points, by the number of their rows and of the axes that move one body against the other."""

    movers: Movers
    places: tuple[Place, ...]

    @cached_property
    def _columns(self) -> dict[tuple[int, int], list[Column]]:
        """Two bodies -> the axes that move one against the other, in the order of their coordinates."""
        found = {}
        for pair in {p.bodies for p in self.places}:
            a, b = (set(self.movers.chain(slot)) for slot in pair)
            own = [(n, 0) for n in a - b] + [(n, 1) for n in b - a]
            found[pair] = sorted(own, key=lambda column: self.movers.axes[column[0]].coordinate)
        return found

    @cached_property
    def groups(self) -> dict[tuple[int, int], list[int]]:
        """Number of rows, and of axes, padded -> the contact points with so many."""
        found: dict[tuple[int, int], list[int]] = {}
        for k, p in enumerate(self.places):
            n = len(self._columns[p.bodies])
            found.setdefault((p.dim, -(-n // PADDED) * PADDED), []).append(k)
        return dict(sorted(found.items()))

    @property
    def jacobian_sizes(self) -> list[int]:
        """Sizes of the Jacobians of all contact points of a group."""
        return [len(members) * dim * n for (dim, n), members in self.groups.items()]

    @cached_property
    def pattern(self) -> ca.Sparsity:
        """Pattern of the Hessian's part, lower triangle (nv, nv)."""
        entries = sorted({e for pair in self._columns for e in _lower(self._coordinates(pair))})
        rows, columns = ([e[k] for e in entries] for k in (0, 1))
        return ca.Sparsity.triplet(self.movers.tree.nv, self.movers.tree.nv, rows, columns)

    @property
    def size(self) -> int:
        """Number of entries, those of axes that move nothing included."""
        return self.pattern.nnz() + max(n * (n + 1) // 2 for _, n in self.groups)

    # --- stages ---------------------------------------------------------------------------------------------------

    def flags(self, b: ProgramBuilder, flags: Var) -> list[Var]:
        """Return the flags of every group, from those of all contact points."""
        return [b.trace(lambda x, at=members: x[at], flags) for members in self.groups.values()]

    def jacobians(self, b: ProgramBuilder, flags: Sequence[Var], rows: Var, axes: Var) -> list[Var]:
        """Add the Jacobians of every group. rows: those of all laws; axes: those of the joints."""
        signs, axes, found = b.constant([1.0, -1.0]), b.concat(axes, b.zeros(SIX)), []
        for flag, ((dim, n), members) in zip(flags, self.groups.items(), strict=True):
            columns = [self._padded(self.places[k].bodies, n) for k in members]
            reads = [
                (rows, np.array([self.places[k].row for k in members])[:, None] + np.arange(SIX * dim)),
                (axes, np.array([[SIX * axis + k for axis, _ in own for k in range(SIX)] for own in columns])),
                (signs, np.array([[side for _, side in own] for own in columns])),
            ]
            found += b.walk(_jacobian, flag, [], reads)[2]
        return found

    def entries(self, b: ProgramBuilder, flags: Sequence[Var], jacobians: Sequence[Var], bends: Var) -> Var:
        """Add the entries of the Hessian's part, then some of axes that move nothing. bends: C of all contact points."""
        total = b.zeros(self.size)
        for flag, J, ((dim, n), members) in zip(flags, jacobians, self.groups.items(), strict=True):
            reads = [
                (J, np.arange(J.size).reshape(-1, dim * n)),
                (bends, np.array([self.places[k].bend for k in members])[:, None] + np.arange(dim * (dim + 1) // 2)),
            ]
            table = np.array([self._targets(self.places[k].bodies, n) for k in members])
            ((total,), _, _) = b.walk(_added, flag, [(total, table)], reads)
        return total

    def _coordinates(self, pair: tuple[int, int]) -> list[int]:
        return [self.movers.axes[axis].coordinate for axis, _ in self._columns[pair]]

    def _padded(self, pair: tuple[int, int], size: int) -> list[Column]:
        own = self._columns[pair]
        return own + [(len(self.movers.axes), 0)] * (size - len(own))

    def _targets(self, pair: tuple[int, int], size: int) -> list[int]:
        """Return where the entries of a contact point go; those of axes that move nothing beyond the others, each its own."""
        targets = [self._where[e] for e in _lower(self._coordinates(pair))]
        spare = size * (size + 1) // 2 - len(targets)
        return targets + list(range(self.pattern.nnz(), self.pattern.nnz() + spare))

    @cached_property
    def _where(self) -> dict[tuple[int, int], int]:
        """Number of every entry of the pattern."""
        entries = zip(self.pattern.row(), self.pattern.get_col(), strict=True)
        return {e: k for k, e in enumerate(entries)}


def _lower(coordinates: Sequence[int]) -> list[tuple[int, int]]:
    """Return the entries of the lower triangle, row by row. Coordinates increase."""
    return [(row, column) for n, row in enumerate(coordinates) for column in coordinates[: n + 1]]


def _jacobian(directions: SX, axes: SX, signs: SX) -> SX:
    """Return the Jacobian, column by column."""
    W = ca.reshape(directions, SIX, directions.numel() // SIX).T
    return ca.vertcat(*(signs[k] * (W @ axis) for k, axis in enumerate(ca.vertsplit(axes, SIX))))


def _added(entries: SX, J: SX, bend: SX) -> SX:
    """Return entries with J' C J added, lower triangle row by row. bend: lower triangle of C."""
    dim = next(d for d in range(1, SIX + 1) if d * (d + 1) // 2 == bend.numel())
    C = SX(dim, dim)
    for n, (row, column) in enumerate((i, j) for i in range(dim) for j in range(i + 1)):
        C[row, column] = C[column, row] = bend[n]
    columns = ca.vertsplit(J, dim)
    turned = [C @ column for column in columns]
    found = [ca.dot(columns[i], turned[j]) for i in range(len(columns)) for j in range(i + 1)]
    return entries + ca.vertcat(*found)
