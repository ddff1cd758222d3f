"""Trees of links as carriers of contact: their generalised velocities, how these move the links, and how impulses change them.

Coordinates that move together form a tree: those of a robot, of a free body, or of several of them that tendons or constraints
connect. All trees are padded to the width of the widest, and one more tree of zeros stands for what does not move. An impulse on a
tree changes its velocities by M^-1 J^T, with J from the record of the link it acts on:

    velocity of a point p of the link:   (A_linear + A_angular x (p - origin)) v
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import bound
from costate.collision.shapes import length
from costate.core.fork import cached_property
from costate.physics.algebra.ltl import Factor
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses
from costate.physics.tree import ROOT
from costate.sim.forces.equality import Tied, equations
from costate.sim.integrate.free import Free
from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of a world."""

    symbols: Symbols

    @cached_property
    def members(self) -> list[list[int]]:
        """Velocity coordinates of every tree."""
        leader = list(range(self.symbols.setup.nv))

        def find(k: int) -> int:
            while leader[k] != k:
                k = leader[k]
            return k

        for together in self._connected():
            for k in together[1:]:
                leader[find(k)] = find(together[0])
        found: dict[int, list[int]] = {}
        for k in range(len(leader)):
            found.setdefault(find(k), []).append(k)
        return list(found.values())

    def _connected(self) -> list[list[int]]:
        """Return sets of coordinates that belong to one tree."""
        s = self.symbols
        bodies = s.tree.bodies
        found = []
        for body in bodies:
            own = list(range(body.v_start, body.v_start + body.kind.nv))
            found.append(own if body.parent == ROOT else [*own, bodies[body.parent].v_start])
        found += [t.length.row(s.at(s.q)).sparsity().get_col() for t in s.setup.tendons]
        tied = [[n for n in range(e.J.shape[1]) if e.J[:, n].nnz()] for e in equations(s, s.q)]
        return [x for x in found + tied if x]

    @property
    def count(self) -> int:
        return len(self.members)

    @cached_property
    def width(self) -> int:
        """Velocities of the widest tree."""
        return max(map(len, self.members))

    @property
    def record(self) -> int:
        """Numbers of a tree: M^-1 (width^2), with and without its constraints."""
        return 2 * self.width**2

    @property
    def link_record(self) -> int:
        """Numbers of a link: its origin (3), A_linear and A_angular (3 width each)."""
        return 3 + 6 * self.width

    @cached_property
    def _tree_of(self) -> dict[int, int]:
        return {k: n for n, own in enumerate(self.members) for k in own}

    def tree_of(self, link: str) -> int:
        """Return the tree of a link, or the one after the last where the link does not move."""
        body = self.symbols.tree.links[link][0]
        return self.count if body == ROOT else self._tree_of[self.symbols.tree.bodies[body].v_start]

    def tree_of_row(self, J: SX) -> int:
        """Return the tree that a row acts on."""
        return self._tree_of[J.sparsity().get_col()[0]]

    @cached_property
    def slots(self) -> list[int]:
        """Index of every velocity coordinate in a vector of `width` numbers per tree."""
        at = {k: n * self.width + i for n, own in enumerate(self.members) for i, k in enumerate(own)}
        return [at[k] for k in range(self.symbols.setup.nv)]

    def padded(self, x: SX, tree: int) -> SX:
        """Return the rows of x (nv, m) that belong to a tree, padded with zeros, (width, m)."""
        own = self.members[tree]
        return ca.vertcat(x[own, :], SX(self.width - len(own), x.shape[1]))

    def records(self, free: Free) -> SX:
        """Return the numbers of all trees, and of the tree of zeros."""
        untied = free.factor.free if isinstance(free.factor, Tied) else free.factor
        rows = [self._inverse(factor, n) for n in range(self.count) for factor in (free.factor, untied)]
        return ca.densify(ca.vertcat(*rows, SX(self.record, 1)))

    def _inverse(self, factor: Factor | Tied, tree: int) -> SX:
        own, nv = self.members[tree], self.symbols.setup.nv
        columns = [self.padded(factor.solve(SX(ca.DM(np.eye(nv)[:, k]))), tree) for k in own]
        return ca.vec(ca.densify(ca.horzcat(*columns, SX(self.width, self.width - len(own)))))

    def velocities(self, v: SX) -> SX:
        """Return the velocities (nv,) of all trees, each padded, and of the tree of zeros."""
        rows = [self.padded(v, n) for n in range(self.count)]
        return ca.densify(ca.vertcat(*rows, SX(self.width, 1)))

    def link_records(self, links: Sequence[str]) -> SX:
        """Return the numbers of some links."""
        return ca.densify(ca.vertcat(*(self._link_record(link) for link in links)))

    def _link_record(self, link: str) -> SX:
        tree, body = self.symbols.tree, self.symbols.tree.links[link][0]
        if body == ROOT:
            return SX(self.link_record, 1)
        origin = self._bodies[body][1]
        J = point_jacobian(tree, self._bodies, body, origin)
        axes = self.padded(J.T, self.tree_of(link)).T
        return ca.vertcat(origin, ca.vec(ca.densify(axes[:3, :])), ca.vec(ca.densify(axes[3:, :])))

    @cached_property
    def _bodies(self) -> list:
        return body_poses(self.symbols.tree, self.symbols.q)

    def fastest(self, links: Sequence[str], velocities: Sequence[SX]) -> SX:
        """Return a bound of the speed of all shapes of some links at some velocities (nv,); its derivative is not asked for."""
        s = self.symbols
        most = SX(0)
        for link in links:
            body = s.tree.links[link][0]
            if body == ROOT:
                continue
            origin, radius = self._bodies[body][1], SX(0)
            J = point_jacobian(s.tree, self._bodies, body, origin)
            for k, c in enumerate(s.setup.scene.colliders):
                if c.link == link and k in s.used:
                    placed = s.detection.placed[k]
                    middle, size = bound(placed.solid)
                    radius = ca.fmax(radius, length(placed.to_world(middle) - origin) + size)
            for v in velocities:
                twist = J @ v
                most = ca.fmax(most, _length(twist[:3]) + _length(twist[3:]) * radius)
        return most


def _length(v: SX) -> SX:
    return ca.sqrt(ca.sumsqr(v) + 1e-300)
