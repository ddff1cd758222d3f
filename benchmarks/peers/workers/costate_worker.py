"""Costate as a peer of its own benchmark: the ordinary torch calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from worker import CHECKED, Array, Case, Job, serve  # pyright: ignore[reportMissingImports]

import costate as cs

Tensor = torch.Tensor


@cache
def robot(urdf: str) -> cs.Robot:
    return cs.load_robot(urdf)


def inputs(job: Job) -> list[Tensor]:
    torch.set_num_threads(job.threads)
    return [torch.from_numpy(x) for x in job.states()]


def functions(job: Job) -> dict[str, tuple[Callable[..., Any], int]]:
    """Return the functions of a robot, and how many of q, v, a or tau they take."""
    r = robot(job.urdf)
    return {
        "kinematics": (r.forward_kinematics, 1),
        "inverse_dynamics": (r.inverse_dynamics, 3),
        "forward_dynamics": (r.forward_dynamics, 3),
    }


def value(job: Job) -> Case:
    function, n = functions(job)[job.quantity]
    x = inputs(job)[:n]
    return Case(lambda: function(*x), job.batch, partial(first, job))


def first(job: Job, found: Any) -> Array:
    y = found[job.link].position if job.quantity == "kinematics" else found
    return y[:CHECKED].numpy()


def gradient(job: Job) -> Case:
    """Make the gradient of the sum of all results; for kinematics, of the position of one link."""
    name = job.quantity.removesuffix("_gradient")
    function, n = functions(job)[name]
    leaves = [t.requires_grad_() for t in inputs(job)[:n]]

    def run() -> tuple[Tensor, ...]:
        y = robot(job.urdf).forward_kinematics(leaves[0], job.link).position if n == 1 else function(*leaves)
        return torch.autograd.grad(y, leaves, torch.ones_like(y))

    return Case(run, job.batch, lambda g: g[-1][:CHECKED, -len(job.joints) :].numpy())


# --- simulation -------------------------------------------------------------------------------------------------------


def contact(friction: float) -> Any:
    return cs.Hard(joint_limits=False, friction=friction)


@cache
def world(urdf: str, dt: float, friction: float, feet: tuple[str, ...]) -> cs.World:
    """The springs and dampers stand in the URDF."""
    return cs.World(
        robots=[robot(urdf)],
        scenery=[cs.Static("ground", cs.shapes.plane())],
        contact=contact(friction),
        dt=dt,
        integrator="implicit",
        collide=lambda a, b: "ground" in (a, b) and (a.endswith(feet) or b.endswith(feet)),
    )


def scene(job: Job) -> tuple[cs.World, Tensor, Tensor]:
    torch.set_num_threads(job.threads)
    w = world(job.urdf, job.dt, job.friction, tuple(job.feet))
    x = torch.zeros(job.batch, w.nx, dtype=torch.float64)
    x[:, : 7 + len(job.joints)] = torch.from_numpy(job.start())
    return w, x, torch.from_numpy(job.controls())


def steps(job: Job) -> Case:
    w, x, u = scene(job)
    return Case(lambda: w.rollout(x, u), job.batch * job.steps, lambda xs: xs[-1, :1, 2].numpy())


def rollout_gradient(job: Job) -> Case:
    """Make the gradient of the height of the trunk at the end, with respect to all controls."""
    w, x, u = scene(job)

    def height(u: Tensor) -> tuple[Array, Tensor]:
        z = w.rollout(x, u)[-1, :, 2]
        return z.detach().numpy(), torch.autograd.grad(z.sum(), u)[0]

    def values(found: tuple[Array, Tensor]) -> Array:
        z, g = found
        return np.array([z[0], g[:, 0].norm().item()])

    leaf = u.requires_grad_()
    return Case(lambda: height(leaf), job.batch * job.steps, values)


VERSIONS = ("torch", "casadi", "llvmlite", "numpy")
FUNCTIONS = ("kinematics", "inverse_dynamics", "forward_dynamics")
SIMULATION = {"steps": steps, "rollout_gradient": rollout_gradient}
if __name__ == "__main__":
    known = dict.fromkeys(FUNCTIONS, value) | {f"{name}_gradient": gradient for name in FUNCTIONS}
    serve(VERSIONS, "float64", known | SIMULATION)
