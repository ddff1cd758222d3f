"""Reference values by MuJoCo for the robot of an MJCF file, in our conventions, without contact, limits and actuators.

MuJoCo gives a free joint's linear velocity in world axes; here it is in the body's. With w = T v and T = diag(R, 1, ...),
M = T^T M_mj T, torques are T^T tau_mj, Jacobians J_mj T, and accelerations dw/dt = T (a + omega x v, 0, ...).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.model import Model


class Reference:
    """The robot of an MJCF file in MuJoCo."""

    def __init__(self, model: Model, path: str | Path):
        mujoco: Any = import_module("mujoco")  # without types
        self.mujoco = mujoco
        self.mj: Any = mujoco.MjModel.from_xml_path(str(path))
        flags = mujoco.mjtDisableBit
        self.mj.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_ACTUATION)
        self.data: Any = mujoco.MjData(self.mj)
        self.model = model
        if (self.mj.nq, self.mj.nv) != (model.nq, model.nv):
            raise ValueError(f"MuJoCo reads {self.mj.nv} velocities from {Path(path).name}, the robot has {model.nv}")
        if self.mj.dof_frictionloss.any():
            raise ValueError("MuJoCo's joint friction is a constraint, here it is smooth")

    def __call__(self, x: dict[str, Array], link: str) -> dict[str, Array]:
        """Return quantities at a state, by the name of the method of Robot. x: q, v, a, tau."""
        mj, d, T = self.mj, self.data, self._place(x["q"], x["v"])
        self.mujoco.mj_forward(mj, d)
        M, J = np.zeros((mj.nv, mj.nv)), np.zeros((6, mj.nv))
        for k, column in enumerate(np.eye(mj.nv)):
            self.mujoco.mj_mulM(mj, d, M[k], column)
        body = self._body(link)
        drift = self._drift(x["v"])
        bias = d.qfrc_bias - d.qfrc_passive
        found = {
            "mass_matrix": T.T @ M @ T,
            "bias_forces": T.T @ (bias + M @ T @ drift),
            "inverse_dynamics": T.T @ (M @ T @ (x["a"] + drift) + bias),
            "forward_dynamics": np.linalg.solve(T, np.linalg.solve(M, np.linalg.solve(T.T, x["tau"]) - bias)) - drift,
        }
        if body > 0:
            self.mujoco.mj_jacBody(mj, d, J[:3], J[3:], body)
            found |= {
                "position": d.xpos[body].copy(),
                "rotation": d.xmat[body].reshape(3, 3).copy(),
                "jacobian": J @ T,
                "link_velocity": J @ T @ x["v"],
            }
        return found

    def _body(self, link: str) -> int:
        """Find the index of a link's body, 0 or less if there is none. Our reader names nameless bodies by their index."""
        found = self.mujoco.mj_name2id(self.mj, int(self.mujoco.mjtObj.mjOBJ_BODY), link)
        unnamed = [k for k in range(self.mj.nbody) if not self.mj.body(k).name and link == f"body{k}"]
        return unnamed[0] if found < 0 and unnamed else found

    def _place(self, q: Array, v: Array) -> Array:
        """Put the robot into a state, and return T."""
        qpos, T = q.copy(), np.eye(self.mj.nv)
        for j in range(self.mj.njnt):
            kind, at, dof = int(self.mj.jnt_type[j]), int(self.mj.jnt_qposadr[j]), int(self.mj.jnt_dofadr[j])
            if kind > 1:  # slide, hinge
                continue
            start = at + 3 * (kind == 0)
            qpos[start : start + 4] = q[[start + 3, start, start + 1, start + 2]]  # w comes first
            if kind == 0:
                R = np.zeros(9)
                self.mujoco.mju_quat2Mat(R, qpos[start : start + 4])
                T[dof : dof + 3, dof : dof + 3] = R.reshape(3, 3)
        self.data.qpos[:], self.data.qvel[:] = qpos, T @ v
        return T

    def _drift(self, v: Array) -> Array:
        """Compute omega x v of free joints: dw/dt = T (a + drift)."""
        drift = np.zeros(self.mj.nv)
        for j in range(self.mj.njnt):
            if int(self.mj.jnt_type[j]) == 0:
                k = int(self.mj.jnt_dofadr[j])
                drift[k : k + 3] = np.cross(v[k + 3 : k + 6], v[k : k + 3])
        return drift
