"""PyBullet: a call per sample from Python. It has no batch, no forward dynamics of its own, and no gradients."""

# pyright: reportMissingImports=false
from __future__ import annotations

import numpy as np
import pybullet
from worker import CHECKED, Array, Case, Job, reordered, serve

LOOPED = 128
"""Samples of a call that loops in Python: the time per sample does not depend on it."""


class Body:
    """The robot in an engine of its own."""

    def __init__(self, job: Job, height: float = 0.0):
        self.client = pybullet.connect(pybullet.DIRECT)
        self.call = {"physicsClientId": self.client}
        urdf, flags = job.free_urdf if job.floating else job.urdf, pybullet.URDF_USE_INERTIA_FROM_FILE
        self.id = pybullet.loadURDF(urdf, [0, 0, height], useFixedBase=not job.floating, flags=flags, **self.call)
        infos = [
            pybullet.getJointInfo(self.id, k, **self.call) for k in range(pybullet.getNumJoints(self.id, **self.call))
        ]
        self.links = {info[12].decode(): info[0] for info in infos}
        moving = [info for info in infos if info[2] != pybullet.JOINT_FIXED]
        self.joints = [info[0] for info in moving]
        self.order = reordered(job.joints, [info[1].decode() for info in moving])


def kinematics(job: Job) -> Case:
    body = Body(job)
    joints = job.states()[0][:LOOPED, -len(job.joints) :]
    q = joints[:, body.order].tolist()
    links, link = list(body.links.values()), body.links[job.link]

    def place(row: list[float]) -> None:
        pybullet.resetJointStatesMultiDof(body.id, body.joints, [[x] for x in row], **body.call)
        pybullet.getLinkStates(body.id, links, computeForwardKinematics=1, **body.call)

    def position(row: list[float]) -> Array:
        place(row)
        return np.array(pybullet.getLinkState(body.id, link, computeForwardKinematics=1, **body.call)[4])

    def run() -> None:
        for row in q:
            place(row)

    return Case(run, len(q), lambda _: np.array([position(row) for row in q[:CHECKED]]))


def inverse_dynamics(job: Job) -> Case:
    if job.floating:
        raise ValueError("PyBullet computes inverse dynamics of fixed bases")
    body = Body(job)
    pybullet.setGravity(0, 0, -9.81, **body.call)
    samples = list(zip(*(x[:LOOPED, body.order].tolist() for x in job.states()), strict=True))
    back = np.argsort(body.order)

    def run() -> list[tuple[float, ...]]:
        return [pybullet.calculateInverseDynamics(body.id, *x, **body.call) for x in samples]

    return Case(run, len(samples), lambda found: np.array(found[:CHECKED])[:, back])


def steps(job: Job) -> Case:
    """One robot on a plane; motors hold the joints, for PyBullet has no springs in them. The random torques are left out."""
    body = Body(job, job.height)
    plane = pybullet.createCollisionShape(pybullet.GEOM_PLANE, **body.call)
    ground = pybullet.createMultiBody(0, plane, **body.call)
    pybullet.setGravity(0, 0, -9.81, **body.call)
    pybullet.setPhysicsEngineParameter(fixedTimeStep=job.dt, numSolverIterations=50, **body.call)
    for k in (-1, *range(pybullet.getNumJoints(body.id, **body.call))):
        pybullet.changeDynamics(
            body.id, k, lateralFriction=job.friction, linearDamping=0, angularDamping=0, **body.call
        )
    pybullet.changeDynamics(ground, -1, lateralFriction=1.0, **body.call)
    rest = [job.rest[k] for k in body.order]
    pybullet.resetJointStatesMultiDof(body.id, body.joints, [[x] for x in rest], **body.call)
    pybullet.setJointMotorControlArray(
        body.id, body.joints, pybullet.POSITION_CONTROL, rest, forces=[100.0] * len(rest), **body.call
    )
    begin = pybullet.saveState(**body.call)

    def run() -> float:
        pybullet.restoreState(begin, **body.call)
        for _ in range(job.steps):
            pybullet.stepSimulation(**body.call)
        return pybullet.getBasePositionAndOrientation(body.id, **body.call)[0][2]

    return Case(run, job.steps, lambda height: np.array([height]))


if __name__ == "__main__":
    made = (kinematics, inverse_dynamics, steps)
    serve(("pybullet", "numpy"), "float64", {make.__name__: make for make in made})
