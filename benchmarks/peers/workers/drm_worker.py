"""differentiable-robot-model: batched torch, in float32, which is all it has; robots with a fixed base."""

# pyright: reportMissingImports=false
from __future__ import annotations

from functools import cache
from typing import Any

import torch
from differentiable_robot_model.robot_model import DifferentiableRobotModel
from worker import CHECKED, Case, Job, serve

torch.set_num_threads(1)


@cache
def robot(urdf: str) -> Any:
    return DifferentiableRobotModel(urdf)


def call(job: Job) -> Any:
    if job.floating:
        raise ValueError("differentiable-robot-model has no floating base")
    r, name = robot(job.urdf), job.quantity.removesuffix("_gradient")
    functions = {
        "kinematics": lambda q, v, tau: r.compute_forward_kinematics(q, job.link)[0],  # it updates all links
        "inverse_dynamics": lambda q, v, a: r.compute_inverse_dynamics(q, v, a, include_gravity=True),
        "forward_dynamics": lambda q, v, tau: r.compute_forward_dynamics(q, v, tau, include_gravity=True),
    }
    return functions[name]


def value(job: Job) -> Case:
    function, x = call(job), [torch.tensor(x, dtype=torch.float32) for x in job.states()]

    def run() -> Any:
        with torch.no_grad():
            return function(*x)

    return Case(run, job.batch, lambda y: y[:CHECKED].numpy())


def gradient(job: Job) -> Case:
    function = call(job)
    leaves = [torch.tensor(x, dtype=torch.float32, requires_grad=True) for x in job.states()]
    used = leaves[:1] if job.quantity.startswith("kinematics") else leaves

    def run() -> Any:
        return torch.autograd.grad(function(*leaves).sum(), used)

    return Case(run, job.batch, lambda g: g[-1][:CHECKED].numpy())


FUNCTIONS = ("kinematics", "inverse_dynamics", "forward_dynamics")
if __name__ == "__main__":
    cases = dict.fromkeys(FUNCTIONS, value) | {f"{name}_gradient": gradient for name in FUNCTIONS}
    serve(("differentiable-robot-model", "torch"), "float32", cases)
