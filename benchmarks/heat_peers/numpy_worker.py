"""The heat step in NumPy: the reference as a peer, for the agreement of the others and for tests of the protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.heat_peers.reference import of_problem
from benchmarks.heat_peers.serve import Case, serve
from benchmarks.heat_problem import HeatProblem


def make(p: HeatProblem, dtype: str, geometry: str, mode: str) -> Case:
    """Return the reference, which always computes the gradient as well, in float64."""
    if (dtype, geometry) != ("float64", "recomputed"):
        raise ValueError(f"the reference computes in float64 from positions, not in {dtype} with geometry {geometry!r}")
    count = 1 if mode == "forward" else 3
    return Case(lambda: of_problem(p), lambda found: tuple(np.asarray(a) for a in found[:count]))


if __name__ == "__main__":
    serve(("numpy",), ("recomputed",), make)
