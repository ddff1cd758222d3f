"""DART: a call per sample from Python; steps of one robot. It has no gradients."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

import dartpy as dart
import numpy as np
from skeleton_cases import Robot, functions
from worker import Case, Job, serve

HEIGHT = 5
"""Among the coordinates of a free joint: it turns first, then moves."""


def load(job: Job) -> Any:
    return dart.utils.DartLoader().parseSkeleton(job.free_urdf)


def ground(friction: float) -> Any:
    skeleton = dart.dynamics.Skeleton("ground")
    joint, body = skeleton.createWeldJointAndBodyNodePair(None)
    node = body.createShapeNode(dart.dynamics.BoxShape(np.array([20.0, 20.0, 0.2])))
    node.createCollisionAspect()
    node.createDynamicsAspect().setFrictionCoeff(friction)
    joint.setTransformFromParentBodyNode(dart.math.Isometry3(np.eye(3), np.array([0.0, 0.0, -0.1])))
    return skeleton


def steps(job: Job) -> Case:
    robot = Robot(load(job), job)
    robot.spring(job)
    s = robot.skeleton
    for k in range(s.getNumBodyNodes()):
        for node in s.getBodyNode(k).getShapeNodes():
            if node.hasDynamicsAspect():
                node.getDynamicsAspect().setFrictionCoeff(job.friction)
    world = dart.simulation.World()
    world.setGravity([0.0, 0.0, -9.81])
    world.setTimeStep(job.dt)
    world.addSkeleton(ground(job.friction))
    world.addSkeleton(s)
    start, none = robot.positions(job.start()), np.zeros(job.nv)
    u = np.zeros((job.steps, job.nv))
    u[:, 6:] = job.controls()[:, 0]
    u = u[:, robot.order]

    def run() -> float:
        s.setPositions(start)
        s.setVelocities(none)
        for row in u:
            s.setForces(row)
            world.step()
        return s.getPositions()[HEIGHT]

    return Case(run, job.steps, lambda z: np.array([z]))


if __name__ == "__main__":
    serve(("dartpy", "numpy"), "float64", functions(load, "Forces") | {"steps": steps})
