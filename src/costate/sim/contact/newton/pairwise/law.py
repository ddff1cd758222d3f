"""The law of a contact point: what stages compute for it, as functions of the numbers that it reads.

A contact point is kept as its rows, `7 dim + 1` numbers: the directions of its axes as spatial vectors (the acceleration along one
is its product with that of the bodies against each other), its weight, its reference accelerations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT
from costate.physics.algebra.spatial import cross
from costate.sim.contact.newton.cost import Cost
from costate.sim.contact.newton.crossing import bounded, crossing, phase
from costate.sim.contact.newton.pairwise.movers import SIX
from costate.sim.contact.newton.rows import axes_of, contact_law
from costate.sim.contact.newton.softness import Soft

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton


@dataclass(frozen=True, eq=False)
class Law:
    """Contact points of one dimension, softness and margin."""

    options: Newton
    dt: float
    width: int
    """Numbers of a contact point: see Geometry."""
    dim: int
    """Dimension of contacts, MuJoCo's condim."""
    margin: float
    soft: Soft
    """Softness; where it is an input of the step, every pair has its own."""
    members: tuple[int, ...]
    """Numbers of the contact points."""

    @property
    def cost(self) -> Cost:
        assert self.options.cone is not None and self.options.impratio is not None
        return Cost("contact", self.dim, self.options.cone, self.options.impratio)

    @property
    def own(self) -> int:
        """Numbers of a pair of its own: friction coefficients, inverse mass, softness."""
        return self.dim + (len(self.soft.solref) + len(self.soft.solimp) if self.soft.is_tuned else 0)

    @property
    def row(self) -> int:
        """Numbers of a contact point's rows."""
        return (SIX + 1) * self.dim + 1

    def friction(self, own: SX) -> list[SX]:
        """Return the friction coefficients, from a pair's own numbers."""
        return ca.vertsplit(own)[: self.dim - 1]

    def _softness(self, own: SX) -> Soft:
        if not self.soft.is_tuned:
            return self.soft
        end = self.dim + len(self.soft.solref)
        return self.soft.given(own[self.dim : end], own[end:])

    def rows(self, numbers: SX, own: SX, middle: SX, va: SX, vb: SX, sign: SX | None = None) -> SX:
        """Return the rows of a contact point. va, vb: velocities of both bodies; sign: not 0 for one that acts at depth 0, see
        ../onset.py."""
        gap, point, normal, along = ca.vertsplit(numbers, [0, 1, 4, POINT, self.width])
        slides, turns = axes_of(normal, along if along.numel() else None, self.dim, self.options.cone)
        directions = [ca.vertcat(d, cross(point - middle, d)) for d in (normal, *slides)]
        directions += [ca.vertcat(SX.zeros(3), d) for d in turns]
        speed = ca.horzcat(*directions).T @ (va - vb)
        friction, easy = tuple(self.friction(own)), own[self.dim - 1]
        depth = gap - self.margin
        acts = depth < 0
        if sign is not None:
            depth, acts = ca.if_else(sign != 0, 0, depth), ca.logic_or(acts, sign != 0)
        target, weight = contact_law(self.options, self.dt, depth, speed, friction, easy, self._softness(own))
        return ca.vertcat(*directions, ca.if_else(acts, weight, 0), target)

    def _split(self, rows: SX) -> tuple[SX, SX, SX]:
        """Return directions (dim, 6), weight and reference accelerations."""
        end = SIX * self.dim
        return ca.reshape(rows[:end], SIX, self.dim).T, rows[end], rows[end + 1 :]

    def deviations(self, rows: SX, ra: SX, rb: SX) -> SX:
        """Return x = J a - aref (dim,). ra, rb: accelerations of both bodies."""
        W, _, target = self._split(rows)
        return W @ (ra - rb) - target

    def along(self, rows: SX, ra: SX, rb: SX) -> SX:
        """Return J a (dim,)."""
        return self._split(rows)[0] @ (ra - rb)

    def value(self, rows: SX, own: SX, ra: SX, rb: SX) -> SX:
        """Return the cost."""
        x = ca.vertsplit(self.deviations(rows, ra, rb))
        return self.cost.value(x, self._split(rows)[1], self.friction(own))

    def forces(self, rows: SX, own: SX, ra: SX, rb: SX) -> SX:
        """Return the forces along the rows (dim,)."""
        x = ca.vertsplit(self.deviations(rows, ra, rb))
        return ca.vertcat(*self.cost.force(x, self._split(rows)[1], self.friction(own)))

    def wrenches(self, rows: SX, own: SX, ra: SX, rb: SX) -> SX:
        """Return the wrenches on both bodies (12,)."""
        wrench = self._split(rows)[0].T @ self.forces(rows, own, ra, rb)
        return ca.vertcat(wrench, -wrench)

    def push(self, numbers: SX, own: SX, middle: SX, va: SX, vb: SX, ra: SX, rb: SX) -> SX:
        """Return the wrenches on both bodies (12,), from the contact point itself."""
        return self.wrenches(self.rows(numbers, own, middle, va, vb), own, ra, rb)

    @property
    def bends(self) -> int:
        """Numbers of the symmetric matrix C of a contact point."""
        return self.dim * (self.dim + 1) // 2

    def terms(self, rows: SX, own: SX, ra: SX, rb: SX) -> tuple[SX, SX, SX]:
        """Return the wrenches on both bodies, how forces change with x (C, lower triangle), and x."""
        x = self.deviations(rows, ra, rb)
        C = self.cost.hessian(ca.vertsplit(x), self._split(rows)[1], self.friction(own))
        lower = [C[i, j] for i in range(self.dim) for j in range(i + 1)]
        return self.wrenches(rows, own, ra, rb), ca.vertcat(*lower), x

    # --- where it begins and ends ---------------------------------------------------------------------------------

    def _way(self, numbers: SX, middle: SX, va: SX, vb: SX, wa: SX, wb: SX) -> tuple[SX, SX, SX]:
        """Return depth and its rates before and after a step. wa, wb: velocities of both bodies after it."""
        gap, point, normal, _ = ca.vertsplit(numbers, [0, 1, 4, POINT, self.width])
        along = ca.vertcat(normal, cross(point - middle, normal))
        return gap - self.margin, ca.dot(along, va - vb), ca.dot(along, wa - wb)

    def crossing(self, *given: SX) -> tuple[SX, SX, SX]:
        """Return how the depth crosses 0: see ../onset.py."""
        return crossing(*self._way(*given), self.dt)

    def phase(self, *given: SX) -> SX:
        """Return what a crossing's phase does: wrenches on both bodies (12,). given: as for `crossing`; sign, whether it is past,
        wrench per phase (6,)."""
        *way, sign, past, push = given
        wrench = phase(*self._way(*way), sign, past, self.dt) * push
        return ca.vertcat(wrench, -wrench)

    def jump(self, rows: SX, own: SX, ra: SX, rb: SX, ya: SX, yb: SX, sign: SX, speed: SX) -> SX:
        """Return the wrench (6,) of a contact point at depth 0 times its bounded sign. y: accelerations by all such wrenches."""
        W = self._split(rows)[0]
        force = W.T @ self.forces(rows, own, ra, rb)
        return bounded(sign, speed, W[0, :] @ (ya - yb), self.dt) * force

    def slopes(self, rows: SX, own: SX, x: SX, y: SX, state: SX) -> SX:
        """Return the slope of the cost at x + step y by the step, and its change. state: the step first."""
        D = self._split(rows)[1]
        return ca.vertcat(*self.cost.along(ca.vertsplit(x), ca.vertsplit(y), state[0], D, self.friction(own)))
