"""Brax: its generalized pipeline, which works in joint coordinates as Costate does."""

# pyright: reportMissingImports=false
from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
from brax import kinematics
from brax.generalized import dynamics, mass, pipeline
from brax.generalized.base import State
from brax.io import mjcf
from jax_cases import Engine, cases
from worker import Job, serve


@cache
def system(path: str) -> Any:
    return mjcf.load(path)


def engine(job: Job) -> Engine:
    sys = system(job.mjcf)
    link = sys.link_names.index(job.link)
    none = jnp.zeros(job.nv)
    # Its springs pull to zero: a constant torque moves their rest.
    lift = job.stiffness * jnp.array(job.rest)

    def smooth(q: Any, v: Any) -> Any:
        """The state with everything that dynamics without contact needs."""
        x, xd = kinematics.forward(sys, q, v)
        return dynamics.transform_com(sys, State.init(q, v, x, xd))

    def inverse(q: Any, v: Any, a: Any) -> Any:
        state = smooth(q, v)
        return mass.matrix(sys, state) @ a + dynamics.inverse(sys, state)

    def forward(q: Any, v: Any, tau: Any) -> Any:
        state = mass.matrix_inv(sys, smooth(q, v), 0)
        return state.mass_mx_inv @ dynamics.forward(sys, state, tau)

    return Engine(
        kinematics=lambda q: kinematics.forward(sys, q, none)[0],
        position=lambda q: kinematics.forward(sys, q, none)[0].pos[link],
        inverse_dynamics=inverse,
        forward_dynamics=forward,
        start=lambda q: pipeline.init(sys, q, none),
        step=lambda state, u: pipeline.step(sys, state, u + lift),
        height=lambda state: state.q[2],
    )


if __name__ == "__main__":
    serve(("brax", "jax"), "float64", cases(engine), ahead=True)
