"""The worker of every peer of the heat step: take requests as lines of JSON on standard input, answer each with one line of JSON.

    {"do": "hello"}                         -> versions, and the forms of geometry that it has, the fastest first
    {"do": "time", "repeats": 5, ...}       -> least wall and processor seconds of a step ("time", "processor")
    {"do": "result", "save": FILE, ...}     -> sums to compare, seconds of the first call, and all numbers in an .npz (optional)

Further entries of both: problem (an .npz of `HeatProblem.save`), dtype ("float32", "float64"), geometry ("recomputed", "stored")
and mode ("forward", "gradient"). `benchmarks.peers.process.Process` starts a worker and asks it; `peers/workers/worker.py` is what
it starts, so that what libraries print does not come between the answers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from benchmarks.heat_problem import HeatProblem

Run = Callable[[], Any]
"""Function that computes a step, or a step and its gradient, and returns when all is computed."""
Read = Callable[[Any], tuple[np.ndarray, ...]]
"""Function of what `Run` returned that gives the temperatures, and with the gradient also its parts by temperatures and power."""


class Case(NamedTuple):
    """A step, or a step and its gradient, in one engine."""

    run: Run
    read: Read
    timed: Run | None = None
    """Function that is timed instead, which makes several steps."""
    steps: int = 1
    """Number of these steps."""


Make = Callable[[HeatProblem, str, str, str], Case]
"""Function of a problem, a number type, a geometry and a mode."""
BATCH = 0.02
"""Seconds over which calls are averaged."""


def serve(packages: Sequence[str], geometries: Sequence[str], make: Make) -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(int(os.environ.get("COSTATE_BENCH_ANSWERS", "1")), "w")

    @cache
    def case(problem: str, dtype: str, geometry: str, mode: str) -> tuple[Case, float]:
        start = time.perf_counter()
        found = make(HeatProblem.load(problem), dtype, geometry, mode)
        found.run()
        return found, time.perf_counter() - start

    def hello() -> dict[str, Any]:
        return {"versions": {name: version(name) for name in packages}, "geometries": list(geometries)}

    def timed(repeats: int = 5, **what: str) -> dict[str, float]:
        found, first = case(**what)
        best = _best(found.timed or found.run, repeats)
        return {**{name: seconds / found.steps for name, seconds in best.items()}, "first": first}

    def result(save: str = "", **what: str) -> dict[str, Any]:
        chosen, first = case(**what)
        found = dict(zip(("T", "T_bar", "power_bar"), chosen.read(chosen.run()), strict=False))
        if save:
            np.savez(save, **found)
        return {**{name: float(np.abs(a).sum(dtype=float)) for name, a in found.items()}, "first": first}

    requests = {"hello": hello, "time": timed, "result": result}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = requests[request.pop("do")](**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _best(run: Run, repeats: int) -> dict[str, float]:
    """Return the least seconds of a call, on average over about BATCH seconds each time."""
    start = time.perf_counter()
    run()
    calls = max(1, int(BATCH / (time.perf_counter() - start)))
    wall, processor = [], []
    for _ in range(repeats):
        start, busy = time.perf_counter(), time.process_time()
        for _ in range(calls):
            run()
        wall.append((time.perf_counter() - start) / calls)
        processor.append((time.process_time() - busy) / calls)
    return {"time": min(wall), "processor": min(processor)}
