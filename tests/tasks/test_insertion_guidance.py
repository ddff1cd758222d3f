"""The guide of the insertion, its observer, and the controller that corrects them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tasks.insertion_controllers import check_exported, check_loss_gradients, seeded

from costate.tasks.insertion import (
    Disturbances,
    Insertion,
    InsertionOptions,
    InsertionTraining,
    draw,
    judge,
    run,
)
from costate.tasks.insertion.guidance import steering
from costate.tasks.insertion.guidance.guide import Guide
from costate.tasks.insertion.guidance.guided import GuidedPolicy
from costate.tasks.insertion.guidance.kalman import filter_gains
from costate.tasks.insertion.guidance.observer import FILTER, PARTS
from costate.tasks.insertion.guidance.steering import ABOVE, EARLY, EVEN, gains, heights, upright
from costate.tasks.insertion.scene import ARM_Q, ARM_V, BOTTLE_MASS, DEPTH, SOCKET_XY
from costate.train.evaluate import evaluate
from costate.train.policy import acting
from costate.train.run import Run

D = torch.float64


@pytest.fixture(scope="module")
def task() -> Insertion:
    return Insertion(InsertionOptions(horizon=40))


@pytest.fixture(scope="module")
def robust() -> Insertion:
    return Insertion(InsertionOptions().robust())


def untrained(task: Insertion, hidden: int = 8) -> GuidedPolicy:
    """The guide alone: its network corrects nothing."""
    policy = task.policy(InsertionTraining(hidden=hidden), seeded())
    assert isinstance(policy, GuidedPolicy)
    with torch.no_grad():
        policy.outer.weight.zero_()
    return policy.double()


# --- what it follows from ---------------------------------------------------------------------------------------------


def test_heights_pass_the_mouth_evenly_and_end_at_rest() -> None:
    def at(t: float) -> float:
        return float(heights(np.array([t]), 38, 20, 1e-4)[0])

    end, h = 38 - EARLY, 1e-3
    assert (at(20), at(end), at(45)) == pytest.approx((DEPTH + ABOVE, 1e-4, 1e-4), abs=1e-9)
    assert at(end - h) == pytest.approx(at(end), abs=1e-8)
    before, after = (at(20) - at(19)), (at(20 + h) - at(20)) / h
    assert before == pytest.approx(after, rel=1e-3) and before < 0
    assert at(18) - at(19) == pytest.approx(-before)


@pytest.mark.parametrize("late", [0.5, 0.67])
def test_gains_end_at_rest_in_time(late: float) -> None:
    e, v = 1.0, 0.3
    for left in range(12, 1, -1):
        a, b = gains(left, 12, late)
        w = a * e + b * v
        e, v = e + (1 - late) * v + late * w, w
    assert e + (1 - late) * v == pytest.approx(0.0, abs=1e-12)  # and the last step's velocity is zero


def test_gains_are_those_of_least_weighted_accelerations(monkeypatch: pytest.MonkeyPatch) -> None:
    """For many short steps from rest: with even weights -6 e / t^2, the known law; with weights |u|^p it is -2 (3 - p) e / t^2.

    Accelerations are then as sign(u) |u|^(1 - p), where u goes from 1 to -1: their second integral is their peak t^2 / (2 (3 - p)).
    """
    for power in (0.0, EVEN):
        monkeypatch.setattr(steering, "EVEN", power)
        assert gains(800, 800, 0.5)[0] * 800**2 == pytest.approx(-2 * (3 - power), rel=0.02)


def test_polynomials_stand_for_inverse_kinematics(task: Insertion) -> None:
    guide, fit = Guide(task).double(), upright(task)
    xy = task.sample(200, seeded(1), D)[:, SOCKET_XY]
    step = torch.full((200, 1), 40.0, dtype=D)
    rest = torch.zeros(200, 6, dtype=D)
    seats = task.seats(xy, 1.5e-4)
    # At its seat, at rest, nothing is left to do.
    command = guide(seats, rest, xy, torch.zeros_like(xy), step)
    assert float(command.abs().max()) < 1e-3 and fit.coefficients.shape == (67, 6)


def test_it_knows_what_servos_make_of_commands(task: Insertion) -> None:
    """One step of the world: predicted, and brought about."""
    guide, state = Guide(task).double(), task.sample(100, seeded(2), D)
    state[:, ARM_V] = torch.randn(100, 6, generator=seeded(3), dtype=D)
    command = state[:, ARM_V] + 0.5 * torch.randn(100, 6, generator=seeded(4), dtype=D)
    after = task.smooth.step(state, command)
    q, v = guide.predict(state[:, ARM_Q], state[:, ARM_V], command)
    change = (after[:, ARM_V] - state[:, ARM_V]).square().mean().sqrt()
    assert float((v - after[:, ARM_V]).square().mean().sqrt()) < 0.05 * float(change)
    assert float((q - after[:, ARM_Q]).square().mean().sqrt()) < 0.05 * task.options.dt * float(change)


def test_gains_of_the_filter_are_those_of_all_readings_together() -> None:
    """Three readings of a position that moves at a known velocity: the filter ends where least squares ends."""
    F, R = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.04]])
    start, prior = np.array([0.3, -0.2]), np.diag([0.5, 0.2])
    readings = (0.7, 0.4, 0.9)
    gains = filter_gains(3, F, np.zeros((2, 2)), R, prior)
    x = start
    for number, (z, K) in enumerate(zip(readings, gains, strict=True)):
        x = F @ x if number else x
        x = x + K @ (np.array([z]) - x[:1])
    rows = [np.linalg.inv(np.linalg.cholesky(prior)), *(np.linalg.matrix_power(F, k)[:1] / 0.2 for k in range(3))]
    right = [rows[0] @ start, *(np.array([z]) / 0.2 for z in readings)]
    first = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]
    np.testing.assert_allclose(x, F @ F @ first, atol=1e-12)


# --- alone ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moving", [False, True])
def test_the_guide_alone_inserts(task: Insertion, moving: bool) -> None:
    task = Insertion(replace(task.options, moving=moving))
    with torch.no_grad():
        verdict = judge(task, run(task, task.world, acting(untrained(task)), draw(task, 64, seeded(5), dtype=D)))
    assert float(verdict.success.double().mean()) > 0.9
    assert float(verdict.peak_acceleration.median()) < 40 and float(verdict.peak_jerk.median()) < 4000


def test_the_guide_alone_inserts_anywhere_in_a_time_by_distance() -> None:
    task = Insertion(InsertionOptions().anywhere())
    T, episodes = task.options.horizon, draw(task, 32, seeded(5), dtype=D)
    begun = episodes.begun
    assert begun is not None and int(begun.min()) < int(begun.max()) < T // 2
    # The further the joints have to turn, the sooner it begins.
    over = task.seats(episodes.state[:, SOCKET_XY], DEPTH)
    far = ((over - episodes.state[:, ARM_Q]).abs() / task.max_velocity).amax(-1)
    assert float(torch.corrcoef(torch.stack([far, -begun.double()]))[0, 1]) > 0.8
    clock = task.observe(episodes.state, 3, episodes)[:, -1]
    torch.testing.assert_close(clock, (3 + begun.double()) / T)
    with torch.no_grad():
        trajectory = run(task, task.world, acting(untrained(task)), episodes)
    verdict = judge(task, trajectory)
    assert float(verdict.success.double().mean()) > 0.9
    torch.testing.assert_close(verdict.seconds, 0.01 * (T - begun.double()), check_dtype=False)
    # Each is judged when its own time is up.
    ends = trajectory.states[T - begun, torch.arange(32)]
    torch.testing.assert_close(verdict.error, task.errors(ends)[0].norm(dim=-1))


def test_the_observer_finds_latency_and_payload(robust: Insertion) -> None:
    """Every other disturbance is there, too; motions begin at once, so that both can be told."""
    policy, episodes = untrained(robust), draw(robust, 64, seeded(6), dtype=D)
    assert policy.observer is not None and episodes.delays is not None and episodes.payload is not None
    memory, state, actions = policy.start.expand(64, -1), episodes.state, []
    with torch.no_grad():
        for step in range(40):
            state = robust.disturb(state, step, episodes)
            action, memory = policy(robust.observe(state, step, episodes), memory)
            actions.append(action)
            before = state
            control = robust.control(robust.applied(actions, episodes))
            state = robust.smooth_payload.step(state, control, {"mass:ur5/bottle": episodes.payload})
    filters, xy, _, score, _, _ = memory[:, 6:].split(policy.observer.sizes, -1)
    delay = episodes.delays.argmax(1)
    assert float((score.argmax(1) == delay).double().mean()) > 0.99
    q, v, load, _ = filters.unflatten(-1, (3, FILTER))[torch.arange(64), delay].split(PARTS, -1)
    assert float((load - (episodes.payload - BOTTLE_MASS)).abs().mean()) < 0.05 * BOTTLE_MASS * 0.2
    # Of the state before the last step, to a quarter of the noise.
    for found, wanted, noise in (
        (q, before[:, ARM_Q], 5e-4),
        (v, before[:, ARM_V], 1e-2),
        (xy, before[:, SOCKET_XY], 3e-4),
    ):
        offset = 2e-4 / 2**0.5 if noise == 3e-4 else 0.0
        assert float((found - wanted).square().mean().sqrt()) < (offset**2 + (noise / 4) ** 2) ** 0.5


def test_predictions_do_not_run_away(robust: Insertion) -> None:
    """The model of the servos has products of velocities: a filter that assumes a wrong latency could square itself to infinity."""
    guide = Guide(robust, payload=0.1)
    q, v, rest, load = guide.middle.expand(64, 6), 100 * torch.randn(64, 6), torch.zeros(6), torch.zeros(64, 1)
    for _ in range(60):
        q, v = guide.predict(q, v.float(), rest.float(), load.float())
    assert q.isfinite().all()
    assert v.abs().max() <= 2 * robust.max_velocity.max()


def test_the_observer_finds_a_drift(robust: Insertion) -> None:
    """Joints whose velocities change by more than the model says, all the time: the filters' predictions become right."""
    policy = untrained(robust)
    guide, observer = policy.guide, policy.observer
    assert observer is not None
    drift = torch.from_numpy(guide.missed)
    none, still, socket = torch.zeros(1, dtype=D), torch.zeros(6, dtype=D), torch.tensor([0.5, 0.1], dtype=D)
    q, v, kept, missed = robust.start, still, observer.start, []
    for step in range(80):
        number = torch.tensor([float(step)], dtype=D)
        *_, found, kept = observer(guide, q, v, socket, 0 * socket, number, still, kept)
        missed.append(float(((found - drift) / drift).abs().mean()))
        q, v = guide.predict(q, v, still, none, drift)
    assert missed[0] > 0.95 and missed[-1] < 0.8


# --- corrected --------------------------------------------------------------------------------------------------------


def test_gradients_through_the_guide(task: Insertion) -> None:
    """Of the loss with respect to the network's weights, through 50 control steps."""
    policy = task.policy(InsertionTraining(hidden=8), seeded(7)).double().requires_grad_(False)
    names, episodes = ["inner.weight", "outer.weight", "outer.bias"], draw(task, 2, seeded(8), dtype=D)
    check_loss_gradients(task, task.smooth, policy, names, episodes)


@pytest.mark.parametrize("noisy", [False, True])
def test_the_controller_is_exported(task: Insertion, robust: Insertion, noisy: bool) -> None:
    """An episode under the network in NumPy is that under the policy."""
    task, calm = robust if noisy else task, replace(robust.options.disturbances, belt_change=0.0)
    policy = task.policy(InsertionTraining(hidden=16), seeded(9)).double()
    with torch.no_grad():
        policy.get_parameter("outer.weight").uniform_(-0.5, 0.5, generator=seeded(11))
    check_exported(task, policy, draw(task, 3, seeded(10), calm if noisy else Disturbances(), D))


def test_it_is_judged_with_its_own_horizon_only(task: Insertion, tmp_path: Path) -> None:
    training = InsertionTraining(hidden=8)
    folder = Run.create(tmp_path / "run", task, training, task.policy(training, seeded()).state_dict())
    with pytest.raises(ValueError, match="built for motions of 40 control steps, and cannot be judged with 50"):
        evaluate(folder, 1, variant="wide")
