"""Benchmark of hands: how long a hand that holds a cube takes to compile, to step and to differentiate, beside MuJoCo.

    python -m benchmarks.bench_hands [--smoke] [--rows] [--json FILE] [--markdown FILE] [--only HAND ...]
    python -m benchmarks.bench_hands --markdown docs/benchmarks.md       # what the docs show

One thread, float64, `Newton` contact. The built-in Allegro and Shadow hands hold a cube of 50 mm, with everything that can touch
anything; "block" is the Shadow hand and block of gymnasium-robotics, where that package is installed. Both engines read the same
file. MuJoCo solves to its default tolerance (1e-8) with warm start, ours to a tighter one from a cold start. Compile times are
processor seconds of this process and its workers, from an empty cache. `--rows` also measures contacts as rows of one system,
`Newton(mapped=False)`: minutes of compilation.
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import mujoco
import torch

from benchmarks.measure.harness import (
    Options,
    Report,
    Table,
    environment,
    interleaved,
    machine,
    options,
    publish,
    threads,
)
from benchmarks.sim.hands import HANDS, Hand, hand, hand_file
from costate.kernel.machine.target import host
from costate.sim import World

CASES = (*HANDS, "block")
COLUMNS = (
    "hand", "contacts are", "pairs", "points, active", "compile, s", "its gradient, s", "step, us", "backward, us",
    "backward / step", "MuJoCo step, us",
)  # fmt: skip


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that run."""
    total, tick = sum(os.times()[:2]), os.sysconf("SC_CLK_TCK")
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / tick
    return total


def compiled(world: World, x: torch.Tensor, u: torch.Tensor) -> tuple[float, float]:
    """Return the processor seconds until a roll-out has run, and from there until its gradient has."""
    times = [processor_seconds()]
    world.rollout(x, u)
    times.append(processor_seconds())
    world.rollout(x.requires_grad_(), u).sum().backward()
    times.append(processor_seconds())
    return times[1] - times[0], times[2] - times[1]


def measured(h: Hand, mapped: bool, chosen: Options) -> tuple[object, ...]:
    """Return a row of the table."""
    with tempfile.TemporaryDirectory() as cache, environment(COSTATE_CACHE=cache):
        world = h.world(mapped)
        x, u = h.states, torch.tensor(h.controls.swapaxes(0, 1).copy())
        steps, batch = u.shape[:2]
        compile_step, compile_gradient = compiled(world, x[:1], u[:, :1])

        def backward() -> None:
            world.rollout(x.detach().requires_grad_(), u.requires_grad_())[-1].sum().backward()

        cases = {"step": lambda: world.rollout(x.detach(), u.detach()), "both": backward, "mujoco": h.rollout}
        best = interleaved(cases, 2 if chosen.smoke else 10, clock=time.process_time)
    us = {k: 1e6 * t / (steps * batch) for k, t in best.items()}
    back = us["both"] - us["step"]
    return (
        h.name, "pairs" if mapped else "rows", len(world.setup.scene.pairs), h.contacts, compile_step, compile_gradient,
        us["step"], back, back / us["step"], us["mujoco"],
    )  # fmt: skip


def table(chosen: Options) -> Table:
    rows, (batch, steps) = [], (8, 2) if chosen.smoke else (64, 10)
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.only:
            path = hand_file(name, Path(folder))
            if path is None:
                print(f"{name}: gymnasium-robotics is not installed, left out")
                continue
            h = hand(name, path, batch, steps)
            rows += [measured(h, mapped, chosen) for mapped in ((False, True) if chosen.rest.rows else (True,))]
    note = (
        f"Batch {batch}, {steps} steps from states in which fingers touch; microseconds of processor time per hand and step. "
        "Active: contact points of MuJoCo at the start, per hand. Compile: processor seconds of all processes; two cores share "
        "most of them. Backward: the whole backward pass, which runs the steps again."
    )
    return Table("A hand and a cube", COLUMNS, tuple(rows), note)


def main() -> None:
    chosen = options(
        "Benchmark of hands",
        list(CASES),
        lambda p: p.add_argument("--rows", action="store_true", help="also contacts as rows of one system"),
    )
    if chosen.smoke:
        chosen = replace(chosen, only=chosen.only[:1])
    with threads(1):
        found = table(chosen)
    vectors = f"{host().register} bytes ({host().cpu})"
    facts = machine(mujoco=mujoco.__version__, vectors=vectors, load=f"{os.getloadavg()[0]:.1f}")
    command = "python -m benchmarks.bench_hands --markdown docs/benchmarks.md"
    publish(Report("Hands", command, facts, (found,)), chosen)


if __name__ == "__main__":
    main()
