"""Contact points and joint rows of trees: the numbers that the pairwise solver reads of them, and how a visit uses these.

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

from costate.collision.narrow import POINT
from costate.collision.pairs import tangents
from costate.core.fork import cached_property
from costate.sim.contact.pgs.pairwise.old_sweep import within
from costate.sim.contact.pgs.pairwise.old_targets import target_of
from costate.sim.contact.pgs.pairwise.points import Prepared
from costate.sim.contact.pgs.pairwise.trees import Trees
from costate.sim.contact.pgs.pairwise.visit import COUPLES, Visit
from costate.sim.contact.rows import Row
from costate.sim.integrate.free import Free

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

ONE_SIDED = -1.0
"""Bound of a first row that only pushes."""


def system_size(width: int) -> int:
    """Return the numbers of a contact point: J (3, 2 width), W (2 width, 3), couplings, steps, and the bound of the first row."""
    return 12 * width + 7


@dataclass(frozen=True, eq=False)
class Carrier:
    """One side of a contact point: a link, and the tree that moves it."""

    width: int
    link: SX
    tree: SX

    def jacobian(self, point: SX) -> SX:
        """Return how a point of the link moves, (3, width)."""
        n = self.width
        origin, linear, angular = self.link[:3], self.link[3 : 3 + 3 * n], self.link[3 + 3 * n :]
        arm, A, B = point - origin, ca.reshape(linear, 3, n), ca.reshape(angular, 3, n)
        return A + ca.horzcat(*(ca.cross(B[:, k], arm) for k in range(n)))

    @property
    def inverse(self) -> SX:
        return ca.reshape(self.tree[: self.width**2], self.width, self.width)

    @property
    def free(self) -> SX:
        return self.tree[self.width**2 : self.width**2 + self.width]

    @property
    def before(self) -> SX:
        return self.tree[self.width**2 + self.width :]


def prepare(
    point: SX, a: Carrier, b: Carrier, same: SX, restitution: SX, options: PGS, dt: float, explicit: bool
) -> Prepared:
    """Return the numbers of a contact point. same: 1 where one tree moves both links; b then has a tree of zeros."""
    gap, at, normal = ca.vertsplit(point, [0, 1, 4, POINT])
    D = ca.horzcat(normal, *tangents(normal)).T
    Ja, Jb = (D @ c.jacobian(at + normal * (sign * gap / 2)) for c, sign in ((a, 1), (b, -1)))
    J = ca.horzcat(Ja - same * Jb, -Jb)
    W = ca.vertcat(a.inverse @ J[:, : a.width].T, b.inverse @ J[:, a.width :].T)
    A = J @ W
    steps = [1 / (A[k, k] * (1 + options.cfm) + 1e-30) for k in range(3)]
    free, before = J @ ca.vertcat(a.free, b.free), J @ ca.vertcat(a.before, b.before)
    row = Row("normal", SX(0), gap, bounces=True)
    target, undo, rest = target_of(row, free[0], before[0], restitution, options, dt)
    c, jump = ca.vertcat(free[0] - target, free[1:]), None
    if explicit:  # positions move with the velocity before the step, so their impacts are those of that velocity
        target, _, rest = target_of(row, before[0], before[0], restitution, options, dt)
        jump = ca.vertcat(before[0] - target, before[1:])
    couplings = [A[i, j] for i, j in COUPLES]
    system = ca.vertcat(ca.vec(J), ca.vec(W), *couplings, *steps, ONE_SIDED)
    return Prepared(system, c, ca.vertcat(-undo, 0, 0), rest, gap, jump)


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

    def couplings(self, k: int) -> SX:
        return self.part(k)[-7:-4]

    def steps(self, k: int) -> SX:
        return self.part(k)[-4:-1]

    def project(self, k: int, block: tuple[int, ...], aims: list[SX], now: list[SX]) -> list[SX]:
        found = super().project(k, block, aims, now)
        if block != (0,):
            return found
        most = self.part(k)[-1]
        return [ca.if_else(most < 0, found[0], within(aims[0], ca.fmax(most, 0)))]


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

    def prepared(self, free: Free, restitution: SX, options: PGS, dt: float, explicit: bool) -> list[SX]:
        """Return system, c, push, rest and, for explicit integration, jump of all groups."""
        points = []
        for group in self.groups:
            found = [self._point(row, free, restitution, options, dt, explicit) for row in group]
            points += found + [self._empty(explicit)] * (self.together - len(group))
        columns = [
            [p.system for p in points],
            [p.c for p in points],
            [p.push for p in points],
            [p.rest for p in points],
        ]
        columns += [[p.jump for p in points]] if explicit else []
        return [ca.densify(ca.vertcat(SX(0, 1), *column)) for column in columns]

    def _point(self, row: Row, free: Free, restitution: SX, options: PGS, dt: float, explicit: bool) -> Prepared:
        trees, v = self.trees, self.trees.symbols.v
        tree = trees.tree_of_row(row.J)
        change = free.factor.solve(row.J.T)
        step = 1 / ((row.J @ change) * (1 + options.cfm) + 1e-30)
        speed, before = row.J @ free.velocity, row.J @ v
        target, undo, rest = target_of(row, speed, before, restitution, options, dt)
        c, jump = speed - target, None
        if explicit:
            target, _, rest = target_of(row, before, before, restitution, options, dt)
            jump = ca.vertcat(before - target, 0, 0)
        bound = SX(ONE_SIDED) if row.bound is None else row.bound
        J = ca.vertcat(trees.padded(row.J.T, tree).T, SX(2, trees.width))
        W = ca.horzcat(trees.padded(change, tree), SX(trees.width, 2))
        return Prepared(
            self._system(J, W, step, bound), ca.vertcat(c, 0, 0), ca.vertcat(-undo, 0, 0), rest, row.gap, jump
        )

    def _empty(self, explicit: bool) -> Prepared:
        n, none = self.trees.width, SX.zeros(3)
        system = self._system(SX(3, n), SX(n, 3), SX(1), SX(ONE_SIDED))
        return Prepared(system, none, none, SX(1), SX(0), none if explicit else None)

    def _system(self, J: SX, W: SX, step: SX, bound: SX) -> SX:
        n = self.trees.width
        J, W = ca.horzcat(J, SX(3, n)), ca.vertcat(W, SX(n, 3))
        return ca.vertcat(ca.vec(ca.densify(J)), ca.vec(ca.densify(W)), 0, 0, 0, step, 1, 1, bound)
