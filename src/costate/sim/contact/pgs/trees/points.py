"""Contact points and joint rows of trees: the numbers that the sweeps reads of them, and how a visit uses these.

    speeds of the rows:     u = J_a v_a + J_b v_b,    J (3, width) along the normal and the two tangents
    impulses p of the rows: v_a += W_a p,  v_b += W_b p,    W = M^-1 J^T

A limit or the friction of a joint is a contact point of which only the first row is used: friction has a bound on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.pairs import tangents
from costate.core.fork import cached_property
from costate.sim.contact.pgs.bodies.points import surfaces
from costate.sim.contact.pgs.law import BLOCK, block_numbers, mobility, within
from costate.sim.contact.pgs.trees.trees import Trees
from costate.sim.contact.pgs.visit import Visit
from costate.sim.contact.rows import Row
from costate.sim.forces.equality import Tied
from costate.sim.integrate.free import Free

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

CONTACT, LIMIT = -1.0, -2.0
"""Marks in place of the bound of the first row of contact points, and of limits, which do not bounce; bounds of friction are
never negative."""


def system_size(width: int) -> int:
    """Return the numbers of a contact point: J (3, 2 width), W (2 width, 3), BLOCK, ease, and the bound of the first row."""
    return 12 * width + BLOCK + 2


@dataclass(frozen=True, eq=False)
class Carrier:
    """One side of a contact point: a link, and the tree that moves it."""

    width: int
    link: SX
    tree: SX | None = None

    def jacobian(self, point: SX) -> SX:
        """Return how a point of the link moves, (3, width)."""
        n = self.width
        origin, linear, angular = self.link[:3], self.link[3 : 3 + 3 * n], self.link[3 + 3 * n :]
        arm, A, B = point - origin, ca.reshape(linear, 3, n), ca.reshape(angular, 3, n)
        return A + ca.horzcat(*(ca.cross(B[:, k], arm) for k in range(n)))

    def inverse(self, tied: bool) -> SX:
        """Return M^-1 with or without constraints, (width, width)."""
        assert self.tree is not None
        n = self.width**2
        return ca.reshape(self.tree[:n] if tied else self.tree[n:], self.width, self.width)


def rows_at(point: SX, a: Carrier, b: Carrier, same: SX) -> SX:
    """Return J of a contact point, (3, 2 width). same: 1 where one tree moves both links; b then has a tree of zeros."""
    normal, *places = surfaces(point)
    D = ca.horzcat(normal, *tangents(normal)).T
    Ja, Jb = (D @ c.jacobian(at) for c, at in zip((a, b), places, strict=True))
    return ca.horzcat(Ja - same * Jb, -Jb)


def system_of(point: SX, a: Carrier, b: Carrier, same: SX, options: PGS) -> SX:
    """Return the numbers of a contact point."""
    J, n = rows_at(point, a, b, same), a.width
    parts = J[:, :n], J[:, n:]
    W = ca.vertcat(*(c.inverse(True) @ part.T for c, part in zip((a, b), parts, strict=True)))
    A = J @ W
    reference = sum((ca.trace(x @ c.inverse(False) @ x.T) for c, x in zip((a, b), parts, strict=True)), SX(0))
    return ca.vertcat(ca.vec(J), ca.vec(W), block_numbers(A, options.cfm), A[0, 0] / reference, CONTACT)


class TreeVisit(Visit):
    """Visits of groups between trees; velocities are those of the trees' coordinates."""

    def __init__(self, points: int, options: PGS, width: int):
        super().__init__(points, options, width, system_size(width))
        self.more = []

    def speeds(self, k: int, moved: SX) -> SX:
        return ca.reshape(self.part(k)[: 6 * self.width], 3, 2 * self.width) @ moved

    def pushed(self, k: int, moved: SX, impulse: SX) -> SX:
        n = 6 * self.width
        return moved + ca.reshape(self.part(k)[n : 2 * n], 2 * self.width, 3) @ impulse

    def block(self, k: int) -> SX:
        return self.part(k)[-BLOCK - 2 : -2]

    def ease(self, k: int) -> SX:
        return self.part(k)[-2]

    def of_hits(self, k: int, x: SX) -> SX:
        return ca.if_else(self.part(k)[-1] < 0, x, 0)

    def bounce(self, k: int, restitution: SX) -> SX:
        return ca.if_else(self.part(k)[-1] > (CONTACT + LIMIT) / 2, restitution, 0)

    def law(self, k: int, u: SX, old: SX, impact: bool) -> SX:
        found, most = super().law(k, u, old, impact), self.part(k)[-1]
        rub = SX(0) if impact else within(-u[0] / self.block(k)[-1], ca.fmax(most, 0))
        return ca.if_else(most < 0, found, ca.vertcat(rub, 0, 0))


@dataclass(frozen=True, eq=False)
class JointGroups:
    """Limits and friction of joints and tendons, in groups that hold rows of one tree each."""

    trees: Trees
    rows: Sequence[Row]
    together: int
    """Points of a group."""

    @cached_property
    def groups(self) -> list[list[Row]]:
        """Rows in their order, up to `together` of the same tree in a group."""
        found: list[list[Row]] = []
        for row in self.rows:
            tree = self.trees.tree_of_row(row.J)
            if found and len(found[-1]) < self.together and self.trees.tree_of_row(found[-1][0].J) == tree:
                found[-1].append(row)
            else:
                found.append([row])
        return found

    @property
    def count(self) -> int:
        return len(self.groups)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the trees of both sides of every group; the second is the tree of zeros."""
        first = [self.trees.tree_of_row(group[0].J) for group in self.groups]
        return np.array(first, int), np.full(self.count, self.trees.count)

    def _points(self) -> list[Row | None]:
        """Return the rows of all groups, None where a group has fewer than others."""
        return [row for group in self.groups for row in (*group, *([None] * (self.together - len(group))))]

    def systems(self, free: Free, cfm: float) -> SX:
        """Return the numbers that visits read of all points."""
        return ca.densify(ca.vertcat(SX(0, 1), *(self._system(row, free, cfm) for row in self._points())))

    def gaps(self) -> SX:
        """Return the gaps of all points."""
        return ca.vertcat(SX(0, 1), *(SX(1) if row is None else row.gap for row in self._points()))

    def rates(self, v: SX) -> SX:
        """Return how fast the gaps open, at a velocity (nv,)."""
        return ca.vertcat(SX(0, 1), *(SX(0) if row is None else row.J @ v for row in self._points()))

    def _system(self, row: Row | None, free: Free, cfm: float) -> SX:
        width = self.trees.width
        if row is None:
            return ca.vertcat(SX.zeros(12 * width), self._block(SX(0), SX(1)), 1, LIMIT)
        tree = self.trees.tree_of_row(row.J)
        untied = free.factor.free if isinstance(free.factor, Tied) else free.factor
        change, own = free.factor.solve(row.J.T), row.J @ untied.solve(row.J.T)
        J = ca.horzcat(ca.vertcat(self.trees.padded(row.J.T, tree).T, SX(2, width)), SX(3, width))
        W = ca.vertcat(ca.horzcat(self.trees.padded(change, tree), SX(width, 2)), SX(width, 3))
        block = self._block(row.J @ change, mobility(row.J @ change, own, cfm))
        bound = SX(LIMIT) if row.bound is None else row.bound
        return ca.vertcat(ca.vec(ca.densify(J)), ca.vec(ca.densify(W)), block, row.J @ change / own, bound)

    def _block(self, own: SX, soft: SX) -> SX:
        """Return the numbers of a law without friction: see `block_numbers`."""
        return ca.vertcat(own, SX.zeros(5), 1 / soft, SX.zeros(5), soft)
