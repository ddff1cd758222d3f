"""Policies with memory: trained, judged, kept in a run folder and exported like any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.envs.balance import Balance
from torch import Tensor, nn

import costate as cs
from costate.cli.main import main
from costate.train import Run, TrainOptions, train
from costate.train.episode import rollout
from costate.train.evaluate import evaluate
from costate.train.policy import acting


class Remembering(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.cell, self.last = nn.GRUCell(inputs, 6), nn.Linear(6, outputs)
        self.start = nn.Parameter(torch.linspace(-0.5, 0.5, 6))

    def memory(self) -> tuple[Tensor, ...]:
        return (self.start,)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(x, h)
        return torch.tanh(self.last(h)), h


class Remembered(Balance):
    def policy(self, training: Any, generator: torch.Generator | None = None) -> nn.Module:
        torch.manual_seed(3)
        return Remembering(len(self.inputs), len(self.outputs)).float()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run.create(
        tmp_path_factory.mktemp("memory") / "run", Remembered, TrainOptions(iterations=3, batch=8, watch_interval=0)
    )
    train(run)
    return run


def test_it_is_trained_and_judged(run: Run) -> None:
    fresh, trained = Remembered().policy(None).state_dict(), run.policy.state_dict()
    assert all(bool((trained[name] != value).any()) for name, value in fresh.items()), "every weight, the start, too"
    assert evaluate(run, episodes=10)["episodes"] == 10


def test_its_controller_remembers(run: Run) -> None:
    """NumPy alone gives the commands of a roll-out, step by step, and again after `begin`."""
    task, policy = run.task, run.policy.double()
    with torch.no_grad():
        motion = rollout(task, acting(policy), task.draw(3, torch.Generator().manual_seed(0), torch.float64))
    controller = cs.load_policy(run.path)
    for _ in range(2):
        controller.begin()
        for state, action in zip(motion.states, motion.actions, strict=False):
            found = controller(task.observe(state, 0, motion.episodes).numpy())
            np.testing.assert_allclose(found, task.control(action).numpy(), rtol=0, atol=1e-10)
    policy.float()


def test_it_is_exported(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    text = "costate_policy(const COSTATE_REAL in[8], COSTATE_REAL memory[6], COSTATE_REAL out[2])"
    assert main(["export", str(run.path), "--trust"]) == 0
    assert text in (run.path / "costate_policy.h").read_text() and "policy.onnx" in capsys.readouterr().out
