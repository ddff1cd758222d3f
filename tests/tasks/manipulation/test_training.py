"""Training of hands that propose contacts: options of its variants, tries, interruptions, preconditioners."""

import json
from dataclasses import replace

import pytest
import torch
import tyro

from costate.cli.runs.train import asked, chosen
from costate.optimise import GaussNewtonOptions, gauss_newton
from costate.tasks.manipulation import training
from costate.tasks.manipulation.kinds import Grasp, Slide
from costate.tasks.manipulation.options import ManipulationOptions
from costate.tasks.manipulation.proposals import residuals
from costate.train import Run, train

DOUBLE = torch.float64


@pytest.fixture(scope="module")
def task() -> Grasp:
    return Grasp(ManipulationOptions(steps=4))


def test_the_honest_variant_has_its_own_training():
    """Its defaults count where nothing else is given; what is given counts, also if it is the usual value."""
    given = ["", "--honest", "--honest --newton 2", "--honest --newton 1 --task.steps 20 --task.servos.squeeze 3"]
    found = [asked(_parsed("grasp", *text.split()), Grasp) for text in given]
    assert [(task.mass, training.newton, training.probes) for task, training in found] == [
        (0.01, 1, 1),
        (0.1, 5, 0),
        (0.1, 2, 0),
        (0.1, 1, 0),
    ]
    assert found[1][0].steps != 20 and (found[3][0].steps, found[3][0].servos.squeeze) == (20, 3.0)


@pytest.mark.parametrize("kind", [Grasp, Slide])
def test_honest_tasks_are_judged_on_the_way(kind):
    """Looks coincide with rows of metrics, after which a training can end, and with the ends of tries."""
    task, options = asked(_parsed(kind.name, "--honest"), kind)
    assert options.compare == "simulation" and options.look and options.enough < 1
    assert options.look % options.interval == 0 and options.iterations // options.tries % options.look == 0
    assert task.calm == (kind is Grasp)


def _parsed(*arguments: str):
    default = chosen(arguments)
    return tyro.cli(type(default), default=default, args=list(arguments))


def test_training_lowers_the_loss(task):
    """A few Gauss-Newton steps on a short episode, to lift as far as it allows, lower it by a lot; every block has a weight."""
    episodes = task.draw(4, torch.Generator().manual_seed(7), DOUBLE)
    policy = task.policy(replace(task.training, hidden=8), torch.Generator().manual_seed(8))
    start, thing, goal = task.start(episodes), task.believed(episodes), task.goals(episodes)
    goal[:, 2] -= 0.096
    options = GaussNewtonOptions(weights=task.weights, iterations=6, cg_iterations=30)
    found = gauss_newton(lambda now: residuals(task.step, goal, now, start, thing, False), policy, options)
    assert float(found.loss) < 0.7 * float(found.history[0].loss)


def test_the_best_of_several_tries_is_kept(task, tmp_path, monkeypatch):
    """Here the second of three, whatever the others' losses are."""
    seen, scores = [], iter([0.1, 0.9, 0.5])

    def scored(task, policy, options):
        seen.append(policy.into.weight.detach().clone())
        return next(scores)

    monkeypatch.setitem(training.SCORES, "simulation", scored)
    options = replace(task.training, iterations=3, tries=3, batch=2, newton=1, cg_iterations=1, probes=0, hidden=4)
    run = Run.create(tmp_path / "run", task, options)
    train(run)
    assert torch.equal(run.checkpoint().policy["into.weight"], seen[1])
    assert not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2])
    with pytest.raises(ValueError, match="share"):
        replace(options, tries=2)


def test_the_best_policy_on_the_way_is_kept(task, tmp_path, monkeypatch):
    """Also within a single try: here after the second of three draws."""
    seen, scores = [], iter([0.1, 0.9, 0.5])

    def scored(task, policy, options):
        seen.append(policy.into.weight.detach().clone())
        return next(scores)

    monkeypatch.setitem(training.SCORES, "simulation", scored)
    options = replace(task.training, iterations=3, look=1, batch=2, newton=1, cg_iterations=1, probes=0, hidden=4)
    run = Run.create(tmp_path / "run", task, options)
    train(run)
    assert torch.equal(run.checkpoint().policy["into.weight"], seen[1])
    assert not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2])


def test_a_training_ends_with_a_policy_that_is_good_enough(task, tmp_path, monkeypatch):
    """After the second of three tries here; the metrics have the draws that there were, and it does not go on when resumed."""
    seen, scores = [], iter([0.1, 0.9])

    def scored(task, policy, options):
        seen.append(policy.into.weight.detach().clone())
        return next(scores)

    monkeypatch.setitem(training.SCORES, "simulation", scored)
    few = {"batch": 2, "newton": 1, "cg_iterations": 1, "probes": 0, "hidden": 4, "interval": 1}
    run = Run.create(tmp_path / "run", task, replace(task.training, iterations=6, tries=3, enough=0.9, **few))
    train(run)
    train(Run.open(tmp_path / "run"))
    assert torch.equal(run.checkpoint().policy["into.weight"], seen[1])
    assert run.finished and [row["iteration"] for row in run.metrics()] == [1, 2, 3, 4]


def test_tries_can_be_compared_by_their_loss(task, tmp_path, monkeypatch):
    """The policy is then the one with the lowest loss on starts that no draw has."""
    losses = []

    def noted(*given):
        losses.append(-training.fit(*given))
        return -losses[-1]

    monkeypatch.setitem(training.SCORES, "loss", noted)
    options = replace(task.training, iterations=3, tries=3, compare="loss", batch=2, cg_iterations=1, hidden=4)
    run = Run.create(tmp_path / "run", task, options)
    train(run)
    policy = task.policy(options)
    policy.load_state_dict(run.checkpoint().policy)
    assert -training.fit(task, policy, options) == min(losses) < max(losses)
    assert json.loads((run.path / "metrics.jsonl").read_text().splitlines()[-1])["score"] == -min(losses)


def test_an_interrupted_training_ends_with_the_same_weights(task, tmp_path):
    """Damping, last step and preconditioner are in the checkpoint."""
    options = replace(task.training, iterations=4, interval=2, batch=2, cg_iterations=2, hidden=4)
    whole, parts = (Run.create(tmp_path / name, task, options) for name in ("whole", "parts"))
    train(whole)
    train(parts, until=2)
    train(Run.open(tmp_path / "parts"))
    for name, w in whole.checkpoint().policy.items():
        assert torch.equal(w, parts.checkpoint().policy[name]), name


def test_the_last_draws_of_a_try_are_preconditioned(task, tmp_path, monkeypatch):
    """Two of three here; the others keep the options of the training."""
    seen, solve = [], training.solve_draw

    def solved(task, policy, episodes, damping, o, random):
        seen.append((o.newton, o.cg_iterations, o.probes))
        return solve(task, policy, episodes, damping, replace(o, newton=1, cg_iterations=1), random)

    monkeypatch.setattr(training, "solve_draw", solved)
    options = replace(task.training, iterations=3, finish=2, batch=2, newton=5, cg_iterations=100, probes=0, hidden=4)
    train(Run.create(tmp_path / "run", task, options))
    assert seen == [(5, 100, 0), (2, 9, 3), (2, 9, 3)]
    varied_too = asked(_parsed("grasp", "--honest", "--varied"), Grasp)
    assert varied_too[0].calm and (varied_too[1].iterations, varied_too[1].finish, varied_too[1].probes) == (
        310,
        250,
        0,
    )
