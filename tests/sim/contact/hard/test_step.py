"""Steps of hard contact: rest, stacks of unlike masses, energy of corrections, forces in a loss, float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.gradients import Tolerances, check_gradients

import costate as cs
from costate.model import Transform

D = torch.float64
STIFF = Tolerances(finite_difference=1e-5)
"""Differences of a solution that is known to 1e-8 m/s, with steps of 1e-4."""
GROUND = cs.Static("ground", cs.shapes.plane())


def no_control(steps: int) -> torch.Tensor:
    return torch.zeros(steps, 0, dtype=D)


@pytest.fixture(scope="module")
def boxes() -> cs.World:
    """1 kg under 1,000 kg."""
    bodies = [cs.Body(n, [cs.shapes.box((0.2, 0.2, 0.2))], m) for n, m in (("light", 1.0), ("heavy", 1000.0))]
    return cs.World(bodies=bodies, scenery=[GROUND], dt=0.004, contact=cs.Hard())


def test_a_heavy_box_rests_on_a_light_one(boxes: cs.World) -> None:
    """Nothing creeps in half a second, the forces are the weights, and the derivative of a step is the same from step to step."""
    x = boxes.initial_state(dtype=D)
    x[2], x[7], x[9] = 0.1, 0.005, 0.3
    states = boxes.rollout(x, no_control(125))
    drift = (states[-1] - states[25])[[0, 1, 2, 7, 8, 9]].abs().max()
    found = boxes.contacts(states[25:])
    assert drift < 1e-8 and found.residual.max() < 1e-8
    under = torch.tensor(["world" in pair for pair in found.pairs])
    weight = found.forces[:, under].sum(-1)
    assert (weight - 1001 * 9.81).abs().max() < 1e-4 * 9810
    ends = states[25:60].clone().requires_grad_()
    torch.manual_seed(0)
    (g,) = torch.autograd.grad((boxes.step(ends) * torch.randn(states.shape[-1], dtype=D)).sum(), ends)
    change = (g[1:] - g[:-1]).norm(dim=-1) / g.norm(dim=-1).median()
    assert change.max() < 1e-3


def test_a_lane_does_not_depend_on_its_neighbours(boxes: cs.World) -> None:
    """Bit for bit, though some lanes land, some rest, and some need rounds."""
    x = boxes.initial_state(9, dtype=D)
    random = torch.Generator().manual_seed(0)
    x[:, 2], x[:, 9] = 0.1, 0.3
    x[:, 14:] = torch.randn(9, 12, dtype=D, generator=random)
    whole = boxes.rollout(x, no_control(20).unsqueeze(1))
    for k in (0, 4, 8):
        assert torch.equal(boxes.rollout(x[k], no_control(20)), whole[:, k])


def test_energy_falls_in_a_tumble(boxes: cs.World) -> None:
    """Two boxes thrown at each other and the ground: no step gains more energy than the integrator of a free fall
    may, m g^2 dt^2 / 2, and what lifts overlap within the slop at 0.2 mm/s; that holds, too, for the few states in ten thousand
    that the solver does not solve (docs/lab/hard_contact.md)."""
    x = boxes.initial_state(64, dtype=D)
    random = torch.Generator().manual_seed(1)
    x[:, 2], x[:, 9] = 0.25, 0.6
    x[:, 14:] = torch.randn(64, 12, dtype=D, generator=random)
    states = boxes.rollout(x, no_control(150).unsqueeze(1))
    energy, residual = boxes.energy(states), boxes.contacts(states).residual
    assert (residual < 1e-6).double().mean() >= 0.999
    assert (energy[1:] - energy[:-1]).max() < 1.1 * 1001 * 9.81 * (0.5 * 9.81 * 0.004**2 + 2e-4 * 0.004)
    # No deeper than 2 mm but where points come to face each other within a step: there less than half of what corners move in it.
    moved = 0.004 * (states[..., 14:17].norm(dim=-1) + math.sqrt(0.03) * states[..., 17:20].norm(dim=-1)).max()
    gaps = boxes.gaps(states)
    assert (gaps < -2e-3).any(-1).double().mean() < 1e-3 and gaps.min() > -moved / 2 and gaps[-1].min() > -3e-4


def test_a_straight_leg_is_not_kicked() -> None:
    """A leg of two links, almost straight, whose foot is 1 mm inside the floor: friction holds it, little else moves."""
    leg = cs.load_robot("pendulum2")
    pose = {"r": Transform(np.eye(3), np.array([0, 0, 2.0]))}
    world = cs.World(
        {"r": leg}, scenery=[GROUND], contact=cs.Hard(friction=0.5), dt=2.5e-3, poses=pose, collide=[("r/link_2", "ground")],
        check=False,
    )  # fmt: skip
    state = torch.tensor(
        [0.010387422255657334, 0.04998708635951635, -0.0700331161246294, -0.31598145122494536], dtype=D
    )
    after = world.step(state)
    assert float(world.contacts(state).gaps.min()) < -1e-3
    assert world.energy(after) - world.energy(state) < 1e-2 and after[2:].abs().max() < 1
    A, _ = world.linearize(state)
    assert torch.linalg.matrix_norm(A, 2) < 100


def test_a_jammed_foot_is_bounded() -> None:
    """A leaning rod that slides the way in which friction 2 jams it: there is no solution (Painleve), and no gain of energy."""
    lean, inertia = 0.7, 1 / 12
    foot = cs.Body("foot", [cs.shapes.sphere(0.02, (0, 0, -0.5))], 1.0, inertia=np.diag([inertia, inertia, 1e-3]))
    world = cs.World(bodies=[foot], scenery=[GROUND], contact=cs.Hard(friction=2.0), dt=1e-3)
    state = world.initial_state(dtype=D)
    state[4], state[6] = math.sin(lean / 2), math.cos(lean / 2)
    state[2] = 0.5 * math.cos(lean) + 0.02 - 1e-9
    state[7], state[9] = -math.cos(lean), -math.sin(lean)
    energy = world.energy(world.rollout(state, no_control(50)))
    assert (energy[1:] - energy[:-1]).max() < 1e-6


def ball_and_box() -> cs.World:
    """A ball that presses against a box on the ground."""
    parts = [cs.Body("tip", [cs.shapes.sphere(0.05)], 0.5), cs.Body("load", [cs.shapes.box((0.3, 0.2, 0.1))], 1.0)]
    return cs.World(
        bodies=parts, scenery=[GROUND], dt=0.004, contact=cs.Hard(), parameters=["friction", "mass:load/body"]
    )


def test_gradients_of_a_step_with_forces_in_the_loss() -> None:
    """State after a step and forces in it, by velocities, friction and mass: a box slides on four redundant corners, a ball rolls
    and presses against it."""
    world = ball_and_box()
    x = world.initial_state(dtype=D)
    x[0], x[2], x[7], x[9] = -0.2, 0.05 - 2e-6, 0.0, 0.05 - 1e-6
    x[14:17], x[20:23] = torch.tensor([0.53, 0.05, 0.0]), torch.tensor([0.5, 0.1, 0.0])

    def found(v: torch.Tensor, mu: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
        x = torch.cat([places, v])
        params = {"friction": mu, "mass:load/body": mass}
        seen = world.contacts(x, params=params)
        return torch.cat(
            [world.step(x, params=params), seen.forces.sum(-1, keepdim=True) / 10, seen.friction.sum(-2) / 10]
        )

    places, given = x[:14], (x[14:], torch.tensor([0.4], dtype=D), torch.tensor([1.0], dtype=D))
    seen = world.contacts(x)
    assert float(seen.residual) < 1e-8 and (seen.forces > 0.1).sum() >= 4
    check_gradients(found, given, names=("v", "mu", "mass"), step=1e-4, tolerances=STIFF, float32=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_block_on_a_slope_starts_to_slide_at_its_friction(dtype: torch.dtype) -> None:
    """tan(angle) = 0.5: it stays at mu 0.505 and slides with g (sin - mu cos) at 0.45, in both number types."""
    tilt = math.atan(0.5)
    gravity = (9.81 * math.sin(tilt), 0.0, -9.81 * math.cos(tilt))
    block = cs.Body("block", [cs.shapes.box((0.4, 0.4, 0.1))], 2.0)
    world = cs.World(
        bodies=[block], scenery=[GROUND], contact=cs.Hard(), gravity=gravity, dt=5e-3, parameters=["friction"]
    )
    x = world.initial_state(dtype=dtype)
    x[2] = 0.05
    ends = [
        world.rollout(x, torch.zeros(100, 0, dtype=dtype), params={"friction": torch.tensor([mu], dtype=dtype)})[-1]
        for mu in (0.505, 0.45)
    ]
    assert abs(float(ends[0][0])) < (2e-4 if dtype is torch.float32 else 1e-7)
    expected = 9.81 * (math.sin(tilt) - 0.45 * math.cos(tilt)) * 0.5
    assert abs(float(ends[1][7]) - expected) < (1e-3 if dtype is torch.float32 else 1e-6) * expected


def test_small_restitution_is_almost_none() -> None:
    """Of two balls that land on each other and the ground: velocities approach those without restitution as it goes to 0."""
    balls = [cs.Body(n, [cs.shapes.sphere(0.1)], 1.0) for n in "ab"]
    world = cs.World(bodies=balls, scenery=[GROUND], contact=cs.Hard(), dt=0.01, parameters=["restitution"])
    x = world.initial_state(dtype=D)
    x[2], x[7], x[9], x[16], x[22] = 0.1, 0.05, 0.1 + math.sqrt(0.04 - 0.0025), -1.0, -1.0
    ends = [world.step(x, params={"restitution": torch.tensor([e], dtype=D)})[14:] for e in (0.0, 1e-4, 1e-2)]
    assert (ends[1] - ends[0]).abs().max() < 1e-2 and (ends[2] - ends[0]).abs().max() < 0.5


@pytest.mark.parametrize("restitution", [0.0, 0.8])
def test_what_is_near_is_not_struck_before_its_time(restitution: float) -> None:
    """A ball that comes down at 0.1 m/s, in steps of a micrometre: some begin within the distance at which shapes touch,
    and end before the ground. It strikes at its time, and leaves with its restitution."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)
    contact = cs.Hard(restitution=restitution, restitution_speed=1e-3)
    world = cs.World(bodies=[ball], scenery=[GROUND], contact=contact, dt=1e-5, gravity=(0, 0, 0))
    x = world.initial_state(5, dtype=D)
    x[:, 2], x[:, 9] = 0.1 + torch.tensor([1.0, 2.5, 5.5, 8.0, 9.5], dtype=D) * 1e-6, -0.1
    x.requires_grad_()
    states = world.rollout(x, no_control(12).unsqueeze(1))
    after = 12e-5 - (x[:, 2] - 0.1) / 0.1
    torch.testing.assert_close(states[-1, :, 2], 0.1 + 0.1 * restitution * after, rtol=0, atol=1e-9)
    slope = torch.autograd.grad(states[-1, :, 2].sum(), x)[0][:, 2]
    torch.testing.assert_close(slope, torch.full((5,), -restitution, dtype=D), rtol=0, atol=1e-4)


@pytest.mark.parametrize("options", [{"iterations": 0}, {"rounds": -1}, {"impacts": -1}])
def test_impossible_options_are_named(options: dict[str, Any]) -> None:
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=rf"{name}={value}.*expected"):
        cs.World(bodies=[cs.Body("ball", [cs.shapes.sphere(0.1)], 1.0)], contact=cs.Hard(**options))


def test_what_passes_an_edge_fast_is_not_held_back() -> None:
    """A peg falls into a bore with a millimetre around it: as it passes the mouth the distance shrinks at the speed of the fall,
    and would reach zero within the step, but never does."""
    peg = cs.Body("peg", [cs.shapes.cylinder(0.03, 0.2)], 0.5)
    cup = cs.Static("cup", cs.shapes.socket(0.031, 0.05, 0.2, 0.01))
    world = cs.World(bodies=[peg], scenery=[cup], contact=cs.Hard(), dt=0.0025)
    state = world.initial_state(64, dtype=D)
    state[:, 2] = 0.101 + torch.linspace(0, 0.01, 64, dtype=state.dtype)
    state[:, 9] = torch.tensor([-0.6, -1.0], dtype=D).repeat(32)
    states = world.rollout(state, steps=40)
    assert states[-1, :, 2].max() < 0.1 - 0.03  # through the mouth
    assert world.gaps(states).min() > 5e-4
    torch.testing.assert_close(states[-1, :, 9], state[:, 9] - 9.81 * 40 * 0.0025, rtol=0, atol=1e-12)
