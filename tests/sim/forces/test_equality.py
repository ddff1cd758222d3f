"""Equality constraints: against MuJoCo (Newton), and against closed forms (hard)."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.gradients import check_gradients

import costate as cs
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.robot import Robot

D = torch.float64
AGREES = 1e-9
"""Of changes of a state in a step, relative to the largest."""

MJCF = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="crank" pos="0 0 1"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.2 0 0.1" size=".02"/>
      <body name="rod" pos="0.2 0 0.1"><joint name="b" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size=".02"/></body></body>
    <body name="slide" pos="0 0.5 1"><joint name="c" type="slide" axis="1 0 0" ref="0.1"/><geom size=".05"/>
      <body name="turn"><joint name="d" axis="0 0 1" ref="0.2"/><geom type="box" size=".1 .05 .02"/></body></body>
    <body name="one" pos="1 0 1"><freejoint/><geom type="box" size=".1 .05 .02"/></body>
    <body name="two" pos="1.3 0 1.1" euler="20 10 0"><freejoint/><geom type="box" size=".05 .1 .04"/></body>
  </worldbody>
  <equality>
    <connect body1="rod" body2="world" anchor="0.3 0 0" solref="0.03 0.7"/>
    <weld body1="one" body2="two" anchor="0.02 0.01 0" torquescale="0.5" solimp="0.8 0.99 0.01 0.4 3"/>
    <joint joint1="d" joint2="c" polycoef="0.1 2 -0.5 0.3 0"/>
  </equality>
</mujoco>
"""


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    pytest.importorskip("mujoco")
    from tests.sim.mujoco_states import Twin

    path = tmp_path_factory.mktemp("equality") / "model.xml"
    path.write_text(MJCF)
    return Twin.of(path, "pyramidal", self_collision=False)


def test_newton_is_mujoco(twin):
    """Connect, weld and coupled joints of a file, violated at random."""
    from tests.sim.mujoco_states import same_sign

    random = np.random.default_rng(0)
    found = []
    for _ in range(20):
        d = twin.data
        d.qpos[:] = twin.model.qpos0
        d.qpos[:] += 0.05 * random.normal(size=twin.model.nq)
        d.qvel[:] = random.normal(size=twin.model.nv)
        found.append(twin.step())
    x, torques, y = (np.array([f[k] for f in found]) for k in range(3))
    after = same_sign(twin, twin.world.step(torch.tensor(x), twin.controls(torques)).numpy(), y)
    moved = np.abs(y - x).max(1, keepdims=True)
    assert (np.abs(after - y) / moved).max() < AGREES


@pytest.mark.study
def test_newton_gradients(twin):
    state = torch.tensor(twin.state()) + 0.02
    check_gradients(lambda x: twin.world.step(x), (state,), names=("state",))


# --- hard: a four-bar linkage ---------------------------------------------------------------------------------------

CRANK, COUPLER, ROCKER, GROUND = 0.1, 0.4, 0.3, 0.35


def linkage() -> Robot:
    """Crank and coupler on one side, rocker on the other; all turn about y, links along x."""
    y = np.array([0.0, 1.0, 0.0])

    def bar(name: str, length: float) -> Link:
        return Link(name, Inertia(1.0, np.array([length / 2, 0, 0]), np.diag([1e-4, length**2 / 12, length**2 / 12])))

    def at(x: float) -> Transform:
        return Transform(translation=np.array([x, 0.0, 0.0]))

    bars = (Link("base"), bar("crank", CRANK), bar("coupler", COUPLER), bar("rocker", ROCKER))
    joints = (
        Joint("crank_joint", "revolute", "base", "crank", at(0.0), y),
        Joint("coupler_joint", "revolute", "crank", "coupler", at(CRANK), y),
        Joint("rocker_joint", "revolute", "base", "rocker", at(GROUND), y),
    )
    return Robot(Model("bars", bars, joints))


def closed(crank: np.ndarray) -> np.ndarray:
    """Angles (..., 3) of the closed linkage; angles about y turn x towards -z."""
    x, z = CRANK * np.cos(crank), -CRANK * np.sin(crank)
    dx, dz = GROUND - x, -z
    far = np.hypot(dx, dz)
    bend = np.arccos((COUPLER**2 + far**2 - ROCKER**2) / (2 * COUPLER * far))
    coupler = np.arctan2(dz, dx) + bend  # in the plane x, z
    tip = np.stack([x + COUPLER * np.cos(coupler), z + COUPLER * np.sin(coupler)])
    rocker = -np.arctan2(tip[1], tip[0] - GROUND)
    return np.stack([crank, -coupler - crank, rocker], -1)


@pytest.fixture(scope="module")
def four_bar():
    pin = cs.Connect("bars/coupler", "bars/rocker", (COUPLER, 0, 0), (ROCKER, 0, 0))
    return cs.World({"bars": linkage()}, constraints=[pin], dt=0.002, contact=cs.Hard(), gravity=(0, 0, 0))


def wrapped(x: np.ndarray) -> np.ndarray:
    return np.abs((x + np.pi) % (2 * np.pi) - np.pi)


def test_a_four_bar_linkage_stays_closed(four_bar):
    """10 s of turning under a torque: the other joints are where the closed form has them, and energy is what the torque put in."""
    q0 = closed(np.array(0.3))
    state = torch.cat([torch.tensor(q0), torch.zeros(3, dtype=D)])
    torque = torch.zeros(5000, 3, dtype=D)
    torque[:1000, 0] = 0.02
    states = four_bar.rollout(state, torque)
    q = states[:, :3].numpy()
    assert q[:, 0].max() - q[:, 0].min() > 2 * np.pi  # it goes round
    assert wrapped(q - closed(q[:, 0])).max() < 1e-3
    work = (torque[:, 0] * (states[1:, 0] - states[:-1, 0])).sum()
    gained = four_bar.energy(states[-1]) - four_bar.energy(states[0])
    assert abs(float(gained - work)) < 0.05 * float(work)


def test_gradients_of_closed_loops(four_bar):
    q0 = closed(np.array(0.3))
    state = torch.cat([torch.tensor(q0), torch.tensor([0.5, 0.1, -0.3], dtype=D)])
    u = torch.tensor([0.3, 0.1, -0.2], dtype=D)
    check_gradients(lambda x, u: four_bar.step(x, u), (state, u), names=("state", "control"))


def test_gradients_of_soft_loops():
    """A pin and a gear under Newton, both violated."""
    pin = cs.Connect("bars/coupler", "bars/rocker", (COUPLER, 0, 0), (ROCKER, 0, 0))
    gear = cs.Couple("rocker_joint", "crank_joint", (0.1, -2.0, 0.5))
    world = cs.World({"bars": linkage()}, constraints=[pin, gear], dt=0.004, contact=cs.Newton())
    state = torch.cat([torch.tensor(closed(np.array(0.3))) + 0.01, torch.tensor([0.5, 0.1, -0.3], dtype=D)])
    u = torch.tensor([0.3, 0.1, -0.2], dtype=D)
    check_gradients(lambda x, u: world.step(x, u), (state, u), names=("state", "control"), step=1e-4)


def test_batches_and_single_precision(four_bar):
    q0 = torch.tensor(closed(np.array([0.3, 1.0, 2.0])))
    state = torch.cat([q0, torch.zeros(3, 3, dtype=D)], -1).expand(2, 3, 6)
    u = torch.ones(20, 2, 3, 3, dtype=D)
    exact = four_bar.rollout(state, u)
    assert exact.shape == (21, 2, 3, 6)
    single = four_bar.rollout(state.float(), u.float())
    assert single.dtype == torch.float32
    assert (single - exact).abs().max() < 1e-3 * exact.abs().max()


# --- hard: the other kinds ------------------------------------------------------------------------------------------


def box(name: str, at=(0.0, 0.0, 0.0)) -> cs.Body:
    pose = Transform(translation=np.asarray(at, float))
    return cs.Body(name, [cs.shapes.box((0.2, 0.1, 0.04))], mass=2.0, pose=pose)


@pytest.fixture(scope="module")
def rod():
    """A point mass on a Distance."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.01)], mass=1.0, inertia=np.eye(3) * 1e-9)
    held = cs.Distance("world", "ball", length=0.5)
    return cs.World(bodies=[ball], constraints=[held], contact=None, integrator="rk4", dt=0.002)


def test_a_rod_is_a_pendulum(rod):
    """Smooth world, Runge-Kutta: the period of a large swing (arithmetic-geometric mean)."""
    world, angle = rod, 1.2
    state = world.initial_state()
    state[0], state[2] = 0.5 * np.sin(angle), -0.5 * np.cos(angle)
    states = world.rollout(state, torch.zeros(5000, 0, dtype=D))
    a, g = 1.0, np.cos(angle / 2)
    for _ in range(10):
        a, g = (a + g) / 2, np.sqrt(a * g)
    period = 2 * np.pi * np.sqrt(0.5 / 9.81) / a
    x = states[:, 0].numpy()
    down = np.flatnonzero((x[:-1] > 0) & (x[1:] <= 0))
    times = 0.002 * (down + x[down] / (x[down] - x[down + 1]))
    assert abs(np.diff(times).mean() / period - 1) < 1e-5
    assert (states[:, :3].norm(dim=-1) - 0.5).abs().max() < 1e-6


def test_gradients_of_a_rod(rod):
    """A little too long, and swinging out of the plane."""
    q = [0.3, 0.1, -0.41, 0.0, 0.0, 0.0, 1.0]
    state = torch.tensor([*q, 0.4, -0.3, 0.2, 0.0, 0.0, 0.0], dtype=D)
    check_gradients(lambda x: rod.step(x), (state,), names=("state",))


def test_gradients_of_a_weld():
    """A box that hangs crooked on a wall, and turns."""
    pose = Transform(Rotation.from_euler("xyz", [0.3, -0.2, 0.5]).as_matrix(), np.array([0.1, 0.2, 0.3]))
    weld = cs.Weld("world", "one", pose, time_constant=0.02)
    world = cs.World(bodies=[box("one")], constraints=[weld], contact=None, dt=0.005)
    turn = Rotation.from_euler("xyz", [0.35, -0.1, 0.4]).as_quat()
    state = torch.tensor([0.12, 0.19, 0.31, *turn, 0.1, -0.2, 0.3, 0.5, -0.4, 0.2], dtype=D)
    check_gradients(lambda x: world.step(x), (state,), names=("state",))


def test_welded_boxes_fly_as_one():
    """Two spinning boxes keep their relative pose; momentum is kept but for gravity."""
    weld = cs.Weld("one", "two")
    world = cs.World(bodies=[box("one"), box("two", (0.3, 0, 0.1))], constraints=[weld], contact=None, dt=0.002)
    state = world.initial_state()
    spin = np.array([0.5, 2.0, 1.0])
    for name, arm in (("one", (0, 0, 0)), ("two", (0.3, 0, 0.1))):
        _, v = world.coordinates(name)
        state[v] = torch.tensor(np.concatenate([np.cross(spin, arm), spin]))
    states = world.rollout(state, torch.zeros(2000, 0, dtype=D))
    (qa, va), (qb, vb) = (world.coordinates(n) for n in ("one", "two"))
    a, b = states[:, qa].numpy(), states[:, qb].numpy()
    Ra, Rb = Rotation.from_quat(a[:, 3:]), Rotation.from_quat(b[:, 3:])
    assert (Ra.inv() * Rb).magnitude().max() < 2e-4
    linear = 2.0 * (Ra.apply(states[:, va].numpy()[:, :3]) + Rb.apply(states[:, vb].numpy()[:, :3]))
    expected = linear[0] - 4.0 * 9.81 * 0.002 * np.arange(2001)[:, None] * np.array([0, 0, 1])
    assert np.abs(linear - expected).max() < 1e-6


@pytest.fixture(scope="module")
def gripper():
    """Two fingers on slides, the right one geared to the left; a torque on the left one alone."""
    x = np.array([1.0, 0.0, 0.0])
    palm = Link("palm")
    finger = Inertia(0.2, np.zeros(3), np.eye(3) * 1e-4)
    left, right = (Link(n, finger, collisions=(cs.shapes.box((0.02, 0.02, 0.1)),)) for n in ("left", "right"))
    joints = (
        Joint("left_joint", "prismatic", "palm", "left", axis=x),
        Joint("right_joint", "prismatic", "palm", "right", axis=-x),
    )
    robot = Robot(Model("gripper", (palm, left, right), joints))
    couple = cs.Couple("right_joint", "left_joint")
    return cs.World(
        {"gripper": robot}, constraints=[couple], actuators={"left_joint": cs.Torque()}, dt=0.01, gravity=(0, 0, 0)
    )


def test_coupled_fingers_close_together(gripper):
    """One force moves both masses: a = F / (m + m); both fingers travel the same way."""
    states = gripper.rollout(gripper.initial_state(), torch.full((100, 1), 0.08, dtype=D))
    assert (states[:, 0] - states[:, 1]).abs().max() < 1e-6
    assert abs(float(states[-1, 2]) - 0.08 / 0.4) < 1e-6


def test_a_couple_is_a_polynomial():
    robot = linkage()
    couple = cs.Couple("rocker_joint", "crank_joint", (0.1, -2.0, 0.5))
    world = cs.World({"bars": robot}, constraints=[couple], contact=None, dt=0.001)
    state = world.initial_state()
    state[2] = 0.1
    q = world.rollout(state, torch.zeros(1000, 3, dtype=D))
    assert (q[:, 2] - (0.1 - 2 * q[:, 0] + 0.5 * q[:, 0] ** 2)).abs().max() < 1e-3 * q[:, 0].abs().max()
    off = torch.tensor([0.3, -0.2, -0.4, 0.5, 0.2, -0.6], dtype=D)
    u = torch.tensor([0.1, -0.2, 0.3], dtype=D)
    check_gradients(lambda x, u: world.step(x, u), (off, u), names=("state", "control"))


def test_errors():
    bodies = [box("one"), box("two", (1, 0, 0))]
    for constraint, match in (
        (cs.Connect("one", "three"), "no link 'three'"),
        (cs.Weld("one", "one"), "nothing to hold"),
        (cs.Couple("hinge"), "no joint 'hinge'"),
    ):
        with pytest.raises(ValueError, match=match):
            cs.World(bodies=bodies, constraints=[constraint])
    with pytest.raises(cs.model.ModelError, match="length must be positive"):
        cs.Distance("one", "two", length=0.0)
    with pytest.raises(TypeError, match="a constraint is"):
        cs.World(bodies=bodies, constraints=["one"])  # type: ignore[list-item]
