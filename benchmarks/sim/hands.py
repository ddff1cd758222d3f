"""Hands that hold a cube, in both engines: states in which fingers touch it, from MuJoCo."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
import torch

import costate as cs
from benchmarks.mjcf.twin import Twin
from benchmarks.sim.mujoco_scene import Options, mjcf
from costate.sim import World

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
BLOCK = "envs/assets/hand/manipulate_block.xml"
"""Shadow hand and block of gymnasium-robotics, in the folder of the package."""
CUBE = 0.05
"""Edge of the cube [m]."""
HANDS = {
    "allegro_hand": ((0.04, 0.0, 0.02), (-9.81, 0.0, 0.0)),
    "shadow_hand": ((0.0, -0.04, 0.36), (0.0, 9.81, 0.0)),
}
"""Built-in hand -> where the cube begins [m], and gravity, which presses it into the palm [m/s^2]."""
CURL = (0.1, 0.8)
"""Share of their ranges by which fingers are bent at the beginning."""
TORQUE = 0.03
"""Size of the random torques [N m]."""
SETTLE = 0.2
"""Time for which the fingers close before the measurement [s]."""


@dataclass
class Hand:
    """A hand in both engines, with states in which it touches something."""

    name: str
    path: Path
    twin: Twin
    theirs: np.ndarray
    """MuJoCo's states, (batch, n)."""
    controls: np.ndarray
    """Controls, (batch, steps, nu)."""
    contacts: float
    """Mean number of contact points at the beginning."""

    @property
    def states(self) -> torch.Tensor:
        return torch.tensor(self.twin.to_ours(self.theirs[:, 1:]))  # the first number is the time

    def rollout(self) -> np.ndarray:
        model, data = self.twin.model, self.twin.data
        return np.asarray(mujoco.rollout.rollout(model, data, self.theirs, self.controls)[0])

    def world(self, mapped: bool | None = None) -> World:
        """Return the world of its file. mapped: whether contacts are solved pair by pair; None: its own choice."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # contact points that are not MuJoCo's
            return cs.load_world(self.path, check=False, contact=cs.Newton(mapped=mapped))


def hand_file(name: str, folder: Path) -> Path | None:
    """Return the MJCF of a hand, written into a folder where it is a built-in one; None if its package is not installed."""
    if name == "block":
        package = importlib.util.find_spec("gymnasium_robotics")
        return Path(str(package.origin)).parent / BLOCK if package else None
    _, gravity = HANDS[name]
    cube = cs.Body("cube", [cs.shapes.box((CUBE,) * 3)], mass=0.1)
    robot = cs.load_robot(name)
    world = cs.World(
        {"hand": robot}, [cube], contact=cs.Newton(), self_collision=True, gravity=gravity, dt=0.002, check=False
    )
    path = folder / f"{name}.xml"
    path.write_text(mjcf(world, Options(cone="pyramidal", friction=1.0, implicit_damping=True)))
    return path


def hand(name: str, path: Path, batch: int, steps: int) -> Hand:
    """Return a hand, its fingers bent at random around what it holds, after they have moved for a while."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = Twin.of(path)
    twin.model = m = mujoco.MjModel.from_xml_path(str(path))  # with the tolerances of the file
    m.opt.solver, m.opt.iterations, m.opt.tolerance = mujoco.mjtSolver.mjSOL_NEWTON.value, 100, 1e-8
    twin.data = d = mujoco.MjData(m)
    random = np.random.default_rng(0)
    start = np.zeros((batch, mujoco.mj_stateSize(m, STATE)))
    for row in start:
        mujoco.mj_resetData(m, d)
        if name in HANDS:
            _place(m, d, HANDS[name][0], random)
        mujoco.mj_getState(m, d, row, STATE)
    before = round(SETTLE / m.opt.timestep)
    if name in HANDS:
        u = random.uniform(-0.3 * TORQUE, TORQUE, (batch, before + steps, m.nu))
    else:
        low, high = m.actuator_ctrlrange.T
        u = np.repeat(random.uniform(low, high, (batch, 1, m.nu)), before + steps, 1)
    theirs = np.asarray(mujoco.rollout.rollout(m, d, start, u[:, :before])[0])[:, -1].copy()
    count = 0
    for row in theirs:
        mujoco.mj_setState(m, d, row, STATE)
        mujoco.mj_forward(m, d)
        count += d.ncon
    return Hand(name, path, twin, theirs, np.ascontiguousarray(u[:, before:]), count / batch)


def _place(m: mujoco.MjModel, d: mujoco.MjData, at: tuple[float, ...], random: np.random.Generator) -> None:
    """Bend the fingers at random, and turn the cube a little."""
    for j in range(m.njnt):
        i = int(m.jnt_qposadr[j])
        if int(m.jnt_type[j]) == 0:
            d.qpos[i : i + 3] = at + 0.005 * random.normal(size=3)
            d.qpos[i + 3 : i + 7] += 0.1 * random.normal(size=4)
        elif m.jnt_range[j, 0] >= -0.5:
            d.qpos[i] = random.uniform(*CURL) * m.jnt_range[j, 1]
    mujoco.mj_normalizeQuat(m, d.qpos)
