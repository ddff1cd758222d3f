"""Motors and delays against closed forms; the lag against MuJoCo's exact filter."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.model import Inertia, Joint, Link, Model
from costate.robot import Robot

D = torch.float64
INERTIA = 0.02


def wheel(actuator, dt: float = 0.01) -> cs.World:
    """A flywheel: no gravity acts on it."""
    link = Link("disk", Inertia(1.0, np.zeros(3), np.eye(3) * INERTIA))
    robot = Robot(Model("wheel", (Link("base"), link), (Joint("axle", "continuous", "base", "disk"),)))
    return cs.World({"wheel": robot}, actuators=actuator, contact=None, dt=dt)


def test_a_motor_turns_its_rotor_too():
    """a = gear u / (I + gear^2 rotor), and the limit holds at the joint."""
    world = wheel(cs.Motor(gear=5.0, armature=4e-4, limit=2.0))
    for u, torque in ((0.1, 0.5), (3.0, 2.0)):
        after = world.step(world.initial_state(), torch.tensor([u], dtype=D))
        assert float(after[1]) == pytest.approx(0.01 * torque / (INERTIA + 25 * 4e-4), rel=1e-12)


def test_a_dc_motor_follows_its_curve():
    """Speed under constant voltage: v = v0 (1 - (1 + dt / T)^-n), T = I v0 / stall, v0 at the joint; implicit Euler."""
    stall, free, gear, dt = 0.1, 200.0, 10.0, 0.01
    world = wheel(cs.DCMotor(stall, free, gear))
    speeds = world.rollout(world.initial_state(), torch.full((50, 1), 2.0, dtype=D))[:, 1]  # clamped to 1
    time = INERTIA * (free / gear) / (stall * gear)
    expected = free / gear * (1 - (1 + dt / time) ** -torch.arange(51, dtype=D))
    assert (speeds - expected).abs().max() < 1e-10
    check_gradients(lambda x, u: world.step(x, u), (torch.tensor([0.2, 3.0], dtype=D), torch.tensor([0.4], dtype=D)))
    single = world.step(world.initial_state((2, 3), torch.float32), torch.full((2, 3, 1), 0.5).float())
    assert single.shape == (2, 3, 2) and single.dtype == torch.float32


def test_a_servo_saturates():
    world = wheel(cs.PositionServo(stiffness=100.0, damping=1.0, limit=0.3))
    after = world.step(world.initial_state(), torch.tensor([1.0], dtype=D))
    assert float(after[1]) == pytest.approx(0.01 * 0.3 / INERTIA, rel=1e-12)


def test_lag_is_mujocos_exact_filter():
    mujoco = pytest.importorskip("mujoco")
    xml = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
      <actuator><general joint="j" dyntype="filterexact" dynprm="0.05"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    u = np.random.default_rng(0).normal(size=30)
    forces = []
    for x in u:
        data.ctrl[0] = x
        mujoco.mj_step(model, data)
        forces.append(data.actuator_force[0])
    ours = cs.Lag(0.05).apply(torch.tensor(u)[:, None], 0.01)[:, 0]
    assert np.abs(ours.numpy() - np.array(forces)).max() < 1e-12


def test_delays_have_gradients():
    u = torch.randn(6, 2, 1, dtype=D, generator=torch.Generator().manual_seed(0))
    time = torch.tensor(0.04, dtype=D)
    check_gradients(lambda u, t: cs.Lag(t).apply(u, 0.01, 0.3), (u, time), names=("controls", "time_constant"))
    late = cs.Latency(2).apply(u, 0.5)
    assert torch.equal(late[2:], u[:4]) and bool((late[:2] == 0.5).all())
    assert cs.Latency(9).apply(u).abs().max() == 0
    one = cs.Lag(0.04).apply(torch.ones(3, 1, dtype=D), 0.01)[-1]
    assert float(one) == pytest.approx(1 - math.exp(-0.02 / 0.04))


def test_errors():
    with pytest.raises(ValueError, match="positive stall torque"):
        cs.DCMotor(0.0, 1.0)
    with pytest.raises(ValueError, match="must be positive"):
        cs.Lag(0.0).apply(torch.ones(2, 1), 0.01)
    with pytest.raises(ValueError, match="not be negative"):
        cs.Latency(-1).apply(torch.ones(2, 1))
