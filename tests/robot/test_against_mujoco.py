"""Compiled robots from MJCF files against MuJoCo: mass matrix and forward dynamics, without contact.

MuJoCo gives a free joint's linear velocity in world axes and its angular velocity in the body's; here both are in the
body's axes. With w = T v and T = diag(R, 1, ...), M = T^T M_mj T, tau = T^T tau_mj, and accelerations are
dw/dt = T (a + omega x v, 0, ...).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.robot.reference import relative_error

import costate as cs
from costate.model import ModelWarning

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"

TOLERANCE = 1e-9
SAMPLES = 4


class Twin:
    """The same robot in both engines. MuJoCo has no contacts, limits, friction loss, and actuators of its own."""

    def __init__(self, name: str):
        path = ASSETS / f"{name}.xml"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            self.robot = cs.load_robot(path)
        self.mj = mujoco.MjModel.from_xml_path(str(path))
        flags = mujoco.mjtDisableBit
        self.mj.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_ACTUATION)
        self.data = mujoco.MjData(self.mj)
        self.free = self.mj.njnt > 0 and int(self.mj.jnt_type[0]) == int(mujoco.mjtJoint.mjJNT_FREE)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Ours -> qpos: quaternions are w first there."""
        return np.r_[q[:3], q[6], q[3:6], q[7:]] if self.free else q

    def turn(self, q: np.ndarray) -> np.ndarray:
        """T: our velocities -> MuJoCo's."""
        T = np.eye(self.robot.nv)
        if self.free:
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, self.configuration(q)[3:7])
            T[:3, :3] = R.reshape(3, 3)
        return T

    def acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        T = self.turn(q)
        self.place(q, v)
        self.data.qfrc_applied[:] = np.linalg.solve(T.T, tau)
        mujoco.mj_forward(self.mj, self.data)
        a = np.linalg.solve(T, self.data.qacc)
        if self.free:
            a[:3] -= np.cross(v[3:6], v[:3])
        return a

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        T, M = self.turn(q), np.zeros((self.mj.nv, self.mj.nv))
        self.place(q, np.zeros(self.mj.nv))
        mujoco.mj_forward(self.mj, self.data)
        for k, column in enumerate(np.eye(self.mj.nv)):
            mujoco.mj_mulM(self.mj, self.data, M[k], column)
        return T.T @ M @ T

    def place(self, q: np.ndarray, v: np.ndarray) -> None:
        self.data.qpos[:], self.data.qvel[:] = self.configuration(q), self.turn(q) @ v


@pytest.fixture(scope="module", params=["ant", "half_cheetah", "humanoid"])
def twin(request: pytest.FixtureRequest) -> Twin:
    return Twin(request.param)


def states(twin: Twin) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(3)
    v, tau = (torch.randn(SAMPLES, twin.robot.nv, dtype=torch.float64, generator=random) for _ in range(2))
    return twin.robot.random_configuration(SAMPLES, generator=random), v, 10 * tau


def test_mass_matrix(twin: Twin) -> None:
    q, _, _ = states(twin)
    M = twin.robot.mass_matrix(q)
    for k in range(SAMPLES):
        assert relative_error(M[k], twin.mass_matrix(q[k].numpy())) <= TOLERANCE


def test_forward_dynamics(twin: Twin) -> None:
    """With damping, springs and armature, which these robots have."""
    q, v, tau = states(twin)
    a = twin.robot.forward_dynamics(q, v, tau)
    for k in range(SAMPLES):
        expected = twin.acceleration(q[k].numpy(), v[k].numpy(), tau[k].numpy())
        assert relative_error(a[k], expected) <= TOLERANCE
