"""Soft contact: a smooth normal force with damping (Hunt-Crossley), and smoothed Coulomb friction.

normal:   f_n = stiffness * depth * max(1 - damping * speed of separation, 0)
sliding:  f_t = -friction * f_n * v_t / sqrt(|v_t|^2 + s^2),     s^2 = friction_speed^2 + (friction * f_n / friction_slope)^2

The step is explicit in these forces, so it must be short. A contact point with the lever r from the centre of mass of a body moves
in a direction d as if its mass were m_d, with 1 / m_d = 1 / m + (r x d) . I^-1 (r x d): less than m, much less for a long lever.
A substep resolves a contact below sqrt(m_n / stiffness) / 5 for its normal, and below m_t friction_speed / (friction f_n) for
friction. At an impact f_n is many times the weight, and so is the slope of friction over the sliding speed: beyond 2 m_t per
substep, gradients grow from step to step while the motion looks well. `friction_slope` bounds the slope, whatever the load. Points
that act on the same bodies add up; `costate.sim.longest_substep` looks at all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
from casadi import SX

from costate.sim.contact.learnt import Learnt
from costate.sim.contact.rows import Row, constraint_rows
from costate.sim.contact.smooth import SmoothContact
from costate.sim.setup import Symbols


@dataclass(frozen=True)
class Compliant(SmoothContact):
    """Soft contact: a smooth normal force with damping (Hunt-Crossley) and smoothed Coulomb friction. Forces, and so gradients,
    fade in before shapes touch."""

    stiffness: float = 1e4
    """Stiffness of contacts [N/m]."""
    damping: float = 1.0
    """Damping of contacts [s/m]: force = stiffness * depth * (1 - damping * speed of separation), never pulling."""
    smoothing: float = 1e-3
    """Length over which the force fades in [m]."""
    friction: float = 0.8
    """Coefficient where shapes do not say their own; of two shapes the larger one counts."""
    friction_speed: float = 1e-2
    """Sliding speed at which friction reaches 71 % of its bound [m/s]."""
    friction_slope: float = math.inf
    """Largest slope of friction over the sliding speed [N s/m], whatever the load."""
    joint_limits: bool = True
    """True to enforce position limits of joints."""
    limit_stiffness: float = 1e3
    """Stiffness of joint limits [N m/rad or N/m]."""
    limit_damping: float = 1.0
    """Damping of joint limits [s/rad or s/m]."""

    parameters: ClassVar[tuple[str, ...]] = ("friction", "stiffness", "damping", "limit_stiffness", "limit_damping")
    learns: ClassVar[tuple[str, ...]] = ("normal_force", "friction_force", "contact_stiffness")

    def forces(self, s: Symbols) -> tuple[SX, SX]:
        contacts = s.contacts()
        rows = constraint_rows(s, s.q, contacts, s.setup.dt)
        total = SX(s.setup.nv, 1)
        if not rows:
            return total, SX.zeros(1)
        forces: list[SX] = []
        sliding, learnt = self._sliding_squares(rows, s.v), Learnt.of(s, rows, contacts)
        for k, row in enumerate(rows):
            speed = (row.J @ s.v)[0]
            if row.kind in ("normal", "limit"):
                forces.append(learnt.change("normal_force", k, self._normal_force(s, row, speed, learnt, k)))
            else:
                assert row.bound is not None
                known = {"normal_force": forces[row.contact]}
                bound = learnt.change("friction_force", row.contact, row.bound * forces[row.contact], known)
                forces.append(-bound * speed / ca.sqrt(sliding[row.contact] + self._smoothed(bound)))
            total = total + row.J.T * forces[-1]
        return total, ca.vertcat(*forces)

    def rates(self, s: Symbols) -> tuple[SX, SX]:
        K, C = SX(s.setup.nv, s.setup.nv), SX(s.setup.nv, s.setup.nv)
        pushes: dict[int, SX] = {}
        contacts = s.contacts()
        rows = constraint_rows(s, s.q, contacts, s.setup.dt)
        learnt = Learnt.of(s, rows, contacts)
        for n, row in enumerate(rows):
            along = row.J.T @ row.J
            if row.kind == "tangent":
                assert row.bound is not None
                bound = row.bound * pushes[row.contact]
                C = C + bound / ca.sqrt(self._smoothed(bound)) * along
                continue
            stiffness, damping = self._numbers(s, row, learnt, n)
            pushes[n] = stiffness * self._depth(row)
            K = K + stiffness / (1 + ca.exp(row.gap / self.smoothing)) * along
            C = C + pushes[n] * damping * along
        return K, C

    def _smoothed(self, bound: SX) -> SX:
        """Return the square of the speed over which friction, `bound` at most, builds up."""
        least = SX(self.friction_speed**2)
        return least if math.isinf(self.friction_slope) else least + (bound / self.friction_slope) ** 2

    def _sliding_squares(self, rows: Sequence[Row], v: SX) -> dict[int, SX]:
        """Return the squared sliding speed of every contact, by the number of its normal row."""
        squares: dict[int, SX] = {}
        for row in rows:
            if row.kind == "tangent":
                squares[row.contact] = squares.get(row.contact, SX(0)) + (row.J @ v)[0] ** 2
        return squares

    def _normal_force(self, s: Symbols, row: Row, speed: SX, learnt: Learnt, k: int) -> SX:
        """Return stiffness * depth * (1 - damping * speed), never pulling; the depth fades in over the smoothing length. k: number
        of the row."""
        stiffness, damping = self._numbers(s, row, learnt, k)
        return stiffness * self._depth(row) * ca.fmax(1 - damping * speed, 0)

    def _depth(self, row: Row) -> SX:
        """Return the depth that a contact or joint limit pushes by [m or rad]; it fades in over the smoothing length."""
        return self.smoothing * softplus(-row.gap / self.smoothing)

    def _numbers(self, s: Symbols, row: Row, learnt: Learnt, k: int) -> tuple[SX, SX]:
        """Return stiffness and damping of a contact or joint limit. k: number of the row."""
        if row.kind == "normal":
            stiffness = learnt.change("contact_stiffness", k, s.contact_value("stiffness"))
            return stiffness, s.contact_value("damping")
        return s.contact_value("limit_stiffness"), s.contact_value("limit_damping")


def softplus(x: SX) -> SX:
    """Return log(1 + exp(x)), without overflow."""
    return ca.fmax(x, 0) + ca.log1p(ca.exp(-ca.fabs(x)))
