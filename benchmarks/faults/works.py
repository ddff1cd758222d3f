"""The works that are killed: a training, a compilation, the writing of a report. Each goes on from what is in its folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from costate.kernel import Kernel
from costate.kernel.machine import cache as disk
from costate.model import load_model
from costate.report import Report
from costate.robot import Robot
from costate.tasks.insertion import Insertion, InsertionTraining
from costate.train.run import Run
from costate.train.trainer import train

OPTIONS = InsertionTraining(hidden=16, batch=8, iterations=40, interval=4, watch_interval=0, seed=2, threads=1)


def train_policy(folder: Path, options: InsertionTraining = OPTIONS) -> None:
    path = folder / "run"
    train(Run.open(path) if path.exists() else Run.create(path, Insertion, options))


def check_training(folder: Path) -> None:
    """Check that what a kill has left can be read."""
    if (folder / "run").exists():
        run = Run.open(folder / "run")
        run.checkpoint()
        run.metrics()


def compile_gradient(folder: Path) -> None:
    """Large enough to be shared with a worker process."""
    os.environ["COSTATE_CACHE"] = str(folder / "cache")
    robot = Robot(load_model("ur5"))
    x = [torch.linspace(-1, 1, 60, dtype=torch.float64).reshape(10, 6) * (k + 1) for k in range(3)]
    kernel: Kernel = robot.kernel("forward_dynamics").vjp()
    found = kernel.run([*x, torch.ones(10, 6, dtype=torch.float64)])
    write(folder / "result", torch.stack(found).numpy().tobytes())


def check_cache(folder: Path) -> None:
    """Every entry is whole; files that were being written have other names."""
    for entry in (folder / "cache").glob("*.bin"):
        disk._decode(entry.read_bytes(), entry.stem)


def write_report(folder: Path) -> None:
    report = Report("A page")
    for k in range(40):
        report.plot({"a": [((i * k) % 7) for i in range(2000)]}, title=str(k))
    report.save(folder / "report.html")


def write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_bytes(data)
    os.replace(temporary, path)


@dataclass(frozen=True)
class Work:
    """Something to be killed."""

    run: Callable[[Path], None]
    result: str
    """The file it must end with."""
    check: Callable[[Path], None] = lambda folder: None
    """Raises if what is in the folder is damaged."""


WORKS = {
    "training": Work(train_policy, "run/policy.safetensors", check_training),
    "compiling": Work(compile_gradient, "result", check_cache),
    "writing a report": Work(write_report, "report.html"),
}
