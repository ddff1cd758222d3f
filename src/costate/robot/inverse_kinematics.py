"""Inverse kinematics: Levenberg-Marquardt on the pose error, all problems of a batch at once, within joint limits.

    minimise  |e(q)|^2,   e = (position error [m], orientation error [rad], scaled),   lower <= q <= upper

One compiled loop runs until every sample has converged or given up; samples that are done are frozen. Each iteration solves
(J^T J + mu D) dq = -J^T e over the joints that are free to move; a step that does not help is taken back and mu raised. Derivatives
are those of the solution, by the implicit function theorem: dq = J^+ d(pose), whatever the iterations did.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import torch
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.model import Model
from costate.physics import Parameters
from costate.physics.algebra import quaternion
from costate.physics.algebra.ltl import factor
from costate.physics.integrate import integrate, velocity_map
from costate.physics.jacobian import jacobian
from costate.physics.kinematics import link_poses
from costate.robot.pose import Pose

if TYPE_CHECKING:
    from costate.robot.robot import Robot


@dataclass(frozen=True)
class InverseKinematicsOptions:
    """How hard to try."""

    iterations: int = 60
    """Per attempt."""
    tolerance: float = 1e-9
    """Of the error's norm, [m] and [rad] alike."""
    length: float = 1.0
    """One radian counts as this many metres."""
    attempts: int = 60
    """Random starts for problems the given start does not solve: about 1 in 1,000 poses of a UR5 needs more than 20."""
    seed: int = 0


def inverse_kinematics(
    robot: Robot, pose: Pose, link: str, q0: torch.Tensor | None = None, **options: float
) -> torch.Tensor:
    """Configurations (..., nq) within limits that bring a link to a pose. Differentiable in the pose.

    Problems that a start does not solve are tried again from random starts; one that has no solution gets the configuration
    with the smallest error found: compare `robot.forward_kinematics` with the pose if that matters.

    Args:
        pose: Wanted pose, position (..., 3) and rotation (..., 3, 3).
        q0: Where to start (..., nq); default the neutral configuration.
        options: Fields of InverseKinematicsOptions.
    """
    if not isinstance(pose, Pose):
        raise TypeError(
            f"inverse kinematics of '{robot.name}': the pose is a {type(pose).__name__}; expected a cs.Pose(position, rotation)"
        )
    chosen = _options(options)
    kernel = _kernel(robot, link, chosen)
    position, rotation = pose.position, pose.rotation
    start = robot.neutral(dtype=position.dtype) if q0 is None else q0
    if start.shape[-1:] != (robot.nq,):
        raise ValueError(
            f"inverse kinematics of '{robot.name}': q0 has shape {tuple(start.shape)}; expected (..., {robot.nq})"
        )
    batch = np.broadcast_shapes(position.shape[:-1], rotation.shape[:-2], start.shape[:-1])  # torch's imports sympy
    start = start.detach().expand(*batch, robot.nq)
    precision = _precision(chosen, position.dtype)
    best, error = (x.clone() for x in kernel.apply([start, position.detach(), rotation.detach(), precision]))
    error = error[..., 0]
    _retry(robot, kernel, chosen, best, error, position.detach(), rotation.detach())
    polished, _ = kernel.apply([best, position, rotation, precision])  # nothing left to do: this records the gradient
    return polished


def _options(options: dict[str, float]) -> InverseKinematicsOptions:
    known = [f.name for f in fields(InverseKinematicsOptions)]
    for name in options:
        if name not in known:
            raise TypeError(f"inverse kinematics has no option {name!r}; it has {', '.join(known)}")
    return InverseKinematicsOptions(**options)  # type: ignore[arg-type]


def _retry(robot, kernel, options, best, error, position, rotation) -> None:
    """Random starts for what is not solved yet, in place."""
    generator = torch.Generator().manual_seed(options.seed)
    batch = error.shape
    position, rotation = position.expand(*batch, 3), rotation.expand(*batch, 3, 3)
    precision = _precision(options, best.dtype)
    enough = 10 * float(precision[0])
    for _ in range(options.attempts):
        open_ = error > enough
        if not bool(open_.any()):
            return
        start = robot.random_configuration(int(open_.sum()), generator=generator).to(best.dtype)
        q, e = kernel.apply([start, position[open_], rotation[open_], precision])
        better = e[..., 0] < error[open_]
        best[open_] = torch.where(better[..., None], q, best[open_])
        error[open_] = torch.where(better, e[..., 0], error[open_])


def _precision(options: InverseKinematicsOptions, dtype: torch.dtype) -> torch.Tensor:
    """What the number type allows: the tolerance, and the least damping with which J^T J can be factored, (2,)."""
    eps = torch.finfo(dtype).eps
    return torch.tensor([max(options.tolerance, 3 * eps), 8 * eps], dtype=dtype)


def _kernel(robot: Robot, link: str, options: InverseKinematicsOptions) -> Kernel:
    model = robot.identified_model() if robot.learnt else robot.model
    key = "inverse_kinematics", link, options.iterations, options.length, _geometry(model) if robot.learnt else b""
    if key not in robot._kernels:
        robot._kernels[key] = _build(model, link, options)
    return robot._kernels[key]


def _geometry(model: Model) -> bytes:
    """Learnt kinematics are folded in as they are now, and compiled anew when they change."""
    parts = [np.concatenate([j.origin.rotation.ravel(), j.origin.translation, j.axis]) for j in model.joints]
    return np.concatenate(parts).tobytes()


class _Problem:
    """Symbolic pose error of one link, its Jacobian, and limits."""

    def __init__(self, model: Model, link: str, length: float):
        self.model, self.link, self.length = model, link, length
        self.params = Parameters.of(model)
        bounds = ((k, i, model.lower[k], model.upper[k]) for k, i in _scalar_coordinates(model).items())
        self.limited = [row for row in bounds if np.isfinite(row[2:]).any()]

    def error(self, q: SX, p: SX, R: SX) -> SX:
        """Position and rotation error in world axes, (6,)."""
        R_now, p_now = link_poses(self.model, self.params, q, [self.link])[self.link]
        turn = quaternion.log(quaternion.from_rotation(ca.densify(R_now @ R.T)))
        return ca.vertcat(p_now - p, self.length * turn)

    def jacobian(self, q: SX) -> SX:
        J = jacobian(self.model, self.params, q, self.link)
        return ca.vertcat(J[:3, :], self.length * J[3:, :])

    def step(self, q: SX, dq: SX) -> SX:
        """Move along dq, then back inside the limits."""
        moved = integrate(self.model, q, dq)
        for _, i, low, high in self.limited:
            moved[i] = ca.fmin(ca.fmax(moved[i], float(low)), float(high))
        return moved

    def inside(self, q: SX) -> SX:
        """1 for velocities whose coordinate is off its limits."""
        mask = SX.ones(self.model.nv)
        for k, i, low, high in self.limited:
            mask[k] = ca.if_else(ca.logic_and(q[i] > float(low), q[i] < float(high)), 1, 0)
        return mask

    def free(self, q: SX, downhill: SX) -> SX:
        """1 for velocities that may move: not at a limit that the descent direction points through."""
        mask = SX.ones(self.model.nv)
        for k, i, low, high in self.limited:
            blocked = ca.logic_or(
                ca.logic_and(q[i] <= float(low), downhill[k] < 0), ca.logic_and(q[i] >= float(high), downhill[k] > 0)
            )
            mask[k] = ca.if_else(blocked, 0, 1)
        return mask


def _scalar_coordinates(model: Model) -> dict[int, int]:
    """Velocity index -> coordinate index, for joints with one coordinate."""
    found = {}
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        if j.nq == 1 and not j.mimic:
            found[iv] = iq
    return found


def _build(model: Model, link: str, options: InverseKinematicsOptions) -> Kernel:
    problem = _Problem(model, link, options.length)
    b = ProgramBuilder(f"{model.name}.inverse_kinematics")
    q0, p, R = b.input("q0", model.nq), b.input("position", 3), b.input("rotation", (3, 3))
    precision = b.input("precision", 2)
    solver = _solver(problem, options)
    q, error = b.custom(solver, q0, p, R, precision, adjoint=_adjoint(problem), tangent=_tangent(problem))
    b.output("q", q)
    b.output("error", error)
    return b.kernel()


def _symbols(model: Model) -> tuple[SX, SX, SX, SX]:
    return SX.sym("q", model.nq), SX.sym("p", 3), SX.sym("R", 9), SX.sym("precision", 2)


def _matrix(R: SX) -> SX:
    return ca.reshape(R, 3, 3).T  # tensors are row-major


def _solver(problem: _Problem, options: InverseKinematicsOptions):
    """The damped iteration as a program: state (q, squared error, mu, still improving)."""
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
    (q_out, c_out, _, _), _ = b.while_loop(going, body, options.iterations, [inside, c0, mu0, live0], shared)
    b.output("q", q_out)
    b.output("error", b.call(ca.Function("root", [cost], [ca.sqrt(cost)]), c_out)[0])
    return b.program()


def _first(problem: _Problem, q: SX, p: SX, R: SX) -> SX:
    e = problem.error(q, p, _matrix(R))
    return ca.dot(e, e)


# How much a joint that stands at a limit takes part in derivatives, against one that is free: enough to tell them where no other
# joint can move the link that way, too little to matter where others can.
AT_LIMIT = 1e-6


def _push(problem: _Problem, q: SX, p: SX, R: SX, precision: SX) -> tuple[SX, SX, SX]:
    """Damped pseudo-inverse at the solution (nv, 6), and the error's derivatives in p (6, 3) and R (6, 9)."""
    e = problem.error(q, p, _matrix(R))
    J = problem.jacobian(q)
    weights = AT_LIMIT + (1 - AT_LIMIT) * problem.inside(q)
    spread = ca.diag(weights) @ J.T
    damped = J @ spread + precision[1] * SX.eye(6)
    pseudo = spread @ factor(damped, least_pivot=precision[1]).solve(SX.eye(6))
    return pseudo, ca.jacobian(e, p), ca.jacobian(e, R)


def _adjoint(problem: _Problem) -> ca.Function:
    """(q0, p, R, precision, q, error, q seed, error seed) -> gradients. The start has none; neither has the error, at a minimum."""
    model = problem.model
    q, p, R, precision = _symbols(model)
    q0, error, seed, error_seed = SX.sym("q0", model.nq), SX.sym("e"), SX.sym("s", model.nq), SX.sym("es")
    pseudo, by_p, by_R = _push(problem, q, p, R, precision)
    w = pseudo.T @ (velocity_map(model, q).T @ seed)
    gradients = [SX.zeros(model.nq), -(by_p.T @ w), -(by_R.T @ w), SX.zeros(2)]
    return ca.Function("adjoint", [q0, p, R, precision, q, error, seed, error_seed], [ca.densify(x) for x in gradients])


def _tangent(problem: _Problem) -> ca.Function:
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
