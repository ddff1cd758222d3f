"""Pinocchio: its own C++ loop over the batch where it has one, else a call per sample from Python; Jacobians are its gradients."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
from worker import CHECKED, Array, Case, Job, reordered, serve

LOOPED = 128
"""Samples of a call that loops in Python: the time per sample does not depend on it."""


@cache
def model(urdf: str) -> Any:
    return pin.buildModelFromUrdf(urdf)


class Samples:
    """A job's states in Pinocchio's order: it visits the children of a link by name."""

    def __init__(self, job: Job):
        self.model = model(job.urdf)
        self.data = self.model.createData()
        names = [n for n in self.model.names if n in job.joints]
        index, base = reordered(job.joints, names), 6 * job.floating
        self.order = [*range(base), *(base + k for k in index)]
        q_base = 7 * job.floating
        q, v, tau = job.states()
        self.q = np.ascontiguousarray(q[:, [*range(q_base), *(q_base + k for k in index)]])
        self.v, self.tau = (np.ascontiguousarray(x[:, self.order]) for x in (v, tau))

    def back(self, x: Array) -> Array:
        """Reorder to our order, along the last axis."""
        result = np.empty_like(x)
        result[..., self.order] = x
        return result


def in_cpp(job: Job) -> Case:
    """Inverse and forward dynamics of the whole batch in one call."""
    s = Samples(job)
    loop = {"inverse_dynamics": pin.rneaInParallel, "forward_dynamics": pin.abaInParallel}[job.quantity]
    pool = pin.ModelPool(s.model, 1)
    columns = [np.asfortranarray(x.T) for x in (s.q, s.v, s.tau)]
    out = np.zeros((s.model.nv, job.batch), order="F")
    return Case(lambda: loop(1, pool, *columns, out), job.batch, lambda _: s.back(out.T[:CHECKED]))


def looped(job: Job, call: Callable[..., Any], value: Callable[..., Array]) -> Case:
    """call(s, q, v, tau) for every sample; value(s, ...) is what it found."""
    s = Samples(job)
    samples = list(zip(s.q, s.v, s.tau, strict=True))[:LOOPED]

    def run() -> None:
        for x in samples:
            call(s, *x)

    def values(_: None) -> Array:
        return np.array([(call(s, *x), value(s))[1] for x in samples[:CHECKED]])

    return Case(run, len(samples), values)


def kinematics(job: Job) -> Case:
    frame = model(job.urdf).getFrameId(job.link)
    return looped(
        job,
        lambda s, q, v, tau: pin.framesForwardKinematics(s.model, s.data, q),
        lambda s: s.data.oMf[frame].translation.copy(),
    )


def kinematics_gradient(job: Job) -> Case:
    frame = model(job.urdf).getFrameId(job.link)
    kept: list[Array] = [np.zeros(0)]

    def call(s: Samples, q: Array, v: Array, tau: Array) -> None:
        kept[0] = pin.computeFrameJacobian(s.model, s.data, q, frame, pin.LOCAL_WORLD_ALIGNED)

    return looped(job, call, lambda s: s.back(kept[0][:3].sum(0))[-len(job.joints) :])


def derivatives(job: Job) -> Case:
    """All Jacobians of inverse or forward dynamics; the last one is M, or its inverse."""
    forward = job.quantity.startswith("forward")
    compute = pin.computeABADerivatives if forward else pin.computeRNEADerivatives

    def value(s: Samples) -> Array:
        matrix = np.triu(s.data.Minv if forward else s.data.M)
        full = matrix + np.triu(matrix, 1).T
        return s.back(full.sum(0))[-len(job.joints) :]

    return looped(job, lambda s, q, v, tau: compute(s.model, s.data, q, v, tau), value)


if __name__ == "__main__":
    serve(
        ("pin", "numpy"),
        "float64",
        {
            "kinematics": kinematics,
            "inverse_dynamics": in_cpp,
            "forward_dynamics": in_cpp,
            "kinematics_gradient": kinematics_gradient,
            "inverse_dynamics_gradient": derivatives,
            "forward_dynamics_gradient": derivatives,
        },
    )
