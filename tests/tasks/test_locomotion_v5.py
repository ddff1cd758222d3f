"""Tasks of gymnasium's version 5 against gymnasium's own environments in MuJoCo: steps, starts, and policies that go there."""

from __future__ import annotations

import json
from typing import Any

import casadi as ca
import gymnasium
import numpy as np
import pytest
import torch
from casadi import SX
from tests.gradients import check_gradients

import costate.envs
from costate.cli.main import main
from costate.kernel import ProgramBuilder
from costate.sim.files.load import load_world
from costate.tasks.locomotion.gym_files import gym_file
from costate.tasks.locomotion.v5.free import AntV5, HumanoidV5
from costate.tasks.locomotion.v5.planar import HalfCheetahV5, HopperV5, Walker2dV5
from costate.train.run import Run

pytest.importorskip("mujoco")
TASKS = {task.name: task for task in (HopperV5, HalfCheetahV5, Walker2dV5, AntV5, HumanoidV5)}
QUICK = ("hopper_v5", "half_cheetah_v5")
AGREES = 1e-8
"""Of states, observations and rewards after a step: MuJoCo's solver is told to go as far as it can."""


@pytest.fixture(scope="module")
def tasks():
    return {name: task() for name, task in TASKS.items()}


def gym_of(task) -> Any:
    env: Any = gymnasium.make(task.gym, **task.gym_options).unwrapped
    option = env.model.opt
    option.tolerance, option.iterations, option.ls_iterations, option.ls_tolerance = 0.0, 100, 100, 1e-10
    option.solver = 2  # Newton; the humanoid's file asks for PGS, which does not get as far
    return env


def played(task, steps):
    """States, actions, and what gymnasium says of them; it goes on for some steps after a fall."""
    env, random = gym_of(task), np.random.default_rng(0)
    rows, fallen, touching = [], 0, 0
    env.reset(seed=0)
    for k in range(steps):
        before, x = task.state_of(env.data.qpos, env.data.qvel), env.data.qpos[0]
        action = random.uniform(-1, 1, task.world.nu)
        seen, reward, terminated, _, info = env.step(task.control(torch.tensor(action)).numpy())
        reward -= info.get("reward_contact", 0.0)
        if task.name == "ant_v5":  # its own speed is that at the last stage of the integrator
            reward += (env.data.qpos[0] - x) / task.world.dt - info["reward_forward"]
        rows.append((before, action, task.state_of(env.data.qpos, env.data.qvel), seen, reward, terminated))
        touching += env.data.ncon > 0
        fallen += terminated
        if fallen == 5:
            env.reset(seed=k)
            fallen = 0
    assert touching > steps / 4
    return [torch.tensor(np.array(column)) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.study) for n in TASKS])
def test_steps_as_gymnasium_does(tasks, name):
    task = tasks[name]
    x, action, after, seen, reward, terminated = played(task, 100)
    batch = costate.envs.Batch(task, len(x))
    batch.reset()
    batch.states[-1] = x
    outcome = batch.step(action)
    size = (after - x).abs().amax(1, keepdim=True)
    assert float(((batch.states[-1] - after).abs() / size).max()) < AGREES
    assert float((outcome.observation - seen).abs().max()) < AGREES * float(size.max())
    if name != "humanoid_v5":
        assert float((outcome.reward - reward).abs().max()) < AGREES * float(reward.abs().max())
    assert torch.equal(outcome.terminated, terminated)
    assert bool(terminated.any()) == (name != "half_cheetah_v5")


@pytest.mark.study
def test_humanoid_is_rewarded_for_the_speed_of_its_centre_of_mass(tasks):
    """Gymnasium takes the centre of mass at the last stage of the integrator: here it is asked for at both ends of the step."""
    task = tasks["humanoid_v5"]
    env = gym_of(task)
    env.reset(seed=1)
    for _ in range(20):
        x, middle = task.state_of(env.data.qpos, env.data.qvel), env.data.subtree_com[0, 0]
        action = np.random.default_rng(0).uniform(-1, 1, task.world.nu)
        info = env.step(task.control(torch.tensor(action)).numpy())[-1]
        env.set_state(env.data.qpos, env.data.qvel)  # which computes where everything is
        speed = 1.25 * (env.data.subtree_com[0, 0] - middle) / env.dt
        told = task.telling(
            state=x,
            action=torch.tensor(action),
            after=task.state_of(env.data.qpos, env.data.qvel),
            time=torch.zeros(1, dtype=torch.float64),
        )
        assert float(told.reward) == pytest.approx(speed + info["reward_survive"] + info["reward_ctrl"], abs=1e-9)


@pytest.mark.parametrize("name", TASKS)
def test_starts_as_gymnasium_does(tasks, name):
    """Range and spread of 2,000 starts are those of 200 of gymnasium's."""
    task = tasks[name]
    env = gym_of(task)
    theirs = []
    for seed in range(200):
        env.reset(seed=seed)
        theirs.append(task.state_of(env.data.qpos, env.data.qvel))
    theirs, ours = torch.stack(theirs), task.start(2000, torch.Generator().manual_seed(0)).double()
    unit = task.noise
    assert float((ours.mean(0) - theirs.mean(0)).abs().max()) < 0.3 * unit  # the error of a mean of 200 is 0.07 at most
    assert float((ours.std(0) / theirs.std(0)).log().abs().max()) < 0.3
    q = slice(0, task.world.nq)
    assert float((ours[:, q].amax(0) - theirs[:, q].amax(0)).abs().max()) < 0.15 * unit


def test_gradients_of_what_a_step_tells(tasks):
    task = tasks["ant_v5"]
    x, after = task.start(2, torch.Generator().manual_seed(0)).double()
    action, time = torch.linspace(-0.8, 0.9, 8, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)

    def told(x, action, after):
        out = task.telling(state=x, action=action, after=after, time=time)
        return torch.cat([out.observation, out.reward, out.margin], -1)

    check_gradients(told, (x, action, after), names=("state", "action", "after"), float32=False)


def test_training_may_take_another_integrator(tasks, monkeypatch):
    """The step of a window is then that of a world with this integrator, and not the task's own."""
    task = HopperV5()
    monkeypatch.setattr(HopperV5, "practice", {"integrator": "euler"})
    other = load_world(gym_file("hopper"), substeps=4, integrator="euler", check=False)
    b = ProgramBuilder("step")
    x, action = b.inputs(x=12, action=3)
    b.output("after", b.call(task.motion, x, action)[0])
    state = task.start(5, torch.Generator().manual_seed(0)).double()
    action = torch.linspace(-1, 1, 15, dtype=torch.float64).reshape(5, 3)
    found = b.kernel()(x=state, action=action).after
    assert float((found - other.step(state, action)).abs().max()) < 1e-12
    assert float((found - tasks["hopper_v5"].world.step(state, action)).abs().max()) > 1e-6


@pytest.mark.parametrize(
    ("name", "tilts", "safe"), [("hopper_v5", (0.05, 0.1, 0.19), 0.2), ("walker2d_v5", (0.7, 0.8, 0.99), 0.4)]
)
def test_training_warns_of_a_fall(tasks, name, tilts, safe):
    """More tilt costs more in training, with a slope that leads back; the task's own reward has none."""
    task = tasks[name]
    tilt, action, home = SX.sym("tilt"), SX.zeros(task.world.nu), SX(task.home.double().tolist())
    state = SX(home)
    state[2] = tilt
    told, taught = (say(home, action, state, SX(0))[1] for say in (task.told, task.taught))
    f = ca.Function("f", [tilt], [told - taught, ca.jacobian(taught, tilt), ca.jacobian(told, tilt)])
    costs, slopes, own = zip(*(map(float, f(t)) for t in (0.0, *tilts)), strict=True)
    most = 0.2 if name == "hopper_v5" else 1.0  # tilt at which an episode ends
    expected = [task.care * max(1 - (most - t) / safe, 0) ** 2 for t in (0.0, *tilts)]
    np.testing.assert_allclose(costs, expected, atol=1e-12)
    assert costs[0] == 0 < costs[1] < costs[2] < costs[3] < task.care
    assert max(slopes[1:]) < 0 and not any(own)


def test_many_environments_begin_anew_and_keep_their_last_observation():
    envs = gymnasium.make_vec(
        "costate/Hopper-v5", num_envs=1024, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP
    )
    envs.reset(seed=0)
    random, ended = np.random.default_rng(0), 0
    for _ in range(40):
        action = random.uniform(-1, 1, envs.action_space.shape).astype(np.float32)
        seen, _, terminated, truncated, infos = envs.step(action)
        assert not truncated.any()
        if terminated.any():
            assert (infos["_final_obs"] == terminated).all()
            last = np.stack(infos["final_obs"][terminated])
            assert ((last[:, 0] <= 0.7) | (np.abs(last[:, 1]) >= 0.2)).all()  # height and angle of one that has fallen
            assert (np.abs(seen[terminated][:, 0] - 1.25) <= 0.0051).all()  # and of one that begins
        ended += int(terminated.sum())
    assert ended > 1024


def test_a_policy_in_gymnasium(tmp_path, capsys):
    """From the same starts, a policy earns the same in both engines until it falls, but for MuJoCo's tolerance."""
    run = Run.create(tmp_path / "run", HopperV5)
    main(["transfer", str(run.path), "--episodes", "3", "--seed", "5"])
    found = json.loads((run.path / "transfer.json").read_text())
    ours, theirs = found["costate"], found["gymnasium"]
    np.testing.assert_allclose(ours["returns"], theirs["returns"], rtol=1e-5)
    assert ours["length"] == theirs["length"] < 1000
    assert theirs["mean"] == pytest.approx(np.mean(theirs["returns"]))
    assert theirs["std"] == pytest.approx(np.std(theirs["returns"]))
    assert "gymnasium's Hopper-v5" in capsys.readouterr().out
