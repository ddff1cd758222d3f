"""Training: it learns, it can be killed at any moment, and it says what goes wrong."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.disk import files_of_at_most
from tests.interrupts import listen_to_interrupts

import costate as cs
from costate.cli.main import main
from costate.tasks.insertion import (
    Disturbances,
    HorizonOptions,
    Insertion,
    InsertionOptions,
    InsertionTraining,
    InsertionWeights,
    draw,
)
from costate.tasks.insertion.least_time.minimum_time import fastest, minimum_time
from costate.train.evaluate import evaluate, evaluate_policy
from costate.train.plan import TrainOptions, iteration
from costate.train.remembering import MemoryOptions
from costate.train.run import Run
from costate.train.streams import STREAMS, generator
from costate.train.trainer import DivergedError, train

SMALL = InsertionTraining(
    hidden=16,
    batch=8,
    iterations=40,
    learning_rate=6e-3,
    interval=4,
    watch_interval=20,
    watch_episodes=4,
    seed=2,
    threads=1,
    guide=False,
    memory=MemoryOptions("none"),
)
"""All of it has to be learnt, by a network that remembers nothing."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small training, undisturbed."""
    folder = Run.create(tmp_path_factory.mktemp("runs") / "run", Insertion, SMALL)
    train(folder)
    return folder


# --- the plan -----------------------------------------------------------------------------------------------------------


def test_learning_rate_rises_over_the_warm_up_and_falls_along_a_cosine() -> None:
    options = TrainOptions(iterations=1000, learning_rate=0.1, warm_up=10)
    rates = [iteration(options, k).learning_rate for k in range(1000)]
    assert rates[0] == pytest.approx(0.01)
    assert rates[500] == pytest.approx(0.05)
    assert rates[250] == pytest.approx(0.1 * (1 + math.sqrt(0.5)) / 2)
    assert 0 < rates[-1] < 1e-6


def test_funnel_and_rest_are_faded_in_and_contact_comes_last() -> None:
    options = InsertionTraining(iterations=100, funnel_ramp=0.4, rest_start=0.6, contact_fraction=0.25, contact_batch=5)
    task = Insertion()
    plans = [task.plan(options, k) for k in range(100)]
    assert [p.factors["funnel_factor"] for p in plans][::20] == pytest.approx([0, 0.5, 1, 1, 1])
    assert [p.factors["rest_factor"] for p in plans][::25] == pytest.approx([0.6, 0.7, 0.8, 0.9])
    assert [p.factors["contact"] for p in plans] == [False] * 75 + [True] * 25
    assert {p.batch for p in plans[75:]} == {5}


def test_no_evaluation_repeats_what_a_training_saw() -> None:
    seeds = {s: {generator(s, seed, k).initial_seed() for seed in range(3) for k in range(3000)} for s in STREAMS}
    assert all(seed < 2**32 for found in seeds.values() for seed in found)  # torch looks at no more bits
    for one in STREAMS:
        assert len(seeds[one]) > 8990  # hardly any two of nine thousand coincide
        assert all(seeds[one].isdisjoint(seeds[other]) for other in STREAMS if other != one)


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="batch is 0"):
        TrainOptions(batch=0)
    with pytest.raises(ValueError, match="contact_fraction is 2"):
        InsertionTraining(contact_fraction=2)
    with pytest.raises(ValueError, match="clip is 0"):
        TrainOptions(clip=0)


def test_the_docs_name_every_option_of_task_and_loss() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "insertion.md").read_text()
    names = [f.name.replace("_", "-") for kind in (InsertionOptions, InsertionWeights) for f in fields(kind)]
    assert [name for name in names if f"`{name}`" not in page] == []


# --- training -----------------------------------------------------------------------------------------------------------


def test_metrics_tell_the_whole_story(trained: Run) -> None:
    rows = trained.metrics()
    assert [row["iteration"] for row in rows] == list(range(4, 41, 4))
    assert [row["iteration"] for row in rows if "success" in row] == [20, 40]
    assert [row["control_steps"] for row in rows] == [40 * 8 * row["iteration"] for row in rows]
    assert trained.finished and trained.note["control_steps"] == 40 * 8 * 40


FREE = InsertionWeights(funnel=0.0, floor=0.0, dynamics=0.0, tail=0.5)
"""Weights without a wall, and without limits."""


def test_training_learns(tmp_path: Path) -> None:
    """From 120 mm to a few, in a hundred iterations; without a wall, above which so short a training would stop.

    Every iteration has episodes of its own, so that the error is one of episodes that were not trained on.
    """
    options = replace(SMALL, hidden=64, batch=32, iterations=100, learning_rate=0.01, warm_up=5, watch_interval=0)
    folder = Run.create(tmp_path / "run", Insertion, replace(options, weights=FREE))
    assert evaluate_policy(folder.task, folder.policy, 20).metrics.error_mean > 100
    train(folder)
    assert folder.metrics()[-1]["error_mm"] < 6


@pytest.mark.parametrize("threads", [1, 2])
def test_training_twice_gives_the_same_bits(threads: int, tmp_path: Path) -> None:
    """At the size that is trained by default, where matrix products are shared between threads."""
    options = replace(SMALL, hidden=256, batch=256, iterations=3, watch_interval=0, threads=threads)
    policies = []
    for name in ("one", "other"):
        train(folder := Run.create(tmp_path / name, Insertion, options))
        policies.append((folder.path / "policy.safetensors").read_bytes())
    torch.set_num_threads(1)
    assert policies[0] == policies[1]


@pytest.mark.parametrize(("clip", "clipped"), [(1e-6, 1.0), (1e9, 0.0)])
def test_clipping_says_when_it_acts(clip: float, clipped: float, tmp_path: Path) -> None:
    folder = Run.create(tmp_path / "run", Insertion, replace(SMALL, iterations=4, clip=clip, watch_interval=0))
    train(folder)
    (row,) = folder.metrics()
    assert row["clipped"] == clipped and row["gradient_norm"] > 1e-6


def test_contact_and_payload_are_simulated_when_asked_for(tmp_path: Path) -> None:
    errors = {}
    for name, payload in (("same", 0.0), ("heavier or lighter", 0.2)):
        options = replace(SMALL, iterations=2, interval=1, watch_interval=0, contact_fraction=0.5, contact_batch=3)
        folder = Run.create(tmp_path / name, Insertion, replace(options, disturbances=Disturbances(payload=payload)))
        train(folder)
        rows = folder.metrics()
        assert [row["contact"] for row in rows] == [False, True]
        assert [row["control_steps"] for row in rows] == [40 * 8, 40 * (8 + 3)]
        errors[name] = [row["error_mm"] for row in rows]
    for same, other in zip(*errors.values(), strict=True):
        assert same != other and same == pytest.approx(other, rel=0.02)  # the servos hold either weight, nearly


def test_a_diverged_training_says_where_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    weights = Run.create(tmp_path / "sound", Insertion, SMALL).policy.state_dict()
    weights["outer.bias"][2] = math.nan
    folder = Run.create(tmp_path / "run", Insertion, SMALL, weights)
    before = (folder.path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(DivergedError, match="iteration 0: the state of episode 0 after control step 1 is not finite"):
        train(folder)
    assert (folder.path / "checkpoint.safetensors").read_bytes() == before


# --- interruptions ------------------------------------------------------------------------------------------------------

# Trains in forks of itself, which it kills: at any time, or soon after they have written a row of metrics.
KILLER = """
import os, random, signal, sys, time
from costate.train.controller import save_policy
from costate.train.run import Run
from costate.train.trainer import Trainer, train

warm, folder, chance, kills = Run.open(sys.argv[1]), Run.open(sys.argv[2]), random.Random(1), 0
Trainer(warm).interval()  # loads the kernels, so that a fork trains at once,
save_policy(warm)  # and what writes the controller
while not folder.finished:
    rows, child = len(folder.metrics()), os.fork()
    if child == 0:
        train(folder)
        os._exit(0)
    if kills < 12:
        while kills % 2 and len(folder.metrics()) <= rows and not folder.finished:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.15))
        os.kill(child, signal.SIGKILL)
        kills += 1
    if os.waitpid(child, 0)[1] not in (0, signal.SIGKILL):
        sys.exit("a fork failed")
print(kills)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed differently there")
def test_a_training_killed_at_random_moments_ends_with_the_same_bits(trained: Run, tmp_path: Path) -> None:
    warm, folder = Run.create(tmp_path / "warm", Insertion, SMALL), Run.create(tmp_path / "run", Insertion, SMALL)
    command = [sys.executable, "-c", KILLER, str(warm.path), str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 6
    for name in ("policy.safetensors", "policy.json"):
        assert (folder.path / name).read_bytes() == (trained.path / name).read_bytes()
    timing = ("seconds", "processor_seconds", "steps_per_second")
    rows, undisturbed = (
        [{k: v for k, v in r.items() if k not in timing} for r in run.metrics()] for run in (folder, trained)
    )
    assert rows == undisturbed
    assert not [name for name in folder.path.iterdir() if name.name.startswith(".")]


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_training_stopped_by_a_full_disk_ends_with_the_same_bits(trained: Run, tmp_path: Path) -> None:
    folder = Run.create(tmp_path / "run", Insertion, replace(SMALL, interval=1, watch_interval=0))
    with (
        files_of_at_most(10_000),
        pytest.raises(OSError, match=r"cannot write .*metrics\.jsonl.* the last checkpoint is unharmed"),
    ):
        train(folder)
    assert 5 < folder.checkpoint().iteration == len(folder.metrics()) < 35
    train(folder)
    assert [row["iteration"] for row in folder.metrics()] == list(range(1, 41))
    assert (folder.path / "policy.safetensors").read_bytes() == (trained.path / "policy.safetensors").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_control_c_leaves_a_folder_to_go_on_with(tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = [sys.executable, "-m", "costate.cli", "train", "insertion", "--out", str(path), "--no-tensorboard"]
    command += [
        "--hidden",
        "16",
        "--batch",
        "8",
        "--iterations",
        "100000",
        "--interval",
        "4",
        "--watch-interval",
        "0",
        "--threads",
        "1",
    ]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen_to_interrupts
    )
    while child.poll() is None and not (path / "metrics.jsonl").exists():
        time.sleep(0.01)
    with pytest.raises(ValueError, match="in use"):
        train(Run.open(path))
    child.send_signal(signal.SIGINT)
    shown, errors = child.communicate(timeout=600)
    assert child.returncode == 130, errors
    assert f"costate train insertion --resume {path}" in shown
    assert "Traceback" not in errors
    assert Run.open(path).checkpoint().iteration % 4 == 0


def test_damaged_metrics_are_noticed(tmp_path: Path) -> None:
    folder = Run.create(tmp_path / "run", Insertion, replace(SMALL, iterations=4, watch_interval=0))
    train(folder)
    (folder.path / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="shorter than"):
        train(folder)


def test_options_are_fixed_when_resuming(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "insertion", "--resume", str(trained.path), "--batch", "9"]) == 2
    assert "are fixed" in capsys.readouterr().err
    assert main(["train", "insertion", "--resume", str(trained.path), "--no-tensorboard"]) == 0
    assert "control steps: error" in capsys.readouterr().out


# --- what comes out -----------------------------------------------------------------------------------------------------


def test_evaluation_is_written_and_repeatable(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    first = evaluate(trained, 6)
    assert trained.evaluation == json.loads(json.dumps(first))
    assert evaluate(trained, 6) == first
    assert evaluate(trained, 6, seed=1) != first
    assert evaluate(trained, 6, variant="wide")["error_mean"] != first["error_mean"]
    assert trained.evaluation is not None and trained.evaluation["seed"] == 1
    assert main(["evaluate", str(trained.path), "--episodes", "6", "--threads", "1"]) == 0
    assert f"{first['error_mean']:.3g} mm" in capsys.readouterr().out


def test_the_controller_alone_moves_the_arm_as_evaluation_says(trained: Run) -> None:
    """The file of the policy, in NumPy, in a loop of its own."""
    task, controller = trained.task, cs.load_policy(trained.path)
    found = evaluate_policy(task, trained.policy, 3).verdict
    state = draw(task, 3, generator("held out", 0), dtype=torch.float64).state
    for step in range(task.options.horizon):
        state = task.world.step(state, controller.action(state, step))
    torch.testing.assert_close(task.errors(state)[0].norm(dim=-1), found.error, rtol=0, atol=1e-9)


def test_the_controller_answers_in_kind(trained: Run) -> None:
    controller = cs.load_policy(trained.path)
    x = np.random.default_rng(0).normal(size=(2, 3, 19))
    expected = trained.task.control(trained.policy.double()(torch.from_numpy(x))).detach().numpy()
    np.testing.assert_allclose(controller(x), expected, rtol=0, atol=1e-14)
    single = controller(x[0, 0].tolist())
    assert isinstance(single, list) and single == pytest.approx(expected[0, 0], abs=1e-14)
    tensor = controller(torch.from_numpy(x).float())
    assert tensor.dtype == torch.float32 and tensor.shape == (2, 3, 6)
    with pytest.raises(ValueError, match="has no policy"):
        cs.load_policy(trained.path / "tensorboard")


def test_minimum_time_shrinks_until_the_joints_are_too_slow(trained: Run, tmp_path: Path) -> None:
    horizons = HorizonOptions(shrink=4, success=0.0, iterations=2, episodes=2)
    folder = Run.create(tmp_path / "run", Insertion, replace(SMALL, iterations=2, watch_interval=0, horizons=horizons))
    train(folder)
    curve = minimum_time(folder)
    assert curve == folder.found("horizon")
    lengths = [row["horizon"] for row in curve]
    assert lengths == list(range(30, lengths[-1] - 1, -4)) and len(curve) > 1
    with pytest.raises(ValueError, match="longer horizon"):
        Insertion(replace(folder.task.options, horizon=lengths[-1] - 4))
    last = fastest(curve)
    assert last is not None and last["horizon"] == lengths[-1]
    stage = Run.open(folder.path / last["run"])
    before = stage.note
    assert minimum_time(folder) == curve and stage.note == before  # nothing is trained twice


def test_minimum_time_gives_up_when_nothing_succeeds(tmp_path: Path) -> None:
    horizons = HorizonOptions(success=1.1, patience=2, iterations=2, episodes=2)
    folder = Run.create(tmp_path / "run", Insertion, replace(SMALL, iterations=2, watch_interval=0, horizons=horizons))
    train(folder)
    curve = minimum_time(folder)
    assert [row["horizon"] for row in curve] == [30, 29]
    assert fastest(curve) is None
