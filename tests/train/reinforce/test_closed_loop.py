"""Windows with the actor in the kernel, against a plain loop of torch over world, formulas and module."""

from __future__ import annotations

import pytest
import torch
from tests.train.reinforce.swing import Swing
from torch import nn

from costate.train.reinforce.actor import Actor
from costate.train.reinforce.closed_loop import ClosedLoop, Window

B, H = 11, 9


@pytest.fixture(scope="module")
def swing():
    env = Swing()
    actor = Actor(*env.size[:0:-1], (12, 8), torch.Generator().manual_seed(0)).double()
    return env, actor, ClosedLoop(env, actor.net, H)


def inputs(env, seed=1):
    g = torch.Generator().manual_seed(seed)
    carry = torch.cat(
        [env.start(B, g).double(), torch.rand(B, 2, generator=g, dtype=torch.float64), torch.arange(B)[:, None] % 7], 1
    )
    offset = torch.randn(B, H, 2, generator=g, dtype=torch.float64)
    fresh = env.start(B * H, g).double().reshape(B, H, 4)
    middle, scale = (
        0.1 * torch.randn(9, generator=g, dtype=torch.float64),
        1 + torch.rand(9, generator=g, dtype=torch.float64),
    )
    return carry, offset, fresh, middle, scale


def plain(env, actor, carry, offset, fresh, middle, scale, clip=float("inf")) -> Window:
    """The same window, step by step."""
    x, last, age = carry.split([4, 2, 1], -1)
    told: dict[str, list[torch.Tensor]] = {k: [] for k in ("seen", "after", "reward", "fell", "over")}
    for t in range(H):
        seen = env.telling(state=x, action=last, after=x, time=age / env.length).observation
        action = torch.tanh(actor.net((seen - middle) * scale) + offset[:, t])
        y = env.world.step(x, 6.0 * action)
        if y.requires_grad:
            y.register_hook(lambda g: g * (clip / g.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1))
        out = env.telling(state=x, action=action, after=y, time=(age + 1) / env.length)
        fell = out.margin < 0
        over = (age + 1 >= env.length) & ~fell
        ends = fell | over
        for name, value in zip(told, (seen, out.observation, out.reward[:, 0], fell[:, 0], over[:, 0]), strict=True):
            told[name].append(value)
        x, last = torch.where(ends, fresh[:, t], y), torch.where(ends, 0.0, action)
        age = torch.where(ends, 0.0, age + 1)
    return Window(*(torch.stack(v, 1) for v in told.values()), torch.cat([x, last, age], 1))


def loss_of(window: Window) -> torch.Tensor:
    weights = torch.linspace(1, 2, H, dtype=torch.float64)
    return (window.reward * weights).sum() + (window.after.square().sum(-1) * weights.flip(0)).sum()


def test_window_is_that_of_a_plain_loop(swing):
    env, actor, loop = swing
    given = inputs(env)
    found, expected = loop(*given, clip=1e9), plain(env, actor, *given)
    assert expected.fell.any() and expected.over.any() and not expected.ended.all()
    for name in ("seen", "after", "reward", "fell", "over", "carry"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name).detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("clip", [1e9, 0.5])
def test_gradient_is_that_of_a_plain_loop(swing, clip):
    """With the gradients of states shortened robot by robot, and without."""
    env, actor, loop = swing
    carry, offset, *others = inputs(env)
    here, there = (offset.clone().requires_grad_() for _ in range(2))
    loss_of(loop(carry, here, *others, clip=clip)).backward()
    loss_of(plain(env, actor, carry, there, *others, clip=clip)).backward()
    torch.testing.assert_close(here.grad, there.grad, rtol=1e-9, atol=1e-10)


def test_gradient_of_the_weights_follows_from_that_of_the_offsets(swing):
    """One pass over all observations gives the gradient that back-propagation through the loop gives."""
    env, actor, loop = swing
    carry, offset, fresh, middle, scale = inputs(env)
    here = offset.clone().requires_grad_()
    window = loop(carry, here, fresh, middle, scale, clip=1e9)
    loss_of(window).backward()
    actor.zero_grad()
    actor.net((window.seen - middle) * scale).backward(here.grad)
    short = [p.grad.clone() for p in actor.net.parameters()]
    actor.zero_grad()
    loss_of(plain(env, actor, carry, offset, fresh, middle, scale)).backward()
    for a, p in zip(short, actor.net.parameters(), strict=True):
        torch.testing.assert_close(a, p.grad, rtol=1e-8, atol=1e-10)


def test_a_robot_that_explodes_begins_anew_and_spoils_no_other(swing):
    env, _, loop = swing
    carry, offset, *others = inputs(env)
    whole, broken = offset.clone().requires_grad_(), offset.clone().requires_grad_()
    good = loop(carry, whole, *others, clip=1e9)
    loss_of(good).backward()
    carry = carry.clone()
    carry[3, 2] = float("inf")
    bad = loop(carry, broken, *others, clip=1e9)
    loss_of(bad).backward()
    assert bad.fell[3, 0] and bad.reward.isfinite().all() and bad.carry.isfinite().all()
    rest = [k for k in range(B) if k != 3]
    assert torch.equal(bad.reward[rest], good.reward[rest]) and torch.equal(broken.grad[rest], whole.grad[rest])


def test_single_precision(swing):
    env, actor, _ = swing
    given = inputs(env)
    loop = ClosedLoop(env, actor.net, H)
    found = loop(*(x.float() for x in given), clip=1e9)
    assert found.reward.dtype == torch.float32
    torch.testing.assert_close(found.reward.double(), loop(*given, clip=1e9).reward, rtol=0, atol=1e-4)


def test_a_layer_that_no_kernel_has_is_named(swing):
    env, *_ = swing
    with pytest.raises(ValueError, match="MultiheadAttention"):
        _ = ClosedLoop(env, nn.Sequential(nn.MultiheadAttention(4, 2)), 2).kernel
