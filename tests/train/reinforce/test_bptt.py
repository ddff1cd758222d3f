"""Looks decide which policy a training ends with, trials which one it goes on with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.train.reinforce.swing import Swing

from costate.train.evaluate import evaluate_policy
from costate.train.reinforce.bptt import Bptt, BpttOptions
from costate.train.reinforce.shac import Shac
from costate.train.run import Run
from costate.train.streams import generator
from costate.train.trainer import Best, train


class StopError(Exception):
    """A training that is interrupted."""


def interrupted(run: Run, at: int) -> Run:
    """Train a run with an interruption after some iterations; return it."""

    def stop(row):
        if row["iteration"] == at:
            raise StopError

    with pytest.raises(StopError):
        train(run, stop)
    train(Run.open(run.path, task=Swing))
    return run


def assert_same(whole: Run, parts: Run) -> None:
    a, b = whole.checkpoint(), parts.checkpoint()
    for x, y in ((a.policy, b.policy), (a.more, b.more)):
        assert x.keys() == y.keys() and all(torch.equal(x[k], y[k]) for k in x)


def test_a_training_with_looks_ends_with_the_policy_that_earned_most(tmp_path, monkeypatch):
    """A rate that is far too high spoils the policy; the best of all looks is kept, and found again after an interruption."""
    options = replace(Swing.training, iterations=8, learning_rate=0.3, watch_interval=2, watch_episodes=16)
    whole, parts = (Run.create(tmp_path / name, Swing, options) for name in ("whole", "parts"))
    offered = []
    offer = Best.offer

    def noted(self, policy, iteration, score):
        offered.append((score, {k: v.clone() for k, v in policy.state_dict().items()}))
        offer(self, policy, iteration, score)

    monkeypatch.setattr(Best, "offer", noted)
    train(whole)
    played = [row["played"] for row in whole.metrics()]
    assert [score for score, _ in offered] == played and len(played) == 4
    best = max(offered, key=lambda each: each[0])
    assert all(torch.equal(best[1][k], v) for k, v in whole.policy.state_dict().items())
    seen = evaluate_policy(Swing(), whole.policy, 16, stream="watch", seed=options.seed)
    assert seen.metrics.columns["return"] == max(played)
    assert_same(whole, interrupted(parts, 4))


def test_attempts_go_on_with_the_policy_that_earned_most(tmp_path):
    """Trials begin with weights of their own, and what follows begins with the best of them; an interruption changes nothing."""
    options = BpttOptions(iterations=8, batch=128, actor=(8,), attempts=3, trial=2, interval=1)
    whole, parts = (Run.create(tmp_path / name, Swing, options) for name in ("whole", "parts"))
    training = Bptt(whole)
    policy: Any = training.policy
    ends, begins = [], []
    for number in range(7):
        before = {k: v.clone() for k, v in policy.state_dict().items()}
        if number in (2, 4, 6):
            ends.append((float(training.recent[0].mean()), before))
        training._try_another(number)
        if number in (2, 4):
            begins.append(policy.net[0].weight.detach().clone())
        if number == 6:
            best = max(ends, key=lambda each: each[0])[1]
            assert all(torch.equal(best[k], v) for k, v in policy.state_dict().items())
        training.iterate(training.task.plan(options, number))
        training.done = number + 1
    assert not torch.equal(*begins)
    expected: Any = Swing().policy(options, generator("weights", options.seed, 2))
    assert torch.equal(begins[0], expected.net[0].weight)
    train(whole)
    assert_same(whole, interrupted(parts, 5))


def test_attempts_that_leave_nothing_to_go_on_with_are_refused():
    with pytest.raises(ValueError, match="3 attempts of 30 iterations leave none of 90 to go on with"):
        BpttOptions(iterations=90, attempts=3)


def test_without_looks_the_last_policy_stays(tmp_path):
    training = Shac(Run.create(tmp_path / "run", Swing))
    assert not training.best.kept() and not training.best.weights
