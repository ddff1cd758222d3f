"""The compiled solver of inverse kinematics: damped least squares in a loop, with the derivatives of its solution.

Each iteration solves (J^T J + mu D) dq = -J^T e over the joints that are free to move; a step that does not help is taken back
and mu raised. One loop runs until every sample of the batch has converged or given up; samples that are done stay as they are.
Derivatives do not go through the loop: dq = J^+ d(pose) at the solution.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.model import Model
from costate.physics import Parameters
from costate.physics.algebra import quaternion
from costate.physics.algebra.ltl import factor
from costate.physics.integrate import integrate, velocity_map
from costate.physics.jacobian import jacobian
from costate.physics.kinematics import link_poses


class PoseProblem:
    """The symbolic pose error of one link, its Jacobian, and the joint limits."""

    def __init__(self, model: Model, link: str, length: float):
        self.model, self.link, self.length = model, link, length
        self.params = Parameters.of(model)
        bounds = ((k, i, model.lower[k], model.upper[k]) for k, i in _scalar_coordinates(model).items())
        self.limited = [row for row in bounds if np.isfinite(row[2:]).any()]

    def error(self, q: SX, p: SX, R: SX) -> SX:
        """Return the position and rotation error in world axes, (6,)."""
        R_now, p_now = link_poses(self.model, self.params, q, [self.link])[self.link]
        turn = quaternion.log(quaternion.from_rotation(ca.densify(R_now @ R.T)))
        return ca.vertcat(p_now - p, self.length * turn)

    def jacobian(self, q: SX) -> SX:
        """Return the derivative of the error along the velocities, (6, nv)."""
        J = jacobian(self.model, self.params, q, self.link)
        return ca.vertcat(J[:3, :], self.length * J[3:, :])

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


def _scalar_coordinates(model: Model) -> dict[int, int]:
    """Return the coordinate index by velocity index, for joints with one coordinate."""
    found = {}
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        if j.nq == 1 and not j.mimic:
            found[iv] = iq
    return found


def pose_kernel(model: Model, link: str, length: float, iterations: int) -> Kernel:
    """Return the kernel (q0, position, rotation, precision) -> (q, norm of the error)."""
    problem = PoseProblem(model, link, length)
    b = ProgramBuilder(f"{model.name}.inverse_kinematics")
    q0, p, R = b.input("q0", model.nq), b.input("position", 3), b.input("rotation", (3, 3))
    precision = b.input("precision", 2)
    solver = _solver(problem, iterations)
    q, error = b.custom(solver, q0, p, R, precision, adjoint=_adjoint(problem), tangent=_tangent(problem))
    b.output("q", q)
    b.output("error", error)
    return b.kernel()


def _symbols(model: Model) -> tuple[SX, SX, SX, SX]:
    return SX.sym("q", model.nq), SX.sym("p", 3), SX.sym("R", 9), SX.sym("precision", 2)


def _matrix(R: SX) -> SX:
    return ca.reshape(R, 3, 3).T  # tensors are row-major


def _solver(problem: PoseProblem, iterations: int):
    """Return the damped iteration as a program: state (q, squared error, mu, still improving)."""
    model = problem.model
    q, p, R, precision = _symbols(model)
    cost, mu, live = SX.sym("c"), SX.sym("mu"), SX.sym("live")
    e, J = problem.error(q, p, _matrix(R)), problem.jacobian(q)
    g = J.T @ e
    free = problem.free(q, -g)
    scale = ca.diag(free)
    H = scale @ (J.T @ J) @ scale + ca.diag(mu + (1 - free))
    dq = -factor(H, least_pivot=mu).solve(free * g)
    trial = problem.step(q, dq)
    f = problem.error(trial, p, _matrix(R))
    trial_cost = ca.dot(f, f)
    good = trial_cost < cost
    new_mu = ca.if_else(good, ca.fmax(mu * 0.2, precision[1]), ca.fmin(mu * 6, 1e6))
    stuck = ca.if_else(good, ca.if_else(cost - trial_cost < 1e-14 * cost, 1, 0), ca.if_else(mu > 1e3, 1, 0))
    state = [q, cost, mu, live, p, R, precision]
    body = ca.Function(
        "lm",
        state,
        [ca.if_else(good, trial, q), ca.if_else(good, trial_cost, cost), new_mu, 1 - stuck],
    )
    going = ca.Function("going", state, [ca.logic_and(cost > precision[0] ** 2, live > 0)])
    first = ca.Function("first", [q, p, R], [_first(problem, q, p, R), 1e-3 * SX.ones(1), SX.ones(1)])
    b = ProgramBuilder("solver")
    q_in, p_in, R_in, precision_in = b.input("q", model.nq), b.input("p", 3), b.input("R", 9), b.input("precision", 2)
    (inside,) = b.call(ca.Function("clamp", [q], [problem.step(q, SX.zeros(model.nv))]), q_in)
    c0, mu0, live0 = b.call(first, inside, p_in, R_in)
    shared = [p_in, R_in, precision_in]
    (q_out, c_out, _, _), _ = b.while_loop(going, body, iterations, [inside, c0, mu0, live0], shared)
    b.output("q", q_out)
    b.output("error", b.call(ca.Function("root", [cost], [ca.sqrt(cost)]), c_out)[0])
    return b.program()


def _first(problem: PoseProblem, q: SX, p: SX, R: SX) -> SX:
    e = problem.error(q, p, _matrix(R))
    return ca.dot(e, e)


AT_LIMIT = 1e-6
"""Weight in derivatives of a joint at its limit, against 1 for a free one: enough to give a derivative where no other joint can
move the link that way, too little to matter where others can."""


def _push(problem: PoseProblem, q: SX, p: SX, R: SX, precision: SX) -> tuple[SX, SX, SX]:
    """Return the damped pseudo-inverse at the solution (nv, 6), and the error's derivatives in p (6, 3) and R (6, 9)."""
    e = problem.error(q, p, _matrix(R))
    J = problem.jacobian(q)
    weights = AT_LIMIT + (1 - AT_LIMIT) * problem.inside(q)
    spread = ca.diag(weights) @ J.T
    damped = J @ spread + precision[1] * SX.eye(6)
    pseudo = spread @ factor(damped, least_pivot=precision[1]).solve(SX.eye(6))
    return pseudo, ca.jacobian(e, p), ca.jacobian(e, R)


def _adjoint(problem: PoseProblem) -> ca.Function:
    """Return (q0, p, R, precision, q, error, q seed, error seed) -> gradients. Start and error (at a minimum) have none."""
    model = problem.model
    q, p, R, precision = _symbols(model)
    q0, error, seed, error_seed = SX.sym("q0", model.nq), SX.sym("e"), SX.sym("s", model.nq), SX.sym("es")
    pseudo, by_p, by_R = _push(problem, q, p, R, precision)
    w = pseudo.T @ (velocity_map(model, q).T @ seed)
    gradients = [SX.zeros(model.nq), -(by_p.T @ w), -(by_R.T @ w), SX.zeros(2)]
    return ca.Function("adjoint", [q0, p, R, precision, q, error, seed, error_seed], [ca.densify(x) for x in gradients])


def _tangent(problem: PoseProblem) -> ca.Function:
    """Return (q0, p, R, precision, q, error, and the changes of the first four) -> change of q and of the error."""
    model = problem.model
    q, p, R, precision = _symbols(model)
    q0, error, dq0, dp, dR, dprecision = (
        SX.sym("q0", model.nq),
        SX.sym("e"),
        SX.sym("dq0", model.nq),
        SX.sym("dp", 3),
        SX.sym("dR", 9),
        SX.sym("dprecision", 2),
    )
    pseudo, by_p, by_R = _push(problem, q, p, R, precision)
    velocity = -(pseudo @ (by_p @ dp + by_R @ dR))
    change = velocity_map(model, q) @ velocity
    return ca.Function(
        "tangent", [q0, p, R, precision, q, error, dq0, dp, dR, dprecision], [ca.densify(change), SX.zeros(1)]
    )
