"""Tendons over joints and the actuators of files: against MuJoCo (Newton), and against closed forms."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.model import Inertia, Joint, Link, Mimic, Model
from costate.robot import Robot

D = torch.float64
AGREES = 1e-9
"""Of changes of a state in a step, relative to the largest: smooth forces, limits, friction and equalities alike."""

MJCF = """
<mujoco>
  <option timestep="0.004"/>
  <default><geom type="capsule" size=".02" contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 1"><joint name="a" axis="0 1 0" springref="20"/><geom fromto="0 0 0 0.2 0 0.1"/>
      <body pos="0.2 0 0.1"><joint name="b" axis="0 1 0" damping="0.02"/><geom fromto="0 0 0 0.3 0 0"/>
        <body pos="0.3 0 0"><joint name="c" axis="1 1 0"/><geom fromto="0 0 0 0.1 0.1 0"/></body></body></body>
    <body pos="0 0.5 1"><joint name="d" type="slide" axis="1 0 0" ref="0.1"/><geom fromto="0 0 0 0.1 0 0"/></body>
  </worldbody>
  <tendon>
    <fixed name="slack" stiffness="30" damping="0.7" springlength="-0.1 0.2"><joint joint="a" coef="1"/>
      <joint joint="b" coef="-0.5"/></fixed>
    <fixed name="belt" stiffness="5" range="-0.3 0.25" margin="0.05" solreflimit="0.03 0.8" frictionloss="0.04">
      <joint joint="b" coef="1"/><joint joint="c" coef="2"/></fixed>
    <fixed name="rope"><joint joint="c" coef="0.3"/><joint joint="d" coef="1.5"/></fixed>
  </tendon>
  <equality><tendon tendon1="rope" tendon2="slack" polycoef="0.1 0.5 -0.2 0 0" solref="0.05 1"/></equality>
  <actuator>
    <motor tendon="slack" gear="-0.3"/>
    <position tendon="belt" kp="2" kv="0.1" gear="2" forcerange="-0.5 0.4" ctrlrange="-1 1"/>
    <velocity joint="d" kv="3"/>
    <motor joint="d" gear="0.5"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tendons") / "model.xml"
    path.write_text(MJCF)
    return path


@pytest.fixture(scope="module")
def newton(file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out
        robot = cs.load_robot(file)
    return cs.World({"robot": robot}, contact=cs.Newton(), actuators="file", check=False)


def test_newton_is_mujoco(newton, file):
    """Springs with slack, dampers, friction, limits on both sides, an equality of two tendons; motors, servos, clamped or not."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_path(str(file))
    m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations, m.opt.ls_tolerance = 0.0, 100, 100, 1e-10
    d = mujoco.MjData(m)
    random = np.random.default_rng(0)
    before, controls, after, forces, lengths = [], [], [], [], []
    for _ in range(100):
        mujoco.mj_resetData(m, d)
        d.qpos[:] += 0.2 * random.normal(size=m.nq)
        d.qvel[:] = 0.5 * random.normal(size=m.nv)
        d.ctrl[:] = random.normal(size=m.nu)
        before.append(np.concatenate([d.qpos, d.qvel]))
        controls.append(d.ctrl.copy())
        mujoco.mj_step(m, d)
        after.append(np.concatenate([d.qpos, d.qvel]))
        forces.append(d.actuator_force.copy())
        lengths.append(d.ten_length.copy())
    x, u, y, forces, lengths = (np.array(v) for v in (before, controls, after, forces, lengths))
    assert (np.abs(forces[:, 1] - 0.4) < 1e-12).any() and (np.abs(forces[:, 1]) < 0.39).any()  # clamped, and not
    for t, (low, high) in ((0, (-0.1, 0.2)), (1, (-0.3, 0.25))):  # slack and pulled, limited and not
        assert all(part.mean() > 0.1 for part in (lengths[:, t] < low, lengths[:, t] > high))
    ours = newton.step(torch.tensor(x), torch.tensor(u)).numpy()
    assert (np.abs(ours - y) / np.abs(y - x).max(1, keepdims=True)).max() < AGREES
    assert newton.actuated == ["robot/slack", "robot/belt", "robot/d", "robot/d"]


def test_newton_gradients(newton):
    """The spring of one tendon pulls, the other one is at its limit and slips."""
    x = torch.tensor([0.3, -0.2, 0.4, 0.15, 0.5, -0.3, 0.2, 0.1], dtype=D)
    u = torch.tensor([0.3, 0.1, -0.4, 0.2], dtype=D)
    check_gradients(lambda x, u: newton.step(x, u), (x, u), names=("state", "control"), step=1e-5)


# --- closed forms -----------------------------------------------------------------------------------------------------

MASS, INERTIA = 2.0, 0.05


def machine() -> Robot:
    """A weight on a slide, a drum, and a small wheel that turns with the drum, twice as fast."""
    weight = Link("weight", Inertia(MASS, np.zeros(3), np.eye(3) * 1e-3))
    drum, wheel = (Link(n, Inertia(1.0, np.zeros(3), np.eye(3) * i)) for n, i in (("drum", INERTIA), ("wheel", 0.0)))
    joints = (
        Joint("height", "prismatic", "base", "weight"),
        Joint("axle", "continuous", "base", "drum", axis=np.array([1.0, 0.0, 0.0])),
        Joint("small", "continuous", "base", "wheel", axis=np.array([1.0, 0.0, 0.0]), mimic=Mimic("axle", 2.0, 0.1)),
    )
    return Robot(Model("machine", (Link("base"), weight, drum, wheel), joints))


def hoist(contact=None, integrator="semi_implicit", actuators=None, dt=0.001, **tendon) -> cs.World:
    rope = cs.FixedTendon("rope", {"height": 1.0, "small": -0.1}, **tendon)  # -0.2 per turn of the drum
    return cs.World(
        {"machine": machine()}, tendons=[rope], contact=contact, integrator=integrator, actuators=actuators or {}, dt=dt
    )


REDUCED = 1 / (1 / MASS + 0.2**2 / INERTIA)
"""Mass of the rope's length where nothing else acts."""


def test_a_rope_swings():
    """Weight and drum swing against each other at sqrt(k / m); the spring's energy counts."""
    world = hoist(stiffness=50.0, integrator="rk4", dt=0.005)
    x = world.initial_state()
    x[0] = 0.1  # stretched
    states = world.rollout(x, torch.zeros(200, 0, dtype=D))
    length = states[:, 0] - 0.2 * states[:, 1]
    time, rate = torch.arange(201, dtype=D) * 0.005, (50.0 / REDUCED) ** 0.5
    rest = -9.81 * REDUCED / 50.0  # where the weight hangs while the drum turns
    assert (length - (rest + (0.1 - rest) * torch.cos(rate * time))).abs().max() < 1e-6
    energy = world.energy(states)
    assert (energy - energy[0]).abs().max() < 1e-6 * MASS * 9.81


def test_implicit_steps_of_a_stiff_rope():
    """The rate l' of the length after a step solves m (l' - l'0) / dt = -c l' - k (l + dt l')."""
    k, c, dt = 1e6, 1e3, 0.01
    world = cs.World(
        {"machine": machine()},
        tendons=[cs.FixedTendon("rope", {"height": 1.0, "axle": -0.2}, stiffness=k, damping=c, rest=0.0)],
        contact=None, integrator="implicit", actuators={}, dt=dt, gravity=(0.0, 0.0, 0.0),
    )  # fmt: skip
    x = torch.tensor([0.01, 0.02, 0.3, -0.5], dtype=D)
    after = world.step(x)
    length, speed = float(x[0] - 0.2 * x[1]), float(x[2] - 0.2 * x[3])
    expected = (REDUCED * speed - dt * k * length) / (REDUCED + dt * c + dt**2 * k)
    assert float(after[2] - 0.2 * after[3]) == pytest.approx(expected, rel=1e-9)


def test_hard_limit_and_friction():
    """A rope at its limit, or held by friction, makes weight and drum fall together."""
    together = -9.81 * MASS / (MASS + INERTIA / 0.2**2)
    still = torch.zeros(200, 0, dtype=D)
    world = hoist(cs.Hard(), lower=-0.02)  # at home the length is -0.01
    states = world.rollout(world.initial_state(), still)
    length = states[:, 0] - 0.2 * states[:, 1] - 0.01
    assert float(length.min()) > -0.0203 and float(length[-1]) == pytest.approx(-0.02, abs=3e-4)
    assert float(states[-1, 2] - states[-51, 2]) / 0.05 == pytest.approx(together, rel=1e-6)
    held = hoist(cs.Hard(), friction=30.0)  # more than it takes
    assert float(held.rollout(held.initial_state(), still)[-1, 2]) == pytest.approx(together * 0.2, rel=1e-6)


def test_a_servo_on_a_tendon():
    """Its default gains are for the reduced mass: critical, with the time constant asked for; the limit is the rope's."""
    world = hoist(actuators={"rope": cs.PositionServo(time_constant=0.1, gravity_compensation=False)}, dt=1e-4)
    states = world.rollout(world.initial_state(), torch.full((3000, 1), 0.2, dtype=D))
    length = states[:, 0] - 0.2 * states[:, 1] - 0.01
    time = torch.arange(3001, dtype=D) * 1e-4 / 0.1
    rest, start = 0.2 - 9.81 * REDUCED / (REDUCED / 0.1**2), -0.01
    assert (length - (rest + (start - rest) * (1 + time) * torch.exp(-time))).abs().max() < 1e-3
    weak = hoist(actuators={"rope": cs.VelocityServo(limit=0.5)}, dt=1e-3)
    after = weak.step(weak.initial_state(), torch.tensor([100.0], dtype=D))
    assert float(after[3]) == pytest.approx(-0.2 * 0.5 / INERTIA * 1e-3, rel=1e-9)
    batch = weak.step(weak.initial_state((2, 3), torch.float32), torch.ones(2, 3, 1).float())
    assert batch.shape == (2, 3, 4) and batch.dtype == torch.float32


def test_errors():
    robot = machine()
    for joints, match in (({}, "over no joint"), ({"height": 0.0}, "not all zero")):
        with pytest.raises(cs.model.ModelError, match=match):
            cs.FixedTendon("rope", joints)
    with pytest.raises(cs.model.ModelError, match="comes first"):
        cs.FixedTendon("rope", {"height": 1.0}, rest=(0.2, 0.1))
    for tendon, match in (
        (cs.FixedTendon("rope", {"knee": 1.0}), "no joint 'knee'"),
        (cs.FixedTendon("machine/axle", {"axle": 1.0}), "must differ"),
    ):
        with pytest.raises(ValueError, match=match):
            cs.World([robot], tendons=[tendon])
    with pytest.raises(ValueError, match="cannot have an armature"):
        hoist(actuators={"rope": cs.Motor(armature=1.0)})
    with pytest.raises(ValueError, match="'files'"):
        cs.World([robot], actuators="files")  # type: ignore[arg-type]
