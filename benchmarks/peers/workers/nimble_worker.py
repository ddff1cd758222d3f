"""Nimble: DART with gradients. A call per sample from Python; steps and roll-outs of one robot by its torch layer."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

import nimblephysics as nimble
import numpy as np
import torch
from skeleton_cases import Robot, functions
from worker import Array, Case, Job, serve

HEIGHT = 5
"""Among the coordinates of a free joint: it turns first, then moves."""
torch.set_num_threads(1)


def load(job: Job) -> Any:
    return nimble.simulation.World().loadSkeleton(job.free_urdf)


def scene(job: Job) -> tuple[Any, Robot]:
    world = nimble.simulation.World()
    world.setGravity([0.0, 0.0, -9.81])
    world.setTimeStep(job.dt)
    robot = Robot(world.loadSkeleton(job.free_urdf), job)
    robot.spring(job)
    ground = nimble.dynamics.Skeleton()
    joint, body = ground.createWeldJointAndBodyNodePair()
    below = nimble.math.Isometry3()
    below.set_translation([0.0, 0.0, -0.1])
    joint.setTransformFromParentBodyNode(below)
    body.createShapeNode(nimble.dynamics.BoxShape([20.0, 20.0, 0.2])).createCollisionAspect()
    body.setFrictionCoeff(job.friction)
    world.addSkeleton(ground)
    for k in range(robot.skeleton.getNumBodyNodes()):
        robot.skeleton.getBodyNode(k).setFrictionCoeff(job.friction)
    world.setActionSpace(list(range(6, job.nv)))
    return world, robot


def inputs(job: Job, robot: Robot) -> tuple[torch.Tensor, torch.Tensor]:
    state = np.concatenate([robot.positions(job.start()), np.zeros(job.nv)])
    joints = [k - 6 for k in robot.order[6:]]
    return torch.from_numpy(state), torch.from_numpy(job.controls()[:, 0][:, joints].copy())


def steps(job: Job) -> Case:
    world, robot = scene(job)
    state, u = inputs(job, robot)
    rows, start = u.numpy(), state.numpy()

    def run() -> float:
        world.setState(start)
        for row in rows:
            world.setAction(row)
            world.step()
        return world.getState()[HEIGHT]

    return Case(run, job.steps, lambda z: np.array([z]))


def rollout_gradient(job: Job) -> Case:
    world, robot = scene(job)
    start, u = inputs(job, robot)
    u.requires_grad_()

    def run() -> tuple[float, torch.Tensor]:
        state = start
        for row in u:
            state = nimble.timestep(world, state, row)
        return state[HEIGHT].item(), torch.autograd.grad(state[HEIGHT], u)[0]

    def values(found: tuple[float, torch.Tensor]) -> Array:
        return np.array([found[0], found[1].norm().item()])

    return Case(run, job.steps, values)


if __name__ == "__main__":
    made = functions(load, "ControlForces") | {"steps": steps, "rollout_gradient": rollout_gradient}
    serve(("nimblephysics", "torch", "numpy"), "float64", made)
