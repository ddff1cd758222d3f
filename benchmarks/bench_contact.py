"""Benchmark of contact models: gymnasium's ant and humanoid beside MuJoCo, steps and gradients; a Laikago with each model.

    python -m benchmarks.bench_contact [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...]
    python -m benchmarks.bench_contact --markdown docs/benchmarks.md       # what the docs show

One thread, float64, batch 256. Both engines read the same file, step by Euler's method and solve the same convex problem: MuJoCo
with its Newton solver to its default tolerance (1e-8) and with warm start, ours to a tighter one from a cold start. Robots fall
under random torques until they lie, stand or tumble on the ground; from there both run the same steps.
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import mujoco
import mujoco.rollout
import numpy as np
import torch
from scipy.spatial.transform import Rotation

import costate as cs
from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish, threads
from benchmarks.sim.contact_models import model_table
from costate.kernel.machine.target import host
from costate.sim import Newton, World

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
CASES = {"ant": (3.0, 0.05), "humanoid": (1.5, 0.4)}
"""Robot -> seconds it falls before the measurement, and size of the random controls: the ant's full ones toss it into the air."""
BATCH = 256
EPSILON = 1e-6
"""Step of MuJoCo's finite differences."""


@dataclass
class Scene:
    """A robot in both engines, and states with active contacts."""

    name: str
    world: World
    model: mujoco.MjModel
    data: mujoco.MjData
    theirs: np.ndarray
    """Full physics states, (batch, n)."""
    controls: np.ndarray
    """Controls of MuJoCo's motors, (batch, steps, nu)."""
    contacts: float
    """Mean number of active ones."""

    @property
    def states(self) -> torch.Tensor:
        return torch.tensor(np.array([self._ours(x) for x in self.theirs]))

    @property
    def torques(self) -> torch.Tensor:
        """The same controls as torques on our joints, (steps, batch, nu)."""
        m, drives = self.model, self.world.setup.drives
        gears = np.zeros((m.nu, len(drives)))
        at = {d.v: k for k, d in enumerate(drives)}
        for k in range(m.nu):
            gears[k, at[int(m.jnt_dofadr[m.actuator_trnid[k, 0]])]] = m.actuator_gear[k, 0]
        return torch.tensor(np.ascontiguousarray((self.controls @ gears).swapaxes(0, 1)))

    def _ours(self, state: np.ndarray) -> np.ndarray:
        d = self.data
        mujoco.mj_setState(self.model, d, state, STATE)
        quaternion = d.qpos[[4, 5, 6, 3]]
        turned = Rotation.from_quat(quaternion).as_matrix().T @ d.qvel[:3]
        return np.concatenate([d.qpos[:3], quaternion, d.qpos[7:], turned, d.qvel[3:]])

    def rollout(self) -> np.ndarray:
        return np.asarray(mujoco.rollout.rollout(self.model, self.data, self.theirs, self.controls)[0])

    def difference(self) -> float:
        """Largest of the states after one step."""
        after = self.rollout()[:, 0]
        ours = self.world.step(self.states, self.torques[0]).numpy()
        expected = np.array([self._ours(x) for x in after])
        ours[:, 3:7] *= np.sign((ours[:, 3:7] * expected[:, 3:7]).sum(1, keepdims=True))
        return float(np.abs(ours - expected).max())


def scene(name: str, cone: str, batch: int, steps: int) -> Scene:
    path = ASSETS / f"{name}.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER.value
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON.value
    model.opt.cone = {"pyramidal": 0, "elliptic": 1}[cone]
    model.opt.iterations, model.opt.tolerance = 100, 1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the humanoid's tendons, which do nothing
        robot = cs.load_robot(path)
    world = World(
        robots={name: robot},
        scenery=[cs.Static("floor", robot.model.links[0].collisions[0])],
        actuators=cs.Torque(),
        contact=Newton(cone=cone),
        self_collision=True,
        integrator="semi_implicit",
        dt=model.opt.timestep,
        check=False,
    )
    data = mujoco.MjData(model)
    random = np.random.default_rng(0)
    start = []
    for _ in range(batch):
        mujoco.mj_resetData(model, data)
        data.qvel[:] = 0.3 * random.normal(size=model.nv)
        data.qpos[7:] += 0.1 * random.normal(size=model.nq - 7)
        start.append(np.zeros(mujoco.mj_stateSize(model, STATE)))
        mujoco.mj_getState(model, data, start[-1], STATE)
    seconds, size = CASES[name]
    fall = round(seconds / model.opt.timestep)
    u = random.uniform(-size, size, (batch, fall + steps, model.nu))
    theirs = np.asarray(mujoco.rollout.rollout(model, data, np.array(start), u[:, :fall])[0])[:, -1].copy()
    count = 0
    for x in theirs:
        mujoco.mj_setState(model, data, x, STATE)
        mujoco.mj_forward(model, data)
        count += data.ncon
    return Scene(name, world, model, data, theirs, np.ascontiguousarray(u[:, fall:]), count / batch)


def step_table(chosen: Options) -> list[Table]:
    rows = []
    batch, steps = (16, 2) if chosen.smoke else (BATCH, 20)
    for name in CASES:
        for cone in ("pyramidal", "elliptic"):
            s = scene(name, cone, batch, steps)
            x, u = s.states, s.torques
            cases: dict[str, Callable[[], object]] = {"ours": lambda: s.world.rollout(x, u), "mujoco": s.rollout}  # noqa: B023
            best = {k: 1e6 * t / (batch * steps) for k, t in interleaved(cases, 3 if chosen.smoke else 15).items()}
            rows.append(
                (
                    name,
                    cone,
                    s.contacts,
                    best["ours"],
                    best["mujoco"],
                    best["mujoco"] / best["ours"],
                    f"{s.difference():.0e}",
                )
            )
    columns = ("robot", "cone", "contacts", "step, us", "MuJoCo rollout, us", "times faster", "difference")
    note = (
        f"Microseconds per robot and step, batch {batch}, {steps} steps. Contacts: active ones per robot, at the start. "
        "Difference: largest of any coordinate or velocity after one step; MuJoCo's tolerance decides it."
    )
    return [Table("Ant and humanoid on the ground", columns, tuple(rows), note)]


def gradient_table(chosen: Options) -> list[Table]:
    rows = []
    batch = 16 if chosen.smoke else BATCH
    for name in CASES:
        s = scene(name, "pyramidal", batch, 1)
        x, u = s.states.requires_grad_(), s.torques[0].requires_grad_()
        y = s.world.step(x, u)
        seed = torch.ones_like(y)
        n, m = 2 * s.model.nv, s.model.nu
        A, B = np.zeros((n, n)), np.zeros((n, m))

        def theirs() -> None:
            for state, control in zip(s.theirs[:16], s.controls[:16, 0], strict=True):  # noqa: B023
                mujoco.mj_setState(s.model, s.data, state, STATE)  # noqa: B023
                s.data.ctrl[:] = control  # noqa: B023
                mujoco.mjd_transitionFD(s.model, s.data, EPSILON, True, A, B, None, None)  # noqa: B023

        best = interleaved(
            {
                "vjp": lambda: torch.autograd.grad(y, (x, u), seed, retain_graph=True),  # noqa: B023
                "mujoco": theirs,
            },
            2 if chosen.smoke else 8,
        )
        ours, other = 1e6 * best["vjp"] / batch, 1e6 * best["mujoco"] / 16
        rows.append((name, ours, n * ours, other, other / ours, other / (n * ours)))
    columns = ("robot", "VJP, us", "2 nv VJPs, us", "mjd_transitionFD, us", "it / VJP", "it / 2 nv VJPs")
    note = (
        "Microseconds per robot for the gradient of one step. VJP: of a scalar in state and controls (the backward pass, which "
        "runs the step again); 2 nv of them make the whole Jacobian, which is what mjd_transitionFD finds by central finite "
        "differences."
    )
    return [Table("Gradients of a step", columns, tuple(rows), note)]


TABLES: dict[str, Callable[[Options], list[Table]]] = {
    "steps": step_table,
    "gradients": gradient_table,
    "models": model_table,
}


def main() -> None:
    chosen = options("Benchmark of contact models", list(TABLES))
    with threads(1):
        tables = [t for name in chosen.only for t in TABLES[name](chosen)]
    vectors = f"{host().register} bytes ({host().cpu})"
    facts = machine(mujoco=mujoco.__version__, vectors=vectors, load=f"{os.getloadavg()[0]:.1f}")
    command = "python -m benchmarks.bench_contact --markdown docs/benchmarks.md"
    publish(Report("Contact", command, facts, tuple(tables)), chosen)


if __name__ == "__main__":
    main()
