"""DART's boxed LCP on the states of cubes: its own contact points and impulses, judged as problems of velocities.

Its solvers cannot be called alone from Python (dartpy 6.20 declares their matrices as single numbers), so whole steps are made, and
the contacts that they report are judged.
"""

# pyright: reportAttributeAccessIssue=false, reportMissingImports=false
# (dartpy is a compiled module without types)
from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import costate as cs
from benchmarks.convergence.problems import Problems
from benchmarks.convergence.truth import residual

GRAVITY = np.array([0.0, 0.0, -9.81])
GROUND = 20.0
"""Edge of the box that is the ground [m]."""


class Cubes:
    """DART's world of the free cubes of a world, on the ground."""

    def __init__(self, world: cs.World):
        import dartpy as dart

        self.ours, self.dart, self.theirs = world, dart, dart.simulation.World()
        self.theirs.setTimeStep(world.dt)
        self.theirs.setGravity(GRAVITY)
        self.theirs.getConstraintSolver().setCollisionDetector(dart.collision.DARTCollisionDetector())
        self.friction = float(getattr(world.setup.contact, "friction"))  # noqa: B009
        self._add("ground", GROUND, None)[0].setTransformFromParentBodyNode(
            _isometry(dart, np.eye(3), [0, 0, -GROUND / 2])
        )
        edges = {
            c.link: float(np.ravel(c.shape.size)[0]) for c in world.setup.scene.colliders if c.link.endswith("/body")
        }
        self.names = list(edges)
        model = world.setup.scene.model
        self.inertias = [model.link(n).inertia for n in self.names]
        self.joints = [self._add(n, edges[n], i)[0] for n, i in zip(self.names, self.inertias, strict=True)]

    def _add(self, name: str, edge: float, inertia: Any) -> tuple[Any, Any]:
        own = self.dart.dynamics
        skeleton = own.Skeleton(name)
        joint, body = (
            skeleton.createWeldJointAndBodyNodePair() if inertia is None else skeleton.createFreeJointAndBodyNodePair()
        )
        shape = body.createShapeNode(own.BoxShape([edge] * 3))
        shape.createCollisionAspect()
        shape.createDynamicsAspect().setFrictionCoeff(self.friction)
        if inertia is None:
            skeleton.setMobile(False)
        else:
            body.setInertia(own.Inertia(inertia.mass, [0, 0, 0], inertia.matrix))
        self.theirs.addSkeleton(skeleton)
        return joint, body

    def solve(self, x: np.ndarray) -> tuple[float, float] | None:
        """Make a step from a state (nx,); return its seconds, and the residual [m/s]; None if nothing touches."""
        nq, v0 = self.ours.nq, []
        for k, joint in enumerate(self.joints):
            at, v = x[7 * k : 7 * k + 7], x[nq + 6 * k : nq + 6 * k + 6]
            R = Rotation.from_quat(at[3:]).as_matrix()
            joint.setTransform(_isometry(self.dart, R, at[:3]))
            joint.setLinearVelocity(R @ v[:3])
            joint.setAngularVelocity(R @ v[3:])
            v0.append(np.concatenate([R @ v[:3], R @ v[3:]]))
        start = time.perf_counter()
        self.theirs.step()
        seconds = time.perf_counter() - start
        found = self.theirs.getLastCollisionResult()
        contacts = [found.getContact(k) for k in range(found.getNumContacts())]
        return (seconds, float(residual(self._problem(x, v0, contacts))[0])) if contacts else None

    def _problem(self, x: np.ndarray, v0: list[np.ndarray], contacts: list[Any]) -> Problems:
        h, n, rows, l, t = self.ours.dt, len(self.names), [], [], []
        M = np.zeros((6 * n, 6 * n))
        for k, inertia in enumerate(self.inertias):  # cubes: the same in all axes
            M[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = np.diag([inertia.mass] * 3 + [inertia.matrix[0, 0]] * 3)
        for c in contacts:
            first = np.eye(3)[int(np.argmin(np.abs(c.normal)))]
            side = np.cross(c.normal, first) / np.linalg.norm(np.cross(c.normal, first))
            axes = np.array([c.normal, side, np.cross(c.normal, side)])
            J = np.zeros((3, 6 * n))
            for which, sign in ((c.collisionObject1, 1), (c.collisionObject2, -1)):
                name = which.getShapeFrame().asShapeNode().getBodyNodePtr().getSkeleton().getName()
                if name != "ground":
                    k = self.names.index(name)
                    r = c.point - x[7 * k : 7 * k + 3]
                    J[:, 6 * k : 6 * k + 6] = sign * np.hstack([axes, np.cross(r, axes)])
            rows.append(J)
            l.append(h * axes @ c.force)
            t.append([0.0, 0.0, 0.0])
        p = M @ np.concatenate([v + h * np.concatenate([GRAVITY, np.zeros(3)]) for v in v0])
        m, none = len(contacts), np.zeros((1, 0))
        kinds, blocks = ("contact",) * m, tuple((3 * k, 3 * k + 1, 3 * k + 2) for k in range(m))
        arrays = (M, np.concatenate(rows), p, np.concatenate(t), np.full(m, self.friction))
        given = [a[None] for a in arrays]
        return Problems(kinds, blocks, *given, none, none, none, np.concatenate(l)[None], np.zeros(1))  # pyright: ignore


def _isometry(dart: Any, R: np.ndarray, p: Any) -> Any:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return dart.math.Isometry3(T)
