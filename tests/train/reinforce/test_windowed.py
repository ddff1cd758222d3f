"""All algorithms: checkpoints to the same bits, that they learn, and what each has of its own against its definition."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.train.reinforce.swing import Swing

from costate.train.evaluate import evaluate_policy
from costate.train.names import ALGORITHMS
from costate.train.plan import TrainOptions
from costate.train.reinforce.ahac import Ahac, AhacOptions
from costate.train.reinforce.sapo import Sapo
from costate.train.reinforce.shac import Shac
from costate.train.reinforce.windowed import WindowTraining
from costate.train.run import Run
from costate.train.streams import generator
from costate.train.trainer import train


def test_a_task_has_all_algorithms_with_its_own_numbers():
    assert Swing.ways() == ("shac", "ahac", "sapo", "sac", "bptt")
    for name in Swing.ways():
        options = Swing.training_by(name)
        assert options.algorithm == name and options.batch == Swing.training.batch != TrainOptions().batch
    assert Swing.training_by("ahac").critic_passes == 2  # as that of the task, which is not what is usual
    with pytest.raises(ValueError, match="'ppo' trains 'swing'; choose of shac, ahac, sapo, sac, bptt"):
        Swing.training_by("ppo")


@pytest.mark.parametrize("name", sorted({*ALGORITHMS} - {"sac"}))  # which has tests of its own
def test_a_training_that_stops_goes_on_to_the_same_bits(tmp_path, name):
    class StopError(Exception):
        pass

    def stop(row):
        if row["iteration"] == 4:
            raise StopError

    options = replace(Swing.training_by(name), iterations=6, interval=2)
    whole, parts = (Run.create(tmp_path / part, Swing, options) for part in ("whole", "parts"))
    train(whole)
    with pytest.raises(StopError):
        train(parts, stop)
    opened = Run.open(tmp_path / "parts", task=Swing)
    assert opened.options == options
    train(opened)
    a, b = whole.checkpoint(), parts.checkpoint()
    assert a.iteration == b.iteration == 6 and a.control_steps >= 6 * 8 * 5
    for x, y in ((a.policy, b.policy), (a.more, b.more)):
        assert x.keys() == y.keys() and all(torch.equal(x[k], y[k]) for k in x)


@pytest.mark.parametrize("name", sorted({*ALGORITHMS} - {"sac"}))  # which has tests of its own
def test_it_learns(tmp_path, name):
    """New episodes earn more after the training than before, by far more than chance does."""
    changes = {"iterations": 60, "batch": 32, "interval": 20, "learning_rate": 1e-2}
    run = Run.create(tmp_path / "run", Swing, replace(Swing.training_by(name), **changes))
    earned = []
    for _ in ("before", "after"):
        earned.append(evaluate_policy(run.task, run.policy, 300).verdict.columns["return"])
        train(run)
    before, after = earned
    error = float((before.var() / len(before) + after.var() / len(after)).sqrt())
    assert float(after.mean() - before.mean()) > 8 * error
    assert run.metrics()[-1]["dropped"] == 0


def made(kind: type[WindowTraining], name: str, folder) -> WindowTraining:
    return kind(Run.create(folder / name, Swing, Swing.training_by(name)))


def test_a_robot_whose_gradient_is_not_finite_changes_nothing_and_is_counted(tmp_path):
    """The weights move as if that robot had none."""
    moved = []
    for bad in (float("nan"), 0.0):
        shac = made(Sapo, "sapo", tmp_path / str(bad))
        rolled = shac.roll(generator("episodes", 0, 0))
        shac.loss(rolled).backward()
        assert rolled.push.grad is not None
        rolled.push.grad[3] = bad
        shac.move_actor(rolled, 1e-3)
        moved.append(torch.cat([p.detach().flatten() for p in shac.policy.parameters()]))
        assert int(shac.dropped) == (0 if bad == 0 else rolled.noise.shape[1])
    assert torch.equal(*moved)


def test_entropy_is_that_of_the_density_of_actions(tmp_path):
    """The density of tanh(normal) by torch.distributions, in float64."""
    sapo = made(Sapo, "sapo", tmp_path)
    assert isinstance(sapo, Sapo)
    rolled = sapo.roll(generator("episodes", 0, 0))
    heads = rolled.window.heads.detach().double()
    mean, std = heads[..., :2], sapo.policy.log_spread(heads).exp()
    squashed = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(mean, std), torch.distributions.TanhTransform()
    )
    action = torch.tanh(mean + std * rolled.noise.double())
    expected = squashed.log_prob(action).sum(-1)
    torch.testing.assert_close(
        sapo.policy.act(rolled.window.heads, rolled.noise)[1].detach().double(), expected, rtol=1e-4, atol=1e-4
    )
    # and these were the actions: a robot in the middle of an episode carries its last one
    carry = rolled.window.carry
    going = carry[:, -1] > 0
    assert bool(going.any())
    torch.testing.assert_close(carry[going, 4:6].double(), action[going, -1], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("target", "sign"), [(-50.0, -1), (50.0, 1)])
def test_temperature_rises_where_entropy_is_too_low(tmp_path, target, sign):
    options = replace(Swing.training_by("sapo"), entropy=target)
    run = Run.create(tmp_path / "run", Swing, options)
    train(run)
    assert sign * (run.metrics()[-1]["temperature"] - options.temperature) > 0


@pytest.mark.parametrize(("growth", "grows"), [(1e9, True), (1e-9, False)])
def test_horizon_follows_the_growth_of_gradients(tmp_path, growth, grows):
    options = replace(Swing.training_by("ahac"), growth=growth, horizon_rate=1.0, shortest=0.6, longest=1.4)
    run = Run.create(tmp_path / "run", Swing, options)
    train(run)
    assert run.metrics()[-1]["horizon"] == (7 if grows else 3)


def test_growth_is_the_worst_ratio_of_following_lengths(tmp_path):
    ahac = made(Ahac, "ahac", tmp_path)
    assert isinstance(ahac, Ahac)
    rolled = ahac.roll(generator("episodes", 0, 0))
    ahac.loss(rolled).backward()
    assert rolled.probe.grad is not None
    length = rolled.probe.grad[..., 0]
    rolled.window.fell[:], rolled.window.over[:] = False, False
    worst = sorted(max(float(row[t] / row[t + 1]) for t in range(4)) for row in length)
    found = ahac.learn_more(rolled, generator("episodes", 0, 1), ahac.task.plan(ahac.options, 0))["growth"]
    assert found == pytest.approx(worst[(len(worst) - 1) // 2], rel=1e-5)


def test_bounds_that_leave_no_horizon_are_refused():
    with pytest.raises(ValueError, match=r"shortest is 3\.0 and longest 2\.0; 1 must lie between them"):
        AhacOptions(shortest=3.0)


def test_noise_may_fall_with_the_learning_rate(tmp_path):
    """Half way it is half as large, of the same random numbers."""
    options = replace(Swing.training_by("shac"), iterations=10)
    noises = []
    for calming in (False, True):
        run = Run.create(tmp_path / str(calming), Swing, replace(options, calming=calming))
        training = Shac(run)
        training.done = 5
        noises.append(training.roll(generator("episodes", 0, 5)).noise)
    assert torch.equal(noises[1], noises[0] / 2)


def test_some_robots_may_act_without_noise(tmp_path):
    """They act as the policy says; the others have the noise that they had before."""
    options = Swing.training_by("shac")
    rolled = []
    for quiet in (0.0, 0.25):
        training = Shac(Run.create(tmp_path / str(quiet), Swing, replace(options, quiet=quiet)))
        rolled.append(training.roll(generator("episodes", 0, 0)))
    before, after = (r.noise for r in rolled)
    count = options.batch // 4
    assert count > 0 and not after[:count].any()
    assert torch.equal(after[count:], before[count:])
    assert rolled[1].window.reward.isfinite().all()


def test_weights_to_start_with_must_fit(tmp_path):
    """A run of another size says so, and leaves no folder behind."""
    other = Run.create(tmp_path / "other", Swing, replace(Swing.training, actor=(5,)))
    with pytest.raises(ValueError, match="weights to start with do not fit the policy of 'swing'"):
        Run.create(tmp_path / "run", Swing, policy=other.checkpoint().policy)
    assert not (tmp_path / "run").exists()
