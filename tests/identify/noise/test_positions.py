"""Intervals stay honest where everything comes from noisy positions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2
from tests.identify.motions import Array

import costate as cs
from costate.identify import Identification, Regressor
from costate.model import Model
from costate.robot import Robot


def logs(model: Model, runs: int, encoder: float, rate: float = 150.0):
    """Yield logs of positions and torques of a robot's exciting motion: 1 % noise in torques, some in positions."""
    regressor = Regressor.of(model)
    clean = cs.excite(Robot(model), iterations=30, restarts=1).sample(rate)
    clean["tau"] = regressor.torques(clean["q"], clean["v"], clean["a"], regressor.pi())
    level = 0.01 * np.sqrt((clean["tau"] ** 2).mean(0))
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        tau = clean["tau"] + level * rng.normal(size=clean["tau"].shape)
        yield {"t": clean["t"], "q": clean["q"] + encoder * rng.normal(size=tau.shape), "tau": tau}


def inside(result: Identification, truth: Array) -> tuple[bool, Array]:
    lower, upper = result.interval
    return bool(result.distance(truth) < chi2.ppf(0.95, result.base.rank)), (lower < truth) & (truth < upper)


def test_distances_are_those_of_honest_intervals() -> None:
    """The squared distance of the truth has the mean of chi-square, 52 for a UR5; six runs have a standard deviation of 4."""
    model = cs.load_robot("ur5").model
    pi = Regressor.of(model).pi()
    distances = []
    for log in logs(model, 6, 1e-4):
        result = cs.identify(Robot(model), log, physical=False)
        distances.append(result.distance(result.base.project(pi)))
    assert 52 - 14 < np.mean(distances) < 52 + 14


@pytest.mark.study
@pytest.mark.parametrize("name", ["ur5", "iiwa7"])
@pytest.mark.parametrize("encoder", [1e-4, 1e-5])
def test_coverage(name: str, encoder: float) -> None:
    """100 runs: the truth lies in the 95 % region of all base parameters in about 95."""
    model = cs.load_robot(name).model
    pi = Regressor.of(model).pi()
    found = []
    for log in logs(model, 100, encoder):
        result = cs.identify(Robot(model), log, physical=False)
        found.append(inside(result, result.base.project(pi)))
    whole, each = sum(w for w, _ in found), 100 * np.mean([e for _, e in found])
    print(f"\n{name}, {encoder:g} rad: all together in {whole} of 100 runs, each in {each:.1f} %")
    assert whole >= 88
