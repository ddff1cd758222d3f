"""One MJCF file in both engines: states there and back, rollouts of many samples, energies and contact forces.

Both step by Euler's method and solve the same convex problem: MuJoCo with its Newton solver to its default tolerance, ours with the
`Newton` contact model.
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import mujoco.rollout
import numpy as np
import torch
from scipy.spatial.transform import Rotation
from scipy.stats import ks_2samp

import costate as cs
from costate.sim import Newton, World

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
AT_ONCE = 50
"""Samples of one rollout of MuJoCo, which keeps all their states."""


@dataclass
class Twins:
    """A file in both engines."""

    world: World
    model: mujoco.MjModel
    data: mujoco.MjData

    @staticmethod
    def of(text: str, self_collision: bool) -> Twins:
        """text: MJCF with one geom in its world body, the floor. Its integrator becomes Euler, which both have."""
        text = text.replace('integrator="RK4"', 'integrator="Euler"')
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a file has that does nothing here, like the humanoid's tendons
            file = Path(folder) / "model.xml"
            file.write_text(text)
            robot = cs.load_robot(file)
        model = mujoco.MjModel.from_xml_string(text)
        model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON.value
        model.opt.iterations, model.opt.tolerance = 100, 1e-8
        model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY.value
        (floor,) = robot.model.links[0].collisions
        world = World(
            robots={"robot": robot},
            scenery=[cs.Static("floor", floor)],
            actuators=cs.Torque(),
            contact=Newton(),
            self_collision=self_collision,
            dt=model.opt.timestep,
        )
        return Twins(world, model, mujoco.MjData(model))

    @property
    def dt(self) -> float:
        return float(self.model.opt.timestep)

    # --- states and controls --------------------------------------------------------------------------------------

    def states(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """MuJoCo's full physics states (n, size) of qpos (n, nq) and qvel (n, nv)."""
        first = np.zeros(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_getState(self.model, self.data, first, STATE)
        found = np.tile(first, (len(qpos), 1))
        nq, nv = self.model.nq, self.model.nv
        found[:, 1 : 1 + nq], found[:, 1 + nq : 1 + nq + nv] = qpos, qvel
        return found

    def to_ours(self, theirs: np.ndarray) -> np.ndarray:
        """States (..., nx): quaternions end with w, and free bodies have velocities in their own axes."""
        nq, nv = self.model.nq, self.model.nv
        q, v = theirs[..., 1 : 1 + nq].copy(), theirs[..., 1 + nq : 1 + nq + nv].copy()
        for i, k in self.free_joints():
            q[..., i + 3 : i + 7] = q[..., [i + 4, i + 5, i + 6, i + 3]]
            turn = Rotation.from_quat(q[..., i + 3 : i + 7].reshape(-1, 4)).inv()
            v[..., k : k + 3] = turn.apply(v[..., k : k + 3].reshape(-1, 3)).reshape(v[..., k : k + 3].shape)
        return np.concatenate([q, v], -1)

    def free_joints(self) -> list[tuple[int, int]]:
        """(first of qpos, first of qvel) of free joints."""
        m = self.model
        free = mujoco.mjtJoint.mjJNT_FREE
        return [(int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])) for j in range(m.njnt) if m.jnt_type[j] == free]

    def torques(self, controls: np.ndarray) -> torch.Tensor:
        """Ours (..., nu) for controls (..., nu) of MuJoCo's motors: gears times controls, joint by joint."""
        m = self.model
        at = {name.partition("/")[2]: k for k, name in enumerate(self.world.actuated)}
        gears = np.zeros((m.nu, self.world.nu))
        for k in range(m.nu):
            gears[k, at[m.joint(int(m.actuator_trnid[k, 0])).name]] = m.actuator_gear[k, 0]
        return torch.as_tensor(controls @ gears)

    def difference(self, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """Largest of any coordinate or velocity, (...,); theirs as MuJoCo's states."""
        other = self.to_ours(theirs)
        for i, _ in self.free_joints():
            part = slice(i + 3, i + 7)
            sign = np.sign((ours[..., part] * other[..., part]).sum(-1, keepdims=True))
            other[..., part] *= sign
        return np.abs(ours - other).max(-1)

    # --- motion ---------------------------------------------------------------------------------------------------

    def run_ours(self, start: np.ndarray, controls: np.ndarray, every: int = 1) -> np.ndarray:
        """States (t / every + 1, n, nx) from MuJoCo's states (n, size) under controls (t, n, nu)."""
        x = torch.as_tensor(self.to_ours(start))
        return self.world.rollout(x, self.torques(controls), checkpoint=every).numpy()

    def run_theirs(self, start: np.ndarray, controls: np.ndarray, every: int = 1) -> np.ndarray:
        """MuJoCo's states (t / every + 1, n, size)."""
        found = []
        for k in range(0, len(start), AT_ONCE):
            own = np.ascontiguousarray(controls[:, k : k + AT_ONCE].swapaxes(0, 1))
            path = mujoco.rollout.rollout(
                self.model, self.data, start[k : k + AT_ONCE], own if self.model.nu else None, nstep=len(controls)
            )[0]
            found.append(np.asarray(path)[:, every - 1 :: every].swapaxes(0, 1).copy())
        return np.concatenate([start[None], np.concatenate(found, 1)])

    # --- measures -------------------------------------------------------------------------------------------------

    def ours(self, states: np.ndarray, controls: np.ndarray) -> dict[str, np.ndarray]:
        """Energy [J] and sum of the normal contact forces [N] at states (..., nx) under controls (..., nu), (...,) each."""
        x = torch.as_tensor(states)
        force = self.world.contacts(x, self.torques(controls)).forces.sum(-1)
        return {"energy, J": self.world.energy(x).numpy(), "contact force, N": force.numpy()}

    def theirs(self, states: np.ndarray, controls: np.ndarray) -> dict[str, np.ndarray]:
        """The same at MuJoCo's states."""
        energy, force = np.zeros(states.shape[:-1]), np.zeros(states.shape[:-1])
        for at in np.ndindex(*states.shape[:-1]):
            mujoco.mj_setState(self.model, self.data, np.ascontiguousarray(states[at]), STATE)
            self.data.ctrl[:] = controls[at]
            mujoco.mj_forward(self.model, self.data)
            energy[at] = self.data.energy.sum()
            force[at] = self._contact_force()
        return {"energy, J": energy, "contact force, N": force}

    def _contact_force(self) -> float:
        wrench, total = np.zeros(6), 0.0
        for k in range(self.data.ncon):
            mujoco.mj_contactForce(self.model, self.data, k, wrench)
            total += float(wrench[0])
        return total


@dataclass(frozen=True)
class Comparison:
    """One number of many samples, found by each engine."""

    ours: np.ndarray
    """(n,)."""
    theirs: np.ndarray
    """(n,)."""

    @property
    def errors(self) -> tuple[float, float]:
        """Standard errors of both means."""
        return _error(self.ours), _error(self.theirs)

    @property
    def apart(self) -> float:
        """Difference of the means by its standard error, as if the samples had nothing in common."""
        error = float(np.hypot(*self.errors))
        return float(self.ours.mean() - self.theirs.mean()) / error if error else 0.0

    @property
    def p(self) -> float:
        """P-value of the test of Kolmogorov and Smirnov: how often samples of one distribution differ by more."""
        return float(ks_2samp(self.ours, self.theirs).pvalue)


def _error(x: np.ndarray) -> float:
    return float(x.std(ddof=1) / np.sqrt(len(x)))
