"""Benchmark of one step of particles, forward and with its gradient, beside Taichi and Warp: 8,192 particles in 2D, 30,000 in 3D;
and of a whole roll-out with its gradient, with the memory that it takes.

python -m benchmarks.bench_mpm [--smoke] [--json FILE] [--markdown FILE] [--peer-python PYTHON] [--rounds 5]

Peers run in environments of their own, which are made once, or by --peer-python. Those that cannot be imported are left out, and
named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure.harness import ROOT, Options, Report, Table, machine, options, publish
from benchmarks.mpm_peers.peers import MPM_PEERS
from benchmarks.mpm_problem import problem
from benchmarks.peers.process import PeerError, Process
from benchmarks.peers.venvs import PEER_PYTHON, interpreter

LIMIT = 240.0
"""Seconds that an answer may take; the first one compiles."""
MODES = ("forward", "gradient")
TOO_LONG = {("taichi", 3): "Taichi in 3D, whose gradient kernels were not compiled after 10 minutes"}
"""Engines and dimensions that are left out, and why."""


@dataclass
class Entrant:
    """An engine with a number type and a problem."""

    process: Process
    what: dict[str, str]
    dim: int
    count: int
    seconds: dict[str, float] = field(default_factory=dict)
    """Least processor seconds of a step, by mode."""
    first: float = 0.0
    found: dict[str, np.ndarray] = field(default_factory=dict)

    def prepare(self, folder: Path) -> None:
        """Compile both modes, and keep the gradient."""
        file = str(folder / "found.npz")
        for mode in MODES:
            self.first += self.process.ask(LIMIT, do="result", save=file, mode=mode, **self.what)["first"]
        with np.load(file) as found:
            self.found = {name: found[name] for name in found.files}

    def measure(self) -> None:
        """Time both modes once more."""
        for mode in MODES:
            told = self.process.ask(LIMIT, do="time", repeats=3, mode=mode, **self.what)
            self.seconds[mode] = min(told["processor"], self.seconds.get(mode, np.inf))

    def differs(self, other: Entrant) -> float:
        """Return the greatest difference of gradients by positions, velocities and deformations, over the greatest entry."""
        names = [n for n in ("x_bar", "v_bar", "F_bar") if n in self.found and n in other.found]
        pairs = [(self.found[n].ravel(), other.found[n].ravel()) for n in names]
        return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def tables(chosen: Options) -> Iterator[Table]:
    """Times of a step, and how many times as fast that of Costate is."""
    sizes = {2: 400, 3: 500} if chosen.smoke else {2: 8192, 3: 30000}
    names = ("costate",) if chosen.smoke else ("costate", "taichi", "warp")
    processes = [Process(MPM_PEERS[n], interpreter(MPM_PEERS[n], chosen.rest.peer_python, chosen.smoke)) for n in names]
    left_out: list[str] = [] if chosen.smoke else list(TOO_LONG.values())
    found: list[Entrant] = []
    try:
        with tempfile.TemporaryDirectory(prefix="costate-bench-") as folder:
            there = [p for p in processes if _answers(p, left_out)]
            for dim, count in sizes.items():
                file = Path(folder) / f"particles{dim}.npz"
                problem(dim, count).save(file)
                for dtype in ("float64", "float32"):
                    what = {"problem": str(file), "dtype": dtype}
                    found += [Entrant(p, what, dim, count) for p in there if (p.peer.name, dim) not in TOO_LONG]
            found = _prepared(found, Path(folder), left_out)
            for _ in range(1 if chosen.smoke else chosen.rest.rounds):
                for entrant in found:
                    entrant.measure()
    finally:
        for process in processes:
            process.stop()
    yield _table(found, left_out)
    yield _roll_outs(chosen.smoke)


def _roll_outs(smoke: bool) -> Table:
    """Whole roll-outs of the problem in 2D with their gradients, each in a process of its own, after one that compiles."""
    steps, count = (32, 400) if smoke else (1024, 8192)
    rows = []
    for memory in ("60 MB", "1 GB"):
        command = [sys.executable, "-m", "benchmarks.mpm_peers.rollout", str(steps), str(count), memory]
        for _ in range(1 if smoke else 2):
            done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        told = json.loads(done.stdout)
        both = told["forward"] + told["backward"]
        rows.append(
            (memory, told["forward"], told["backward"], both, 1e9 * both / (steps * count), told["bytes"] / 1e6)
        )
    note = (
        f"{steps:,} steps of {count:,} particles in 2D, float64, one thread: `run` and the gradient of a mean by the "
        "actuation, least processor time of four. Peak: growth of the process with kernels from the cache, libraries "
        "aside (Linux)."
    )
    columns = ("memory", "forward [s]", "gradient [s]", "both [s]", "both [ns per particle and step]", "peak [MB]")
    return Table("A roll-out with its gradient", columns, tuple(rows), note)


def _prepared(every: list[Entrant], folder: Path, left_out: list[str]) -> list[Entrant]:
    """Return those that compile; a problem that takes an engine too long is not tried in its other number type."""
    found, failed = [], set()
    for entrant in every:
        name = f"{entrant.process.peer.title} in {entrant.dim}D"
        if name in failed:
            continue
        try:
            entrant.prepare(folder)
            found.append(entrant)
        except PeerError as error:
            failed.add(name)
            left_out.append(f"{name} ({error})")
    return found


def _answers(process: Process, left_out: list[str]) -> bool:
    try:
        process.ask(LIMIT, do="hello")
    except PeerError as error:
        left_out.append(f"{process.peer.title} ({error})")
        return False
    return True


def _table(found: list[Entrant], left_out: list[str]) -> Table:
    ours = {(e.dim, e.what["dtype"]): e for e in found if e.process.peer.name == "costate"}
    rows = [_row(e, ours) for e in found]
    note = (
        "One step of MLS-MPM with quadratic weights, one thread on one core; in turns, least processor time. 2D: 128 x 128 nodes, "
        "fixed corotated with four muscles; 3D: 64 x 64 x 64 nodes, neo-Hookean. Gradient: a step forward and back. All engines "
        "have the same formulas; Costate computes the window of the grid around the particles, the others all of it. First call: "
        "both, compiled. Last column: greatest difference of the gradient from that of Costate in float64, over the greatest entry."
    )
    if left_out:
        note += " Left out: " + "; ".join(left_out) + "."
    columns = (
        "problem",
        "type",
        "engine",
        "forward [ns per particle]",
        "gradient [ns per particle]",
        "forward: Costate is x times",
        "gradient: Costate is x times",
        "first call [s]",
        "gradient differs by",
    )
    return Table("A step of particles", columns, tuple(rows), note)


def _row(e: Entrant, ours: dict[tuple[int, str], Entrant]) -> tuple[str | float, ...]:
    forward, gradient = (1e9 * e.seconds[mode] / e.count for mode in MODES)
    own = ours[e.dim, e.what["dtype"]]
    ratios = [e.seconds[mode] / own.seconds[mode] for mode in MODES]
    name = f"{e.dim}D, {e.count:,} particles"
    error = f"{e.differs(ours[e.dim, 'float64']):.0e}"
    return name, e.what["dtype"], e.process.peer.title, forward, gradient, *ratios, e.first, error


def _add(parser: argparse.ArgumentParser) -> Any:
    parser.add_argument("--peer-python", help=PEER_PYTHON)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")


def main() -> None:
    chosen = options(__doc__ or "", ["step"], _add)
    publish(Report("Particles", "python -m benchmarks.bench_mpm", machine(), tuple(tables(chosen))), chosen)


if __name__ == "__main__":
    main()
