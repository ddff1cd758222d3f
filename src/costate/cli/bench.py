"""`costate bench [ROBOT ...]`: how fast a robot's functions and their gradients are on this machine, by batch size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from costate.robot import Robot

FUNCTIONS = {
    "forward_kinematics": ("q",),
    "inverse_dynamics": ("q", "v", "a"),
    "mass_matrix": ("q",),
    "forward_dynamics": ("q", "v", "tau"),
}
"""Robot function -> its arguments."""
PEERS = (
    "Costate beside other libraries: docs/peers.md in the repository, where python -m benchmarks.peers measures them."
)


@dataclass(frozen=True)
class Options:
    """Options of `costate bench`."""

    robots: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ROBOT")] = ("ur5", "laikago")
    """Built-in robots, URDF or MJCF files."""
    batches: tuple[int, ...] = (1, 64, 1024)
    """Batch sizes."""
    seconds: float = 0.2
    """Time for which each entry of the table is measured [s]."""
    inertia: Literal["refuse", "keep", "repair"] = "refuse"
    """Answer to inertias that no body can have."""


def run(options: Options) -> None:
    """Print a table per robot."""
    from costate.model import load_model

    if not options.batches or min(options.batches) < 1:
        raise ValueError(f"--batches takes sizes of at least 1, not {options.batches}")
    # One that is missing is said before anything heavy is loaded.
    models = [load_model(name, inertia=options.inertia) for name in options.robots]
    from costate.robot import Robot

    for model in models:
        _print(Robot(model), options)
    print(PEERS)


def _print(robot: Robot, options: Options) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from costate.core.tensors import threads

    title = f"{robot.name}: nanoseconds per sample, one thread, float64"
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    table.add_column("function", no_wrap=True)
    for batch in options.batches:
        table.add_column(f"batch {batch:,}", justify="right", no_wrap=True)
    with threads(1):
        for name in FUNCTIONS:
            calls = [_calls(robot, name, batch) for batch in options.batches]
            for label, runs in zip((name, f"{name} and gradient"), zip(*calls, strict=True), strict=True):
                each = zip(runs, options.batches, strict=True)
                table.add_row(label, *(f"{1e9 * _seconds(f, options.seconds) / n:,.0f}" for f, n in each))
    Console().print(table)


def _calls(robot: Robot, name: str, batch: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a call of a function, and one that also computes the gradient of the sum of its results."""
    import torch

    random = torch.Generator().manual_seed(0)
    q = robot.random_configuration(batch, generator=random, dtype=torch.float64)
    v, a = (torch.randn(batch, robot.nv, dtype=torch.float64, generator=random) for _ in range(2))
    values = [{"q": q, "v": v}.get(argument, a) for argument in FUNCTIONS[name]]
    leaves = [x.clone().requires_grad_() for x in values]
    function = getattr(robot, name)

    def gradient() -> Any:
        found = function(*leaves)
        parts = [found] if isinstance(found, torch.Tensor) else [x for pose in found.values() for x in pose[:2]]
        return torch.autograd.grad(parts, leaves, [torch.ones_like(x) for x in parts])

    return lambda: function(*values), gradient


def _seconds(call: Callable[[], Any], seconds: float) -> float:
    """Return the time of the fastest call among those that fit into so many seconds; the first one compiles."""
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best
