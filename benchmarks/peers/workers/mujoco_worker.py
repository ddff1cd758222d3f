"""MuJoCo: functions by a call per sample from Python, steps by its `rollout` module, gradients by finite differences of its own."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
from worker import CHECKED, Array, Case, Job, reordered, serve

LOOPED = 128
"""Samples of a call that loops in Python: the time per sample does not depend on it."""
EPSILON = 1e-6


@cache
def model(mjcf: str) -> Any:
    return mujoco.MjModel.from_xml_path(mjcf)


def in_their_order(job: Job) -> tuple[list[int], list[int]]:
    """Find for each of MuJoCo's q and v where it stands in ours; w comes first in its quaternions."""
    m = model(job.mjcf)
    names = [m.joint(j).name for j in range(m.njnt)]
    index = reordered(job.joints, [n for n in names if n in job.joints])
    if not job.floating:
        return index, index
    return [0, 1, 2, 6, 3, 4, 5, *(7 + k for k in index)], [*range(6), *(6 + k for k in index)]


def looped(job: Job, call: Callable[[Any, Any], Any], value: Callable[[Any], Array], tau_is: str) -> Case:
    """call(model, data) for every sample; tau_is: the field that takes the third array."""
    m = model(job.mjcf)
    d = mujoco.MjData(m)
    target = {"a": d.qacc, "tau": d.qfrc_applied}[tau_is]
    qi, vi = in_their_order(job)
    q, v, tau = (np.ascontiguousarray(x[:LOOPED]) for x in job.states())
    samples = list(zip(q[:, qi], v[:, vi], tau[:, vi], strict=True))
    back = np.argsort(vi)[-len(job.joints) :]

    def one(q: Array, v: Array, tau: Array) -> None:
        d.qpos[:], d.qvel[:], target[:] = q, v, tau
        call(m, d)

    def run() -> None:
        for x in samples:
            one(*x)

    def values(_: None) -> Array:
        found = np.array([(one(*x), value(d).copy())[1] for x in samples[:CHECKED]])
        if "gradient" in job.quantity:
            return found[:, back]
        return found if job.quantity == "kinematics" else found[:, np.argsort(vi)]

    return Case(run, len(samples), values)


def kinematics(job: Job) -> Case:
    body = model(job.mjcf).body(job.link).id
    return looped(job, mujoco.mj_kinematics, lambda d: d.xpos[body], "tau")


def inverse_dynamics(job: Job) -> Case:
    return looped(job, mujoco.mj_inverse, lambda d: d.qfrc_inverse, "a")


def forward_dynamics(job: Job) -> Case:
    return looped(job, mujoco.mj_forward, lambda d: d.qacc, "tau")


def kinematics_gradient(job: Job) -> Case:
    m = model(job.mjcf)
    body, J = m.body(job.link).id, np.zeros((3, m.nv))

    def call(m: Any, d: Any) -> None:
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_jacBody(m, d, J, None, body)

    return looped(job, call, lambda d: J.sum(0), "tau")


def inverse_dynamics_gradient(job: Job) -> Case:
    n = model(job.mjcf).nv
    Dq, Dv, Da = (np.zeros((n, n)) for _ in range(3))

    def call(m: Any, d: Any) -> None:
        mujoco.mjd_inverseFD(m, d, EPSILON, False, Dq, Dv, Da, None, None, None, None)

    return looped(job, call, lambda d: Da.sum(1), "a")


def forward_dynamics_gradient(job: Job) -> Case:
    """Make the gradient by the transition of a step, for lack of another: v' = v + dt a."""
    m = model(job.mjcf)
    A, B = np.zeros((2 * m.nv, 2 * m.nv)), np.zeros((2 * m.nv, m.nu))

    def call(m: Any, d: Any) -> None:
        mujoco.mjd_transitionFD(m, d, EPSILON, True, A, B, None, None)

    def value(d: Any) -> Array:
        return np.concatenate([np.zeros(6 * job.floating), B[m.nv :].sum(0) / m.opt.timestep])

    return looped(job, call, value, "tau")


# --- simulation -------------------------------------------------------------------------------------------------------


def start(job: Job) -> tuple[Any, Any, Array]:
    m = model(job.mjcf)
    d = mujoco.MjData(m)
    d.qpos[:] = job.start()[in_their_order(job)[0]]
    full = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
    state = np.zeros(mujoco.mj_stateSize(m, full))
    mujoco.mj_getState(m, d, state, full)
    return m, d, state


def steps(job: Job) -> Case:
    m, d, state = start(job)
    states = np.tile(state, (job.batch, 1))
    u = np.ascontiguousarray(job.controls().swapaxes(0, 1))
    height = 1 + 2  # after the time
    threads = job.threads if job.threads > 1 else 0
    datas = [mujoco.MjData(m) for _ in range(threads)] or [d]
    pool = mujoco.rollout.Rollout(nthread=threads)
    return Case(lambda: pool.rollout(m, datas, states, u), job.batch * job.steps, lambda out: out[0][:1, -1, height])


def rollout_gradient(job: Job) -> Case:
    """Jacobians of every step by central differences, multiplied backwards; one rollout, however large the batch."""
    m, d, _ = start(job)
    q0, u = d.qpos.copy(), job.controls()[:, 0]
    n = m.nv
    A, B = np.zeros((job.steps, 2 * n, 2 * n)), np.zeros((job.steps, 2 * n, m.nu))

    def run() -> tuple[float, Array]:
        mujoco.mj_resetData(m, d)
        d.qpos[:] = q0
        for t in range(job.steps):
            d.ctrl[:] = u[t]
            mujoco.mjd_transitionFD(m, d, EPSILON, True, A[t], B[t], None, None)
            mujoco.mj_step(m, d)
        back, g = np.eye(2 * n)[2], np.zeros_like(u)
        for t in reversed(range(job.steps)):
            g[t], back = back @ B[t], back @ A[t]
        return float(d.qpos[2]), g

    return Case(run, job.steps, lambda found: np.array([found[0], np.linalg.norm(found[1])]))


if __name__ == "__main__":
    made = (kinematics, inverse_dynamics, forward_dynamics, kinematics_gradient, inverse_dynamics_gradient)
    made += (forward_dynamics_gradient, steps, rollout_gradient)
    serve(("mujoco", "numpy"), "float64", {make.__name__: make for make in made})
