"""SHAC: its sums against loops that spell them out, its actor elsewhere, and its report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.train.reinforce.swing import Swing

from costate.report.run_report import run_report
from costate.train.evaluate import evaluate
from costate.train.plan import iteration
from costate.train.reinforce.closed_loop import Window
from costate.train.reinforce.shac import Shac, ShacOptions
from costate.train.reinforce.windowed import Rolled
from costate.train.run import Run
from costate.train.trainer import train


@pytest.fixture
def shac(tmp_path):
    return Shac(Run.create(tmp_path / "run", Swing))


def window(shac: Shac) -> tuple[Rolled, torch.Tensor]:
    """Return a random window with ends of both kinds, and values of what comes after each step: the critic finds these."""
    g = torch.Generator().manual_seed(0)
    B, H = shac.options.batch, shac.options.horizon
    reward, values = torch.randn(2, B, H, generator=g, dtype=torch.float32)
    fell, over = torch.rand(2, B, H, generator=g) < 0.25
    over &= ~fell
    nothing, after = torch.zeros(B, H, 9), values[..., None].expand(B, H, 9)
    shac.value = lambda seen: seen[:, 0]  # type: ignore[method-assign]
    course = Window(nothing, nothing, nothing, reward, fell, over, torch.zeros(B, 7))
    return Rolled(course, nothing, nothing, nothing, nothing, after), torch.where(fell, 0.0, values)


def test_loss_is_minus_the_discounted_rewards_and_the_value_of_the_ends(shac):
    rolled, values = window(shac)
    w, o, total = rolled.window, shac.options, 0.0
    for b in range(o.batch):
        factor = 1.0
        for t in range(o.horizon):
            total += factor * float(w.reward[b, t])
            if w.ended[b, t] or t == o.horizon - 1:
                total += factor * o.discount * float(values[b, t])
                factor = 1.0
            else:
                factor *= o.discount
    assert float(shac.loss(rolled)) == pytest.approx(-total / (o.batch * o.horizon), rel=1e-5)


def test_returns_are_the_weighted_mean_of_all_lengths(shac):
    """TD(lambda) by its definition: the n-step returns, weighted by (1 - lambda) lambda^(n - 1), the last one with the rest."""
    rolled, values = window(shac)
    w, o = rolled.window, shac.options
    shac.loss(rolled)
    found = shac.returns
    for b in range(o.batch):
        for t in range(o.horizon):
            total, earned, weight = 0.0, 0.0, 1.0
            for n in range(t, o.horizon):
                earned += o.discount ** (n - t) * float(w.reward[b, n])
                longer = earned + o.discount ** (n - t + 1) * float(values[b, n])
                last = bool(w.ended[b, n]) or n == o.horizon - 1
                total += weight * (1.0 if last else 1 - o.trace) * longer
                weight *= o.trace
                if last:
                    break
            assert float(found[b, t]) == pytest.approx(total, rel=1e-4, abs=1e-5)


def test_the_critic_may_learn_alone_at_first(tmp_path):
    run = Run.create(tmp_path / "run", Swing, replace(Swing.training, critic_alone=2, interval=2))
    shac = Shac(run)

    def weights():
        nets = (shac.policy, shac.critics[0].network)
        return [torch.cat([w.detach().flatten() for w in net.parameters()]).clone() for net in nets]

    (actor, critic), moved = weights(), []
    for number in range(3):
        shac.done = number
        shac.iterate(iteration(shac.options, number))
        moved.append([bool((new != old).any()) for new, old in zip(weights(), (actor, critic), strict=True)])
    assert moved == [[False, True], [False, True], [True, True]]


@pytest.mark.parametrize("change", [{"discount": 1.5}, {"horizon": 0}, {"state_clip": 0.0}])
def test_options_that_mean_nothing_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        ShacOptions(**change)


def test_actor_as_a_network_of_numpy(tmp_path):
    """The exported network, normalisation included, acts as it does."""
    run = Run.create(tmp_path / "run", Swing)
    policy: Any = run.policy
    g = torch.Generator().manual_seed(0)
    policy.learn_scale(3 + 2 * torch.randn(100, 9, generator=g, dtype=torch.float32))
    seen = torch.randn(20, 9, generator=g, dtype=torch.float32)
    network = run.task.network(policy)
    expected = 6 * policy(seen).detach().double()
    torch.testing.assert_close(torch.as_tensor(network(seen.double().numpy())), expected, rtol=0, atol=1e-5)


def test_a_run_is_evaluated_and_reported(tmp_path):
    run = Run.create(tmp_path / "run", Swing)
    train(run)
    found = evaluate(run, episodes=20)
    assert run.task.rows(found)["return: mean"] == f"{found['return']:.5g}"
    page = run_report(run, 20).save(tmp_path / "report.html").read_text()
    assert f"{sum(p.numel() for p in run.policy.parameters()):,} weights" in page
    assert "mean return, 20 new episodes" in page and f"{found['return']:,.5g}" in page and "mean error" not in page
