"""Other solvers on the problems that were kept, and MuJoCo on the same states: how long to 1e-8, and what is left.

A peer gets the Delassus matrix G = J M^-1 J', the free velocities g = J M^-1 p - t, and friction coefficients; of its impulses
truth.py says what they are worth.
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco and pinocchio are compiled modules without types)
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import torch

from benchmarks.convergence.problems import Problems, Recorder
from benchmarks.convergence.truth import residual
from benchmarks.sim.mujoco_scene import MujocoWorld, Options, mjcf
from costate.kernel import ProgramBuilder
from costate.sim.contact.hard.solve import Solver

WANTED = 1e-8
"""Speed by which no contact may miss its laws [m/s]."""
TOLERANCES = (1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13)
"""Tolerances that a peer is given, one after the other, until it reaches WANTED."""
NEAR = -5.0
"""Target of a row that is close enough to count [m/s]."""
ROUNDS = 3
"""Solves of which the fastest counts."""


@dataclass(frozen=True)
class Case:
    """A contact problem as Delassus matrix; rows of a contact: two tangents, then the normal."""

    G: np.ndarray
    g: np.ndarray
    mu: np.ndarray
    problem: Problems
    """The one problem that it is, with contacts alone."""
    order: np.ndarray
    """Row of the problem for each of its own."""

    def left(self, impulses: np.ndarray) -> float:
        """Return by which speed impulses miss the laws of contact [m/s]."""
        found = np.zeros((1, self.problem.J.shape[1]))
        found[0, self.order] = impulses
        return float(residual(self.problem, found)[0])


@dataclass(frozen=True)
class Run:
    """Result of a solver on one problem."""

    seconds: float
    residual: float


Contestant = Callable[[Case, float, int], tuple[np.ndarray, float]]
"""(problem, tolerance, most iterations) -> impulses and seconds."""


def case(given: Problems, k: int) -> Case | None:
    """Return one problem as a peer reads it; None if more than contacts act in it, or none do."""
    one = given.of(np.array([k]))
    others = [i for kind, rows in zip(one.kinds, one.rows, strict=True) if kind != "contact" for i in rows]
    near = [b for b, kind in enumerate(one.kinds) if kind == "contact" and one.t[0, one.rows[b][0]] > NEAR]
    if not near or np.any(one.impulses[0, others]):
        return None
    order = np.array([i for b in near for i in (*one.rows[b][1:], one.rows[b][0])])
    J = one.J[0, order]
    W = np.linalg.solve(one.M[0], J.T)
    kinds, rows = tuple("contact" for _ in near), tuple(one.rows[b] for b in near)
    alone = replace(one, kinds=kinds, rows=rows, bounds=one.bounds[:, near])
    return Case(J @ W, np.linalg.solve(one.M[0], one.p[0]) @ J.T - one.t[0, order], one.bounds[0, near], alone, order)


# --- peers ------------------------------------------------------------------------------------------------------------


def pinocchio(solver: str, **options: object) -> Contestant:
    """Return one of Pinocchio's solvers. solver: "ADMM" or "PGS"; options: of its settings."""
    import pinocchio as pin  # pyright: ignore[reportMissingImports]

    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "body")

    def solve(own: Case, tolerance: float, most: int) -> tuple[np.ndarray, float]:
        models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for mu in own.mu:
            contact = pin.PointContactConstraintModel(model, 1)
            contact.setFriction(float(mu))
            models.append(pin.ConstraintModel(contact))
            datas.append(models[len(models) - 1].createData())
        settings, result = getattr(pin, f"{solver}SolverSettings")(), getattr(pin, f"{solver}SolverResult")()
        for what in ("feasibility", "complementarity"):
            setattr(settings, f"absolute_{what}_tol", tolerance)
            setattr(settings, f"relative_{what}_tol", 0.0)
        settings.max_iterations = most
        for name, value in options.items():
            setattr(settings, name, getattr(pin.ADMMUpdateRule, value) if isinstance(value, str) else value)
        solving = getattr(pin, f"{solver}ConstraintSolver")(len(own.g))
        matrix = pin.DelassusOperatorDense(own.G)
        start = time.perf_counter()
        solving.solve(matrix, own.g, models, datas, settings, result)
        seconds = time.perf_counter() - start
        return np.array(result.retrieveConstraintImpulses()).ravel(), seconds

    return solve


def run(solve: Contestant, own: Case, limit: float = 2.0) -> Run:
    """Solve a problem ever more tightly until it is solved to WANTED. limit: seconds for all tolerances."""
    most, begun, best = 20_000, time.perf_counter(), Run(np.inf, np.inf)
    for tolerance in TOLERANCES:
        impulses, seconds = solve(own, tolerance, most)
        found = Run(seconds, own.left(impulses))
        if found.residual <= WANTED:
            again = [solve(own, tolerance, most)[1] for _ in range(ROUNDS - 1)]
            return replace(found, seconds=min(seconds, *again))
        best = min(best, found, key=lambda r: r.residual)
        if time.perf_counter() - begun > limit:
            break
    return replace(best, seconds=np.inf)


# --- ours -------------------------------------------------------------------------------------------------------------


def ours(recorder: Recorder, given: Problems, batch: int) -> tuple[float, np.ndarray]:
    """Return the seconds that `Hard` takes for a problem, best of several rounds, and the residuals. batch: how many at once."""
    s = recorder.stages
    solver = Solver(s.problem, s.solver.limit, s.solver.rounds, s.solver.wanted)
    b = ProgramBuilder("hard_solver")
    values = b.inputs(*solver.sizes[1:])
    for name, value in zip(("v", "l", "residual"), solver.add(b, values[:-2], *values[-2:]), strict=True):
        b.output(name, value)
    kernel = b.kernel()
    m, j = (np.array(x.get_triplet(), int) for x in (s.problem.M, s.problem.J))
    numbers = [
        given.M[:, m[0], m[1]],
        given.p,
        given.J[:, j[0], j[1]],
        given.t,
        given.bounds,
        given.first_v,
        given.first_l,
    ]
    inputs = [torch.tensor(np.ascontiguousarray(x)) for x in numbers]
    best = np.inf
    found = []
    with torch.no_grad():
        for _ in range(ROUNDS):
            parts = [[x[k : k + batch] for x in inputs] for k in range(0, len(given), batch)]
            start = time.perf_counter()
            found = [kernel.apply(part)[1] for part in parts]
            best = min(best, time.perf_counter() - start)
    return best / len(given), residual(given, torch.cat(found).numpy())


# --- MuJoCo -----------------------------------------------------------------------------------------------------------


def mujoco_runs(recorder: Recorder, states: np.ndarray, torques: np.ndarray) -> list[Run]:
    """Solve the contacts of states by MuJoCo with stiff settings: its own contact points, masses and free motion.

    torques: (b, nu).
    """
    world = recorder.world
    stiff = Options(tolerance=0.0, iterations=200, solref=2 * world.dt, friction=float(world.setup.contact.friction))
    text = mjcf(world, stiff).replace("<option ", '<option impratio="1000" ')
    text = text.replace("condim=", 'solimp="0.9999 0.9999 0.001 0.5 2" condim=')
    twin = MujocoWorld(world, stiff)
    twin.model = model = mujoco.MjModel.from_xml_string(text)
    twin.data = data = mujoco.MjData(model)
    runs = []
    for x, u in zip(states, torques, strict=True):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = twin.to_theirs(x)
        data.ctrl[:] = u
        mujoco.mj_forward(model, data)
        times = []
        for _ in range(ROUNDS):
            data.qacc_warmstart[:] = 0
            start = time.perf_counter()
            mujoco.mj_fwdConstraint(model, data)
            times.append(time.perf_counter() - start)
        if given := _seen(model, data):
            runs.append(Run(min(times), float(residual(given)[0])))
    return runs


def _seen(model: mujoco.MjModel, data: mujoco.MjData) -> Problems | None:
    """Return MuJoCo's contacts as a problem of velocities, with its own impulses; None if nothing touches, or limits act."""
    at = [int(data.contact[k].efc_address) for k in range(data.ncon)]
    own = [(k, i) for k, i in enumerate(at) if i >= 0]
    taken = {i + r for _, i in own for r in range(3)}
    if not own or any(data.efc_force[i] for i in range(data.nefc) if i not in taken):
        return None
    h, order = model.opt.timestep, [i + r for _, i in own for r in range(3)]
    M, J = np.zeros((model.nv, model.nv)), np.zeros((data.nefc, model.nv))
    mujoco.mj_fullM(model, data, M)
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        J = np.array(data.efc_J).reshape(data.nefc, model.nv)
    t = np.zeros(len(order))
    t[::3] = [-max(data.contact[k].dist, 0) / h for k, _ in own]
    p = M @ (data.qvel + h * data.qacc_smooth)
    kinds, rows = ("contact",) * len(own), tuple((3 * k, 3 * k + 1, 3 * k + 2) for k in range(len(own)))
    bounds = np.array([data.contact[k].friction[0] for k, _ in own])
    none, l = np.zeros(0), h * data.efc_force[order]
    arrays = (M, J[order], p, t, bounds, none, none, data.qvel + h * data.qacc, l)
    return Problems(kinds, rows, *(x[None] for x in arrays), np.zeros(1))  # pyright: ignore[reportCallIssue]
