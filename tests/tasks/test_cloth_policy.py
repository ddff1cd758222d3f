"""Policies for tasks of cloth: gradients of the loss by weights, training, files, and what is said of tasks that have none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from torch import Tensor

import costate as cs
from costate.cli.solve import NETWORKS, Options, run
from costate.draw.recording import load_recording
from costate.tasks.cloth.draws import Draws
from costate.tasks.cloth.names import CLOTH_TASKS
from costate.tasks.cloth.policy import (
    PRACTICE,
    Practice,
    backward,
    first_guess,
    judge,
    loss_of,
    numbers_of,
    save,
    train,
    untrained,
)
from costate.tasks.cloth.problem import ClothProblem, Tell
from costate.tasks.cloth.robots.hang import HangTask
from costate.tasks.cloth.rope import ThreadTask

ROPE = ThreadTask(segments=16, steps=20)
EXACT = replace(ROPE, tolerance=1e-10)
"""Steps are solved to rounding, so that differences have some digits."""
QUIET: Tell = lambda text: None  # noqa: E731


def test_draws_are_those_of_numpy_and_seen_at_order_one() -> None:
    draw, random = Draws(3), np.random.default_rng(3)
    place = draw("place [m]", [0.1, -0.2], [0.3, 0.4])
    assert np.array_equal(place, random.uniform([0.1, -0.2], [0.3, 0.4]))
    assert draw.log("stiffness [N/m]", 2.0, 8.0) == np.exp(random.uniform(np.log(2.0), np.log(8.0)))
    angle = draw.angle("a towel")
    assert list(draw.seen)[:2] == ["place [m] 1, 0.1 to 0.3", "place [m] 2, -0.2 to 0.4"]
    assert list(draw.seen.values())[:2] == pytest.approx([(place[0] - 0.2) / 0.1, (place[1] - 0.1) / 0.3])
    assert list(draw.seen.values())[3:] == [np.cos(angle), np.sin(angle)]


@pytest.mark.parametrize("name", [n for n in NETWORKS if n in CLOTH_TASKS])
def test_what_is_seen_differs_from_problem_to_problem(name: str) -> None:
    seen = [list(CLOTH_TASKS[name].problem(k).seen.values()) for k in range(2)]
    assert len(seen[0]) == len(seen[1]) > 0
    assert all(a != b and abs(a) <= 1 for a, b in zip(*seen, strict=True))


def test_gradients_of_the_loss_by_weights() -> None:
    """Those of a policy are those that differences have, and training uses them."""
    problem = EXACT.problem(0)
    policy = untrained(problem, Practice(hidden=4))
    name = "4.bias"
    others = {k: p.detach() for k, p in policy.named_parameters()}
    seen = torch.tensor([list(problem.seen.values())])
    low, high = map(torch.as_tensor, problem.bounds)

    def loss(bias: Tensor) -> Tensor:
        answer = torch.func.functional_call(policy, others | {name: bias}, seen)[0]
        return loss_of(problem, low + (high - low) * (1 + answer) / 2)

    point = others[name].clone()
    check_gradients(loss, (point,), names=("bias",), float32=False, directions=1)
    value = loss(point.requires_grad_())
    (exact,) = torch.autograd.grad(value, point)
    assert backward(policy, [problem], np.inf) == pytest.approx([float(value.detach())], rel=1e-12)
    found = dict(policy.named_parameters())[name].grad
    assert found is not None and torch.allclose(found, exact, rtol=1e-9)


def test_long_gradients_are_cut_and_failures_drop_out() -> None:
    problem = ROPE.problem(0)

    def fails(z: Tensor) -> None:
        raise FloatingPointError("a step did not converge")

    def grads(problems: list[ClothProblem], clip: float) -> tuple[int, Tensor]:
        policy = untrained(problem, Practice(hidden=4))
        losses = backward(policy, problems, clip)
        return len(losses), torch.cat(
            [torch.zeros(0) if p.grad is None else p.grad.flatten() for p in policy.parameters()]
        )

    count, whole = grads([problem], np.inf)
    assert count == 1
    assert grads([problem], 1e-3)[1].norm() < 1e-2 * whole.norm()
    count, some = grads([problem, replace(problem, play=fails)], np.inf)
    assert count == 1 and torch.allclose(some, whole, rtol=1e-9)
    assert grads([replace(problem, residuals=lambda z, motion: (z - z).sqrt())], 1.0) == (
        0,
        pytest.approx(torch.zeros(0)),
    )
    assert judge(ROPE, [0], lambda p: fails(first_guess(p)), QUIET) == [None]  # type: ignore[arg-type, return-value]


def test_a_policy_learns_to_hang_a_towel() -> None:
    """On problems it has not met it is much better than the first guess."""
    task = HangTask(shape=(9, 3), steps=30, held=5, still=10)
    trained = train(task, Practice(iterations=20, batch=2, rate=1e-2, hidden=16), QUIET)
    assert trained.dropped == 0 and len(trained.losses) == 20
    before = judge(task, range(3), first_guess, QUIET)
    after = judge(task, range(3), lambda p: numbers_of(trained.policy, [p])[0], QUIET)
    for a, b in zip(after, before, strict=True):
        assert a is not None and b is not None and a.losses[0] < 0.3 * b.losses[0]


def test_a_policy_has_the_same_bits_again_and_is_read_from_its_files(tmp_path: Path) -> None:
    trained, again = (train(ROPE, Practice(iterations=2, batch=2), QUIET) for _ in range(2))
    assert trained.losses == again.losses
    for p, q in zip(trained.policy.parameters(), again.policy.parameters(), strict=True):
        assert torch.equal(p, q)
    problem = ROPE.problem(7)
    save(trained.policy, "cloth_thread", problem, tmp_path)
    z = cs.load_policy(tmp_path)(np.array(list(problem.seen.values())))
    assert z == pytest.approx(numbers_of(trained.policy, [problem])[0].detach().numpy(), rel=1e-12)


def test_a_policy_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CLOTH_TASKS, "cloth_thread", ROPE)
    run(Options("cloth_thread", policy=True, iterations=1, starts=2, out=tmp_path))
    assert "solved by the first guess 0 of 2" in capsys.readouterr().out
    assert (tmp_path / "cloth_thread.html").stat().st_size > 10_000
    folder = tmp_path / "cloth_thread"
    assert len(load_recording(folder).motion.times) == ROPE.steps + 1
    assert cs.load_policy(folder).note["task"] == "cloth_thread"


def test_errors_say_what_has_a_policy() -> None:
    with pytest.raises(ValueError, match=r"'cloth_towel' has no network.*cloth_fold"):
        run(Options("cloth_towel", policy=True))
    with pytest.raises(ValueError, match="trained by Adam"):
        run(Options("cloth_thread", policy=True, method="lbfgs"))
    with pytest.raises(ValueError, match="below 1,000,000"):
        run(Options("cloth_thread", policy=True, first=PRACTICE))
