"""`torch.compile` of functions that call Costate: no warnings, and the values and gradients of eager mode, bit for bit."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

import costate as cs
from costate.compat.differentiable_robot_model import DifferentiableTwoLinkRobot

ARM = cs.load_robot("two_link")
WORLD = cs.World([ARM], actuators=cs.Torque(), contact=None, dt=0.01)
OTHER = DifferentiableTwoLinkRobot()
NET = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def step(x: Tensor) -> Tensor:
    return (WORLD.step(x, torch.tanh(NET(x))) ** 2).sum()


def rollout(x: Tensor) -> Tensor:
    controls = torch.sin(torch.arange(6.0, dtype=x.dtype)).reshape(3, 1, 2) * x[:, :2]
    return WORLD.rollout(x, controls)[-1].cos().sum()


def policy(x: Tensor) -> Tensor:
    return WORLD.rollout(x, lambda state, t: NET(state), steps=3)[-1].sum()


def robot(x: Tensor) -> Tensor:
    a = ARM.forward_dynamics(2 * x[:, :2], x[:, 2:], torch.zeros(2, dtype=x.dtype))
    return (ARM.forward_kinematics(a, ARM.link_names[-1]).position * a[:, :1]).sum()


def sensor(x: Tensor) -> Tensor:
    return cs.sensors.LinkPose(WORLD.link_names[-1]).read(WORLD, x.sin()).sum()


def drop_in(x: Tensor) -> Tensor:
    return OTHER.compute_forward_kinematics(x[:, :2].float(), "arm2")[0].double().sum()


def gradient_inside(x: Tensor) -> Tensor:
    (slope,) = torch.autograd.grad(WORLD.energy(2 * x).sum(), x)
    return (slope * x).sum()


def made_inside(x: Tensor) -> Tensor:
    return cs.World([cs.load_robot("two_link")], contact=None, dt=0.02).step(x).sum()


CALLS = [step, rollout, policy, robot, sensor, drop_in, gradient_inside, made_inside]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    gc.collect()  # what other tests left behind may warn when it is collected
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_compiled_as_in_eager_mode(call: Callable[[Tensor], Tensor], caplog: pytest.LogCaptureFixture) -> None:
    x = 0.5 * torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(call, backend="aot_eager")
    found = []
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.WARNING):
        warnings.simplefilter("always")
        for function in (compiled, call, compiled):
            given = x.clone().requires_grad_()
            value = function(given)
            value.backward()
            found.append((value.detach(), given.grad))
    assert [str(w.message) for w in warned] == []
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []
    for value, gradient in found[::2]:
        assert torch.equal(value, found[1][0]) and gradient is not None and torch.equal(gradient, found[1][1])
