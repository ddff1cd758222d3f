"""Shards of trainings: their sum is the gradient of the whole batch, and nobody sees from the weights who computed them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.scale.threads import ThreadWorker
from tests.train.shards.hold import Goals

from costate.cli.main import main
from costate.core.tensors import aligned
from costate.scale.message import Message
from costate.scale.pool import LostError, Pool
from costate.train.episode import rollout
from costate.train.evaluate import evaluate
from costate.train.policy import acting
from costate.train.registry import find_task
from costate.train.run import Run
from costate.train.shards.gradients import Gradients, shards_of, summed
from costate.train.streams import generator
from costate.train.trainer import Trainer, shared, train

HOLD = Path(__file__).parent / "hold.py"
SPENT = {"seconds", "processor_seconds", "steps_per_second"}


@pytest.fixture(scope="module")
def kind() -> Any:
    return find_task(HOLD)


@pytest.fixture(scope="module")
def alone(kind: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A training in this process."""
    run = Run.create(tmp_path_factory.mktemp("runs") / "alone", kind)
    train(run)
    return run


def assert_same(a: Run, b: Run) -> None:
    """The same bits everywhere, but for times."""
    one, other = a.checkpoint(), b.checkpoint()
    assert one.iteration == other.iteration and one.control_steps == other.control_steps
    for name, tensor in one.policy.items():
        assert torch.equal(tensor, other.policy[name]), name
        assert all(torch.equal(t, other.moments[name][k]) for k, t in one.moments.get(name, {}).items())
    rows = [[{k: v for k, v in row.items() if k not in SPENT} for row in r.metrics()] for r in (a, b)]
    assert rows[0] == rows[1]


def moved(x: torch.Tensor, by: int) -> torch.Tensor:
    """The same numbers as a view that begins some numbers behind where torch would put them; so do gradients."""
    return torch.cat([x.new_zeros(by), x.reshape(-1)])[by:].view(x.shape)


def test_bits_do_not_depend_on_where_tensors_lie(kind: Any) -> None:
    """Observations, gradients of actions, and weights: torch's products round otherwise at other addresses modulo 16."""

    class Moved(kind):
        by = 0

        def observe(self, state: Any, step: int, episodes: Any) -> Any:
            return moved(super().observe(state, step, episodes), self.by)

        def control(self, action: Any) -> Any:
            return super().control(moved(action, self.by))

    task, o = Moved(), Moved.training
    shard, found, places = shards_of(task.plan(o, 3), True)[0], [], set()
    for observations, weights in ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (3, 2)):
        Moved.by, policy = observations, task.policy(o, generator("weights", 0))
        for p in policy.parameters():
            p.data = moved(p.data, weights)
        places |= {p.data_ptr() % 16 for p in policy.parameters()}
        found.append(Gradients.of(task, o, policy).shard(shard).tensors["gradient"])
    assert places >= {0, 4, 8}
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_aligned_copies_only_what_it_must() -> None:
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()
    assert aligned(x) is x
    for view in (x[1:], x[:, 1:], x.T, moved(x, 1)):
        found = aligned(view)
        assert torch.equal(found, view) and found.is_contiguous() and found.data_ptr() % 64 == 0
        torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], torch.autograd.grad(view.sum(), x)[0])
    rows = torch.func.vmap(lambda row: aligned(row[1:]) * 2)(x.detach())
    torch.testing.assert_close(rows, 2 * x.detach()[:, 1:])


def test_the_sum_of_the_shards_is_the_gradient_of_the_batch(kind: Any, tmp_path: Path) -> None:
    """20 episodes in shards of 6, 6, 6 and 2, against one backward pass over all of them."""
    run = Run.create(tmp_path / "run", kind)
    task, o, policy = run.task, run.options, run.policy
    plan = task.plan(o, 3)
    shards = shards_of(plan, True)
    assert [s.note["size"] for s in shards] == [6, 6, 6, 2]
    work = Gradients.of(task, o, policy)
    gradient, note = summed([work.shard(s) for s in shards], plan.batch)
    drawn = [
        task.practice(replace(plan, batch=s.note["size"]), generator("episodes", o.seed, 3, k))
        for k, s in enumerate(shards)
    ]
    episodes = Goals(torch.cat([d.state for d in drawn]), torch.cat([d.angle for d in drawn]))
    policy.zero_grad()
    trajectory = rollout(task, acting(policy, training=True), episodes)
    terms = task.loss(trajectory, plan)
    task.total(terms, o).backward()
    whole = torch.cat([p.grad.reshape(-1) for p in policy.parameters() if p.grad is not None])
    torch.testing.assert_close(gradient, whole, rtol=1e-4, atol=1e-7)  # float32, summed in another order
    assert note["terms"]["angle"] == pytest.approx(float(terms["angle"].detach().mean()), rel=1e-5)
    assert note["measures"]["error"] == pytest.approx(
        task.measures(replace(trajectory, states=trajectory.states.detach()))["error"], rel=1e-5
    )
    assert note["steps"] == 20 * task.steps


def test_shards_have_random_numbers_of_their_own() -> None:
    seeds = {
        generator("episodes", s, k, shard).initial_seed() for s in range(3) for k in range(30) for shard in range(30)
    }
    assert len(seeds) > 2698  # hardly any two of 2,700 coincide
    assert generator("episodes", 1, 2).initial_seed() == generator("episodes", 1, 2, 0).initial_seed()


@pytest.mark.parametrize("workers", [1, 3])
def test_weights_have_the_same_bits_whoever_computes(alone: Run, workers: int, kind: Any, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", kind)
    with Pool(shared(run), workers, ThreadWorker) as pool:
        train(run, executor=pool)
    assert_same(alone, run)
    assert (run.path / "policy.safetensors").is_file() and run.finished


def test_lost_workers_and_an_interruption_leave_the_bits_alone(alone: Run, kind: Any, tmp_path: Path) -> None:
    """Workers are lost now and then; the training is stopped in the middle and goes on with another number of them."""
    run, count = Run.create(tmp_path / "run", kind), [0]

    def fate(number: int) -> None:
        count[0] += number >= 0
        if number >= 0 and count[0] % 7 == 3:
            raise LostError("was unplugged")

    with Pool(shared(run), 2, lambda: ThreadWorker(fate)) as pool:
        train(run, executor=pool, until=5)
        assert len(pool.lost) > 1
    assert run.checkpoint().iteration == 8 and not run.finished  # the next checkpoint after iteration 5
    run = Run.open(run.path, trust=True)
    with Pool(shared(run), 3, ThreadWorker) as pool:
        train(run, executor=pool)
    assert_same(alone, run)


def test_divergence_is_said_by_its_number_in_the_batch(kind: Any, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", kind)
    work = Gradients.of(run.task, run.options, run.policy)
    weights = run.policy.state_dict()
    weights["0.bias"] = weights["0.bias"] * torch.nan
    work.begin(Message({}, weights))
    found = work.shard(shards_of(run.task.plan(run.options, 0), True)[2])
    assert found.note["diverged"] == "the state of episode 12 after control step 1"


def test_other_algorithms_say_that_they_are_not_shared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "cartpole", "--workers", "2", "--out", str(tmp_path / "run")]) == 2
    assert "Shac is not computed in shards" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_command_shares_training_and_evaluation(
    alone: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With processes, as a user has them: the task is in a file, the workers are told what is in it."""
    out = tmp_path / "run"
    assert main(["train", str(HOLD), "--out", str(out), "--workers", "2", "--no-tensorboard"]) == 0
    said = " ".join(capsys.readouterr().out.split())  # lines are broken at the width of the terminal
    assert re.search(r"[12] of 2 there", said)  # on a busy machine one may come late
    assert_same(alone, Run.open(out, trust=True))
    assert main(["evaluate", str(out), "--episodes", "1100", "--workers", "1", "--trust"]) == 0
    ours, theirs = evaluate(alone, 1100), Run.open(out, trust=True).evaluation
    assert theirs is not None and {k for k in ours if ours[k] != theirs[k]} <= {"training_seconds"}


def test_a_training_alone_has_one_shard_unless_the_batch_is_large(kind: Any, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", kind, replace(kind.training, shard=512))
    assert len(shards_of(run.task.plan(run.options, 0), False)) == 1
    assert Trainer(run).alone
