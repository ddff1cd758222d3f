"""Reference values by Pinocchio for a robot, in our conventions; mimic joints and passive forces are included."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]

from costate.audit.pinocchio_model import Oracle, read_urdf, to_pinocchio
from costate.core.arrays import Array
from costate.model import Model
from costate.model.joint import JOINT_SIZES

WORLD = pin.LOCAL_WORLD_ALIGNED
FRICTION_SPEED = 1e-2
"""Speed at which smooth joint friction has nearly its full size [rad/s or m/s]."""


class Reference:
    """A robot in Pinocchio.

    Pinocchio gets the robot with its mimic joints set free; the coupling q_free = E q + o is applied here: torques are
    E^T tau_free, the mass matrix is E^T M_free E, Jacobians are J_free E.

    urdf: File that Pinocchio reads by itself; without one the model is converted.
    """

    def __init__(self, model: Model, urdf: str | Path | None = None):
        self.model = model
        self.free = replace(model, joints=tuple(replace(j, mimic=None) for j in model.joints), home=None)
        self.oracle: Oracle = to_pinocchio(self.free) if urdf is None else read_urdf(self.free, urdf)

    @cached_property
    def coupling(self) -> Array:
        """Matrix E, shape (nv of the free robot, nv)."""
        E = np.zeros((self.free.nv, self.model.nv))
        for joint, row, column in zip(self.model.joints, self.free.v_index, self.model.v_index, strict=True):
            scale = joint.mimic.multiplier if joint.mimic else 1.0
            n = JOINT_SIZES[joint.kind][1]
            E[row : row + n, column : column + n] = scale * np.eye(n)
        return E

    def free_q(self, q: Array) -> Array:
        """Return the configuration of the free robot."""
        parts = [np.zeros(0)]
        for joint, start in zip(self.model.joints, self.model.q_index, strict=True):
            own = q[start : start + JOINT_SIZES[joint.kind][0]]
            parts.append(joint.mimic.multiplier * own + joint.mimic.offset if joint.mimic else own)
        return np.concatenate(parts)

    def __call__(self, x: dict[str, Array], link: str) -> dict[str, Array]:
        """Return quantities at a state, by the name of the method of Robot. x: q, v, a, tau, maybe a wrench (6,) on the link."""
        wrench = x.get("wrench", np.zeros(6))
        m, d, back, E = self.oracle.model, self.oracle.data, self.oracle.back, self.coupling
        q_free = self.free_q(x["q"])
        q, (v, a) = self.oracle.configuration(q_free), ((E @ x[k])[self.oracle.order] for k in "va")
        frame = self.oracle.frame(link)
        pin.forwardKinematics(m, d, q, v, a)
        pin.computeJointJacobiansTimeVariation(m, d, q, v)
        pin.updateFramePlacements(m, d)
        M = pin.crba(m, d, q)
        M = E.T @ back(back(np.triu(M) + np.triu(M, 1).T).T) @ E
        J = back(pin.getFrameJacobian(m, d, frame, WORLD).reshape(6, -1)) @ E
        passive = E.T @ self._resistance(q_free, E @ x["v"])
        bias = E.T @ back(pin.nonLinearEffects(m, d, q, v)) + passive
        com = pin.centerOfMass(m, d, q).copy()
        return {
            "position": d.oMf[frame].translation.copy(),
            "rotation": d.oMf[frame].rotation.copy(),
            "jacobian": J,
            "jacobian_dot": back(pin.getFrameJacobianTimeVariation(m, d, frame, WORLD).reshape(6, -1)) @ E,
            "link_velocity": pin.getFrameVelocity(m, d, frame, WORLD).vector,
            "link_acceleration": pin.getFrameClassicalAcceleration(m, d, frame, WORLD).vector,
            "mass_matrix": M,
            "inverse_dynamics": E.T @ back(pin.rnea(m, d, q, v, a)) + passive,
            "inverse_dynamics_pushed": E.T @ back(pin.rnea(m, d, q, v, a)) + passive - J.T @ wrench,
            "bias_forces": bias,
            "gravity_torques": E.T @ back(pin.computeGeneralizedGravity(m, d, q)),
            "forward_dynamics": self._acceleration(q, v, x, M, bias),
            "forward_dynamics_pushed": np.linalg.solve(M, x["tau"] + J.T @ wrench - bias),
            "center_of_mass": com,
            "com_jacobian": back(pin.jacobianCenterOfMass(m, d, q).reshape(3, -1)) @ E,
            "kinetic_energy": x["v"] @ M @ x["v"] / 2,
            "potential_energy": self._springs(q_free) - pin.computeTotalMass(m) * self.model.gravity @ com,
            "momentum_matrix": back(pin.computeCentroidalMap(m, d, q).reshape(6, -1)) @ E,
            "momentum": pin.computeCentroidalMomentum(m, d, q, v).vector,
        }

    def _acceleration(self, q: Array, v: Array, x: dict[str, Array], M: Array, bias: Array) -> Array:
        """Compute accelerations by the articulated body algorithm, or with the mass matrix where joints are coupled."""
        if any(j.mimic for j in self.model.joints):
            return np.linalg.solve(M, x["tau"] - bias)
        tau = x["tau"] - self._resistance(x["q"], x["v"])
        return self.oracle.back(pin.aba(self.oracle.model, self.oracle.data, q, v, tau[self.oracle.order]))

    def _resistance(self, q: Array, v: Array) -> Array:
        """Compute the torques of damping, friction and springs of the free robot."""
        tau = np.zeros(self.free.nv)
        for j, iq, iv in zip(self.free.joints, self.free.q_index, self.free.v_index, strict=True):
            own = slice(iv, iv + j.nv)
            tau[own] = j.damping * v[own] + j.friction * np.tanh(v[own] / FRICTION_SPEED)
            if j.stiffness:
                if j.nv != 1:
                    raise ValueError(f"Pinocchio has no springs; those of {j.kind} joints are not added here")
                tau[iv] += j.stiffness * (q[iq] - j.rest)
        return tau

    def _springs(self, q: Array) -> float:
        pairs = zip(self.free.joints, self.free.q_index, strict=True)
        return sum(j.stiffness * (q[iq] - j.rest) ** 2 / 2 for j, iq in pairs if j.stiffness)
