"""Windows with the actor in the kernel, against a plain loop of torch over world, formulas and module."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.train.reinforce.swing import Swing, VariedSwing
from torch import Tensor, nn

from costate.train.reinforce.actor import perceptron
from costate.train.reinforce.closed_loop import ClosedLoop, Window
from costate.train.reinforce.rewarded import VariedEpisodes

B = 11
NOT_TIGHT = 1e30
"""Length that no gradient has."""


@pytest.fixture(scope="module", params=[Swing, VariedSwing], ids=["alike", "varied"])
def env(request):
    return request.param()


@pytest.fixture(scope="module", params=[2, 4], ids=["means", "means and deviations"])
def loop(request, env):
    net = perceptron(env.size[2], (12, 8), request.param, torch.Generator().manual_seed(0)).double()
    return net, ClosedLoop(env, net)


def inputs(env, horizon=9):
    g = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    begun = env.fresh(B, g).double()
    carry = torch.cat([begun[:, :4], torch.tanh(normal(B, 2)), torch.arange(B)[:, None] % 7, begun[:, 4:]], 1)
    fresh = env.fresh(B * horizon, g).double().reshape(B, horizon, -1)
    return carry, normal(B, horizon, 2), fresh, (0.1 * normal(9), 1 + normal(9).square())


def plain(env, net, given, clip, push, lengths) -> Window:
    """The same window, step by step; lengths: list that takes those of the gradients of the states, last step first."""
    carry, noise, fresh, scaling = given
    x, last, age, own = carry.split([4, 2, 1, carry.shape[1] - 7], -1)
    told: dict[str, list[Tensor]] = {k: [] for k in ("seen", "heads", "after", "reward", "fell", "over")}

    def shorten(gradient: Tensor) -> Tensor:
        lengths.append(gradient.norm(dim=-1))
        return gradient * (clip / lengths[-1]).clamp(max=1)[:, None]

    for t in range(noise.shape[1]):
        seen = env.telling(state=x, action=last, after=x, time=age / env.length).observation
        head = net((seen - scaling[0]) * scaling[1]) + push[:, t]
        deviation = (-1.5 + 3.5 * head[:, 2:].tanh()).exp() if head.shape[1] == 4 else 1  # between exp(-5) and exp(2)
        action = torch.tanh(head[:, :2] + deviation * noise[:, t])
        y = env.world.step(x, 6.0 * action, VariedEpisodes(x, own, env.varied_sizes).params)
        y.register_hook(shorten)
        out = env.telling(state=x, action=action, after=y, time=(age + 1) / env.length)
        fell = out.margin < 0
        over = (age + 1 >= env.length) & ~fell
        ends = fell | over
        found = (seen, head, out.observation, out.reward[:, 0], fell[:, 0], over[:, 0])
        for values, value in zip(told.values(), found, strict=True):
            values.append(value)
        x, last = torch.where(ends, fresh[:, t, :4], y), torch.where(ends, 0.0, action)
        age, own = torch.where(ends, 0.0, age + 1), torch.where(ends, fresh[:, t, 4:], own)
    stacked: Any = {name: torch.stack(values, 1) for name, values in told.items()}
    return Window(**stacked, carry=torch.cat([x, last, age, own], 1))


def loss_of(w: Window) -> Tensor:
    weights = torch.linspace(1, 2, w.reward.shape[1], dtype=w.reward.dtype)
    seen = w.after.square().sum(-1) + torch.sin(w.heads).sum(-1)
    return (w.reward * weights).sum() + (seen * weights.flip(0)).sum()


def zeros(noise: Any, size: int) -> Any:
    return noise.new_zeros(*noise.shape[:2], size).requires_grad_()


@pytest.mark.parametrize("horizon", [1, 9])
def test_window_is_that_of_a_plain_loop(env, loop, horizon):
    net, closed = loop
    given = inputs(env, horizon)
    found = closed(*given)
    expected = plain(env, net, given, NOT_TIGHT, zeros(given[1], closed.heads), [])
    assert horizon == 1 or (expected.fell.any() and expected.over.any() and not expected.ended.all())
    for name in ("seen", "heads", "after", "reward", "fell", "over", "carry"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name).detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("clip", [NOT_TIGHT, 2.0])
def test_gradients_are_those_of_a_plain_loop(env, loop, clip):
    """With respect to the heads, and the lengths of those of the states; shortened robot by robot, or not."""
    net, closed = loop
    given = inputs(env)
    here, there, probe = (zeros(given[1], n) for n in (closed.heads, closed.heads, 1))
    lengths: list[Tensor] = []
    loss_of(closed(*given, clip, here, probe)).backward()
    loss_of(plain(env, net, given, clip, there, lengths)).backward()
    torch.testing.assert_close(here.grad, there.grad, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(probe.grad[..., 0], torch.stack(lengths[::-1], 1), rtol=1e-9, atol=1e-9)
    assert float(probe.grad.max()) > 2 * 2.0


def test_gradient_of_the_weights_follows_from_that_of_the_heads(env, loop):
    """One pass over all observations gives what back-propagation through the loop gives."""
    net, closed = loop
    given = inputs(env)
    here, there = (zeros(given[1], closed.heads) for _ in range(2))
    window = closed(*given, push=here)
    loss_of(window).backward()
    net.zero_grad()
    net((window.seen - given[3][0]) * given[3][1]).backward(here.grad)
    short = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    loss_of(plain(env, net, given, NOT_TIGHT, there, [])).backward()
    for a, p in zip(short, net.parameters(), strict=True):
        torch.testing.assert_close(a, p.grad, rtol=1e-8, atol=1e-8)


def test_a_robot_that_explodes_begins_anew_and_spoils_no_other(env, loop):
    _, closed = loop
    carry, *others = inputs(env)
    whole, broken = (zeros(others[0], closed.heads) for _ in range(2))
    good = closed(carry, *others, push=whole)
    loss_of(good).backward()
    carry = carry.clone()
    carry[3, 2] = float("inf")
    bad = closed(carry, *others, push=broken)
    loss_of(bad).backward()
    assert bad.fell[3, 0] and bad.reward.isfinite().all() and bad.carry.isfinite().all()
    rest = [k for k in range(B) if k != 3]
    assert torch.equal(bad.reward[rest], good.reward[rest]) and torch.equal(broken.grad[rest], whole.grad[rest])


def test_single_precision(env, loop):
    _, closed = loop
    carry, noise, fresh, scaling = inputs(env)
    found = closed(carry.float(), noise.float(), fresh.float(), (scaling[0].float(), scaling[1].float()))
    assert found.reward.dtype == torch.float32
    expected = closed(carry, noise, fresh, scaling).reward
    torch.testing.assert_close(found.reward.double(), expected, rtol=0, atol=1e-4)


def test_a_layer_that_no_kernel_has_is_named(env):
    with pytest.raises(ValueError, match="Bilinear"):
        _ = ClosedLoop(env, nn.Sequential(nn.Linear(9, 4), nn.Bilinear(2, 2, 2)))


def test_episodes_begin_together_or_staggered(env, loop, monkeypatch):
    ages = loop[1].begin(200, torch.Generator().manual_seed(0))[:, 6]
    assert not bool(ages.any())
    monkeypatch.setattr(type(env), "staggered", True)
    carry = loop[1].begin(200, torch.Generator().manual_seed(0))
    assert torch.equal(carry[:, :4], env.start(200, torch.Generator().manual_seed(0)))
    assert set(carry[:, 6].tolist()) == set(range(env.length))  # all ages, none beyond the end
