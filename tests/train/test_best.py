"""A training ends with the best policy that its looks have found, keeps the last one, and can end early."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

import costate as cs
from costate.cli.runs import train as command
from costate.core.tensors import read_tensors
from costate.train import Episodes, Run, Trainable, Verdict, train
from costate.train.evaluate import evaluate
from costate.train.plan import Iteration, Schedule
from costate.train.trainer import Best, Iterated, Training

PEAK = 12
"""Iteration after which the policy is best."""


@dataclass(frozen=True)
class Fading(Schedule):
    """Options of a training that loses again what it has found."""

    trainer: ClassVar[Any] = "tests.train.test_best:FadingTrainer"
    iterations: int = 40
    interval: int = 2
    watch_interval: int = 4
    watch_episodes: int = 8


class FadingTrainer(Training):
    def set_up(self, point: Any) -> None:
        pass

    def kept(self) -> dict[str, Any]:
        return {"moments": {}}

    def iterate(self, plan: Iteration) -> Iterated:
        with torch.no_grad():
            self.policy.bias.fill_(abs(plan.number + 1 - PEAK))  # type: ignore[operator]
        return Iterated({"loss": 0.0}, 0.0, dict)


@dataclass(frozen=True)
class PushOptions:
    """Options of the task."""

    steps: int = 2
    """Control steps of an episode."""


class Push(Trainable):
    """A push that should be none."""

    name = "push_nothing"
    summary = "a pendulum is pushed with nothing"
    unit = "N m"
    options = PushOptions()
    training = Fading()
    measured: ClassVar[dict[str, str]] = {}

    @cached_property
    def world(self) -> cs.World:
        return cs.World([cs.load_robot("pendulum")], contact=None, dt=0.02)

    def policy(self, training: Any, generator: torch.Generator | None = None) -> nn.Module:
        return nn.Linear(1, 1)

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        return Episodes(torch.rand(batch, 2, generator=generator, dtype=dtype))

    def observe(self, state: torch.Tensor, step: int, episodes: Any) -> torch.Tensor:
        return torch.zeros_like(state[:, :1])

    def loss(self, trajectory: Any, iteration: Any) -> dict[str, torch.Tensor]:
        return {"push": trajectory.actions.square().sum((0, 2))}

    def judge(self, trajectory: Any) -> Verdict:
        push = trajectory.actions.abs().amax((0, 2))
        return Verdict(push < 0.5, push)


def trained(path: Path, **changes: Any) -> Run:
    folder = Run.create(path, Push, replace(Fading(), **changes))
    train(folder)
    return folder


def bias_of(run: Run) -> float:
    return float(run.policy.state_dict()["bias"])


def test_the_best_policy_is_kept_and_the_last_one_beside_it(tmp_path: Path, capsys: Any) -> None:
    folder = trained(tmp_path / "run", keep_every=8)
    assert [row["success"] for row in folder.metrics() if "success" in row] == [0, 0, 1] + [0] * 7
    assert folder.note["best_iteration"] == PEAK
    assert evaluate(folder, 10)["success"] == 1 and cs.load_policy(folder.path)([0.0]) == [0.0]
    last = read_tensors(folder.path / "last.safetensors")[0]
    assert last["bias"].item() == 40 - PEAK
    names = [file.name for file in sorted((folder.path / "checkpoints").iterdir())]
    assert names == [f"{k:06d}.safetensors" for k in (8, 16, 24, 32, 40)]
    command._summary(folder)
    assert f"best 100.0 % at iteration {PEAK}: this policy is kept" in capsys.readouterr().out


def test_a_training_goes_on_with_the_best_it_had(tmp_path: Path) -> None:
    """It is interrupted after the best policy has been lost."""
    folder = Run.create(tmp_path / "run", Push, Fading())
    train(folder, until=20)
    assert bias_of(folder) == 20 - PEAK and not folder.finished
    train(Run.open(folder.path, task=Push))
    assert bias_of(folder) == 0 and folder.note["best_iteration"] == PEAK


def test_a_training_ends_early_when_nothing_better_comes(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run", patience=3)
    assert folder.metrics()[-1]["iteration"] == PEAK + 3 * Fading().watch_interval
    assert folder.finished and bias_of(folder) == 0


@pytest.mark.parametrize(("file", "bias"), [("last.safetensors", 28), ("checkpoint.safetensors", 0), ("", 0)])
def test_weights_of_any_file_can_be_begun_with(file: str, bias: float, tmp_path: Path) -> None:
    folder = trained(tmp_path / "run")
    started = Run.create(tmp_path / "next", Push, Fading(), command._weights(folder.path / file))
    assert bias_of(started) == bias


def test_patience_needs_looks() -> None:
    with pytest.raises(ValueError, match="patience is 3 looks, but there are none"):
        Fading(patience=3, watch_interval=0)


def test_a_score_that_is_not_a_number_is_the_worst() -> None:
    best, policy = Best("best", {}), nn.Linear(1, 1)
    for iteration, score in enumerate(
        [(float("nan"), 0.0), (0.5, -2.0), (0.5, -1.0), (float("nan"), 9.0), (0.5, -1.5)]
    ):
        best.offer(policy, iteration, *score)
    assert best.score == (0.5, -1.0) and best.iteration == 2
    again = Best("best", best.kept())
    assert (again.score, again.iteration, set(again.weights)) == (best.score, 2, {"weight", "bias"})
