"""Benchmark of one explicit step of heat on 15,070 hexahedra, forward and with its gradient, beside Warp, Taichi and JAX.

python -m benchmarks.bench_heat [--smoke] [--json FILE] [--markdown FILE] [--peer-python PYTHON] [--rounds 7]

Peers run in environments of their own, which are made once, or by --peer-python. Those that cannot be imported are left out, and
named. The second table is wall time of 50 steps with one thread and with two: it needs two idle cores.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.heat_peers.costate_worker import STEPS, make
from benchmarks.heat_peers.peers import HEAT_PEERS
from benchmarks.heat_peers.reference import of_problem
from benchmarks.heat_problem import HeatProblem, wall
from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish, threads
from benchmarks.peers.process import PeerError, Process
from benchmarks.peers.venvs import PEER_PYTHON, interpreter

LIMIT = 600.0
"""Seconds that an answer may take; the first one compiles."""
MODES = ("forward", "gradient")


@dataclass
class Entrant:
    """An engine with a number type and a geometry."""

    process: Process
    what: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    """Least processor seconds of a step, by mode."""
    first: float = 0.0
    error: float = 0.0
    """Greatest difference of the gradient by temperatures from the reference, over the greatest entry."""

    def check(self, T_bar: np.ndarray, folder: Path) -> None:
        """Compile both modes, and compare the gradient with the reference."""
        file = str(folder / "found.npz")
        for mode in MODES:
            told = self.process.ask(LIMIT, do="result", save=file, mode=mode, **self.what)
            self.first += told["first"]
        with np.load(file) as found:
            self.error = float(np.abs(found["T_bar"] - T_bar).max() / np.abs(T_bar).max())

    def measure(self) -> None:
        """Time both modes once more."""
        for mode in MODES:
            told = self.process.ask(LIMIT, do="time", repeats=3, mode=mode, **self.what)
            self.seconds[mode] = min(told["processor"], self.seconds.get(mode, np.inf))


def entrants(file: Path, processes: list[Process], dtypes: tuple[str, ...], left_out: list[str]) -> list[Entrant]:
    """Return all engines that answer, with each number type and geometry that they have."""
    found = []
    for process in processes:
        try:
            geometries = process.ask(LIMIT, do="hello")["geometries"]
        except PeerError as error:
            left_out.append(f"{process.peer.title} ({error})")
            continue
        choices = [(g, d) for g in geometries for d in dtypes]
        found += [Entrant(process, {"problem": str(file), "geometry": g, "dtype": d}) for g, d in choices]
    return sorted(found, key=lambda e: (e.what["geometry"], dtypes.index(e.what["dtype"])))


def table(chosen: Options) -> Iterator[Table]:
    """Times of a step, and how many times as fast that of Costate is."""
    problem = wall((6, 4, 3)) if chosen.smoke else wall()
    names = ("costate", "numpy") if chosen.smoke else ("costate", "warp", "taichi", "jax")
    dtypes = ("float64",) if chosen.smoke else ("float64", "float32")
    processes = [
        Process(HEAT_PEERS[n], interpreter(HEAT_PEERS[n], chosen.rest.peer_python, chosen.smoke)) for n in names
    ]
    left_out: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix="costate-bench-") as folder:
            file = Path(folder) / "wall.npz"
            problem.save(file)
            found = entrants(file, processes, dtypes, left_out)
            T_bar = of_problem(problem)[1]
            for entrant in found:
                entrant.check(T_bar, Path(folder))
            for _ in range(2 if chosen.smoke else chosen.rest.rounds):
                for entrant in found:
                    entrant.measure()
    finally:
        for process in processes:
            process.stop()
    yield _table(problem, found, left_out)


def _table(problem: HeatProblem, found: list[Entrant], left_out: list[str]) -> Table:
    ours = {_group(e): e.seconds for e in found if e.process.peer.name == "costate"}
    rows = [_row(e, len(problem.elements), ours[_group(e)]) for e in found]
    note = (
        f"One explicit step of heat, {len(problem.elements):,} hexahedra with 8 nodes and 2 x 2 x 2 Gauss points, temperature-"
        "dependent conductivity and heat capacity, one thread on one core; in turns, least processor time. Gradient: a step "
        "forward and back, by temperatures and the laser's power. Geometry is computed from the nodes in every step, or stored "
        "(7 numbers per Gauss point). All engines have the same formulas. First call: both, compiled. Last column: greatest "
        "difference from a NumPy reference, over the greatest entry."
    )
    if left_out:
        note += " Left out: " + "; ".join(left_out) + "."
    columns = (
        "geometry",
        "type",
        "engine",
        "forward [us]",
        "gradient [us]",
        "gradient [ns per element]",
        "Costate is x times",
        "first call [s]",
        "gradient differs by",
    )
    return Table("A step of heat", columns, tuple(rows), note)


def _row(e: Entrant, elements: int, ours: dict[str, float]) -> tuple[str | float, ...]:
    forward, gradient = (e.seconds[mode] for mode in MODES)
    times = (1e6 * forward, 1e6 * gradient, 1e9 * gradient / elements, gradient / ours["gradient"], e.first)
    return e.what["geometry"], e.what["dtype"], e.process.peer.title, *times, f"{e.error:.0e}"


def _group(e: Entrant) -> tuple[str, str]:
    return e.what["geometry"], e.what["dtype"]


def _add(parser: argparse.ArgumentParser) -> Any:
    parser.add_argument("--peer-python", help=PEER_PYTHON)
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")


def shared_by_threads(chosen: Options) -> Iterator[Table]:
    """Times of a loop of steps that one thread computes, or two together, and whether they have the same bits."""
    problem = wall((6, 4, 3)) if chosen.smoke else wall()
    rows = []
    for dtype in ("float64", "float32"):
        for mode in MODES:
            run = make(problem, dtype, "recomputed", mode).timed
            assert run is not None
            calls = {n: partial(_with_threads, n, run) for n in (1, 2)}
            same = all(torch.equal(a, b) for a, b in zip(calls[1](), calls[2](), strict=True))
            best = interleaved({str(n): call for n, call in calls.items()}, 2 if chosen.smoke else 25)
            one, two = (1e6 * best[n] / STEPS for n in ("1", "2"))
            rows.append((dtype, mode, one, two, one / two, "yes" if same else "NO"))
    columns = ("type", "what", "one thread [us]", "two threads [us]", "times as fast", "same bits")
    yield Table(
        "Two threads",
        columns,
        tuple(rows),
        f"Wall time of a step in a loop of {STEPS}, in turns, the best of 25 rounds.",
    )


def _with_threads(count: int, run: Callable[[], Any]) -> Any:
    with threads(count):
        return run()


TABLES = {"step": table, "threads": shared_by_threads}


def main() -> None:
    chosen = options(__doc__ or "", list(TABLES), _add)
    found = tuple(t for name in chosen.only for t in TABLES[name](chosen))
    publish(Report("Speed of a heat step", "python -m benchmarks.bench_heat", machine(), found), chosen)


if __name__ == "__main__":
    main()
