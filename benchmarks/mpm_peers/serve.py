"""The worker of every peer of the step of particles: requests and answers are lines of JSON, as in `heat_peers/serve.py`.

{"do": "hello"}                                                  -> versions
{"do": "time", "repeats": 3, "problem": FILE, "dtype": "float64", "mode": "gradient"}  -> least processor seconds of a step
{"do": "result", "save": FILE, ...}                              -> seconds of the first call; x, and its gradient, in an .npz
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.heat_peers.serve import Case, _best
from benchmarks.mpm_problem import MpmProblem

Make = Callable[[MpmProblem, str, str], Case]
"""Function of a problem, a number type and a mode ("forward", "gradient")."""
NAMES = ("x", "x_bar", "v_bar", "F_bar", "act_bar")


def serve(packages: Sequence[str], make: Make) -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(int(os.environ.get("COSTATE_BENCH_ANSWERS", "1")), "w")

    @cache
    def case(problem: str, dtype: str, mode: str) -> tuple[Case, float]:
        start = time.perf_counter()
        found = make(MpmProblem.load(problem), dtype, mode)
        found.run()
        return found, time.perf_counter() - start

    def timed(repeats: int = 3, **what: str) -> dict[str, float]:
        found, _ = case(**what)
        return {k: s / found.steps for k, s in _best(found.timed or found.run, repeats).items()}

    def result(save: str = "", **what: str) -> dict[str, Any]:
        chosen, first = case(**what)
        arrays = dict(zip(NAMES, chosen.read(chosen.run()), strict=False))
        if save:
            np.savez(save, **arrays)
        return {"first": first}

    requests = {"hello": lambda: {n: version(n) for n in packages}, "time": timed, "result": result}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = requests[request.pop("do")](**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
