"""Least times of insertions: motions that are what they claim to be, and bounds in the right order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from costate.core.files import write_json
from costate.optimise.direct import DirectOptions
from costate.optimise.solution import Solution
from costate.tasks.insertion import Insertion, InsertionOptions, InsertionTraining, draw
from costate.tasks.insertion.judge import MAX_ERROR, MAX_SPEED, MAX_TILT
from costate.tasks.insertion.least_time import minimum_time
from costate.tasks.insertion.least_time.bound import HELD, Bound, InsertionBound, hardest, insertion_bound
from costate.tasks.insertion.scene import BOTTLE_RADIUS, CLEARANCE, DEPTH
from costate.train.run import Run
from costate.train.solve.least_time import least_times
from costate.train.streams import CHUNK, generator

STEPS = (12, 2, 12, 2 * HELD)


@pytest.fixture(scope="module")
def task() -> InsertionBound:
    return InsertionBound(steps=STEPS, moving=True)


@pytest.fixture(scope="module")
def found(task: InsertionBound) -> Solution:
    return least_times(task.least_times([1]), DirectOptions(method="inverse"))[0]


def test_episodes_are_the_held_out_ones(task: InsertionBound) -> None:
    moving = Insertion(InsertionOptions(moving=True))
    evaluated = draw(moving, CHUNK, generator("held out", 0, 1), dtype=torch.float64)
    assert torch.equal(task.episodes([CHUNK + 3])[0], evaluated.state[3])


def test_the_motion_inserts_within_limits(task: InsertionBound, found: Solution) -> None:
    """Looked at with the task's own functions, which are not those it was found with."""
    assert found.converged
    start, states, times = task.episodes([1])[0], found.extra["states"], found.extra["times"]
    full = start.expand(len(states), -1).clone()
    full[:, 0:6], full[:, 9:15] = states[:, :6], states[:, 6:]
    full[:, 6:8] += times[:, None] * start[15:17]
    position, tilt, velocity = task.task.errors(full)
    above, mouth, seated = (sum(STEPS[: k + 1]) for k in range(3))
    assert (
        position[: above + 1, 2] - BOTTLE_RADIUS * tilt[: above + 1].sin() >= DEPTH - 1.4e-4
    ).all()  # 0.1 mm, and rounded tilts
    assert position[mouth, 2] >= DEPTH - 1e-6
    narrower = BOTTLE_RADIUS * (1 - tilt.cos())  # a tilted foot, seen from above
    assert (position[mouth : seated + 1, :2].norm(dim=-1) <= (1.101 * CLEARANCE + narrower)[mouth : seated + 1]).all()
    held = [seated + 2 * k for k in range(HELD + 1)]
    assert position[held].norm(dim=-1).max() < 1.001 * MAX_ERROR and tilt[held].max() < 1.001 * MAX_TILT
    assert velocity[held[1:]].norm(dim=-1).max() < 1.001 * MAX_SPEED
    assert (states[:, 6:].abs() <= 1.0011 * task.task.max_velocity).all()
    h = times.diff()[:, None]
    acceleration = states[:, 6:].diff(dim=0) / h
    assert float(acceleration.abs().max()) < 1.001 * task.options.acceleration_limit
    jerk = acceleration.diff(dim=0) / ((h[1:] + h[:-1]) / 2)
    assert float(jerk.abs().max()) < 1.001 * task.options.jerk_limit
    assert times[-1] - times[seated] == pytest.approx(HELD * task.options.dt)


def test_the_simulator_follows_it(task: InsertionBound, found: Solution) -> None:
    """Its commands, played in the simulator, bring the bottle to its seat."""
    timed = task.least_times([1])
    states = timed.play(found.extra["times"][:, None], found.x[:, None])
    assert timed.error(states) <= task.tolerance


def test_arrival_is_the_smaller_bound_and_no_joint_is_too_fast(task: InsertionBound, found: Solution) -> None:
    timed = task.least_times([1], rest=False)
    arrived = least_times(timed, DirectOptions(method="kinematic"))[0]
    least = arrived.extra["duration"]
    turned = arrived.extra["states"][:, :6].diff(dim=0).abs().sum(0) / (1.001 * task.task.max_velocity)
    assert arrived.converged and turned.max() == pytest.approx(least, rel=1e-6)  # one joint is busy all the time
    assert least < found.extra["duration"] - HELD * task.options.dt


def test_ratio_beside_the_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a hundred may fail: the second slowest of the pool counts."""
    bound = Bound(torch.tensor([0.1, 0.12, 0.2]), torch.tensor([0.08, 0.09, 0.1]), torch.tensor([True] * 3))
    monkeypatch.setattr(minimum_time, "insertion_bound", lambda options, episodes, pool: bound)
    monkeypatch.setattr(minimum_time, "POOL", 100)
    folder = Run.create(tmp_path / "run", Insertion, InsertionTraining(iterations=1))
    assert minimum_time.compare(folder) is None  # no curve yet
    rows = [{"horizon": h, "seconds": h / 100, "met": h > 16} for h in (30, 18, 11)]
    write_json(folder.path / "horizon.json", rows)
    result = minimum_time.compare(folder, 3)
    assert result == folder.found("bound") == json.loads((folder.path / "bound.json").read_text())
    assert result is not None and result["ratio"] == pytest.approx(0.18 / 0.12) and result["steps"] == 12
    assert result["steps_ratio"] == pytest.approx(18 / 12)
    assert result["possible"] == pytest.approx([1.0, 0.99, 0.98])
    two_failed = replace(bound, solved=torch.tensor([True, False, False]))
    monkeypatch.setattr(minimum_time, "insertion_bound", lambda options, episodes, pool: two_failed)
    result = minimum_time.compare(folder, 3)
    assert result is not None and result["least"] is None and result["ratio"] is None and result["slowest"] == 0.1


def test_a_training_that_harms_is_taken_back(tmp_path: Path) -> None:
    """A network that shakes the arm: its guide alone is kept. One that does nothing stays."""
    task, training = Insertion(InsertionOptions(horizon=28)), InsertionTraining(iterations=1, hidden=8)
    folder = Run.create(tmp_path / "run", task, training)
    point = folder.checkpoint()
    for size in (3.0, 0.0):
        weights = point.policy | {"outer.bias": torch.full_like(point.policy["outer.bias"], size)}
        folder.save(replace(point, policy=weights))
        minimum_time._keep_the_better(folder, 20)
        kept = folder.checkpoint().policy
        assert bool((kept["outer.weight"] == 0).all()) == (size > 0) and float(kept["outer.bias"].abs().max()) == 0
        assert (folder.path / "policy.safetensors").exists()


def test_the_hardest_episodes_are_slow(task: InsertionBound) -> None:
    """By joint travel, which needs no optimiser: no more than a rank, but one that finds the tail."""
    chosen = hardest(task, 100, 5)
    assert len(set(chosen)) == 5 and max(chosen) < 100
    start = task.episodes(range(100))
    away = (task.task.seats(start[:, 6:8] + 0.15 * start[:, 15:17], DEPTH) - start[:, :6]).abs().amax(-1)
    assert float(away[chosen].min()) >= float(away.quantile(0.9))


@pytest.mark.study
def test_finer_steps_do_not_change_it() -> None:
    coarse = insertion_bound(InsertionOptions(), 2)
    task = InsertionBound(steps=(32, 4, 32, 8 * HELD))
    fine = least_times(task.least_times(range(2)), DirectOptions(method="inverse"))
    for a, b in zip(coarse.seconds, fine, strict=True):
        assert float(a) == pytest.approx(b.extra["duration"] - HELD * 0.01, rel=0.02)
