"""MJX: MuJoCo in JAX. One iteration of the Newton solver with four of its line search, as in the models MJX ships: more than one is
a loop of unknown length, which JAX does not differentiate backwards.

XLA's fusion emitters compute the poses along an arm again and again: without them the kinematics of a UR5 take hundreds of times
less time.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from functools import cache
from typing import Any

import mujoco
from jax_cases import Engine, cases
from mujoco import mjx
from worker import Job, serve


@cache
def model(mjcf: str) -> tuple[Any, Any]:
    m = mujoco.MjModel.from_xml_path(mjcf)
    m.opt.iterations, m.opt.ls_iterations = 1, 4
    return m, mjx.put_model(m, impl="jax")


def engine(job: Job) -> Engine:
    m, mx = model(job.mjcf)
    names = [m.joint(k).name for k in range(m.njnt)]
    if names[-len(job.joints) :] != job.joints:
        raise ValueError(f"MuJoCo orders the joints as {names}")
    body, rest = m.body(job.link).id, mjx.make_data(m, impl="jax")

    def placed(q: Any) -> Any:
        return mjx.kinematics(mx, rest.replace(qpos=q))

    def poses(q: Any) -> Any:
        d = placed(q)
        return d.xpos, d.xquat

    return Engine(
        kinematics=poses,
        position=lambda q: placed(q).xpos[body],
        inverse_dynamics=lambda q, v, a: mjx.inverse(mx, rest.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse,
        forward_dynamics=lambda q, v, tau: mjx.forward(mx, rest.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc,
        start=lambda q: rest.replace(qpos=q),
        step=lambda d, u: mjx.step(mx, d.replace(ctrl=u)),
        height=lambda d: d.qpos[2],
        options={"xla_cpu_use_fusion_emitters": False},
    )


if __name__ == "__main__":
    serve(("mujoco-mjx", "mujoco", "jax"), "float64", cases(engine), ahead=True)
