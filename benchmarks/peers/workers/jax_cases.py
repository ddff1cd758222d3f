"""Cases of engines written in JAX: functions of one sample, mapped over the batch and compiled."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from worker import CHECKED, Case, Job, Make

jax.config.update("jax_enable_x64", True)


@dataclass(frozen=True)
class Engine:
    """Functions of one sample, in the engine's own order of q and the job's order of v."""

    kinematics: Callable[[Any], Any]
    """q -> poses of all links."""
    position: Callable[[Any], Any]
    """q -> place of the job's link."""
    inverse_dynamics: Callable[[Any, Any, Any], Any]
    forward_dynamics: Callable[[Any, Any, Any], Any]
    start: Callable[[Any], Any]
    """q -> state at rest."""
    step: Callable[[Any, Any], Any]
    """(state, torques) -> state."""
    height: Callable[[Any], Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the compiler for functions without gradients."""


def their_q(job: Job, q: np.ndarray) -> np.ndarray:
    """w comes first in their quaternions."""
    return q[..., [0, 1, 2, 6, 3, 4, 5, *range(7, q.shape[-1])]] if job.floating else q


def cases(engine: Callable[[Job], Engine]) -> Mapping[str, Make]:
    functions = ("kinematics", "inverse_dynamics", "forward_dynamics")
    return (
        {name: lambda job: _value(job, engine(job)) for name in functions}
        | {f"{name}_gradient": lambda job: _gradient(job, engine(job)) for name in functions}
        | {
            "steps": lambda job: _steps(job, engine(job)),
            "rollout_gradient": lambda job: _rollout_gradient(job, engine(job)),
        }
    )


def _inputs(job: Job) -> list[Any]:
    q, v, tau = job.states()
    return [jnp.asarray(their_q(job, q)), jnp.asarray(v), jnp.asarray(tau)]


def _compiled(
    function: Callable[..., Any], *inputs: Any, options: Mapping[str, Any] | None = None
) -> Callable[[], Any]:
    """A call that waits for its result."""
    run = jax.jit(function).lower(*inputs).compile(dict(options or {}))
    return lambda: jax.block_until_ready(run(*inputs))


def _value(job: Job, e: Engine) -> Case:
    x = _inputs(job)
    if job.quantity == "kinematics":
        where = jax.jit(jax.vmap(e.position))
        run = _compiled(jax.vmap(e.kinematics), x[0], options=e.options)
        return Case(run, job.batch, lambda _: np.asarray(where(x[0][:CHECKED])))
    run = _compiled(jax.vmap(getattr(e, job.quantity)), *x, options=e.options)
    return Case(run, job.batch, lambda y: np.asarray(y[:CHECKED]))


def _gradient(job: Job, e: Engine) -> Case:
    x = _inputs(job)
    name = job.quantity.removesuffix("_gradient")
    if name == "kinematics":
        run = _compiled(jax.grad(lambda q: jax.vmap(e.position)(q).sum()), x[0])
        return Case(run, job.batch, lambda g: np.asarray(g[:CHECKED, -len(job.joints) :]))
    total = lambda *x: jax.vmap(getattr(e, name))(*x).sum()  # noqa: E731
    run = _compiled(jax.grad(total, argnums=(0, 1, 2)), *x)
    return Case(run, job.batch, lambda g: np.asarray(g[2][:CHECKED, -len(job.joints) :]))


def _end(job: Job, e: Engine) -> Callable[[Any], Any]:
    """Controls (steps, joints) -> height of the trunk at the end."""
    q = jnp.asarray(their_q(job, job.start()))

    def end(controls: Any) -> Any:
        state, _ = jax.lax.scan(lambda s, u: (e.step(s, u), None), e.start(q), controls)
        return e.height(state)

    return end


def _steps(job: Job, e: Engine) -> Case:
    u = jnp.asarray(job.controls())
    run = _compiled(jax.vmap(_end(job, e), in_axes=1), u)
    return Case(run, job.batch * job.steps, lambda z: np.asarray(z[:1]))


def _rollout_gradient(job: Job, e: Engine) -> Case:
    u = jnp.asarray(job.controls())
    run = _compiled(jax.vmap(jax.value_and_grad(_end(job, e)), in_axes=1, out_axes=(0, 1)), u)
    return Case(run, job.batch * job.steps, lambda r: np.array([r[0][0], np.linalg.norm(np.asarray(r[1][:, 0]))]))
