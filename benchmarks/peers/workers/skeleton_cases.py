"""Functions of DART's skeletons, which Nimble has too: a call per sample from Python."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from worker import CHECKED, Array, Case, Job, Make, reordered

LOOPED = 128
"""Samples of a call that loops in Python: the time per sample does not depend on it."""
FREE = [3, 4, 5, 0, 1, 2]
"""A free joint turns first, then moves."""


class Robot:
    """A skeleton, and the job's order of its coordinates."""

    def __init__(self, skeleton: Any, job: Job):
        self.skeleton = skeleton
        names = [dof.getName() for dof in skeleton.getDofs()]
        index = reordered(job.joints, [n for n in names if n in job.joints])
        base = FREE if job.floating else []
        self.order = [*base, *(len(base) + k for k in index)]
        """Of velocities: x_theirs = x[..., order]."""
        self.floating = job.floating

    def positions(self, q: Array) -> Array:
        """Convert ours: a quaternion that says no rotation is a rotation vector of zeros."""
        if self.floating:
            q = np.concatenate([q[..., :3], np.zeros_like(q[..., :3]), q[..., 7:]], axis=-1)
        return q[..., self.order]

    def back(self, x: Array) -> Array:
        result = np.empty_like(x)
        result[..., self.order] = x
        return result

    def spring(self, job: Job) -> None:
        """Springs and dampers in the joints."""
        for dof in self.skeleton.getDofs():
            if dof.getName() in job.joints:
                dof.setSpringStiffness(job.stiffness)
                dof.setRestPosition(job.rest[job.joints.index(dof.getName())])
                dof.setDampingCoefficient(job.damping)


def functions(load: Callable[[Job], Any], forces: str) -> dict[str, Make]:
    """load: reads the robot's file. forces: what the skeleton calls its joint forces."""

    def looped(job: Job, call: Callable[[Any, Array, Array, Array], Array], vector: bool = True) -> Case:
        robot = Robot(load(job), job)
        q, v, tau = (x[:LOOPED] for x in job.states())
        rows = list(zip(robot.positions(q), v[:, robot.order], tau[:, robot.order], strict=True))

        def run() -> list[Array]:
            return [call(robot.skeleton, *row) for row in rows]

        def values(found: list[Array]) -> Array:
            return np.array([robot.back(np.array(x)) if vector else x for x in found[:CHECKED]])

        return Case(run, len(rows), values)

    def kinematics(job: Job) -> Case:
        def call(s: Any, q: Array, v: Array, tau: Array) -> Array:
            s.setPositions(q)
            poses = [s.getBodyNode(k).getWorldTransform() for k in range(s.getNumBodyNodes())]
            return poses[index].translation()

        s = load(job)
        index = [s.getBodyNode(k).getName() for k in range(s.getNumBodyNodes())].index(job.link)
        return looped(job, call, vector=False)

    def inverse_dynamics(job: Job) -> Case:
        def call(s: Any, q: Array, v: Array, a: Array) -> Array:
            s.setPositions(q)
            s.setVelocities(v)
            s.setAccelerations(a)
            s.computeInverseDynamics()
            return getattr(s, f"get{forces}")()

        return looped(job, call)

    def forward_dynamics(job: Job) -> Case:
        def call(s: Any, q: Array, v: Array, tau: Array) -> Array:
            s.setPositions(q)
            s.setVelocities(v)
            getattr(s, f"set{forces}")(tau)
            s.computeForwardDynamics()
            return s.getAccelerations()

        return looped(job, call)

    made = (kinematics, inverse_dynamics, forward_dynamics)
    return {make.__name__: make for make in made}
