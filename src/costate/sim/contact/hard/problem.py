"""The contact problem of a motion or an impact, in velocities.

    M v = p + J' l,     u = J v,     l by the laws of the blocks (law.py)

p is the momentum without impulses. No inverse of M and no matrix J M^-1 J' is formed: the only system is that of H = M + J' C J,
which keeps the zeros of the tree wherever contacts are with the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.sim.contact.hard.law import Answer, Block


@dataclass(frozen=True, eq=False)
class Problem:
    """Patterns and blocks that the problems of all states have in common."""

    M: ca.Sparsity
    """Lower triangle of the mass matrix."""
    J: ca.Sparsity
    blocks: tuple[Block, ...]
    light: tuple[float, ...] = ()
    """Change of every velocity by a unit of momentum, about [1/kg or 1/(kg m^2)], (nv,). Without: momentum is not balanced
    beyond what rounding leaves."""

    @property
    def nv(self) -> int:
        return self.M.size1()

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.J.size1()

    @property
    def sizes(self) -> list[int]:
        """Sizes of the numbers of a problem: M, p, J, targets, bounds."""
        return [self.M.nnz(), self.nv, self.J.nnz(), self.n, len(self.blocks)]

    @cached_property
    def ease(self) -> ca.DM:
        """Ease of every row, (n,)."""
        of_row = {i: block.ease for block in self.blocks for i in block.rows}
        return ca.DM([of_row[i] for i in range(self.n)])

    def mass(self, m: SX) -> SX:
        """Return the mass matrix (nv, nv) from the entries of its lower triangle."""
        lower = SX(self.M, m)
        return lower + ca.tril(lower, False).T

    def rows(self, j: SX) -> SX:
        """Return the Jacobian (n, nv) from its entries."""
        return SX(self.J, j)

    def unbalanced(self, momentum: SX) -> SX:
        """Return about the largest speed that momentum (nv,) which is left over would cause [m/s or rad/s]."""
        return ca.mmax(ca.fabs(ca.densify(momentum)) * ca.DM(self.light)) if self.light else SX(0)

    def law(self, u: SX, t: SX, impulses: SX, bounds: SX, stiff: SX) -> Law:
        """Return the laws of all blocks around a guess."""
        found = []
        for k, b in enumerate(self.blocks):
            own = [[x[i] for i in b.rows] for x in (u, t, impulses)]
            found.append(b.answer(own[0], own[1], own[2], bounds[k], stiff))
        return Law(self, found)


@dataclass(frozen=True, eq=False)
class Law:
    """The laws of all blocks around a guess: see `Answer`."""

    problem: Problem
    answers: Sequence[Answer]

    def _rows(self, name: str) -> SX:
        values = [SX(0)] * self.problem.n
        for block, answer in zip(self.problem.blocks, self.answers, strict=True):
            for i, value in zip(block.rows, getattr(answer, name), strict=True):
                values[i] = value
        return ca.vertcat(*values)

    @property
    def aim(self) -> SX:
        return self._rows("aim")

    @property
    def P(self) -> SX:
        return self._rows("P")

    @cached_property
    def C(self) -> SX:
        """Minus the change of impulses by speeds, (n, n)."""
        return self._matrix("C")

    @cached_property
    def keep(self) -> SX:
        """Change of impulses by the last ones, (n, n)."""
        return self._matrix("keep")

    def _matrix(self, name: str) -> SX:
        entries = {
            (block.rows[j], block.rows[i]): value  # column by column
            for block, answer in zip(self.problem.blocks, self.answers, strict=True)
            for (i, j), value in getattr(answer, name).items()
        }
        keys, n = sorted(entries), self.problem.n
        pattern = ca.Sparsity.triplet(n, n, [i for _, i in keys], [j for j, _ in keys])
        return SX(pattern, ca.vertcat(*(entries[k] for k in keys)))

    @property
    def by_bound(self) -> SX:
        """Change of every impulse by the bound of its block, (n,)."""
        return self._rows("by_bound")

    @property
    def owners(self) -> list[int]:
        """Block of every row."""
        of_row = {i: k for k, block in enumerate(self.problem.blocks) for i in block.rows}
        return [of_row[i] for i in range(self.problem.n)]

    def residual(self, impulses: SX) -> SX:
        """Return the largest speed by which a row misses its law [m/s or rad/s]."""
        return ca.mmax(ca.fabs(self.P - impulses) * self.problem.ease)
