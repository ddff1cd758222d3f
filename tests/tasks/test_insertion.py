"""The insertion task: geometry, episodes, contact, loss, verdict."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.gradients import check_gradients
from tests.tasks.insertion_motions import held, jam_depth, press, pressing

from costate.model import load_model
from costate.tasks.insertion import (
    Disturbances,
    Insertion,
    InsertionOptions,
    InsertionWeights,
    Policy,
    Trajectory,
    draw,
    judge,
    loss,
    run,
    summarise,
)
from costate.tasks.insertion.scene import ARM_Q, ARM_V, BOTTLE_MASS, DEPTH, GRIPPER_MASS, SOCKET_V, SOCKET_XY

D = torch.float64
SLOP = 1.5e-4
"""By how much shapes may overlap [m]: the slop of hard contact is 1e-4, and half as much while it is undone."""


@pytest.fixture(scope="module")
def task() -> Insertion:
    return Insertion()


@pytest.fixture(scope="module")
def moving() -> Insertion:
    return Insertion(InsertionOptions(moving=True))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# --- geometry ---------------------------------------------------------------------------------------------------------


def test_the_arm_carries_gripper_and_bottle(task: Insertion) -> None:
    assert task.arm.model.total_mass == pytest.approx(load_model("ur5").total_mass + GRIPPER_MASS + BOTTLE_MASS)


def test_errors_are_zero_in_the_seat_and_known_elsewhere(task: Insertion) -> None:
    state = task.sample(20, seeded(), D)
    state[:, ARM_Q] = task.seats(state[:, SOCKET_XY])
    position, tilt, velocity = task.errors(state)
    assert float(position.abs().max()) < 1e-6 and float(tilt.max()) < 1e-6 and float(velocity.abs().max()) == 0
    for offset, angle, height in ((0.003, 0.0, 0.01), (-0.01, 0.1, 0.02)):
        position, tilt, _ = task.errors(held(task, offset, angle, height))
        assert position.tolist() == pytest.approx([offset, 0.0, DEPTH + height], abs=1e-6)
        assert float(tilt) == pytest.approx(angle, abs=1e-6)


def test_velocity_error_is_the_rate_of_the_position_error(moving: Insertion) -> None:
    state = moving.sample(8, seeded(1), D)
    state[:, ARM_V] = 0.5 * torch.randn(8, 6, generator=seeded(2), dtype=D)
    h = 1e-6

    def position(t: float) -> torch.Tensor:
        later = state.clone()
        later[:, :9] += t * state[:, 9:]
        return moving.errors(later)[0]

    torch.testing.assert_close(moving.errors(state)[2], (position(h) - position(-h)) / (2 * h), rtol=0, atol=1e-8)


def test_observations_are_of_order_one_and_tell_the_time(moving: Insertion) -> None:
    state = moving.sample(500, seeded(3), D)
    state[:, ARM_V] = moving.max_velocity * (2 * torch.rand(500, 6, generator=seeded(4), dtype=D) - 1)
    seen = moving.observe(state, 15)
    assert seen.shape == (500, 19) and float(seen[:, :-1].abs().max()) < 3.0
    assert torch.equal(seen[:, -1], torch.full((500,), 0.5, dtype=D)) and float(moving.observe(state, 99)[0, -1]) == 1.0
    assert float(moving.observe(held(moving, height=0.06), 0)[:6].abs().max()) < 1e-4  # the middle start is the origin


# --- episodes ---------------------------------------------------------------------------------------------------------


def test_sampled_starts_and_targets_fill_their_ranges(moving: Insertion) -> None:
    o, state = moving.options, moving.sample(2000, seeded(5), D)
    turn = (state[:, ARM_Q] - moving.start).abs().max(0).values
    assert bool((turn <= o.start_range).all()) and bool((turn > 0.98 * o.start_range).all())
    speed = state[:, SOCKET_V].norm(dim=-1)
    assert 0.97 * o.belt_speed < float(speed.max()) <= o.belt_speed
    # It passes its place, inside of the square, at some moment of the motion.
    times = torch.linspace(0, o.seconds, 301, dtype=D)[:, None, None]
    path = state[:, SOCKET_XY] + times * state[:, SOCKET_V] - torch.tensor(o.center, dtype=D)
    assert bool((path.abs().amax(-1) <= o.target_range + 1e-3).any(0).all())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (InsertionOptions(horizon=8), r"joint '\w+' would have to turn .* longer horizon"),
        (InsertionOptions(target_range=0.2, horizon=15), "smaller ranges"),
        (InsertionOptions(center=(0.9, 0.4)), "cannot hold the bottle straight over every socket.*another center"),
    ],
)
def test_impossible_tasks_are_refused_with_the_reason(options: InsertionOptions, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Insertion(options)


def test_shapes_of_episodes(moving: Insertion) -> None:
    o, noisy = (
        moving.options,
        Disturbances(0.01, 0.1, 1e-3, 1e-3, 0.2, 0.5, latency=2, random_latency=True, belt_change=0.1),
    )
    episodes = draw(moving, 3, seeded(), noisy, D)
    with torch.no_grad():
        trajectory = run(moving, moving.world, Policy(generator=seeded()).double(), episodes)
    T = o.horizon + o.hold
    assert trajectory.states.shape == (T + 1, 3, 18) and trajectory.actions.shape == (T, 3, 6)
    verdict = judge(moving, trajectory)
    assert all(x.shape == (3,) for name, x in vars(verdict).items() if name != "columns")
    assert summarise(moving, verdict).episodes == 3
    change = trajectory.states[-1, :, SOCKET_V] - trajectory.states[0, :, SOCKET_V]
    torch.testing.assert_close(change, episodes.belt_change, rtol=0, atol=1e-9)


def test_float32_follows_float64(task: Insertion) -> None:
    """The same episodes under the same policy: 40 steps of rounding."""
    policy, episodes = Policy(generator=seeded(7)), draw(task, 16, seeded(8))
    wide = draw(task, 16, seeded(8), dtype=D)
    with torch.no_grad():
        single = run(task, task.smooth, policy, episodes).states
        double = run(task, task.smooth, policy.double(), wide).states
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), double, rtol=0, atol=2e-5)


def test_latency_delays_actions(task: Insertion) -> None:
    """With a latency of two steps the arm is still for two steps, then does what it would have done."""

    def controller(observation: torch.Tensor) -> torch.Tensor:
        return torch.full((*observation.shape[:-1], 6), 0.3, dtype=observation.dtype)

    prompt = draw(task, 2, seeded(), dtype=D)
    with torch.no_grad():
        now = run(task, task.smooth, controller, prompt).states
        late = run(task, task.smooth, controller, replace(prompt, latency=2)).states
    torch.testing.assert_close(late[:3], now[:1].expand(3, 2, 18), rtol=0, atol=1e-12)
    torch.testing.assert_close(late[2:], now[:-2], rtol=0, atol=1e-12)


def test_servos_do_not_know_of_another_payload(task: Insertion) -> None:
    """Told to stand still, the arm does so with the usual bottle, and sinks with a heavier one: M dv/dt = -dm J^T g - gain v."""
    state = held(task)[None]
    still = torch.zeros(1, 6, dtype=D)
    mass = torch.tensor([[BOTTLE_MASS * 1.2]], dtype=D)
    usual = task.smooth_payload.step(state, still)
    heavy = task.smooth_payload.step(state, still, {"mass:ur5/bottle": mass})
    assert float((usual - state).abs().max()) < 1e-12
    J = task.arm.jacobian(state[0, ARM_Q], "bottle")
    force = -0.2 * BOTTLE_MASS * 9.81 * J[2]
    gain = torch.diag(torch.tensor([d.damping for d in task.world.setup.drives], dtype=D))
    M = task.arm.mass_matrix(state[0, ARM_Q]) + 0.2 * BOTTLE_MASS * J[:3].T @ J[:3]
    v, dt = torch.zeros(6, dtype=D), task.options.dt / task.options.substeps
    for _ in range(task.options.substeps):
        v = torch.linalg.solve(M + dt * gain, M @ v + dt * force)
    torch.testing.assert_close(heavy[0, ARM_V], v, rtol=1e-3, atol=0)


# --- contact ----------------------------------------------------------------------------------------------------------


def test_a_straight_bottle_enters_and_others_jam(task: Insertion) -> None:
    """Pushed down alike: one that is straight reaches the floor; one beside the bore stays on the rim; tilted ones get stuck at the
    depth that geometry allows."""
    tilts = [math.radians(a) for a in (3.0, 5.0)]
    starts = [held(task), held(task, 0.0008), held(task, 0.003), *(held(task, tilt=a) for a in tilts)]
    with torch.no_grad():
        path = press(task, task.world, torch.stack(starts))
        position, tilt, _ = task.errors(path[-1])
        forces = task.world.contacts(path[-1], pressing(task, path[0], path[-1])).forces.sum(-1)
    height = position[:, 2]
    assert height[:2].abs().max() < SLOP
    assert abs(float(height[2]) - DEPTH) < 2 * SLOP
    for h, angle in zip(height[3:], tilt[3:], strict=True):
        deepest, least = jam_depth(float(angle), SLOP), jam_depth(float(angle))
        assert least - 1e-3 < DEPTH - float(h) < deepest + 1e-3
    assert bool((forces[3:] > 10.0).all())


# --- loss and verdict -------------------------------------------------------------------------------------------------


def test_gradients_of_the_loss_through_the_simulation(task: Insertion) -> None:
    """Of every term, with respect to weights and start, through 40 control steps."""
    policy = Policy(16, seeded(9)).double().requires_grad_(False)
    names = ["inner.weight", "outer.weight", "outer.bias"]
    start = draw(task, 2, seeded(10), dtype=D)

    def terms(state: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        def controller(observation: torch.Tensor) -> torch.Tensor:
            return torch.func.functional_call(policy, dict(zip(names, weights, strict=True)), observation)

        trajectory = run(task, task.smooth, controller, replace(start, state=state))
        return torch.stack(list(loss(task, trajectory, InsertionWeights()).values()))

    weights = [policy.get_parameter(name) for name in names]
    check_gradients(
        terms,
        (start.state, *weights),
        names=("start", *names),
        step=2e-3,
        directions=1,
        float32=False,
    )


def seated(task: Insertion, batch: int) -> torch.Tensor:
    """States (T + 1, batch, 18) of bottles that have always stood in their seats."""
    state = task.sample(batch, seeded(11), D)
    state[:, ARM_Q] = task.seats(state[:, SOCKET_XY], 1e-5)
    return state.expand(task.options.horizon + task.options.hold + 1, batch, 18).clone()


def test_verdicts(task: Insertion) -> None:
    """One thing wrong at a time, just within and just beyond what is allowed."""
    o, T = task.options, task.options.horizon
    states = seated(task, 9)
    states[T:, 1, 6] += 4.9e-4  # the socket is elsewhere
    states[T:, 2, 6] += 5.1e-4
    states[-1, 3, 6] += 5.1e-4  # ... at the very end
    states[: T - 1, 4, 6] += 5e-4  # ... or before, which does not count
    states[T + 1, 5, 15] = 0.0095  # speed against the socket
    states[T + 1, 6, 15] = 0.0105
    states[3, 7, 9] = 1.01 * float(task.max_velocity[0])
    states[:, 8, ARM_Q] = task.seats(states[0, 8, SOCKET_XY], -1.2e-4)  # in the floor
    actions = torch.zeros(T + o.hold, 9, 6, dtype=D)
    verdict = judge(task, Trajectory(states, actions))
    assert verdict.success.tolist() == [True, True, False, False, True, True, False, False, False]
    assert verdict.kept_place.tolist() == [True, True, False, False, *[True] * 5]
    assert verdict.kept_still.tolist() == [*[True] * 6, False, True, True]
    assert verdict.within_limits.tolist() == [*[True] * 7, False, True]
    assert float(verdict.penetration[8]) == pytest.approx(1.2e-4, rel=0.01)
    given = judge(task, Trajectory(states, actions, measured={"penetration": torch.full((9,), 2e-4, dtype=D)}))
    assert not given.success.any()


def test_a_tilted_bottle_fails(task: Insertion) -> None:
    T = task.options.horizon + task.options.hold + 1
    tilts = [math.radians(0.9), math.radians(1.1)]
    states = torch.stack([held(task, tilt=a, height=-DEPTH + 4e-4) for a in tilts]).expand(T, 2, 18)
    verdict = judge(
        task, Trajectory(states, torch.zeros(T - 1, 2, 6, dtype=D), measured={"penetration": torch.zeros(2, dtype=D)})
    )
    torch.testing.assert_close(verdict.tilt, torch.tensor(tilts, dtype=D), rtol=0, atol=1e-6)
    assert verdict.success.tolist() == [True, False]
