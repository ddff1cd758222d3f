"""The compiled solver of inverse kinematics: damped least squares in a loop, with the derivatives of its solution.

Each iteration solves (J^T J + mu D) dq = -J^T e over the joints that are free to move; a step that does not help is taken back
and mu raised. One loop runs until every sample of the batch has converged or given up; samples that are done stay as they are.
Derivatives do not go through the loop: dq = J^+ d(pose) at the solution.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import Program
from costate.model import Model
from costate.physics import Parameters
from costate.physics.algebra import quaternion
from costate.physics.algebra.ltl import factor
from costate.physics.integrate import integrate, velocity_map
from costate.physics.jacobian import jacobian
from costate.physics.kinematics import link_poses

AT_LIMIT = 1e-6
"""Weight in derivatives of a joint at its limit, against 1 for a free one: enough to give a derivative where no other joint can
move the link that way, too little to matter where others can."""


class PoseProblem:
    """The symbolic pose error of one link, its Jacobian, the joint limits, and the steps of the solver.

    A pose that is wanted is a position p (3,) and a rotation R, row by row (9,), or the position alone: any orientation will do.
    """

    def __init__(self, model: Model, link: str, length: float, sizes: Sequence[int]):
        self.model, self.link, self.length, self.sizes = model, link, length, sizes
        self.params = Parameters.of(model)
        bounds = ((k, i, model.lower[k], model.upper[k]) for k, i in _scalar_coordinates(model).items())
        self.limited = [row for row in bounds if np.isfinite(row[2:]).any()]

    def error(self, q: SX, p: SX, *R: SX) -> SX:
        """Return the position and rotation error in world axes, (6,), or the position error alone, (3,)."""
        R_now, p_now = link_poses(self.model, self.params, q, [self.link])[self.link]
        turns = [quaternion.log(quaternion.from_rotation(ca.densify(R_now @ ca.reshape(x, 3, 3)))) for x in R]
        return ca.vertcat(p_now - p, *(self.length * turn for turn in turns))

    def jacobian(self, q: SX) -> SX:
        """Return the derivative of the error along the velocities, (6, nv) or (3, nv)."""
        J = jacobian(self.model, self.params, q, self.link)
        return ca.vertcat(J[:3, :], self.length * J[3:, :]) if len(self.sizes) > 1 else J[:3, :]

    def step(self, q: SX, dq: SX) -> SX:
        """Move along dq, then back inside the limits."""
        moved = integrate(self.model, q, dq)
        for _, i, low, high in self.limited:
            moved[i] = ca.fmin(ca.fmax(moved[i], float(low)), float(high))
        return moved

    def inside(self, q: SX) -> SX:
        """Return 1 for velocities whose coordinate is off its limits, else 0."""
        mask = SX.ones(self.model.nv)
        for k, i, low, high in self.limited:
            mask[k] = ca.if_else(ca.logic_and(q[i] > float(low), q[i] < float(high)), 1, 0)
        return mask

    def free(self, q: SX, downhill: SX) -> SX:
        """Return 1 for velocities that may move: not at a limit that the descent direction points through; else 0."""
        mask = SX.ones(self.model.nv)
        for k, i, low, high in self.limited:
            blocked = ca.logic_or(
                ca.logic_and(q[i] <= float(low), downhill[k] < 0), ca.logic_and(q[i] >= float(high), downhill[k] > 0)
            )
            mask[k] = ca.if_else(blocked, 0, 1)
        return mask

    def cost(self, q: SX, *pose: SX) -> SX:
        """Return the squared error."""
        e = self.error(q, *pose)
        return ca.dot(e, e)

    def iteration(self, q: SX, cost: SX, mu: SX, live: SX, *given: SX) -> list[SX]:
        """Return the state (q, squared error, mu, still improving) after one damped step. given: pose and precision."""
        *pose, precision = given
        e, J = self.error(q, *pose), self.jacobian(q)
        g = J.T @ e
        free = self.free(q, -g)
        scale = ca.diag(free)
        H = scale @ (J.T @ J) @ scale + ca.diag(mu + (1 - free))
        dq = -factor(H, least_pivot=mu).solve(free * g)
        trial = self.step(q, dq)
        trial_cost = self.cost(trial, *pose)
        good = trial_cost < cost
        new_mu = ca.if_else(good, ca.fmax(mu * 0.2, precision[1]), ca.fmin(mu * 6, 1e6))
        stuck = ca.if_else(good, ca.if_else(cost - trial_cost < 1e-14 * cost, 1, 0), ca.if_else(mu > 1e3, 1, 0))
        return [ca.if_else(good, trial, q), ca.if_else(good, trial_cost, cost), new_mu, 1 - stuck]

    def push(self, q: SX, pose: Sequence[SX], precision: SX) -> tuple[SX, list[SX]]:
        """Return the damped pseudo-inverse at the solution (nv, 6), and the error's derivatives in p (6, 3) and R (6, 9)."""
        e = self.error(q, *pose)
        J = self.jacobian(q)
        weights = AT_LIMIT + (1 - AT_LIMIT) * self.inside(q)
        spread = ca.diag(weights) @ J.T
        rows = SX.eye(e.numel())
        damped = J @ spread + precision[1] * rows
        pseudo = spread @ factor(damped, least_pivot=precision[1]).solve(rows)
        return pseudo, [ca.jacobian(e, x) for x in pose]

    def adjoint(self, q0: SX, *given: SX) -> list[SX]:
        """Return the gradients of start, pose and precision. Start and error (at a minimum) have none.

        given: pose, precision, q, error, and the seeds of these two.
        """
        *pose, precision, q, _, seed, _ = given
        pseudo, by_pose = self.push(q, pose, precision)
        w = pseudo.T @ (velocity_map(self.model, q).T @ seed)
        return [SX.zeros(q0.numel()), *(-(J.T @ w) for J in by_pose), SX.zeros(2)]

    def tangent(self, q0: SX, *given: SX) -> list[SX]:
        """Return the changes of q and of the error. given: pose, precision, q, error, and changes of start, pose, precision."""
        n = len(self.sizes)
        *pose, precision, q, _ = given[: n + 3]
        pseudo, by_pose = self.push(q, pose, precision)
        moved = sum((J @ d for J, d in zip(by_pose, given[n + 4 : -1], strict=True)), SX.zeros(pseudo.shape[1]))
        return [-(velocity_map(self.model, q) @ (pseudo @ moved)), SX.zeros(1)]


def _scalar_coordinates(model: Model) -> dict[int, int]:
    """Return the coordinate index by velocity index, for joints with one coordinate."""
    found = {}
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        if j.nq == 1 and not j.mimic:
            found[iv] = iq
    return found


def pose_kernel(model: Model, link: str, length: float, iterations: int, turns: bool = True) -> Kernel:
    """Return the kernel (q0, position, rotation, precision) -> (q, norm of the error). turns: whether there is a rotation."""
    problem = PoseProblem(model, link, length, (3, 9) if turns else (3,))
    b = ProgramBuilder(f"{model.name}.inverse_kinematics")
    rotation = {"rotation": (3, 3)} if turns else {}
    args = b.inputs(q0=model.nq, position=3, **rotation, precision=2)
    q, error = b.custom(_solver(problem, iterations), *args, adjoint=problem.adjoint, tangent=problem.tangent)
    b.output("q", q)
    b.output("error", error)
    return b.kernel()


def _solver(problem: PoseProblem, iterations: int) -> Program:
    """Return the damped iteration as a program."""
    b = ProgramBuilder("solver")
    q0, *pose, precision = b.inputs(problem.model.nq, *problem.sizes, 2)
    q = b.trace(lambda q: problem.step(q, SX.zeros(problem.model.nv)), q0)
    state = [q, b.trace(problem.cost, q, *pose), b.constant(1e-3), b.constant(1)]
    (q, cost, *_), _ = b.while_loop(_unfinished, problem.iteration, iterations, state, [*pose, precision])
    return b.program(q, b.trace(lambda cost: ca.sqrt(cost), cost))


def _unfinished(q: SX, cost: SX, mu: SX, live: SX, *given: SX) -> SX:
    return ca.logic_and(cost > given[-1][0] ** 2, live > 0)
