"""SAC: samples against the world itself, gradients against finite differences, checkpoints to the same bits, and that it learns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from tests.train.reinforce.swing import Swing, VariedSwing

from costate.envs import Batch
from costate.tasks.locomotion.ant import Ant
from costate.train.evaluate import evaluate_policy
from costate.train.reinforce.actor import FLOAT
from costate.train.reinforce.memory import Memory, Outcomes, Samples
from costate.train.reinforce.sac import Sac, SacOptions
from costate.train.run import Run
from costate.train.trainer import train

OPTIONS = SacOptions(
    iterations=6, batch=8, horizon=5, updates=2, minibatch=32, memory=100, actor=(12, 8), critic=(8,), interval=2
)
ENHANCED = [pytest.param("none", marks=pytest.mark.study), "policy", pytest.param("sample", marks=pytest.mark.study)]


class SoftSwing(Swing):
    """The small task, learnt by SAC."""

    name, training = "soft_swing", OPTIONS


@pytest.fixture(scope="module")
def outcomes():
    return Outcomes(SoftSwing())


def sac(folder, **changed) -> Sac:
    return Sac(Run.create(folder / "run", SoftSwing, replace(OPTIONS, **changed)))


def collected(training: Sac) -> Samples:
    """Return the samples of the first window."""
    with torch.no_grad():
        rolled = training.roll(torch.Generator().manual_seed(0))
    return training.sampled(rolled)


def exact(outcomes: Outcomes, batch: int = 6) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Samples]:
    """Return states, actions and times in float64, and their samples with slopes."""
    g = torch.Generator().manual_seed(1)
    x = outcomes.task.start(batch, g).double()
    action = 1.6 * torch.rand(batch, 2, generator=g, dtype=torch.float64) - 0.8
    time = torch.full((batch, 1), 3 / 7, dtype=torch.float64)
    seen = outcomes.task.telling(state=x, action=0 * action, after=x, time=time).observation
    out = outcomes.kernel(state=x, action=action, time=time).outcome
    slope = outcomes.slope(x, action, time).flatten(1)
    return x, action, time, Samples(seen, action, out[:, :-1], out[:, -1:], torch.ones_like(time), slope)


def test_outcomes_are_those_of_the_world(outcomes):
    x, action, time, samples = exact(outcomes)
    after = outcomes.task.world.step(x, 6.0 * action)
    told = outcomes.task.telling(state=x, action=action, after=after, time=time)
    torch.testing.assert_close(samples.after, told.observation, rtol=0, atol=1e-12)
    torch.testing.assert_close(samples.reward, told.reward, rtol=0, atol=1e-12)


def test_a_displaced_sample_is_off_by_the_square_of_the_displacement(outcomes):
    """All rows at once: half the displacement leaves a quarter of the error."""
    x, action, time, samples = exact(outcomes)
    by = torch.randn(action.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    errors = []
    for h in (0.02, 0.01, 0.005):
        near, true = samples.displaced(h * by), outcomes.kernel(state=x, action=action + h * by, time=time).outcome
        errors.append((torch.cat([near.after, near.reward], 1) - true).norm(dim=0))
    moves = errors[0] > 1e-9  # velocities and the action itself are linear in the action: no error at all
    assert int(moves.sum()) == 5 and float(errors[0][~moves].max()) < 1e-12
    for wide, narrow in pairwise(errors):
        ratio = wide[moves] / narrow[moves]
        assert float(ratio.min()) > 3.8 and float(ratio.max()) < 4.2


@pytest.mark.study
def test_displaced_samples_of_the_ant():
    """With contact, 16 substeps and all 38 rows: the median of the ratios, since an ant may touch the ground in between."""
    outcomes = Outcomes(Ant())
    g = torch.Generator().manual_seed(0)
    x, time = outcomes.task.start(32, g).double(), torch.full((32, 1), 0.5, dtype=torch.float64)
    for _ in range(30):  # onto the ground
        x = outcomes.task.world.step(x, torch.zeros(8, dtype=torch.float64))
    action, by = torch.rand(2, 32, 8, generator=g, dtype=torch.float64) - 0.5
    slope = outcomes.slope(x, action, time).flatten(1)
    out = outcomes.kernel(state=x, action=action, time=time).outcome
    samples = Samples(out[:, :-1], action, out[:, :-1], out[:, -1:], torch.ones_like(time), slope)
    errors = []
    for h in (2e-3, 1e-3):
        near, true = samples.displaced(h * by), outcomes.kernel(state=x, action=action + h * by, time=time).outcome
        errors.append((torch.cat([near.after, near.reward], 1) - true).norm(dim=1))
    assert 3.8 < float((errors[0] / errors[1]).median()) < 4.2


def test_samples_of_a_window_are_the_steps_of_its_robots(tmp_path):
    """Every sample is what the task's environment does from the state in which it was taken."""
    training = sac(tmp_path, enhancement="sample")
    samples = collected(training)
    batch = Batch(training.task, training.options.batch)
    batch.reset()
    batch.states[-1] = training.carry[:, :4].clone()
    out = batch.step(samples.action.unflatten(0, (8, 5))[:, 0])
    found = [getattr(samples, name).unflatten(0, (8, 5))[:, 0] for name in ("after", "reward", "goes_on")]
    for a, b in zip(found, (out.observation, out.reward[:, None], (~out.terminated[:, None]).to(FLOAT)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-5)


def test_policy_enhancement_climbs_what_the_simulator_gives(tmp_path, outcomes):
    """dr/da + discount J^T dV/ds', against finite differences of reward + discount * value through the world."""
    training = sac(tmp_path, enhancement="policy")
    x, action, time, samples = exact(outcomes)
    for module in (training.policy, *training.slow.values()):
        module.double()
    noise = torch.randn(action.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    _, slope = training._valued(samples, noise)

    def worth(a):
        out = outcomes.kernel(state=x, action=a, time=time).outcome
        return out[:, -1] + training.options.discount * training.value(out[:, :-1], noise)[:, 0]

    for k in range(2):
        by = torch.zeros_like(action)
        by[:, k] = 1e-6
        with torch.no_grad():
            expected = (worth(action + by) - worth(action - by)) / 2e-6
        torch.testing.assert_close(slope[:, k], expected, rtol=1e-6, atol=1e-7)


def test_density_of_actions_is_that_of_torch(tmp_path):
    training = sac(tmp_path)
    g = torch.Generator().manual_seed(0)
    heads, noise = torch.randn(20, 4, generator=g, dtype=FLOAT), torch.randn(20, 2, generator=g, dtype=FLOAT)
    action, found = training._act(heads, noise)
    normal = torch.distributions.Normal(heads[:, :2], training.policy.log_spread(heads).exp())
    squashed = torch.distributions.TransformedDistribution(normal, [torch.distributions.TanhTransform(cache_size=1)])
    torch.testing.assert_close(found[:, 0], squashed.log_prob(action).sum(1), rtol=1e-3, atol=1e-3)


def test_memory_keeps_the_latest():
    memory = Memory(5, (1, 1, 1, 1, 1, 0), FLOAT)
    for k in range(4):
        column = torch.tensor([[2 * k], [2 * k + 1]], dtype=FLOAT)
        memory.add(Samples(column, -column, column, column, column, column[:, :0]))
    drawn = memory.draw(200, torch.Generator().manual_seed(0))
    assert len(memory) == 5 and sorted(set(drawn.seen[:, 0].tolist())) == [3, 4, 5, 6, 7]
    assert torch.equal(drawn.action, -drawn.seen) and drawn.slope.shape == (200, 0)


@pytest.mark.parametrize("enhancement", ENHANCED)
def test_a_training_that_stops_goes_on_to_the_same_bits(tmp_path, enhancement):
    class StopError(Exception):
        pass

    def stop(row):
        if row["iteration"] == 4:
            raise StopError

    options = replace(OPTIONS, enhancement=enhancement)
    whole, parts = (Run.create(tmp_path / name, SoftSwing, options) for name in ("whole", "parts"))
    train(whole)
    with pytest.raises(StopError):
        train(parts, stop)
    train(Run.open(tmp_path / "parts", task=SoftSwing))
    a, b = whole.checkpoint(), parts.checkpoint()
    assert a.iteration == b.iteration == 6 and a.control_steps == 6 * 8 * 5
    for x, y in ((a.policy, b.policy), (a.more, b.more)):
        assert x.keys() == y.keys() and all(torch.equal(x[k], y[k]) for k in x)
    assert len(a.more["memory"]) == 100


@pytest.mark.parametrize(
    "enhancement",
    [pytest.param("none", marks=pytest.mark.study), "policy", pytest.param("sample", marks=pytest.mark.study)],
)
def test_it_learns(tmp_path, enhancement):
    """New episodes earn more after the training than before, by far more than chance does."""
    options = replace(
        OPTIONS, enhancement=enhancement, iterations=30, batch=16, updates=6, minibatch=64, memory=4000, critic=(32, 32)
    )
    run = Run.create(tmp_path / "run", SoftSwing, replace(options, learning_rate=1e-2, target_memory=0.9, interval=30))
    earned = []
    for _ in ("before", "after"):
        earned.append(evaluate_policy(run.task, run.policy, 300).verdict.columns["return"])
        train(run)
    before, after = earned
    error = float((before.var() / len(before) + after.var() / len(after)).sqrt())
    assert float(after.mean() - before.mean()) > 6 * error


@pytest.mark.parametrize("change", [{"enhancement": "all"}, {"updates": 0}, {"displacement": 0.0}])
def test_options_that_mean_nothing_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        SacOptions(**change)


def test_slopes_are_those_of_the_robot_s_own_parameters(tmp_path):
    """Samples of robots that differ: the Jacobian of each is that of a step with its masses and gravity, by differences."""

    class SoftVaried(VariedSwing):
        name, training = "soft_varied", OPTIONS

    training = Sac(Run.create(tmp_path / "run", SoftVaried, replace(OPTIONS, enhancement="sample", horizon=1)))
    task, begin = training.task, training.carry.double()
    samples = collected(training)
    state, values = begin[:, :4], begin[:, 7:]
    params = dict(zip(task.varied_sizes, values.split(list(task.varied_sizes.values()), 1), strict=True))
    time, h = torch.full((len(begin), 1), 1 / task.length, dtype=torch.float64), 1e-5
    for k in range(2):
        moved = []
        for sign in (1, -1):
            action = samples.action.double().clone()
            action[:, k] += sign * h
            after = task.world.step(state, 6.0 * action, params)
            told = task.telling(state=state, action=action, after=after, time=time)
            moved.append(torch.cat([told.observation, told.reward], 1))
        expected = (moved[0] - moved[1]) / (2 * h)
        found = torch.cat([samples.J[..., k], samples.reward_slope[:, k : k + 1]], 1)
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-4)
