"""What a hand and an object do within one step of a plan: quasi-dynamics with smoothed contact, compiled.

Joints are springs towards what they are told; the object has its weight, and starts each step at rest. The displacement w of one
step, of the object (3 of its position, 3 rotation vector, world axes) and of the joints, minimises a convex function:

    E(w) = sum_j s_j (w_j - r u_j)^2 / 2  +  w_o . M w_o / (2 h^2)  -  weight . w_o  +  sum_contacts sum_facets P(gap + (n +- mu t_k) . J w)

The friction cone of a contact is a pyramid of four facets, and each of them pushes with a force that is smooth in the distance,
-P'(d) = k e softplus(-d / e): the dual form of Anitescu's relaxation of complementarity, smoothed as by Pang et al. (2023) and Jin
(2024). Unlike the latter's closed form, the forces of all contacts are solved for together, by Newton's method; so several fingers
and the palm share what they push. Derivatives of w solve one system with the Hessian found there.

Balls along the fingers touch the object, a box, and the corners of the object touch the palm.

State (nx,): position of the object, its quaternion xyzw, joints. Its tangent (n,): position, rotation vector (world axes), joints.
Command (nu,): how far from where it is each joint is told to go. Object (5,): edges of the box, mass, friction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.contact_point import tangents
from costate.collision.shapes.box import Box
from costate.core.fork import cached_property
from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import Program
from costate.physics.algebra import quaternion
from costate.physics.algebra.ltl import factor
from costate.physics.algebra.spatial import skew
from costate.physics.kinematics import link_poses
from costate.physics.params import Parameters
from costate.tasks.inhand.hand import Hand

OBJECT = 5
"""Numbers of an object: edges of the box [m], mass [kg], friction."""
ROUNDED = 0.001
"""Radius of the edges of the palm [m]."""
LENGTHS = (1.0, 0.6, 0.3, 0.1)
"""Lengths tried along a step of Newton's method; the one with the smallest slope is taken."""


@dataclass(frozen=True)
class Physics:
    """Numbers of the prediction."""

    dt: float = 0.1
    """Length of a step [s]."""
    gravity: float = 9.81
    """Gravity [m/s^2]."""
    finger_stiffness: float = 500.0
    """Stiffness of a facet of a contact with a finger [N/m]."""
    finger_smoothing: float = 0.0015
    """Distance over which such a contact fades [m]: larger ones pull plans towards contacts that are further away."""
    palm_stiffness: float = 1000.0
    """Stiffness of a facet of a contact with the palm [N/m]."""
    palm_smoothing: float = 0.0003
    """Distance over which such a contact fades [m]."""
    iterations: int = 20
    """Most iterations of Newton's method."""
    tolerance: float = 1e-7
    """Largest entry of a step of Newton's method at which it ends [m, rad]."""


@dataclass(frozen=True, eq=False)
class Contact:
    """A contact that may be: gap [m], and the Jacobian (3, n) of the motion of the object against the other, along normal and
    tangents."""

    gap: SX
    jacobian: SX
    stiffness: float
    smoothing: float


@dataclass(frozen=True, eq=False)
class Prediction:
    """The compiled model of a hand and a box."""

    hand: Hand
    physics: Physics = Physics()

    @property
    def nu(self) -> int:
        """Number of joints."""
        return len(self.hand.joints)

    @property
    def nx(self) -> int:
        """Size of a state."""
        return 7 + self.nu

    @property
    def n(self) -> int:
        """Size of a tangent."""
        return 6 + self.nu

    @cached_property
    def step(self) -> Kernel:
        """Function (state, command, object) -> (after, motion), differentiable."""
        b = ProgramBuilder("inhand_step")
        x, u, thing = b.inputs(state=self.nx, command=self.nu, object=OBJECT)
        after, w = b.call(self.program, x, u, thing)
        b.output("after", after)
        b.output("motion", w)
        return b.kernel()

    @cached_property
    def program(self) -> Program:
        """The step as a program (state, command, object) -> (state after, motion w)."""
        b = ProgramBuilder("step")
        x, u, thing = b.inputs(self.nx, self.nu, OBJECT)
        (w,) = b.custom(self._solver, x, u, thing, tangent=self._tangent, adjoint=self._adjoint)
        return b.program(b.trace(self.moved, x, w), w)

    # --- equations ------------------------------------------------------------------------------------------------

    def moved(self, x: SX, w: SX) -> SX:
        """Return the state after a motion."""
        turned = quaternion.normalized(quaternion.product(quaternion.exp(w[3:6]), x[3:7]))
        return ca.vertcat(x[:3] + w[:3], turned, x[7:] + w[6:])

    def apart(self, known: SX, x: SX) -> SX:
        """Return the motion from one state to another."""
        turn = quaternion.product(x[3:7], quaternion.conjugate(known[3:7]))
        return ca.vertcat(x[:3] - known[:3], quaternion.log(turn), x[7:] - known[7:])

    @cached_property
    def _balls(self) -> ca.Function:
        model, base, q = self.hand.model, self.hand.base, SX.sym("q", self.nu)
        poses = link_poses(model, Parameters.of(model), q, list(dict.fromkeys(b.link for b in self.hand.balls)))
        B, b = SX(base.rotation), SX(base.translation)
        centers = [b + B @ (poses[k.link][1] + poses[k.link][0] @ SX(ca.DM(k.center))) for k in self.hand.balls]
        return ca.Function("balls", [q], [each for c in centers for each in (c, ca.jacobian(c, q))])

    def balls(self, q: SX) -> list[tuple[SX, SX]]:
        """Return centres [m] of the balls in the world, and their Jacobians (3, nu)."""
        found = self._balls.call([q])
        return list(zip(found[::2], found[1::2], strict=True))

    def contacts(self, x: SX, thing: SX) -> list[Contact]:
        """Return all contacts that may be."""
        p, R, o = x[:3], quaternion.to_rotation(x[3:7]), self.physics
        box, mu = Box(thing[:3]), thing[4]
        found = []
        for (center, J), ball in zip(self.balls(x[7:]), self.hand.balls, strict=True):
            local = R.T @ (center - p)
            n = -(R @ box.normal(local))
            gap = box.distance(local) - ball.radius
            arm = center + n * (ball.radius + gap / 2) - p
            relative = ca.horzcat(SX.eye(3), -skew(arm), -J)
            found.append(self._contact(gap, n, relative, mu, o.finger_stiffness, o.finger_smoothing))
        at = self.hand.surface.pose
        table = Box(SX(self.hand.surface.size - 2 * ROUNDED))
        for signs in product((-0.5, 0.5), repeat=3):
            arm = R @ (SX(ca.DM(signs)) * thing[:3])
            local = SX(at.rotation.T) @ (p + arm - SX(at.translation))
            n = SX(at.rotation) @ table.normal(local)
            relative = ca.horzcat(SX.eye(3), -skew(arm), SX(3, self.nu))
            gap = table.distance(local) - ROUNDED
            found.append(self._contact(gap, n, relative, mu, o.palm_stiffness, o.palm_smoothing))
        return found

    def _contact(self, gap: SX, n: SX, relative: SX, mu: SX, stiffness: float, smoothing: float) -> Contact:
        t1, t2 = tangents(n)
        rows = ca.vertcat(n.T, mu * t1.T, mu * t2.T)
        return Contact(gap, rows @ relative, stiffness, smoothing)

    @cached_property
    def _weights(self) -> tuple[SX, float]:
        """Stiffness (n,) of joints, from where a free joint gets within a step, and that part of its way."""
        h = self.hand
        reached = float(1 - np.exp(-self.physics.dt * h.stiffness / h.damping))
        return SX(ca.DM(np.full(self.nu, h.stiffness / reached))), reached

    def _smooth(self, u: SX, thing: SX) -> tuple[SX, SX]:
        """Return the diagonal (n,) of the quadratic part, and its linear part (n,)."""
        stiffness, reached = self._weights
        mass, edges = thing[3], thing[:3]
        inertia = mass / 12 * ca.vertcat(*(edges[j] ** 2 + edges[k] ** 2 for j, k in ((1, 2), (2, 0), (0, 1))))
        middle = ca.sum1(inertia) / 3  # the same about all axes: a box in a hand turns slowly
        h2 = self.physics.dt**2
        diagonal = ca.vertcat(ca.repmat(mass / h2, 3, 1), ca.repmat(middle / h2, 3, 1), stiffness)
        linear = ca.vertcat(0, 0, -mass * self.physics.gravity, 0, 0, 0, stiffness * reached * u)
        return diagonal, linear

    def _data(self, x: SX, thing: SX) -> tuple[SX, SX]:
        """Return the gaps of all contacts, and the entries of their Jacobians."""
        found = self.contacts(x, thing)
        return ca.vertcat(*(c.gap for c in found)), ca.vertcat(*(e for c in found for e in c.jacobian.nonzeros()))

    @cached_property
    def _patterns(self) -> list[tuple[ca.Sparsity, float, float]]:
        """Pattern of each contact's Jacobian, stiffness and smoothing."""
        found = self.contacts(SX.sym("x", self.nx), SX.sym("o", OBJECT))
        return [(c.jacobian.sparsity(), c.stiffness, c.smoothing) for c in found]

    def _rows(self, entries: SX) -> list[tuple[SX, float, float]]:
        rows, at = [], 0
        for pattern, stiffness, smoothing in self._patterns:
            rows.append((SX(pattern, entries[at : at + pattern.nnz()]), stiffness, smoothing))
            at += pattern.nnz()
        return rows

    def _newton(self, w: SX, diagonal: SX, linear: SX, gaps: SX, entries: SX) -> tuple[SX, SX]:
        """Return gradient and Hessian of E."""
        gradient, H = diagonal * w - linear, ca.diag(diagonal)
        for k, (J, stiffness, smoothing) in enumerate(self._rows(entries)):
            force, slope = facets(facet_gaps(gaps[k], J @ w), stiffness, smoothing)
            gradient -= J.T @ ca.vertcat(ca.sum1(force), force[0] - force[1], force[2] - force[3])
            H += J.T @ bent(slope) @ J
        return ca.densify(gradient), H

    @cached_property
    def _solver(self) -> Program:
        """Program (state, command, object) -> w."""
        b = ProgramBuilder("solver")
        x, u, thing = b.inputs(self.nx, self.nu, OBJECT)
        diagonal, linear = b.trace(self._smooth, u, thing)
        gaps, entries = b.trace(self._data, x, thing)
        start = b.trace(lambda d, f: (ca.vertcat(SX.zeros(6), f[6:] / d[6:]), SX.ones(1)), diagonal, linear)
        shared = [diagonal, linear, gaps, entries]
        (w, _), _ = b.while_loop(
            lambda w, moved, *_: moved > self.physics.tolerance, self._improved, self.physics.iterations, start, shared
        )
        return b.program(w)

    def _improved(self, w: SX, moved: SX, diagonal: SX, linear: SX, gaps: SX, entries: SX) -> tuple[SX, SX]:
        """Return w after a step of Newton's method, and the size of the step."""
        gradient, H = self._newton(w, diagonal, linear, gaps, entries)
        step = -factor(H).solve(gradient)
        rows = self._rows(entries)
        at = [facet_gaps(gaps[k], J @ w) for k, (J, _, _) in enumerate(rows)]
        along = [facet_gaps(SX(0), J @ step) for J, _, _ in rows]
        best, least = SX(LENGTHS[-1]), SX(np.inf)
        for length in LENGTHS:
            slope = ca.dot(step, diagonal * (w + length * step) - linear)
            for s, d, (_, stiffness, smoothing) in zip(at, along, rows, strict=True):
                slope -= ca.dot(facets(s + length * d, stiffness, smoothing)[0], d)
            better = ca.fabs(slope) < least
            best, least = ca.if_else(better, length, best), ca.fmin(ca.fabs(slope), least)
        return w + best * step, best * ca.mmax(ca.fabs(step))

    def _residual(self, w: SX, x: SX, u: SX, thing: SX) -> tuple[SX, SX]:
        """Return gradient and Hessian of E as functions of everything."""
        return self._newton(w, *self._smooth(u, thing), *self._data(x, thing))

    def _tangent(self, x: SX, u: SX, thing: SX, w: SX, dx: SX, du: SX, dthing: SX) -> SX:  # noqa: PLR0913 -- as `custom` asks
        gradient, H = self._residual(w, x, u, thing)
        pushed = ca.jtimes(gradient, ca.vertcat(x, u, thing), ca.vertcat(dx, du, dthing))
        return -factor(H).solve(ca.densify(pushed))

    def _adjoint(self, x: SX, u: SX, thing: SX, w: SX, seed: SX) -> list[SX]:
        gradient, H = self._residual(w, x, u, thing)
        multiplier = factor(H).solve(seed)
        return [-ca.jtimes(gradient, a, multiplier, True) for a in (x, u, thing)]

    def linearized(self, x: SX, u: SX, thing: SX, w: SX) -> SX:
        """Return [A B] (n, n + nu): the tangent of the state after the step by that of the state before, and by the command."""
        shift = SX.sym("shift", self.n)
        gradient, H = self._residual(w, self.moved(x, shift), u, thing)
        by_state = ca.substitute(ca.jacobian(gradient, shift), shift, SX.zeros(self.n))
        H = ca.substitute(H, shift, SX.zeros(self.n))
        stiffness, reached = self._weights
        by_command = ca.vertcat(SX(6, self.nu), -ca.diag(stiffness * reached))
        both, solve = ca.horzcat(by_state, by_command), factor(H).solve
        dw = -ca.horzcat(*(solve(ca.densify(both[:, k])) for k in range(both.shape[1])))
        turn = quaternion.left_jacobian(w[3:6])
        carried = ca.diagcat(SX.eye(3), quaternion.to_rotation(quaternion.exp(w[3:6])), SX.eye(self.nu))
        return ca.horzcat(carried, SX(self.n, self.nu)) + ca.diagcat(SX.eye(3), turn, SX.eye(self.nu)) @ dw


def facet_gaps(gap: SX, motion: SX) -> SX:
    """Return the distances (4,) of the facets of a friction pyramid, given the motion along normal and scaled tangents."""
    normal, a, b = gap + motion[0], motion[1], motion[2]
    return ca.vertcat(normal + a, normal - a, normal + b, normal - b)


def facets(gaps: SX, stiffness: float, smoothing: float) -> tuple[SX, SX]:
    """Return the forces of facets [N], and how fast they grow as the gaps close [N/m]."""
    z = -gaps / smoothing
    small = ca.exp(-ca.fabs(z))
    force = stiffness * smoothing * (ca.fmax(z, 0) + ca.log(1 + small))
    return force, stiffness * ca.if_else(z > 0, 1, small) / (1 + small)


def bent(slope: SX) -> SX:
    """Return the second derivative (3, 3) of a contact's potential by the motion."""
    a, b, c, d = ca.vertsplit(slope)
    return ca.vertcat(
        ca.horzcat(a + b + c + d, a - b, c - d), ca.horzcat(a - b, a + b, 0), ca.horzcat(c - d, 0, c + d)
    )
