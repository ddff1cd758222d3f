"""A robot of an MJCF file in both engines, and random states there and back."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import torch
from scipy.spatial.transform import Rotation

import costate as cs
from costate.sim import Newton, World


def random_rotation(random: np.random.Generator) -> np.ndarray:
    """A unit quaternion."""
    q = random.normal(size=4)
    return q / np.linalg.norm(q)


CONES = {"pyramidal": 0, "elliptic": 1}


@dataclass
class Twin:
    """The same MJCF in a world with the Newton contact model and in MuJoCo, solved as far as it goes."""

    world: World
    model: mujoco.MjModel
    data: mujoco.MjData

    @staticmethod
    def of(path: str | Path, cone: str, self_collision: bool = True) -> Twin:
        model = mujoco.MjModel.from_xml_path(str(path))
        option = model.opt
        option.integrator, option.solver, option.cone = 0, 2, CONES[cone]  # Euler, Newton
        option.tolerance, option.iterations, option.ls_iterations, option.ls_tolerance = 0.0, 100, 100, 1e-10
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the humanoid's tendons, which do nothing
            robot = cs.load_robot(path)
        (floor,) = robot.model.links[0].collisions
        world = World(
            robots={"robot": robot},
            scenery=[cs.Static("floor", floor)],
            actuators=cs.Torque(),
            contact=Newton(cone=cone),
            self_collision=self_collision,
            integrator="euler",
            dt=option.timestep,
            check=False,
        )
        return Twin(world, model, mujoco.MjData(model))

    def free_joints(self) -> list[tuple[int, int]]:
        """(first of qpos, first of qvel) of free joints."""
        m = self.model
        return [(m.jnt_qposadr[j], m.jnt_dofadr[j]) for j in range(m.njnt) if m.jnt_type[j] == 0]

    def state(self) -> np.ndarray:
        """Of MuJoCo's data, as ours."""
        q, v = self.data.qpos.copy(), self.data.qvel.copy()
        for i, k in self.free_joints():
            q[i + 3 : i + 7] = q[[i + 4, i + 5, i + 6, i + 3]]
            v[k : k + 3] = Rotation.from_quat(q[i + 3 : i + 7]).as_matrix().T @ v[k : k + 3]
        return np.concatenate([q, v])

    def step(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[tuple[int, int], np.ndarray]]:
        """(state, torques on the joints, state after a step, contacts: wrench in world axes per pair of geoms, summed)."""
        d = self.data
        mujoco.mj_normalizeQuat(self.model, d.qpos)
        d.qacc_warmstart[:] = 0
        mujoco.mj_forward(self.model, d)
        before, torque = self.state(), d.qfrc_actuator.copy()
        contacts: dict[tuple[int, int], np.ndarray] = {}
        for k in range(d.ncon):
            wrench = np.zeros(6)
            mujoco.mj_contactForce(self.model, d, k, wrench)
            frame = d.contact.frame[k].reshape(3, 3)
            pair = int(d.contact.geom[k, 0]), int(d.contact.geom[k, 1])
            world = np.concatenate([frame.T @ wrench[:3], frame.T @ wrench[3:]])
            contacts[pair] = contacts.get(pair, np.zeros(6)) + world
        mujoco.mj_step(self.model, d)
        return before, torque, self.state(), contacts

    def controls(self, torques: np.ndarray) -> torch.Tensor:
        """Of the world's motors."""
        return torch.tensor(torques[:, [d.v for d in self.world.setup.drives]])


def same_sign(twin: Twin, x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Quaternions with the sign of others."""
    x = x.copy()
    for i, _ in twin.free_joints():
        part = slice(i + 3, i + 7)
        x[:, part] *= np.sign((x[:, part] * like[:, part]).sum(1, keepdims=True))
    return x
