"""Tasks with rewards whose worlds differ from episode to episode, or from the one a policy has learnt in."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest
import torch
from tests.train.reinforce.swing import Swing, VariedSwing
from torch import nn

import costate as cs
from costate.core.fork import cached_property
from costate.robot import Robot
from costate.robot.identified import with_parameters
from costate.train.evaluate import evaluate_policy
from costate.train.reinforce.closed_loop import ClosedLoop
from costate.train.robustness import robustness
from costate.train.run import Run
from costate.train.trainer import train


def test_factors_are_even_on_a_logarithmic_scale_and_scale_the_whole_parameter():
    task = VariedSwing()
    assert task.varied_sizes == {"mass:pendulum2/link_1": 1, "gravity": 3}
    drawn = task.draw(4000, torch.Generator().manual_seed(0), torch.float64)
    mass, gravity = drawn.params.values()
    assert torch.equal(gravity[:, :2], torch.zeros(4000, 2, dtype=torch.float64))
    for factor, (low, high) in ((mass[:, 0] / 1.0, (0.5, 2.0)), (gravity[:, 2] / -9.81, (0.2, 1.5))):
        even = (factor.log() - math.log(low)) / math.log(high / low)
        assert -1e-6 < float(even.min()) < 0.01 and 0.99 < float(even.max()) < 1 + 1e-6
        assert float(even.mean()) == pytest.approx(0.5, abs=0.02)
        assert float(even.std()) == pytest.approx(12**-0.5, abs=0.01)


class Still(nn.Module):
    """A policy that does nothing."""

    def forward(self, seen):
        return 0 * seen[..., :2]


def test_evaluation_and_environments_use_the_drawn_parameters():
    """An episode of a varied task is that of a world which was made with its numbers."""
    task = VariedSwing()
    found = evaluate_policy(task, Still(), 3, keep=True).parts[0]
    batch = cs.envs.Batch(task, 3, seed=1)
    batch.reset()
    begun, params = batch.states[0].double(), {k: v.double() for k, v in batch.episodes.params.items()}
    batch.step(torch.zeros(3, 2))
    for start, given, after in (
        (found.states[0], found.episodes.params, found.states[1]),
        (begun, params, batch.states[-1]),
    ):
        for k in range(3):
            gravity = given["gravity"][k].tolist()
            mass = given["mass:pendulum2/link_1"][k].numpy()
            robot = Robot(with_parameters(cs.load_robot("pendulum2").model, {("mass", "link_1"): mass}))
            world = cs.World([robot], actuators=cs.Torque(limit=6.0), contact=None, dt=0.05, gravity=gravity)
            expected = world.step(start[k], torch.zeros(2, dtype=torch.float64))
            torch.testing.assert_close(after[k].double(), expected, rtol=0, atol=1e-6)


def test_a_world_whose_parameters_are_not_the_varied_ones_is_refused():
    class Wrong(Swing):
        varied: ClassVar = {"gravity": (0.5, 1.0)}

        @cached_property
        def world(self):
            return Swing().world

    with pytest.raises(ValueError, match=r"World\(parameters=list"):
        ClosedLoop(Wrong(), nn.Sequential(nn.Linear(9, 2))).begin(2, torch.Generator())


class TriedElsewhere(Swing):
    """The same pendulum, and the Moon."""

    def worlds(self):
        def moon():
            robot = cs.load_robot("pendulum2")
            return cs.World([robot], actuators=cs.Torque(limit=6.0), contact=None, dt=0.05, gravity=(0, 0, -1.62))

        return {"here": lambda: self.world, "Moon": moon}


def test_a_policy_is_tried_in_other_worlds(tmp_path):
    run = Run.create(tmp_path / "run", TriedElsewhere)
    train(run)
    shown = []
    found = robustness(run, 16, watch=lambda name, metrics: shown.append((name, metrics.brief(""))))
    assert [name for name, _ in shown] == ["here", "Moon"] and list(shown[0][1]) == ["return", "deviation", "lasts"]
    own = evaluate_policy(run.task, run.policy, 16)
    returns = own.verdict.columns["return"]
    assert found["here"].columns["return"] == pytest.approx(float(returns.mean()))
    assert found["here"].columns["return: standard deviation"] == pytest.approx(float(returns.std(correction=0)))
    assert found["Moon"].columns["return"] != found["here"].columns["return"]
    assert [row["case"] for row in run.found("robustness")] == ["here", "Moon"]


def test_a_training_with_varied_parameters_resumes_to_the_same_bits(tmp_path):
    whole, parts = (Run.create(tmp_path / name, VariedSwing) for name in ("whole", "parts"))
    train(whole)

    def stop(row):
        if row["iteration"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(parts, stop)
    train(parts)
    one, two = whole.checkpoint(), parts.checkpoint()
    assert all(torch.equal(t, two.policy[name]) for name, t in one.policy.items())
    assert torch.equal(one.more["carry"], two.more["carry"]) and one.more["carry"].shape[1] == 7 + 4
