"""The step of particles that engines are compared on: Costate's worker against the NumPy reference of the tests."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.continuum.mpm import numpy_mpm

from benchmarks.mpm_peers import costate_worker
from benchmarks.mpm_peers.peers import MPM_PEERS
from benchmarks.mpm_problem import DT, MpmProblem, problem
from benchmarks.peers.process import Process


@pytest.mark.parametrize("dim", [2, 3])
def test_the_step_is_that_of_numpy(dim: int) -> None:
    """Without muscles; Lame's constants are both 10 for E = 25, nu = 0.25. Sides are not touched, and the floor is rough."""
    p = problem(dim, 300)
    p = MpmProblem(**{**p.__dict__, "act": 0 * p.act})
    case = costate_worker.make(p, "float64", "gradient")
    x, x_bar, v_bar, _ = case.read(case.run())[:4]
    numbers = {"E": 25.0, "nu": 0.25, "density": 1.0}
    kind = "corotated" if dim == 2 else "neo_hookean"
    gravity = [0.0] * (dim - 1) + [-3.8]
    args = (kind, numbers, (p.nodes,) * dim, 1 / p.nodes, DT[dim], 1.0, gravity, 0.5, "quadratic")

    def after(v: np.ndarray) -> np.ndarray:
        return numpy_mpm.step((p.x, v, p.C, p.F), *args)[0]

    assert np.abs(x - after(p.v)).max() < 1e-12
    way = np.random.default_rng(0).normal(size=p.v.shape)
    slope = (p.weights * (after(p.v + 1e-5 * way) - after(p.v - 1e-5 * way))).sum() / 2e-5
    assert abs((v_bar * way).sum() - slope) < 1e-6 * abs(slope)
    assert x_bar.shape == p.x.shape


def test_the_worker_answers(tmp_path: Path) -> None:
    file = tmp_path / "particles.npz"
    problem(2, 200).save(file)
    process = Process(MPM_PEERS["costate"], Path(sys.executable))
    try:
        process.ask(300, do="hello")
        told = process.ask(300, do="time", repeats=1, problem=str(file), dtype="float64", mode="forward")
        assert 0 < told["processor"] < 1
    finally:
        process.stop()
