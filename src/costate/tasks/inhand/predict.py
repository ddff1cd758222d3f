"""One step of a plan for a hand and an object: quasi-dynamics with smoothed contact, compiled.

Joints are springs towards what they are told; the object has its weight, and starts each step at rest. The displacement w of one
step, of the object (3 of its position, 3 rotation vector, world axes) and of the joints, minimises a convex function:

    E(w) = sum_joints s (w_j - r u_j)^2 / 2  +  w_o . M w_o / (2 h^2)  -  weight . w_o  +  potentials of contacts

Balls along the fingers touch the object, a box. The friction cone of such a contact is a pyramid of four facets, and each of them
pushes with a force that is smooth in its distance d = gap + (n +- mu t_k) . J w:

    -P'(d) = k e softplus(-d / e)

This is the dual form of Anitescu's relaxation of complementarity, smoothed as by Pang et al. (2023) and Jin (2024). Unlike the
latter's closed form, the forces of all contacts are solved for together, by Newton's method, so that fingers and palm share what
they push. Corners of the object touch the palm, a plane, in the same way without friction; there an object that slides would rise
with its friction, so it has the friction of its own weight instead: mu load |slide|, smoothed. Derivatives of w solve one system
with the Hessian found there.

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
from costate.tasks.inhand.potentials import Potential, Pyramid, Rest

OBJECT = 5
"""Numbers of an object: edges of the box [m], mass [kg], friction."""
NEAR = 0.001
"""Distance up to which a corner of the object counts as one that stands on the palm [m]."""
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
    palm_stiffness: float = 2000.0
    """Stiffness of a corner's contact with the palm [N/m]."""
    palm_smoothing: float = 0.0003
    """Distance over which such a contact fades [m]."""
    slide: float = 0.001
    """Distance over which the friction of the palm builds up [m]."""
    iterations: int = 20
    """Most iterations of Newton's method."""
    tolerance: float = 1e-7
    """Largest entry of a step of Newton's method at which it ends [m, rad]."""


@dataclass(frozen=True, eq=False)
class Contact:
    """A contact that may be."""

    gap: SX
    """Distance [m]."""
    jacobian: SX
    """Jacobian (3, n) of the motion of the object against the other, along the normal and two tangents; those of fingers are
    scaled by the friction."""
    load: SX | None = None
    """Friction times load of a corner on the palm [N]; None for fingers."""


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
            t1, t2 = tangents(n)
            rows = ca.vertcat(n.T, mu * t1.T, mu * t2.T)
            found.append(Contact(gap, rows @ ca.horzcat(SX.eye(3), -skew(arm), -J)))
        arms = [R @ (SX(ca.DM(signs)) * thing[:3]) for signs in product((-0.5, 0.5), repeat=3)]
        gaps = [p[2] + arm[2] - self.hand.top for arm in arms]
        near = [(1 - ca.tanh((gap - NEAR) / NEAR)) / 2 for gap in gaps]
        weight = -self.hand.down[2] * mu * thing[3] * o.gravity / (sum(near) + 0.1)
        for arm, gap, part in zip(arms, gaps, near, strict=True):
            rows = ca.horzcat(SX.eye(3), -skew(arm), SX(3, self.nu))[[2, 0, 1], :]
            found.append(Contact(gap, rows, weight * part))
        return found

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
        weight = mass * self.physics.gravity * SX(ca.DM(self.hand.down))
        linear = ca.vertcat(weight, SX.zeros(3), stiffness * reached * u)
        return diagonal, linear

    def _data(self, x: SX, thing: SX) -> tuple[SX, SX, SX]:
        """Return the gaps of all contacts, the entries of their Jacobians, and the loads of corners."""
        found = self.contacts(x, thing)
        loads = [c.load for c in found if c.load is not None]
        entries = [ca.vec(SX(c.jacobian.nz[:])) for c in found]
        return ca.vertcat(*(c.gap for c in found)), ca.vertcat(*entries), ca.vertcat(*loads)

    @cached_property
    def _patterns(self) -> list[ca.Sparsity]:
        """Patterns of the contacts' Jacobians."""
        return [c.jacobian.sparsity() for c in self.contacts(SX.sym("x", self.nx), SX.sym("o", OBJECT))]

    def _potentials(self, gaps: SX, entries: SX, loads: SX) -> list[tuple[SX, Potential]]:
        """Return Jacobian and potential of each contact."""
        found, at, o = [], 0, self.physics
        fingers = len(self.hand.balls)
        for k, pattern in enumerate(self._patterns):
            J = SX(pattern, entries[at : at + pattern.nnz()])
            at += pattern.nnz()
            if k < fingers:
                found.append((J, Pyramid(gaps[k], o.finger_stiffness, o.finger_smoothing)))
            else:
                found.append((J, Rest(gaps[k], loads[k - fingers], o.palm_stiffness, o.palm_smoothing, o.slide)))
        return found

    def _newton(self, w: SX, diagonal: SX, linear: SX, *data: SX) -> tuple[SX, SX]:
        """Return gradient and Hessian of E."""
        gradient, H = diagonal * w - linear, ca.diag(diagonal)
        for J, potential in self._potentials(*data):
            motion = J @ w
            gradient -= J.T @ potential.force(motion)
            H += J.T @ potential.bend(motion) @ J
        return ca.densify(gradient), H

    @cached_property
    def _solver(self) -> Program:
        """Program (state, command, object) -> w."""
        b = ProgramBuilder("solver")
        x, u, thing = b.inputs(self.nx, self.nu, OBJECT)
        diagonal, linear = b.trace(self._smooth, u, thing)
        gaps, entries, loads = b.trace(self._data, x, thing)
        start = b.trace(lambda d, f: (ca.vertcat(SX.zeros(6), f[6:] / d[6:]), SX.ones(1)), diagonal, linear)
        shared = [diagonal, linear, gaps, entries, loads]
        (w, _), _ = b.while_loop(
            lambda w, moved, *_: moved > self.physics.tolerance, self._improved, self.physics.iterations, start, shared
        )
        return b.program(w)

    def _improved(self, w: SX, moved: SX, diagonal: SX, linear: SX, *data: SX) -> tuple[SX, SX]:
        """Return w after a step of Newton's method, and the size of the step."""
        gradient, H = self._newton(w, diagonal, linear, *data)
        step = -factor(H).solve(gradient)
        parts = [(J @ w, J @ step, potential) for J, potential in self._potentials(*data)]
        best, least = SX(LENGTHS[-1]), SX(np.inf)
        for length in LENGTHS:
            slope = ca.dot(step, diagonal * (w + length * step) - linear)
            for motion, along, potential in parts:
                slope -= ca.dot(potential.force(motion + length * along), along)
            best = ca.if_else(ca.fabs(slope) < least, length, best)
            least = ca.fmin(ca.fabs(slope), least)
        return w + best * step, best * ca.mmax(ca.fabs(step))

    def _residual(self, w: SX, x: SX, u: SX, thing: SX) -> tuple[SX, SX]:
        """Return gradient and Hessian of E as functions of everything."""
        return self._newton(w, *self._smooth(u, thing), *self._data(x, thing))

    def _tangent(self, x: SX, u: SX, thing: SX, w: SX, dx: SX, du: SX, dthing: SX) -> SX:
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
