"""Benchmark of the simulator: steps, gradients, memory, and how they grow, against MuJoCo and torch autograd.

    python -m benchmarks.bench_sim [--smoke] [--json FILE] [--markdown FILE] [--plots FOLDER] [--only TABLE ...]
    python -m benchmarks.bench_sim --markdown docs/benchmarks.md --plots docs/plots       # what the docs show

One thread everywhere, float64. A Laikago stands on four foot spheres, held by a spring and a damper in every joint, under random
torques: contacts are active all the time. MuJoCo gets the same robot, step (2 ms), contacts and motors, and its default solver
(Newton), or PGS with 50 iterations that never stop early. torch runs the operations of our own step one by one, recorded by
autograd.
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
import torch

import costate as cs
from benchmarks.measure.harness import ROOT, Clock, Options, Report, Table, interleaved, machine, once, options, publish
from benchmarks.sim.mujoco_scene import MujocoWorld
from benchmarks.sim.mujoco_scene import Options as MujocoOptions
from benchmarks.sim.plots import Curves, plot
from benchmarks.sim.torch_tape import TorchProgram
from benchmarks.sim.worlds import balls, chain, laikagos, sole
from costate.kernel.machine.target import host
from costate.sim import World
from costate.sim.step import step_program

Tensor = torch.Tensor
SEED_3 = {
    50: (0.3, 300, 1200),
    100: (0.3, 300, 1100),
    500: (0.7, 200, 1200),
    1000: (1.2, 200, 1100),
    5000: (5.0, 200, 1200),
}
"""Steps -> memory [MB], forward and backward [us per step] that Qiao et al. (ICML 2021) print for one Laikago."""
BATCH = 256
TORQUE = 5.0
"""Standard deviation of the random controls [N m]."""


class Run:
    """A rollout of a world under random controls, and its gradient."""

    def __init__(self, world: World, batch: int, steps: int, torque: float = TORQUE):
        self.world, self.steps, self.batch = world, steps, batch
        random = torch.Generator().manual_seed(0)
        self.x = world.initial_state(batch, torch.float64)
        self.u = torque * torch.randn(steps, batch, world.nu, dtype=torch.float64, generator=random)
        self._recorded: Tensor | None = None

    def forward(self) -> Tensor:
        return self.world.rollout(self.x, self.u)

    def record(self) -> None:
        """Record what a backward pass starts from, which is not part of its time."""
        x, u = self.x.requires_grad_(), self.u.requires_grad_()
        self._recorded = self.world.rollout(x, u)
        self._seed = torch.ones_like(self._recorded)

    def backward(self) -> tuple[Tensor, ...]:
        assert self._recorded is not None
        # The graph stays, so that a repetition measures the backward pass alone.
        return torch.autograd.grad(
            self._recorded, (self.x, self.u) if self.world.nu else (self.x,), self._seed, retain_graph=True
        )

    def detach(self) -> None:
        self._recorded = None
        self.x, self.u = self.x.detach(), self.u.detach()

    def times(
        self, rounds: int, clock: Clock = time.perf_counter, more: dict[str, Callable[[], object]] | None = None
    ) -> dict[str, float]:
        """Microseconds per robot and step: forward, backward, and others per call."""
        self.record()
        plain = Run(self.world, self.batch, self.steps)
        plain.x, plain.u = self.x.detach(), self.u.detach()
        best = interleaved({"forward": plain.forward, "backward": self.backward, **(more or {})}, rounds, clock=clock)
        self.detach()
        scale = 1e6 / (self.steps * self.batch)
        return {k: s * scale for k, s in best.items()}


SWEEPS = MujocoOptions("PGS", 50, cone="pyramidal", implicit_damping=True)
MUJOCO = {"MuJoCo, Newton": replace(SWEEPS, solver="Newton", iterations=100, tolerance=1e-8), "MuJoCo, PGS": SWEEPS}
"""MuJoCo's solvers: its default, to its own tolerance, and PGS with 50 iterations."""


def mujoco_rollouts(run: Run, limits: bool = False, friction: bool = False) -> dict[str, Callable[[], object]]:
    """The same rollout by MuJoCo's own loop in C++, one thread, with each of its solvers."""
    world, u = run.world, np.ascontiguousarray(run.u.detach().movedim(0, 1).numpy())
    found = {}
    for name, solver in MUJOCO.items():
        theirs = MujocoWorld(world, replace(solver, limits=limits, joint_friction=friction))
        start = np.tile(theirs.full_physics_state(world.initial_state(dtype=torch.float64).numpy()), (run.batch, 1))
        found[name] = lambda m=theirs, x=start: mujoco.rollout.rollout(m.model, m.data, x, u)
    return found


def peak_bytes(run: Callable[[], object]) -> int:
    """Measure by how much the memory of this process grows at most while run() runs (Linux)."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    run()
    return _status("VmHWM") - before


def gradient_bytes(steps: int) -> int:
    """Measure the memory that a rollout of one Laikago and its gradient need beyond the states, their seed and the gradients.

    It is measured in a process of its own: one that has freed memory before would hide it.
    """
    code = f"from benchmarks.bench_sim import measure_gradient; print(measure_gradient({steps}))"
    return int(
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    )


def measure_gradient(steps: int) -> int:
    torch.set_num_threads(1)
    world = laikagos()

    def gradient(run: Run) -> None:
        run.record()
        kept = run.backward()
        assert len(kept) == 2

    gradient(Run(world, 1, 2))  # compiles
    run = Run(world, 1, steps)
    states, controls = 8 * (steps + 1) * world.nx, 8 * steps * world.nu
    return peak_bytes(lambda: gradient(run)) - 2 * states - controls


def _status(key: str) -> int:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(key))
    return 1024 * int(line.split()[1])


@cache
def torch_program(world: World) -> TorchProgram:
    return TorchProgram(step_program(world.setup))


class TorchRun:
    """Torch autograd through the same steps."""

    def __init__(self, world: World, batch: int, steps: int):
        self.program, self.run, self.steps = torch_program(world), Run(world, batch, steps), steps

    def forward(self) -> Tensor:
        x = self.run.x.requires_grad_()
        states = [x]
        for t in range(self.steps):
            states.append(self.program(states[-1], self.run.u[t])[0])
        return torch.stack(states)

    def seconds(self) -> tuple[float, float]:
        """Measure one forward and one backward pass [s]."""
        kept: list[Tensor] = []
        forward = once(lambda: kept.append(self.forward()))
        return forward, once(lambda: kept[0].backward(torch.ones_like(kept[0])))

    def both(self) -> None:
        states = self.forward()
        states.backward(torch.ones_like(states))


# --- tables -----------------------------------------------------------------------------------------------------------


def laikago_table(chosen: Options) -> list[Table]:
    """Tables 1 to 3 of Qiao et al. (ICML 2021): one Laikago."""
    world = laikagos()
    rows = []
    lengths = (50, 100) if chosen.smoke else SEED_3
    peer = TorchRun(world, 1, 1 if chosen.smoke else 10)
    torch_memory = peak_bytes(peer.both) / peer.steps
    torch_times = [1e6 * s / peer.steps for s in peer.seconds()]
    for steps in lengths:
        run = Run(world, 1, steps)
        times = run.times(3 if chosen.smoke else 15, chosen.clock, mujoco_rollouts(run))
        extra = max(gradient_bytes(steps), 0)
        memory, forward, backward = SEED_3[steps]
        states = 8 * (steps + 1) * world.nx
        rows.append(
            (f"{steps:,}", states / 1e6, extra / 1e6, memory, torch_memory * steps / 1e6, times["forward"], forward,
             torch_times[0], *(times[k] for k in MUJOCO), times["backward"], backward, torch_times[1])
        )  # fmt: skip
    columns = (
        "steps", "states, MB", "beyond tensors and gradients, MB", "Qiao et al., MB", "torch, MB", "forward, us/step",
        "Qiao et al.", "torch", *MUJOCO, "backward, us/step", "Qiao et al.", "torch",
    )  # fmt: skip
    note = (
        "A single Laikago (batch 1). Memory: the states that are the result, and how much the process grows at most while a "
        "rollout and its gradient are computed, less the states, their seed and the gradients; in a fresh process, so it includes "
        "whatever the allocator touches first. "
        "Qiao et al.: as printed in their paper (ICML 2021), on a Xeon W-2123. "
        f"torch: the {torch_program(world).n_ops:,} operations of our step one by one, measured over {peer.steps} steps; its "
        "memory is extrapolated."
    )
    return [Table("One Laikago on the ground, 50 to 5,000 steps", columns, tuple(rows), note)]


def throughput_table(chosen: Options) -> list[Table]:
    """Batch 256 and 1; with joint limits and friction rows beside."""
    cases = {
        "4 feet": {},
        "4 feet, 12 limits": {"limits": True},
        "4 feet, 12 limits, 12 joint frictions": {"limits": True, "friction": 0.1},
    }
    rows = []
    for name, kind in list(cases.items())[: 1 if chosen.smoke else 3]:
        world = laikagos(**kind)
        for batch in (8, 1) if chosen.smoke else (BATCH, 1):
            run = Run(world, batch, 10 if chosen.smoke else 50)
            theirs = mujoco_rollouts(run, kind.get("limits", False), "friction" in kind)
            times = run.times(3 if chosen.smoke else 15, chosen.clock, theirs)
            seconds = TorchRun(world, batch, 1).seconds() if not kind else (np.nan, np.nan)
            ours, back = times["forward"], times["backward"]
            row = [name, batch, ours]
            row += [x for k in MUJOCO for x in (times[k], times[k] / ours)]
            row += [back, back / ours]
            row += ["" if s != s else 1e6 * s / batch for s in seconds]
            rows.append(tuple(row))
    columns = (
        "rows", "batch", "forward", *(x for k in MUJOCO for x in (k, "by ours")), "backward", "backward / forward",
        "torch forward", "torch backward",
    )  # fmt: skip
    note = (
        "Microseconds per robot and step. Goals: forward 4, backward 16, three times MuJoCo's throughput at batch 256; "
        "forward 20 and backward 60 at batch 1. MuJoCo's Newton is its default, to its own tolerance; its PGS takes 50 "
        "iterations. MuJoCo has no gradient."
    )
    return [Table("A Laikago's step", columns, tuple(rows), note)]


def ten_table(chosen: Options) -> list[Table]:
    """Figure 3 of Qiao et al. (ICML 2021): ten Laikagos in one scene."""
    count = 2 if chosen.smoke else 10
    world = laikagos(count)
    rows = []
    build = once(lambda: Run(world, 1, 10).times(1, chosen.clock))
    for batch in (1, 64):
        run = Run(world, batch, 10 if chosen.smoke else 100)
        times = run.times(2 if chosen.smoke else 9, chosen.clock, mujoco_rollouts(run))
        rows.append((batch, *(times[k] for k in ("forward", *MUJOCO, "backward")), 8 * world.nx / 1000))
    note = (
        f"{count} Laikagos in one scene, {12 * count} rows. Microseconds per step of the whole scene; the kernels were compiled "
        f"in {build:.0f} s. Qiao et al. print 5 kB per step; of JAX 42,000 to 53,000 forward and 125,000 to 148,000 backward, of "
        "PyTorch 193,000 to 200,000 and 272,000 to 281,000."
    )
    columns = ("batch", "forward", *MUJOCO, "backward", "kB stored per step")
    return [Table("Ten Laikagos", columns, tuple(rows), note)]


def linearize_table(chosen: Options) -> list[Table]:
    """A and B against MuJoCo's finite differences."""
    rows = []
    for name, world, theirs in _linearized(chosen):
        for batch in (1, 64):
            x, u = world.initial_state(batch, torch.float64), torch.zeros(batch, world.nu, dtype=torch.float64)
            if batch == 1:
                x, u = x[0], u[0]
            n = 2 * theirs.model.nv
            A, B = np.zeros((n, n)), np.zeros((n, theirs.model.nu))
            theirs.data.qpos[:], theirs.data.qvel[:] = theirs.to_theirs(x.reshape(-1, world.nx)[0].numpy())

            def differences(theirs=theirs, A=A, B=B) -> None:
                mujoco.mjd_transitionFD(theirs.model, theirs.data, 1e-6, True, A, B, None, None)

            runs = {"ours": lambda w=world, x=x, u=u: w.linearize(x, u), "theirs": differences}
            best = interleaved(runs, 3 if chosen.smoke else 9, clock=chosen.clock)
            ours = [m.reshape(-1, *m.shape[-2:])[0].numpy() for m in world.linearize(x, u)]
            apart = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(ours, (A, B), strict=True))
            smooth = not world.setup.contact.acts
            rows.append(
                (name, batch, 1e6 * best["ours"] / batch, 1e6 * best["theirs"], apart if smooth else "with contact")
            )
    note = (
        "A (2nv, 2nv) and B (2nv, nu) of one step, microseconds per sample: exact by `world.linearize`, and by "
        "`mjd_transitionFD` with central differences. With contact the two are derivatives of different models where ours is hard, "
        "and MuJoCo's is soft always."
    )
    columns = ("world", "batch", "world.linearize", "mjd_transitionFD", "largest relative difference")
    return [Table("A and B", columns, tuple(rows), note)]


def _linearized(chosen: Options) -> Iterator[tuple[str, World, MujocoWorld]]:
    theirs = replace(MUJOCO["MuJoCo, Newton"], limits=False)
    arm = World(robots=[cs.load_robot("iiwa7")], contact=None, dt=0.002, integrator="implicit")
    yield "iiwa7, no contact", arm, MujocoWorld(arm, theirs)
    if not chosen.smoke:
        for name, contact in (("Hard", cs.Hard(joint_limits=False)), ("Newton", cs.Newton(joint_limits=False))):
            quadruped = laikagos(contact=contact)
            yield f"Laikago, 4 feet, {name}", quadruped, MujocoWorld(quadruped, theirs)


# --- growth -----------------------------------------------------------------------------------------------------------


def growth(chosen: Options) -> list[Table]:
    small = chosen.smoke
    rounds = 2 if small else 7
    curves = [
        _grow("joints", "joints", (8, 16) if small else (8, 16, 32, 64), chain, 64, 20, rounds),
        _grow("contacts of one body", "spheres", (4, 8) if small else (4, 8, 16, 32, 64), sole, 64, 20, rounds),
        _grow("balls on a plane", "balls", (4, 8) if small else (4, 8, 16, 32, 64), balls, 64, 20, rounds),
        _batches((1, 8) if small else (1, 8, 64, 256, 1024, 8192), rounds),
        _lengths((50, 500) if small else (50, 500, 5000, 50_000), rounds),
    ]
    if chosen.rest.plots:
        for c in curves:
            plot(c, chosen.rest.plots)
    return [_growth_table(c) for c in curves]


def _grow(title: str, label: str, sizes, make: Callable[[int], World], batch: int, steps: int, rounds: int) -> Curves:
    forward, backward = [], []
    for n in sizes:
        run = Run(make(n), batch, steps, torque=0.1)
        times = run.times(rounds)
        forward.append(times["forward"])
        backward.append(times["backward"])
    return Curves(
        f"{title}, batch {batch}", label, "us per sample and step", sizes, {"forward": forward, "backward": backward}
    )


def _batches(sizes, rounds: int) -> Curves:
    world = laikagos()
    times = [Run(world, n, 20).times(rounds) for n in sizes]
    lines = {k: [t[k] for t in times] for k in ("forward", "backward")}
    return Curves("a Laikago, by batch", "batch", "us per sample and step", sizes, lines, proportional=False)


def _lengths(sizes, rounds: int) -> Curves:
    world = laikagos()
    times = [Run(world, 1, n).times(rounds if n < 10_000 else 2) for n in sizes]
    lines = {k: [t[k] for t in times] for k in ("forward", "backward")}
    return Curves("a Laikago, by steps, batch 1", "steps", "us per step", sizes, lines, proportional=False)


def _growth_table(c: Curves) -> Table:
    columns = (c.x_label, *(f"{n:,}" for n in c.x))
    image = f"![{c.title}](plots/{c.file})"
    return Table(f"Growth: {c.title}", columns, tuple((f"{k}, {c.y_label}", *y) for k, y in c.lines.items()), image)


TABLES = {
    "laikago": laikago_table,
    "throughput": throughput_table,
    "ten": ten_table,
    "linearize": linearize_table,
    "growth": growth,
}


def main() -> None:
    chosen = options(
        "Benchmark of the simulator.",
        list(TABLES),
        lambda parser: parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the growth curves there"),
    )
    torch.set_num_threads(1)
    tables: list[Table] = []
    for name in chosen.only:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        tables += TABLES[name](chosen)
    facts = machine(
        mujoco=mujoco.__version__, vectors=f"{host().register} bytes ({host().cpu})", load=f"{os.getloadavg()[0]:.1f}"
    )
    command = "python -m benchmarks.bench_sim --markdown docs/benchmarks.md --plots docs/plots"
    publish(Report("Simulation", command, facts, tuple(tables)), chosen)


if __name__ == "__main__":
    main()
