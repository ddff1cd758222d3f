"""Derivatives of Newton through the time at which contacts and limits begin or end: those of the motion, in values no bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.gradients import check_gradients
from torch import Tensor

import costate as cs
from benchmarks.motion.soft import BALL, LANDINGS, LIMIT, Landing, bodies, laikago, slopes

D = torch.float64
BY_NAME = {scene.name: scene for scene in LANDINGS}
NEAR = {"omega_y": 0.15, "speed": 0.15}
"""Errors allowed of derivatives that are nearly zero in the motion; they would be 7 and 13 without the times."""


def check_motion(scene: Landing, starts: int) -> None:
    """Compare the mean derivative at 0.5 ms with the slope of the motion, to 5 % and the error of a mean; and see that it is not
    so without the times."""
    found = slopes(scene, scene.newton, 5e-4, starts)
    blind = slopes(scene, replace(scene.newton, event_times=False), 5e-4, starts)
    for name, slope in found.items():
        allowed = NEAR.get(name, 0.05 * abs(slope.motion)) + 2 * slope.deviation / starts**0.5
        assert abs(slope.mean - slope.motion) < allowed, f"{scene.name}, {name}: {slope}"
        assert blind[name].motion == slope.motion  # the same motion, bit for bit
    assert any(abs(b.mean - b.motion) > 0.2 * abs(b.motion) for b in blind.values())


@pytest.mark.parametrize(
    "scene", [BALL, BY_NAME["the same, pair by pair"], LIMIT, BY_NAME["two links, limit of a tendon"]], ids=lambda s: s.name
)  # fmt: skip
def test_derivatives_are_the_motion_s(scene: Landing) -> None:
    check_motion(scene, 100)


@pytest.mark.study
@pytest.mark.parametrize("scene", LANDINGS, ids=lambda s: s.name)
def test_derivatives_of_all_landings(scene: Landing) -> None:
    check_motion(scene, 400)


def heap(contact: cs.Newton) -> cs.World:
    """Return two balls and a rod, near to each other and to a plane."""
    s = cs.shapes
    return bodies(s.sphere(0.08), s.capsule(0.05, 0.2), s.sphere(0.06))(contact, 0.004)


def thrown(world: cs.World, count: int) -> Tensor:
    """Return heaps in random places with random velocities."""
    random = torch.Generator().manual_seed(0)
    x = world.initial_state(count, dtype=D)
    for k, (at, up) in enumerate(((0.0, 0.08), (0.13, 0.06), (0.27, 0.07))):
        own = slice(7 * k, 7 * k + 3)
        x[:, own] = torch.tensor([at, 0.0, up], dtype=D) + 0.01 * torch.randn(count, 3, generator=random, dtype=D)
    x[:, world.nq :] = torch.randn(count, world.nv, generator=random, dtype=D)
    return x


def gradient(world: cs.World, x: Tensor, seed: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad((world.step(x) * seed).sum(), x)[0]


@pytest.mark.parametrize(
    "contact", [cs.Newton(mapped=False), cs.Newton(mapped=True, cone="elliptic", condim=4)], ids=str
)
def test_a_step(contact: cs.Newton) -> None:
    """Values are those without the times; forward and reverse mode agree; a second derivative is that of the first."""
    world, blind = heap(contact), heap(replace(contact, event_times=False))
    x = thrown(world, 32)
    for number in (torch.float64, torch.float32):
        assert torch.equal(world.step(x.to(number)), blind.step(x.to(number)))
    random = torch.Generator().manual_seed(1)
    seed, along, other = (torch.randn(x.shape, generator=random, dtype=D) for _ in range(3))
    by_reverse = gradient(world, x, seed)
    moved = torch.func.jvp(world.step, (x,), (along,))[1]
    total = (by_reverse * along).sum(-1)
    assert ((moved * seed).sum(-1) - total).abs().max() < 1e-10 * total.abs().max()

    # Where nothing begins or ends in this step or in the one before, nothing is added.
    plain = gradient(blind, x, seed)
    changed = (by_reverse - plain).abs().amax(-1) > 1e-9 * plain.abs().amax(-1)
    assert 4 < int(changed.sum()) < 28

    # A gradient that knows the times is smooth between the switches: differences of it are its derivative.
    inner = x.clone().requires_grad_()
    (first,) = torch.autograd.grad((world.step(inner) * seed).sum(), inner, create_graph=True)
    (second,) = torch.autograd.grad((first * other).sum(), inner)
    h = 1e-6
    apart = [gradient(world, x + s * h * along, seed) for s in (1, -1)]
    expected = ((apart[0] - apart[1]) * other).sum(-1) / (2 * h)
    error = ((second * along).sum(-1) - expected).abs() / expected.abs().clamp(min=1.0)
    assert (error[changed] < 1e-4).double().mean() > 0.8  # some of these differences straddle a switch


def test_grazing_is_bounded() -> None:
    """A ball that is placed where contact begins, or a nanometre above, without speed; and one that hardly sinks."""
    world = heap(cs.Newton())
    x = world.initial_state(3, dtype=D)
    x[:, [0, 7, 14]] = torch.tensor([0.0, 1.0, 2.0], dtype=D)  # far from each other
    x[:, 2] = torch.tensor([0.08, 0.08 + 1e-9, 0.08 - 1e-9], dtype=D)
    x[:, 9], x[:, 16], x[2, world.nq + 2] = 1.0, 1.0, -1e-7
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
