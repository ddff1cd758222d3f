"""Boxes beside each other or far apart, the same here and in MuJoCo."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)

from __future__ import annotations

import mujoco
import mujoco.rollout
import numpy as np
import torch

import costate as cs

EDGE, DT, SWEEPS = 0.2, 0.005, 50
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
SPACING = {"far": 1.0, "near": EDGE - 1e-4}


def positions(count: int, spacing: float, batch: int) -> np.ndarray:
    """A block of boxes, (batch, count, 3); samples differ by a hundredth of a millimetre."""
    side = int(np.ceil(count ** (1 / 3) - 1e-9))
    k = np.arange(count)
    places = spacing * np.stack([k % side, k // side % side, k // side**2], axis=-1)
    return places + 1e-5 * np.random.default_rng(0).normal(size=(batch, count, 3))


def world(count: int) -> cs.World:
    """Every box may touch every other one; nothing pulls them."""
    boxes = [cs.Body(f"box{k}", [cs.shapes.box((EDGE, EDGE, EDGE))], 1.0) for k in range(count)]
    return cs.World(bodies=boxes, contact=cs.PGS(sweeps=SWEEPS), dt=DT, gravity=(0, 0, 0), check=False)


def states(w: cs.World, places: np.ndarray) -> torch.Tensor:
    x = w.initial_state(len(places), torch.float64)
    for k in range(places.shape[1]):
        x[:, 7 * k : 7 * k + 3] = torch.tensor(places[:, k])
    return x


class Peer:
    """The same boxes in MuJoCo, for one step, with its own solver (Newton)."""

    def __init__(self, places: np.ndarray):
        body = "<body><freejoint/><geom type='box' size='{0} {0} {0}' mass='1'/></body>".format(EDGE / 2)
        xml = f"<mujoco><worldbody>{body * places.shape[1]}</worldbody></mujoco>"
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.model.opt.timestep, self.model.opt.gravity[:] = DT, 0
        self.data = mujoco.MjData(self.model)
        self.start = np.array([self._state(p) for p in places])

    def _state(self, places: np.ndarray) -> np.ndarray:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos.reshape(-1, 7)[:, :3] = places
        state = np.zeros(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, self.data, state, STATE)
        return state

    @property
    def contacts(self) -> int:
        mujoco.mj_setState(self.model, self.data, self.start[0], STATE)
        mujoco.mj_forward(self.model, self.data)
        return int(self.data.ncon)

    def step(self) -> np.ndarray:
        return np.asarray(mujoco.rollout.rollout(self.model, self.data, self.start, nstep=1)[0])
