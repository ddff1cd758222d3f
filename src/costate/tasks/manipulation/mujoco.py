"""The same scene in MuJoCo: the second judge, with its own kinematics, dynamics, collision detection and solver.

Same are links, inertias, joints and their limits, the law of the servos, friction and the shapes that may touch. Needs mujoco
(extra "mjcf").
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import torch
from torch import Tensor

from costate.core.extras import needs
from costate.core.files import write_json
from costate.model.mjcf.writer import add_body, add_geom, numbers
from costate.tasks.manipulation.execute import OBJECT
from costate.tasks.manipulation.task import Manipulation
from costate.train.evaluate import at_least_one, tried
from costate.train.run import Run
from costate.train.streams import generator

EPISODES = 100
"""Number of episodes, if none is asked for."""
SEEN = {"contype": "0", "conaffinity": "0"}
FINGER, OTHER = 1, 2
"""Bits of contype and conaffinity: only the last links of fingers touch the floor."""


def mjcf(task: Manipulation, substeps: int | None = None) -> str:
    """Return the scene as MJCF. substeps: physics steps per control step; None: as many as our world has."""
    o, step = task.options, task.step
    root = ET.Element("mujoco", model=task.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    gravity = numbers((0.0, 0.0, -step.physics.gravity))
    dt = repr(o.dt / (substeps or o.servos.substeps))
    ET.SubElement(root, "option", timestep=dt, cone="elliptic", impratio="10", gravity=gravity)
    world = ET.SubElement(root, "worldbody")
    base = step.hand.base
    own = ET.SubElement(
        world, "body", name="root", pos=numbers(base.translation), quat=numbers(base.quaternion[[3, 0, 1, 2]])
    )
    model = step.hand.model
    elements = {model.links[0].name: own}
    for joint, link in zip(model.joints, model.links[1:], strict=True):
        elements[link.name] = add_body(elements[joint.parent], joint, link)
    tips, touching = {c.link for c in step.hand.tips}, set(task.touching())
    friction = numbers((o.friction, 0.005, 1e-4))
    for link in model.links:
        for shape in link.collisions if link.name in touching else ():
            touched = {"contype": str(FINGER if link.name in tips else OTHER), "conaffinity": "0", "friction": friction}
            add_geom(elements[link.name], shape, shape.pose, **touched)
    _add_object(world, task, friction)
    if step.physics.floor:
        floor = {"contype": "4", "conaffinity": str(FINGER), "friction": friction}
        ET.SubElement(world, "geom", {"type": "plane", "size": "2 2 0.1"} | floor)
    return ET.tostring(root, encoding="unicode")


def _add_object(world: ET.Element, task: Manipulation, friction: str) -> None:
    step = task.step
    body = ET.SubElement(world, "body", name=OBJECT, pos=numbers(task.middle))
    joint = task.body().model().joints[0]
    resists = {"frictionloss": repr(float(joint.friction)), "damping": repr(float(joint.damping))}
    kind = {"type": "hinge", "axis": "0 0 1", **resists} if step.physics.hinge else {"type": "free"}
    ET.SubElement(body, "joint", kind)
    ET.SubElement(body, "inertial", pos="0 0 0", mass="1", diaginertia="1 1 1")  # set for every episode
    shape = step.thing.shape()
    touched = {"contype": "8", "conaffinity": str(FINGER | OTHER | 4), "friction": friction, "name": OBJECT}
    add_geom(body, shape, shape.pose, **touched)


class MujocoHand:
    """The task in MuJoCo, with the face of a world: `rollout(task, ..., world)` takes it in place of one."""

    def __init__(self, task: Manipulation, substeps: int | None = None):
        try:
            import mujoco
        except ImportError as error:
            raise ImportError(needs("a hand in MuJoCo", "mujoco", "mjcf")) from error
        self._mj: Any = mujoco
        self.setup = task.world.setup
        self.substeps = substeps or task.options.servos.substeps
        self._n, self._is_free = task.step.nq, not task.step.physics.hinge
        self.model = mujoco.MjModel.from_xml_string(mjcf(task, self.substeps))
        self.data = mujoco.MjData(self.model)
        drives = self.setup.drives
        self._stiffness, self._damping, self._limit = (
            np.array([getattr(d, k) for d in drives]) for k in ("stiffness", "damping", "limit")
        )
        self._body, self._root = self.model.body(OBJECT).id, self.model.body("root").id
        self._geom = self.model.geom(OBJECT).id
        self._M, self._J = np.zeros((self.model.nv,) * 2), np.zeros((3, self.model.nv))

    def step(self, state: Tensor, control: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the states (B, nx) of our world after a control step, one episode after the other."""
        given = {k: v.double().numpy() for k, v in (params or {}).items()}
        found = [
            self._one(x, u, {name: v[k] for name, v in given.items()})
            for k, (x, u) in enumerate(zip(state.double().numpy(), control.double().numpy(), strict=True))
        ]
        return torch.tensor(np.array(found)).to(state.dtype)

    def _one(self, x: np.ndarray, u: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        mj, m, d, n = self._mj, self.model, self.data, self._n
        self._set(params)
        mj.mj_resetData(m, d)
        split = n + (7 if self._is_free else 1)
        q, v = x[:split].copy(), x[split:].copy()
        if (
            self._is_free
        ):  # ours: quaternion xyzw, velocities in body axes; MuJoCo: wxyz, the linear velocity in world axes
            q[n + 3 : n + 7] = q[[n + 6, n + 3, n + 4, n + 5]]
            v[n : n + 3] = _rotation(q[n + 3 : n + 7]) @ v[n : n + 3]
        d.qpos[:], d.qvel[:] = q, v
        for _ in range(self.substeps):
            mj.mj_step1(m, d)
            d.qfrc_applied[:n] = self._torques(u)
            mj.mj_step2(m, d)
        q, v = d.qpos.copy(), d.qvel.copy()
        if self._is_free:
            v[n : n + 3] = _rotation(q[n + 3 : n + 7]).T @ v[n : n + 3]
            q[n + 3 : n + 7] = q[[n + 4, n + 5, n + 6, n + 3]]
        return np.concatenate([q, v])

    def _torques(self, u: np.ndarray) -> np.ndarray:
        """Return the torques of `PositionServo`: stiffness (u - q') - damping v' + weight, clamped; q', v' are what they lead to.

        They must not be left to the damping of MuJoCo's joints: its contact forces are those for an explicit step, in which stiff
        damping throws the fingers off the object.
        """
        d, n, dt = self.data, self._n, self.model.opt.timestep
        gain = self._damping + dt * self._stiffness
        pull = self._stiffness * (u - d.qpos[:n]) + self._weight()
        force = pull - gain * d.qvel[:n] + d.qfrc_passive[:n] - d.qfrc_bias[:n]
        ahead = d.qvel[:n] + dt * np.linalg.solve(self._mass_matrix() + dt * np.diag(gain), force)
        return np.clip(pull - gain * ahead, -self._limit, self._limit)

    def _weight(self) -> np.ndarray:
        """Return the torques that carry the robot's weight."""
        m, d = self.model, self.data
        self._mj.mj_jacSubtreeCom(m, d, self._J, self._root)
        return -m.body_subtreemass[self._root] * (m.opt.gravity @ self._J)[: self._n]

    def _mass_matrix(self) -> np.ndarray:
        """Return the robot's mass matrix."""
        try:
            self._mj.mj_fullM(self.model, self.data, self._M)
        except TypeError:  # before MuJoCo 4
            self._mj.mj_fullM(self.model, self._M, self.data.qM)
        return self._M[: self._n, : self._n]

    def _set(self, params: Mapping[str, np.ndarray]) -> None:
        m, body, geom = self.model, self._body, self._geom
        m.body_mass[body] = params[f"mass:{OBJECT}/body"][0]
        m.body_pos[body] = params.get(f"translation:{OBJECT}/joint", m.body_pos[body])
        m.body_inertia[body] = np.diag(params[f"inertia:{OBJECT}/body"])
        m.geom_friction[:, 0] = params["friction"][0]
        size = params[f"size:{OBJECT}"]
        m.geom_size[geom] = size / 2 if len(size) == 3 else [size[0], size[1] / 2, 0.0]
        m.geom_rbound[geom] = float(np.linalg.norm(size))
        self._mj.mj_setConst(m, self.data)


def _rotation(q: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion wxyz."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def try_elsewhere(folder: Run, episodes: int | None, seed: int, files: bool) -> None:
    """Try a run's policy in MuJoCo beside our world, and print what is found; write transfer.json."""
    episodes = EPISODES if episodes is None else episodes
    at_least_one(episodes)
    task, policy = folder.task, folder.policy
    drawn = task.draw(episodes, generator("held out", seed, 0), torch.float64)
    found = {}
    for name, world in (("costate", task.world), ("MuJoCo", MujocoHand(task))):
        verdict = task.judge(tried(task, policy, drawn, world))
        found[name] = task.summarise(verdict).as_dict()
        print(name.ljust(10), *(f"{k} {v:.4g}" for k, v in found[name].items()), sep="  ", flush=True)
    write_json(folder.path / "transfer.json", found | {"seed": seed})
    written = [folder.path / "transfer.json"]
    if files:
        written.append(folder.path / "scene.xml")
        written[-1].write_text(mjcf(task))
    print("\nwrote", *written, sep="\n  ")
