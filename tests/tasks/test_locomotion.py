"""Tasks with rewards: their definitions, written once more in NumPy, and as environments of gymnasium."""

from __future__ import annotations

import casadi as ca
import gymnasium
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import costate as cs
import costate.envs
from costate.sim.setup import Symbols
from costate.tasks.cartpole import Cartpole
from costate.tasks.locomotion.ant import Ant
from costate.tasks.locomotion.humanoid import Humanoid
from costate.tasks.locomotion.planar import HalfCheetah, Hopper, Walker
from costate.tasks.locomotion.walking import RANDOMISED, WalkOptions

TASKS = {task.name: task for task in (Ant, Cartpole, HalfCheetah, Hopper, Humanoid, Walker)}
SIZES = {
    "ant": (37, 8),
    "cartpole": (5, 1),
    "half_cheetah": (17, 6),
    "hopper": (11, 3),
    "humanoid": (76, 21),
    "walker": (17, 6),
}
"""Observations and actions, as published; of the walker, as gymnasium has them."""
FRICTION = {"ant": 0.75, "half_cheetah": 1.0, "hopper": 0.9, "humanoid": 0.75, "walker": 0.9}
"""Coefficients of friction, as published; of the walker, that of the hopper."""


@pytest.fixture(scope="module")
def tasks():
    return {name: task() for name, task in TASKS.items()}


def random_states(task, batch=20):
    g = torch.Generator().manual_seed(0)
    x = task.start(batch, g).double()
    x[:, task.world.nq :] += torch.randn(batch, task.world.nv, generator=g, dtype=torch.float64)
    return x, 2 * torch.rand(batch, task.size[1], generator=g, dtype=torch.float64) - 1


@pytest.mark.parametrize("name", TASKS)
def test_sizes_are_the_published_ones(tasks, name):
    assert tasks[name].size[:0:-1] == SIZES[name]


def test_ant_has_the_published_mass_and_its_reward_is_that_of_its_definition(tasks):
    """SHAC's ant has a density of 1,000 kg/m^3, which makes 182 kg."""
    ant = tasks["ant"]
    assert float(sum(link.inertia.mass for link in ant.world.setup.scene.model.links)) == pytest.approx(182, abs=1)
    x, action = random_states(ant)
    told = ant.telling(state=x, action=action, after=x, time=torch.tensor([0.5], dtype=torch.float64))
    for k, s in enumerate(x.numpy()):
        R = Rotation.from_quat(s[3:7]).as_matrix()
        v, w = R @ s[15:18], R @ s[18:21]
        seen = np.concatenate([s[2:7], v, w, s[7:15], 0.1 * s[21:29], [R[2, 2], R[0, 0]], action[k].numpy()])
        np.testing.assert_allclose(told.observation[k], seen, atol=1e-12)
        assert float(told.reward[k]) == pytest.approx(v[0] + 0.1 * R[2, 2] + R[0, 0] + s[2] - 0.27, abs=1e-12)
        assert float(told.margin[k]) == pytest.approx(s[2] - 0.27)


@pytest.mark.parametrize(("name", "nq"), [("hopper", 6), ("walker", 9)])
def test_hopper_and_walker_are_rewarded_as_defined(tasks, name, nq):
    hopper = tasks[name]
    x, action = random_states(hopper)
    x[::2, 1] -= 0.5  # low ones, too
    told = hopper.telling(state=x, action=action, after=x, time=torch.zeros(1, dtype=torch.float64))
    for k, s in enumerate(x.numpy()):
        z = s[1] - 1.25
        d = np.clip(z + 0.30, -1, 0.3)
        height = d if d > 0 else -200 * d**2
        reward = s[nq] + height + 1 - (s[2] / np.deg2rad(30)) ** 2 - 0.1 * float(action[k].square().sum())
        assert float(told.reward[k]) == pytest.approx(reward, abs=1e-9)
        assert (float(told.margin[k]) < 0) == (z < -0.45)


def test_cartpole_is_rewarded_as_defined(tasks):
    cartpole = tasks["cartpole"]
    x, action = random_states(cartpole)
    x[:, 1] += 2 * np.pi  # whole turns do not count
    told = cartpole.telling(state=x, action=action, after=x, time=torch.zeros(1, dtype=torch.float64))
    for k, s in enumerate(x.numpy()):
        angle = (s[1] + np.pi) % (2 * np.pi) - np.pi
        reward = -(angle**2) - 0.1 * s[3] ** 2 - 0.05 * s[0] ** 2 - 0.1 * s[2] ** 2
        assert float(told.reward[k]) == pytest.approx(reward, abs=1e-9)


def test_a_pole_falls_with_the_period_of_its_data(tasks):
    """About hanging, on a free cart: omega^2 = g m l / (I + m l^2 - (m l)^2 / (M + m)), with M = 1, m = 10, l = 0.5, I = 1."""
    world = tasks["cartpole"].world
    omega = (9.81 * 5 / (1 + 2.5 - 25 / 11)) ** 0.5
    start = torch.tensor([0.0, np.pi - 1e-4, 0, 0], dtype=torch.float64)
    angle = world.rollout(start, steps=60)[:, 1] - np.pi
    expected = -1e-4 * torch.cos(omega * torch.arange(61) / 60)
    assert float((angle - expected).abs().max()) < 0.05e-4


@pytest.mark.parametrize("name", ["Hopper", "Cartpole"])
def test_as_environments_of_gymnasium(name):
    envs = gymnasium.make_vec(f"costate/{name}-v0", num_envs=16)
    envs.reset(seed=0)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(60):
        seen, reward, terminated, truncated, _ = envs.step(
            rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32)
        )
        assert np.isfinite(seen).all() and np.isfinite(reward).all()
        ended += int((terminated | truncated).sum())
    assert (ended > 0) == (name == "Hopper")  # which falls when it moves at random


def test_the_last_action_is_seen_until_an_episode_begins_anew(tasks):
    batch = costate.envs.Batch(tasks["ant"], 3)
    assert not bool(batch.reset()[:, -8:].any())
    action = torch.full((3, 8), 0.5)
    assert torch.equal(batch.step(action).observation[:, -8:], action)
    assert not bool(batch.reset(torch.tensor([True, False, False]))[0, -8:].any())


def test_humanoid_is_rewarded_as_defined(tasks):
    humanoid = tasks["humanoid"]
    x, action = random_states(humanoid)
    x[::2, 2] -= 0.55  # low ones, too
    told = humanoid.telling(state=x, action=action, after=x, time=torch.zeros(1, dtype=torch.float64))
    for k, s in enumerate(x.numpy()):
        R, a = Rotation.from_quat(s[3:7]).as_matrix(), action[k].numpy()
        v, w = R @ s[28:31], R @ s[31:34]
        seen = np.concatenate([s[2:7], v, w, s[7:28], 0.1 * s[34:55], [R[2, 2], R[0, 0]], a])
        np.testing.assert_allclose(told.observation[k], seen, atol=1e-12)
        d = np.clip(s[2] - 0.84, -1, 0.1)
        height = 10 * d if d > 0 else -200 * d**2
        assert float(told.reward[k]) == pytest.approx(v[0] + 0.1 * R[2, 2] + R[0, 0] + height - 0.002 * a @ a, abs=1e-9)
        assert float(told.margin[k]) == pytest.approx(s[2] - 0.74)


def test_a_humanoid_is_warned_of_a_fall_in_training(tasks):
    humanoid = tasks["humanoid"]
    x, action = random_states(humanoid)
    x[:, 2] = torch.linspace(0.7, 1.4, len(x))
    x[:, 4] += torch.linspace(0, 1, len(x)).roll(5)  # upright ones, and some that lie
    x[:, 3:7] /= x[:, 3:7].norm(dim=1, keepdim=True)
    state, a = ca.SX.sym("x", x.shape[1]), ca.SX.sym("a", 21)
    told, taught = (say(state, a, state, ca.SX(0))[1:] for say in (humanoid.told, humanoid.taught))
    f = ca.Function("f", [state, a], [told[0] - taught[0], taught[1]])
    costs, margins = (np.array(part).ravel() for part in f(x.numpy().T, action.numpy().T))
    turn = Rotation.from_quat(x[:, 3:7].numpy())
    tilt = 1 - turn.as_matrix()[:, 2, 2]
    speed = turn.apply(x[:, 28:31].numpy())[:, 0]
    z = x[:, 2].numpy()
    expected = 10 * (np.maximum((1.2 - z) / 0.4, 0) ** 2 + tilt) + np.maximum(speed - 1, 0)
    np.testing.assert_allclose(costs, expected, atol=1e-9)
    np.testing.assert_array_equal(margins < 0, (z < 0.84) | (tilt > 0.6))
    assert 0 < (margins < 0).sum() < len(x)


STRENGTHS = [200] * 3 + 2 * [200, 200, 600, 400, 100, 100] + 2 * [100, 100, 200]
"""Strengths of the humanoid's motors, as published, before the factor 0.35 [N m]."""


def test_the_humanoid_has_the_published_motors_and_stands_on_its_feet(tasks):
    world = tasks["humanoid"].world
    assert (world.nq, world.nv) == (28, 27)
    assert [d.limit for d in world.setup.drives] == pytest.approx([0.35 * s for s in STRENGTHS])
    names = [name.removeprefix("humanoid/") for name in world.actuated]
    assert names[:9] == [*(f"abdomen_{k}" for k in "zyx"), *(f"right_hip_{k}" for k in "xzy"), *RIGHT_LEG]
    assert [n.replace("left", "right") for n in names[9:15]] == names[3:9]
    assert [n.replace("left", "right") for n in names[18:]] == names[15:18]
    gaps = world.gaps(world.initial_state())  # four ends of capsules on each foot touch the floor
    assert int((gaps.abs() < 1e-6).sum()) == 8 and float(gaps.min()) > -1e-6


RIGHT_LEG = ("right_knee", "right_ankle_y", "right_ankle_x")
BALL, CAPSULE = (
    '<geom type="sphere" size="{}" pos="{} {} {}"/>',
    '<geom type="capsule" size="{}" fromto="{} {} {} {} {} {}"/>',
)


def test_masses_of_the_humanoid_are_those_that_mujoco_finds(tasks):
    """Torso, foot and forearm, of the geoms of the published model; and the mass of all."""
    mujoco = pytest.importorskip("mujoco")
    parts = {
        "torso": [
            CAPSULE.format(0.07, 0, -0.07, 0, 0, 0.07, 0),
            CAPSULE.format(0.06, -0.01, -0.06, -0.12, -0.01, 0.06, -0.12),
            BALL.format(0.09, 0, 0, 0.19),
        ],
        "right_foot": [
            CAPSULE.format(0.027, -0.07, -0.02, -0.08, 0.14, -0.04, -0.08),
            CAPSULE.format(0.027, -0.07, 0, -0.08, 0.14, 0.02, -0.08),
        ],
        "left_lower_arm": [
            CAPSULE.format(0.031, 0.01, -0.01, 0.01, 0.17, -0.17, 0.17),
            BALL.format(0.04, 0.18, -0.18, 0.18),
        ],
    }
    links = {link.name: link.inertia for link in tasks["humanoid"].robot.model.links}
    for name, geoms in parts.items():
        text = f"<mujoco><worldbody><body><freejoint/>{''.join(geoms)}</body></worldbody></mujoco>"
        model = mujoco.MjModel.from_xml_string(text)  # whose density is 1,000 kg/m^3
        R = Rotation.from_quat(model.body_iquat[1], scalar_first=True).as_matrix()
        assert links[name].mass == pytest.approx(model.body_mass[1])
        np.testing.assert_allclose(links[name].com, model.body_ipos[1], atol=1e-9)
        np.testing.assert_allclose(links[name].matrix, R @ np.diag(model.body_inertia[1]) @ R.T, atol=1e-9)
    assert sum(i.mass for i in links.values()) == pytest.approx(40.84, abs=0.01)


@pytest.mark.parametrize("name", FRICTION)
def test_friction_is_that_of_the_definition_whatever_the_file_says(tasks, name):
    setup = tasks[name].world.setup
    symbols = Symbols(setup)
    assert {round(float(symbols.friction_between(i, j)), 12) for i, j in setup.scene.pairs} == {FRICTION[name]}


def test_a_humanoid_falls_by_itself_and_its_episode_ends(tasks):
    humanoid = tasks["humanoid"]
    x = humanoid.start(8, torch.Generator().manual_seed(0)).double()
    assert float((x[:, 2] - 1.35).abs().max()) <= 0.1 and not bool(humanoid.over(x, 0, None).any())
    angles = 2 * torch.rad2deg(torch.acos(x[:, 6]))
    assert 1 < float(angles.max()) <= 7.5
    for _ in range(90):
        x = humanoid.world.step(x, torch.zeros(21, dtype=torch.float64))
    assert bool(humanoid.over(x, 90, None).all()) and bool(x.isfinite().all())


def test_robots_that_vary_have_their_own_contact_friction_and_masses():
    options = Hopper.variants["randomise"].change(WalkOptions())
    assert {name: getattr(options, name) for name in RANDOMISED} == RANDOMISED
    hopper = Hopper(options)
    drawn = hopper.draw(500, torch.Generator().manual_seed(0)).params
    assert set(drawn) == {
        "stiffness",
        "damping",
        "limit_stiffness",
        "friction:floor",
        *(f"mass:hopper/{k}" for k in ("torso", "thigh", "leg", "foot")),
    }
    assert 0.9 * 3.665 < float(drawn["mass:hopper/torso"].min()) < float(drawn["mass:hopper/torso"].max()) < 1.1 * 3.67
    low, high = (2e4 * f for f in RANDOMISED["stiffness"])
    assert low <= float(drawn["stiffness"].min()) < 1.1 * low and 0.9 * high < float(drawn["stiffness"].max()) <= high
    other = Hopper.variants["randomise"].change(WalkOptions(contact="newton"))
    assert other.stiffness == other.damping == other.limits == (1.0, 1.0) and other.friction == RANDOMISED["friction"]
    assert Hopper(Hopper.variants["long"].change(WalkOptions())).steps == 1200
    with pytest.raises(ValueError, match="compliant contact alone"):
        WalkOptions(contact="hard", stiffness=(0.5, 2.0))


def test_other_worlds_differ_in_what_their_names_say(tasks):
    hopper = tasks["hopper"]
    made = {name: make().setup for name, make in hopper.worlds().items()}
    own = made.pop("compliant contact")
    assert own.contact == hopper.world.setup.contact and own.substeps == hopper.world.setup.substeps == 16
    assert made["substeps a quarter as long"].dt == pytest.approx(own.dt / 4)
    assert made["contact four times as stiff"].contact.stiffness == 4 * own.contact.stiffness
    assert made["a fifth of the smoothing"].contact.smoothing == pytest.approx(own.contact.smoothing / 5)
    assert isinstance(made["Newton contact"].contact, cs.Newton) and isinstance(made["hard contact"].contact, cs.Hard)
    for name, friction in (("friction 30 % lower", 0.63), ("friction 30 % higher", 1.17), ("hard contact", 0.9)):
        setup = made[name]
        symbols = Symbols(setup)
        found = {round(float(symbols.friction_between(i, j)), 12) for i, j in setup.scene.pairs}
        assert found == {friction}


@pytest.mark.parametrize("contact", ["newton", "hard"])
def test_a_hopper_that_learns_on_another_floor_stands_on_it(contact):
    """It drops by 4 cm, and rests on the floor to 2 mm; on compliant contact it bounces, and sinks in by 7 mm."""
    hopper = Hopper(WalkOptions(contact=contact))
    x = hopper.home.double()
    for _ in range(20):
        x = hopper.world.step(x, torch.zeros(3, dtype=torch.float64))
    assert abs(float(hopper.world.gaps(x).min())) < 2e-3 and abs(float(x[7])) < 1e-3
