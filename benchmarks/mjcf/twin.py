"""An MJCF file in both engines: random states of MuJoCo, and the motion from them by each engine.

Both solve the same convex problem. MuJoCo gets a tolerance of zero, so that it stops where rounding does not let it go on: what
must agree is the optimum, not where two solvers stop.
"""

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
from costate.model import ModelWarning
from costate.sim import World

NEWTON = 2  # mjtSolver
FREE, BALL = 0, 1  # mjtJoint
SETTLE = 0.3
"""Longest time that MuJoCo moves a disturbed robot before its state counts [s]: shapes that overlapped have parted, others have
met."""
TRIES = 12
MANY = 1500
"""Number of pairs of shapes beyond which a world takes too long to build: it is compared without contact then."""


class DivergenceError(RuntimeError):
    """An error: MuJoCo's own motion is not finite."""


@dataclass
class Twin:
    """A file in both engines."""

    world: World
    model: mujoco.MjModel
    data: mujoco.MjData
    lacks: tuple[str, ...]
    """Warnings of the reader and of the world."""
    touches: bool = True
    """True if shapes may touch in both; else contact is off in both."""

    @staticmethod
    def of(path: Path) -> Twin:
        model = mujoco.MjModel.from_xml_path(str(path))
        option = model.opt
        option.solver, option.tolerance, option.iterations = NEWTON, 0.0, 200
        option.ls_iterations, option.ls_tolerance = 100, 1e-12
        option.ccd_tolerance, option.ccd_iterations = 1e-14, 500
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            world = cs.load_world(path, check=False)
        lacks = [str(w.message).removeprefix(f"{path}: ") for w in said if issubclass(w.category, ModelWarning)]
        hulls = sum(str(w.message).startswith("the hull of") for w in said)
        lacks += [f"{hulls} meshes have more corners than contact uses"] if hulls else []
        pairs = len(world.setup.scene.pairs)
        if pairs > MANY:
            lacks = [x for x in lacks if "touch" not in x]
            lacks.append(f"a world with {pairs:,} pairs of shapes takes too long to build")
            option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT.value
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                world = cs.load_world(path, check=False, collide=())
        return Twin(world, model, mujoco.MjData(model), tuple(lacks), pairs <= MANY)

    # --- random states --------------------------------------------------------------------------------------------

    def starts(self, count: int, seed: int = 0) -> np.ndarray:
        """Return disturbed states of MuJoCo, (count, nq + nv + na): qpos0 or a keyframe, joints moved by up to a tenth of their
        range or 0.1, velocities of 0.3, then some steps under random controls, so that shapes do not overlap deeply."""
        random = np.random.default_rng(seed)
        return np.array([self._start(random) for _ in range(count)])

    def _start(self, random: np.random.Generator) -> np.ndarray:
        """Return a state from which MuJoCo's motion stays finite: the disturbance is halved until it does."""
        for k in range(TRIES):
            found = self._disturbed(random, 0.5**k)
            if np.isfinite(found).all() and not _has_warned(self.data):
                return found
        raise DivergenceError("MuJoCo's own motion from its reference configuration is not finite")

    def _disturbed(self, random: np.random.Generator, size: float) -> np.ndarray:
        m, d = self.model, self.data
        mujoco.mj_resetData(m, d)
        which = int(random.integers(-1, m.nkey))
        if which >= 0:
            d.qpos[:] = m.key_qpos[which]
        span = np.array([_span(m, j) for j in m.dof_jntid])
        mujoco.mj_integratePos(m, d.qpos, size * span * random.uniform(-1, 1, m.nv), 1.0)
        d.qvel[:] = 0.3 * size * random.normal(size=m.nv)
        for _ in range(int(random.integers(5, max(6, round(SETTLE / m.opt.timestep))))):
            d.ctrl[:] = self.controls(random)
            mujoco.mj_step(m, d)
        mujoco.mj_normalizeQuat(m, d.qpos)
        return np.concatenate([d.qpos, d.qvel, d.act])

    def controls(self, random: np.random.Generator) -> np.ndarray:
        m = self.model
        low = np.where(m.actuator_ctrllimited, m.actuator_ctrlrange[:, 0], -1.0)
        high = np.where(m.actuator_ctrllimited, m.actuator_ctrlrange[:, 1], 1.0)
        return random.uniform(low, high) if m.nu else np.zeros(0)

    # --- motion ---------------------------------------------------------------------------------------------------

    def theirs(self, start: np.ndarray, controls: np.ndarray) -> tuple[np.ndarray, int, float]:
        """Return MuJoCo's states (t + 1, nq + nv + na) under controls (t, nu), its largest number of constraint rows, and how near
        a contact came to the distance at which it begins to act [m]."""
        m, d = self.model, self.data
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.act[:] = np.split(start, [m.nq, m.nq + m.nv])
        found, rows, near = [start], 0, np.inf
        for u in controls:
            d.ctrl[:] = u
            mujoco.mj_step(m, d)
            found.append(np.concatenate([d.qpos, d.qvel, d.act]))
            rows = max(rows, d.nefc)
            near = min([near, *np.abs(d.contact.dist - d.contact.includemargin)])
        return np.array(found), rows, near

    def ours(self, starts: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Return our states (t + 1, n, nx) from MuJoCo's states (n, nq + nv + na) under controls (t, n, nu)."""
        return self.world.rollout(torch.as_tensor(self.to_ours(starts)), torch.as_tensor(controls)).numpy()

    # --- comparison -----------------------------------------------------------------------------------------------

    def to_ours(self, x: np.ndarray) -> np.ndarray:
        """Return states as ours: quaternions end with w, and free bodies have velocities in their own axes."""
        m = self.model
        q, v = x[..., : m.nq].copy(), x[..., m.nq :].copy()
        for j, i in self._quaternions():
            q[..., i : i + 4] = q[..., [i + 1, i + 2, i + 3, i]]
            if int(m.jnt_type[j]) == FREE:
                k = int(m.jnt_dofadr[j])
                turn = Rotation.from_quat(q[..., i : i + 4].reshape(-1, 4)).inv()
                v[..., k : k + 3] = turn.apply(v[..., k : k + 3].reshape(-1, 3)).reshape(v[..., k : k + 3].shape)
        return np.concatenate([q, v], -1)

    def errors(self, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """Return the largest difference of positions, and of velocities and activations, each relative to the largest one there (or
        to 1), over all steps, (n,). ours: (t, n, nx), theirs: MuJoCo's (t, n, nq + nv + na)."""
        m, other = self.model, self.to_ours(theirs)
        for _, i in self._quaternions():
            part = slice(i, i + 4)
            other[..., part] *= np.sign((ours[..., part] * other[..., part]).sum(-1, keepdims=True))
        found = []
        for part in (slice(0, m.nq), slice(m.nq, None)):
            scale = np.maximum(np.abs(other[..., part]).max((0, 2)), 1.0)
            found.append(np.abs(ours[..., part] - other[..., part]).max((0, 2)) / scale)
        return np.maximum(*found)

    def _quaternions(self) -> list[tuple[int, int]]:
        """Return the joints that turn freely, and where their quaternions begin."""
        m = self.model
        kinds = [(j, int(m.jnt_type[j]), int(m.jnt_qposadr[j])) for j in range(m.njnt)]
        return [(j, i + 3 * (kind == FREE)) for j, kind, i in kinds if kind in (FREE, BALL)]


def _has_warned(d: mujoco.MjData) -> bool:
    names = ("BADQPOS", "BADQVEL", "BADQACC")
    return any(d.warning[getattr(mujoco.mjtWarning, f"mjWARN_{name}").value].number for name in names)


def _span(m: mujoco.MjModel, j: int) -> float:
    limited = m.jnt_limited[j] and int(m.jnt_type[j]) not in (FREE, BALL)
    return 0.1 * float(np.ptp(m.jnt_range[j])) if limited else 0.1
