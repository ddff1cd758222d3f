"""Mass matrix and bias forces of MJCF robots against MuJoCo, which reads the same files with its own compiler."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.physics.evaluate import call
from tests.physics.strategies import random_state

from costate.model import ModelWarning, read_mjcf
from costate.model.model import Model
from costate.physics import Passive

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def to_mujoco(model: Model, mj: mujoco.MjModel, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return MuJoCo's qpos, and the matrix T with qvel = T v.

    A free joint has its linear velocity in world axes there, and quaternions are ordered w, x, y, z.
    """
    qpos, T = np.zeros(mj.nq), np.zeros((mj.nv, model.nv))
    for joint, qi, vi in zip(model.joints, model.q_index, model.v_index, strict=True):
        if joint.kind == "fixed":
            continue
        index = mj.joint(joint.name)
        own = q[qi : qi + joint.nq]
        to, at = index.qposadr[0], index.dofadr[0]
        if joint.kind == "floating":
            qpos[to : to + 7] = [*own[:3], own[6], *own[3:6]]
            T[at : at + 3, vi : vi + 3] = Rotation.from_quat(own[3:]).as_matrix()
            T[at + 3 : at + 6, vi + 3 : vi + 6] = np.eye(3)
        else:
            qpos[to] = own[0]
            T[at, vi] = 1
    return qpos, T


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "humanoid", "hopper", "walker2d", "swimmer"])
def test_mass_matrix_and_bias_forces(name: str) -> None:
    path = ASSETS / f"{name}.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # parts of the file that do not belong to the robot
        model = read_mjcf(path)
    mj = mujoco.MjModel.from_xml_path(str(path))
    mj.opt.density = mj.opt.viscosity = 0.0  # the swimmer's water is not part of the robot
    data = mujoco.MjData(mj)
    q, v, _ = random_state(model)
    qpos, T = to_mujoco(model, mj, q)
    data.qpos, data.qvel = qpos, T @ v
    mujoco.mj_forward(mj, data)
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, M)
    ours = call(model, "mass_matrix", {"q": q})["M"]
    np.testing.assert_allclose(ours, T.T @ M @ T, rtol=0, atol=1e-12 * np.abs(M).max())

    # qvel = T v, so d qvel/dt = T a + dT/dt v; for a free joint the latter is R (omega x v_linear).
    drift = np.zeros(mj.nv)
    for joint, vi in zip(model.joints, model.v_index, strict=True):
        if joint.kind == "floating":
            at = mj.joint(joint.name).dofadr[0]
            drift[at : at + 3] = T[at : at + 3, vi : vi + 3] @ np.cross(v[vi + 3 : vi + 6], v[vi : vi + 3])
    h = call(model, "bias_forces", {"q": q, "v": v}, passive=None)["h"]
    expected = T.T @ (data.qfrc_bias + M @ drift)
    np.testing.assert_allclose(h, expected, rtol=0, atol=1e-11 * np.abs(expected).max())

    passive = call(model, "bias_forces", {"q": q, "v": v}, passive=Passive(friction=False))["h"] - h
    np.testing.assert_allclose(passive, -T.T @ data.qfrc_passive, rtol=0, atol=1e-11 * max(np.abs(passive).max(), 1e-3))
