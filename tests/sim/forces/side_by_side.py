"""A file of MJCF stepped beside MuJoCo: the same states, controls and activations in both."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import torch
from scipy.spatial.transform import Rotation

import costate as cs

INTEGRATORS = ("Euler", "implicitfast", "implicit", "RK4")
FREE, BALL = 0, 1


@dataclass
class Pair:
    """A file in both engines."""

    world: cs.World
    model: mujoco.MjModel

    @staticmethod
    def of(xml: str, integrator: str = "Euler", **options) -> Pair:
        """Nothing may be left out: warnings of the reader are errors."""
        xml = xml.replace("INTEGRATOR", integrator)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("error")
            path = Path(folder) / "model.xml"
            path.write_text(xml)
            robot = cs.load_robot(path)
        m = mujoco.MjModel.from_xml_string(xml)
        m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations, m.opt.ls_tolerance = 0.0, 100, 100, 1e-10
        scenery = [cs.Static(f"ground{k}", shape) for k, shape in enumerate(robot.model.links[0].collisions)]
        world = cs.World(
            {"robot": robot}, contact=cs.Newton(), actuators="file", check=False, scenery=scenery, **options
        )
        assert world.setup.dt == m.opt.timestep
        return Pair(world, m)

    def state(self, d: mujoco.MjData) -> np.ndarray:
        """MuJoCo's state as ours: quaternions end with w, linear velocities of free joints are in the axes of the body."""
        m, q, v = self.model, d.qpos.copy(), d.qvel.copy()
        for j in np.flatnonzero(m.jnt_type <= BALL):
            free = m.jnt_type[j] == FREE
            at, k = m.jnt_qposadr[j] + 3 * free, m.jnt_dofadr[j]
            q[at : at + 4] = q[[at + 1, at + 2, at + 3, at]]
            if free:
                v[k : k + 3] = Rotation.from_quat(q[at : at + 4]).as_matrix().T @ v[k : k + 3]
        return np.concatenate([q, v, d.act])

    def random(self, random: np.random.Generator, spread: float = 0.3, speed: float = 0.5) -> mujoco.MjData:
        m = self.model
        d = mujoco.MjData(m)
        step = spread * random.normal(size=m.nv)
        mujoco.mj_integratePos(m, d.qpos, step, 1.0)
        d.qvel[:], d.act[:] = speed * random.normal(size=m.nv), random.uniform(0, 1, size=m.na)
        return d

    def errors(self, starts: int = 5, steps: int = 10, seed: int = 0, control: float = 1.0, **spread: float) -> float:
        """The largest difference of states along random motions, each relative to the largest change of a state in a step."""
        random = np.random.default_rng(seed)
        m, worst = self.model, 0.0
        for _ in range(starts):
            d = self.random(random, **spread)
            states, controls = [self.state(d)], control * random.normal(size=(steps, m.nu))
            for u in controls:
                d.ctrl[:] = u
                mujoco.mj_step(m, d)
                states.append(self.state(d))
            theirs = np.array(states)
            assert np.isfinite(theirs).all() and not d.warning.number.any()
            ours = self.world.rollout(torch.tensor(theirs[0]), torch.tensor(controls)).numpy()
            for j in np.flatnonzero(m.jnt_type <= BALL):
                at = m.jnt_qposadr[j] + 3 * (m.jnt_type[j] == FREE)
                part = ours[:, at : at + 4]
                ours[:, at : at + 4] = part * np.sign((part * theirs[:, at : at + 4]).sum(1, keepdims=True))
            scale = np.abs(np.diff(theirs, axis=0)).max()
            worst = max(worst, float(np.abs(ours - theirs).max() / scale))
        return worst
