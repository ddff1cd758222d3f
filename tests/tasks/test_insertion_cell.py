"""The insertion in a real cell: limits of acceleration and jerk, disturbances, and controllers with memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from tests.tasks.insertion_controllers import check_exported, check_loss_gradients, seeded

from costate.tasks.insertion import (
    Disturbances,
    Insertion,
    InsertionOptions,
    InsertionTraining,
    InsertionWeights,
    Trajectory,
    draw,
    judge,
    loss,
    run,
)
from costate.tasks.insertion.cell import least_time
from costate.tasks.insertion.episode import REALISTIC
from costate.tasks.insertion.scene import ARM_Q, ARM_V, SOCKET_XY
from costate.train.policy import acting
from costate.train.remembering import MemoryOptions, RememberingPolicy

D = torch.float64


LIMITED = InsertionOptions()


@pytest.fixture(scope="module")
def task() -> Insertion:
    return Insertion(LIMITED)


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize(("velocity", "acceleration"), [(3.15, 40.0), (1.0, 40.0), (3.15, 5.0)])
def test_least_time_is_that_of_full_acceleration(velocity: float, acceleration: float, stops: bool) -> None:
    """Drive with full acceleration (and brake, if it stops), never faster than allowed, and see how far that goes."""
    travel = torch.tensor([0.01, 0.2, 1.0], dtype=D)
    found = least_time(travel, torch.tensor(velocity, dtype=D), acceleration, 0.0, stops)
    for wanted, seconds in zip(travel, found, strict=True):
        t = torch.linspace(0, float(seconds), 200_001, dtype=D)
        speed = (acceleration * t).clamp(max=velocity)
        if stops:
            speed = torch.minimum(speed, acceleration * (seconds - t))
        assert float(torch.trapezoid(speed, t)) == pytest.approx(float(wanted), rel=1e-6)


def test_least_time_counts_jerk() -> None:
    """Jerk +, -, -, + for a quarter of the time each stops at rest, as far as possible with this jerk."""
    travel, jerk = torch.tensor([0.3], dtype=D), 400.0
    seconds = least_time(travel, torch.tensor(100.0, dtype=D), 1e6, jerk)
    t = torch.linspace(0, float(seconds), 400_001, dtype=D)
    sign = torch.where((t < seconds / 4) | (t > 3 * seconds / 4), 1.0, -1.0).to(D)
    rate = jerk * sign
    for _ in range(2):
        rate = torch.cat([torch.zeros(1, dtype=D), torch.cumulative_trapezoid(rate, t)])
    assert float(rate[-1]) == pytest.approx(0.0, abs=1e-3)
    assert float(torch.trapezoid(rate, t)) == pytest.approx(0.3, rel=1e-3)


def test_horizons_that_limits_rule_out_are_refused() -> None:
    Insertion(replace(LIMITED, horizon=20).unlimited())
    with pytest.raises(ValueError, match=r"40 rad/s\^2, 4000 rad/s\^3\) that takes at least 0.2.*longer horizon"):
        Insertion(replace(LIMITED, horizon=20))
    with pytest.raises(ValueError, match="at least"):
        Insertion(InsertionOptions(acceleration_limit=0, jerk_limit=300))


def test_accelerations_and_jerks_beyond_their_limits_fail(task: Insertion) -> None:
    T = task.options.horizon + task.options.hold + 1
    state = task.sample(1, seeded(1), D)
    state[:, ARM_Q] = task.seats(state[:, SOCKET_XY], 1e-5)
    states = state.expand(T, 4, 18).clone()
    ramp = torch.tensor([0.2, 0.6, 0.6, 0.2], dtype=D)  # accelerations of 20, 40, 0, -40, -20 rad/s^2, jerk 4,000
    states[3:7, 1, 9] = 0.99 * ramp
    states[3:7, 2, 9] = 1.01 * ramp
    states[3, 3, 9] = 0.25  # 25 rad/s^2, but back at once: 5,000 rad/s^3
    verdict = judge(task, Trajectory(states, torch.zeros(T - 1, 4, 6, dtype=D)))
    assert verdict.within_limits.tolist() == [True, True, False, False] == verdict.success.tolist()
    assert float(verdict.peak_acceleration[1]) == pytest.approx(39.6) and float(verdict.peak_jerk[3]) == pytest.approx(
        5000
    )
    without = Insertion(LIMITED.unlimited())
    assert judge(without, Trajectory(states, torch.zeros(T - 1, 4, 6, dtype=D))).success.all()
    terms = loss(task, Trajectory(states, torch.zeros(T - 1, 4, 6, dtype=D)), InsertionWeights())["dynamics"]
    assert float(terms[0]) == 0 and bool((terms[1:] > 0).all()) and terms[2] > terms[1]


# --- disturbances -----------------------------------------------------------------------------------------------------


def test_every_episode_has_its_own_latency(task: Insertion) -> None:
    """Each moves as if all had the latency that it drew."""
    policy = task.policy(InsertionTraining(hidden=16, guide=False), seeded(2)).double()
    with torch.no_grad():
        policy.get_parameter("outer.weight").mul_(30)
    mixed = draw(task, 12, seeded(3), Disturbances(latency=2, random_latency=True), D)
    assert mixed.delays is not None and set(mixed.delays.argmax(1).tolist()) == {0, 1, 2}
    with torch.no_grad():
        found = run(task, task.smooth, acting(policy), mixed).states
        for latency in range(3):
            same = replace(mixed, latency=latency, delays=None)
            chosen = mixed.delays.argmax(1) == latency
            wanted = run(task, task.smooth, acting(policy), same).states
            torch.testing.assert_close(found[:, chosen], wanted[:, chosen], rtol=0, atol=1e-12)
            assert not torch.allclose(found[:, ~chosen], wanted[:, ~chosen])


def test_what_is_measured_of_the_socket(task: Insertion) -> None:
    """An offset of one length in every direction; readings at camera rate that last until the next."""
    offset = draw(task, 500, seeded(4), Disturbances(target_offset=2e-4), D).noise
    assert offset is not None
    shift = 0.05 * offset[..., 12:14]
    torch.testing.assert_close(shift.norm(dim=-1), torch.full((40, 500), 2e-4, dtype=D))
    assert float(shift[0].mean(0).norm()) < 3e-5 and torch.equal(shift[0], shift[-1])
    held = draw(task, 500, seeded(5), Disturbances(target_jitter=3e-4, camera_rate=30.0), D).noise
    assert held is not None
    readings = 0.05 * held[..., 12:14]
    fresh = (readings.diff(dim=0) != 0).any(-1)
    assert float(fresh.double().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(readings.std()) == pytest.approx(3e-4, rel=0.03)
    gaps = fresh[:, 0].nonzero()[:, 0].diff().tolist()
    assert set(gaps) == {3, 4}


def test_encoders_round(task: Insertion) -> None:
    state = task.sample(50, seeded(6), D).requires_grad_()
    episodes = draw(task, 50, seeded(6), Disturbances(encoder=1e-3), D)
    seen = task.observe(state, 3, episodes)
    back = 0.3 * seen[:, :6].detach() + task.start
    off = (back / 1e-3).round() * 1e-3 - back
    assert float(off.abs().max()) < 1e-12 and float((back - state[:, ARM_Q].detach()).abs().max()) <= 5.001e-4
    (slope,) = torch.autograd.grad(seen[:, :6].sum(), state)
    torch.testing.assert_close(slope[:, ARM_Q], torch.full((50, 6), 1 / 0.3, dtype=D))


def test_the_robust_task_has_all_disturbances() -> None:
    robust = Insertion(InsertionOptions().robust())
    episodes = draw(robust, 4, seeded(), dtype=D)
    drawn = (episodes.noise, episodes.payload, episodes.friction, episodes.delays, episodes.belt_change)
    assert all(x is not None for x in drawn) and episodes.encoder == REALISTIC.encoder
    assert draw(robust, 4, seeded(), Disturbances(), D).noise is None


# --- memory -----------------------------------------------------------------------------------------------------------


def test_frames_are_what_was_seen_and_done() -> None:
    policy = RememberingPolicy(3, 2, 8, seeded(7), MemoryOptions("frames", frames=2), reach=0.5).double()
    seen = torch.randn(4, 3, generator=seeded(8), dtype=D)
    (memory,) = policy.memory()
    memory, actions = memory.double(), [torch.zeros(2, dtype=D)]
    for x in seen:
        action, memory = policy(x, memory)
        actions.append(action)
    wanted = torch.cat([actions[4], seen[3], actions[3], seen[2], actions[2]])
    torch.testing.assert_close(memory, wanted)
    assert all(float((b - a).abs().max()) <= 0.5 for a, b in pairwise(actions))


def test_a_new_cell_follows_what_moves_evenly(task: Insertion) -> None:
    """Estimates of positions are exact without noise, and better than what is measured with noise."""
    moving = Insertion(replace(LIMITED, moving=True))
    policy = moving.policy(InsertionTraining(memory=MemoryOptions("cell")), seeded(9))
    assert isinstance(policy, RememberingPolicy)
    start = moving.sample(200, seeded(10), D)
    start[:, ARM_V] = 0.3 * torch.randn(200, 6, generator=seeded(11), dtype=D)
    cell, kept, noise = policy.cell.double(), torch.zeros(200, 24, dtype=D), seeded(12)
    clean = torch.zeros(200, 24, dtype=D)
    for step in range(30):
        state = start.clone()
        state[:, :9] += step * moving.options.dt * start[:, 9:]
        seen = torch.cat([moving.observe(state, step), torch.zeros(200, 6, dtype=D)], -1)
        off = 0.01 * torch.randn(200, 25, generator=noise, dtype=D) * (torch.arange(25) < 6)
        clean, kept = cell(seen, clean), cell(seen + off, kept)
    torch.testing.assert_close(clean[:, :8], seen[:, [0, 1, 2, 3, 4, 5, 12, 13]], rtol=0, atol=2e-3)
    assert float((kept - clean)[:, :6].std()) < 0.45 * 0.01


@pytest.mark.parametrize("kind", ["command", "frames", "cell"])
def test_gradients_through_what_is_remembered(task: Insertion, kind: str) -> None:
    """Of the loss with respect to weights, through 40 control steps with noise and latency."""
    options = InsertionTraining(hidden=8, memory=MemoryOptions(kind, frames=2, units=10))  # pyright: ignore[reportArgumentType]
    policy = task.policy(options, seeded(13)).double().requires_grad_(False)
    names = [name for name, _ in policy.named_parameters()]
    episodes = draw(task, 2, seeded(14), replace(REALISTIC, encoder=0.0), D)
    check_loss_gradients(task, task.smooth_payload, policy, names, episodes)


def test_the_memory_is_exported(task: Insertion) -> None:
    """An episode under the network in NumPy is that under the policy, and begins anew when it is told to."""
    policy = task.policy(InsertionTraining(hidden=16, memory=MemoryOptions("cell")), seeded(15)).double()
    calm = replace(REALISTIC, belt_change=0.0)  # which would change states before they are seen
    with torch.no_grad():
        policy.get_parameter("outer.weight").mul_(20)
    check_exported(task, policy, draw(task, 3, seeded(16), calm, D))
