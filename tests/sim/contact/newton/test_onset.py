"""Derivatives of Newton through the time at which contacts and limits begin or end: those of the motion, in values no bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.gradients import check_gradients
from torch import Tensor

import costate as cs
from benchmarks.motion.soft import BALL, LANDINGS, LIMIT, Landing, arm, bodies, laikago, slopes

D = torch.float64
BY_NAME = {scene.name: scene for scene in LANDINGS}
NEAR = {"omega_y": 0.15, "speed": 0.15}
"""Errors allowed of derivatives that are nearly zero in the motion; they would be 7 and 13 without the times."""


def check_motion(scene: Landing, starts: int, dt: float) -> None:
    """Compare the mean derivative with the slope of the motion, to 5 % and the error of a mean; and see that it is not so without
    the times."""
    found = slopes(scene, scene.newton, dt, starts)
    blind = slopes(scene, replace(scene.newton, event_times=False), dt, starts)
    for name, slope in found.items():
        allowed = NEAR.get(name, 0.05 * abs(slope.motion)) + 2 * slope.deviation / starts**0.5
        assert abs(slope.mean - slope.motion) < allowed, f"{scene.name}, {name}: {slope}"
        assert blind[name].motion == slope.motion  # the same motion, bit for bit
    assert any(abs(b.mean - b.motion) > 0.2 * abs(b.motion) for b in blind.values())


@pytest.mark.parametrize(
    "scene", [BALL, BY_NAME["the same, pair by pair"], LIMIT, BY_NAME["two links, limit of a tendon"]], ids=lambda s: s.name
)  # fmt: skip
def test_derivatives_are_the_motion_s(scene: Landing) -> None:
    check_motion(scene, 100, 5e-4)


@pytest.mark.study
@pytest.mark.parametrize("scene", LANDINGS, ids=lambda s: s.name)
def test_derivatives_of_all_landings(scene: Landing) -> None:
    """At 0.1 ms: in longer steps the derivative without the times is still on its way to its limit, and may pass the right one (a
    tilted capsule, which lands twice, at 0.5 ms: 0.188, where the motion has 0.203; at 0.1 ms 0.142 and 0.223)."""
    check_motion(scene, 400, 1e-4)


def rod(contact: cs.Newton) -> cs.World:
    """Return a rod near to a plane."""
    return bodies(cs.shapes.capsule(0.05, 0.2))(contact, 0.004)


def thrown(world: cs.World, count: int) -> Tensor:
    """Return rods that lie almost flat, in random places around the plane and with random velocities."""
    random = torch.Generator().manual_seed(0)
    x = world.initial_state(count, dtype=D)
    x[:, 2] = 0.05 + 0.008 * torch.rand(count, generator=random, dtype=D)
    turned = torch.tensor([0, 1, 0, 1], dtype=D) + 0.04 * torch.randn(count, 4, generator=random, dtype=D)
    x[:, 3:7] = turned / turned.norm(dim=-1, keepdim=True)
    x[:, 7:] = torch.randn(count, 6, generator=random, dtype=D)
    return x


def gradient(world: cs.World, x: Tensor, seed: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad((world.step(x) * seed).sum(), x)[0]


def second(world: cs.World, x: Tensor, seed: Tensor, other: Tensor) -> Tensor:
    """Return the gradient of the gradient's product with a vector, by reverse mode twice."""
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad((world.step(x) * seed).sum(), x, create_graph=True)
    return torch.autograd.grad((first * other).sum(), x)[0]


def directions(x: Tensor) -> list[Tensor]:
    random = torch.Generator().manual_seed(1)
    return [torch.randn(x.shape, generator=random, dtype=D) for _ in range(3)]


def begun(world: cs.World, blind: cs.World, x: Tensor, seed: Tensor) -> Tensor:
    """Return where gradients know of a time: where something begins or ends in a step, or did so in the one before."""
    plain = gradient(blind, x, seed)
    return (gradient(world, x, seed) - plain).abs().amax(-1) > 1e-9 * plain.abs().amax(-1)


@pytest.mark.parametrize(
    "contact", [cs.Newton(mapped=False), cs.Newton(mapped=True, cone="elliptic", condim=4)], ids=["rows", "pairs"]
)
def test_a_step(contact: cs.Newton) -> None:
    """Values are those without the times, bit for bit; forward and reverse mode agree, in the first derivative and the second."""
    world, blind = rod(contact), rod(replace(contact, event_times=False))
    x = thrown(world, 48)
    for number in (torch.float64, torch.float32):
        assert torch.equal(world.step(x.to(number)), blind.step(x.to(number)))
    seed, along, other = directions(x)
    assert 10 < int(begun(world, blind, x, seed).sum()) < 38
    by_reverse = (gradient(world, x, seed) * along).sum(-1)
    by_forward = (torch.func.jvp(world.step, (x,), (along,))[1] * seed).sum(-1)
    assert (by_forward - by_reverse).abs().max() < 1e-10 * by_reverse.abs().max()
    by_reverse = (second(world, x, seed, other) * along).sum(-1)
    moved = torch.func.jvp(lambda y: torch.func.vjp(world.step, y)[1](seed)[0], (x,), (along,))[1]
    assert ((moved * other).sum(-1) - by_reverse).abs().max() < 1e-10 * by_reverse.abs().max()


def test_second_derivative_at_a_limit() -> None:
    """A gradient that knows the times is smooth between the events. Where steps are linear in accelerations, as those of a hinge,
    its differences are the second derivative."""
    world, blind = (arm(1, -0.2)(cs.Newton(event_times=on), 0.004) for on in (True, False))
    random = torch.Generator().manual_seed(0)
    x = torch.randn(32, 2, generator=random, dtype=D) * torch.tensor([0.01, 2.0]) + torch.tensor([-0.2, -1.0])
    seed, along, other = directions(x)
    assert 5 < int(begun(world, blind, x, seed).sum()) < 27
    h = 1e-7
    apart = gradient(world, x + h * along, seed) - gradient(world, x - h * along, seed)
    expected = (apart * other).sum(-1) / (2 * h)
    error = ((second(world, x, seed, other) * along).sum(-1) - expected).abs()
    assert (error < 1e-5 * expected.abs().clamp(min=1.0)).all()


def test_grazing_is_bounded() -> None:
    """A ball that is placed where contact begins, or a nanometre above, without speed; and one that hardly sinks."""
    world = bodies(cs.shapes.sphere(0.1))(cs.Newton(), 0.005)
    x = world.initial_state(3, dtype=D)
    x[:, 2], x[2, 9] = torch.tensor([0.1, 0.1 + 1e-9, 0.1 - 1e-9], dtype=D), -1e-6
    A, _ = world.linearize(x)
    assert A.isfinite().all()
    assert torch.linalg.matrix_norm(A, 2).max() < 1 / world.dt


def test_rest_has_no_events() -> None:
    """A box that has come to rest: derivatives know of no time, over a second."""
    worlds = [bodies(cs.shapes.box((0.2, 0.3, 0.1)))(cs.Newton(event_times=on), 0.004) for on in (True, False)]
    x = worlds[0].initial_state(dtype=D)
    x[2] = 0.06
    states = worlds[0].rollout(x, steps=500)[250:]
    A, B = (w.linearize(states)[0] for w in worlds)
    assert (A - B).abs().max() < 1e-10


def test_gradient_checks_look_at_the_step_as_computed() -> None:
    """Differences over a tiny step know no times: a check within the step of a landing compares what they can know."""
    world = bodies(cs.shapes.sphere(0.1))(cs.Newton(), 0.005)
    x = world.initial_state(dtype=D)
    x[2], x[7], x[9] = 0.0995, 1.0, -0.5  # half a millimetre deep, and on its way since a fifth of the step
    check_gradients(world.step, [x], step=1e-6)
    blind = bodies(cs.shapes.sphere(0.1))(cs.Newton(event_times=False), 0.005)
    A, B = (w.linearize(x)[0] for w in (world, blind))
    assert (A - B).abs().max() > 1.0
    assert cs.Newton(event_times=False).as_computed().event_times is False


@pytest.mark.study
def test_shaken_robots() -> None:
    """Legged robots thrown on their feet: no gradient is far from the others."""
    world = laikago(cs.Newton(), 0.002)
    random = torch.Generator().manual_seed(0)
    x = world.initial_state(256, dtype=D)
    x[:, 2] = 0.5
    x[:, world.nq :] = 0.3 * torch.randn(256, world.nv, generator=random, dtype=D)
    x.requires_grad_()
    (g,) = torch.autograd.grad(world.rollout(x, steps=50)[-1, :, : world.nq].sum(), x)
    sizes = g.norm(dim=-1)
    assert sizes.isfinite().all()
    assert sizes.max() < 10 * sizes.median()
