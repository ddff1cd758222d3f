"""Sensors against MuJoCo's on the same model; noise against its own statistics."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

import costate as cs

mujoco = pytest.importorskip("mujoco")
from tests.sim.mujoco_states import Twin, random_rotation  # noqa: E402

D = torch.float64
MJCF = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="ball" pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1" mass="2"/>
      <body name="arm" pos="0.3 0 0.5"><joint name="hinge" axis="0 1 0"/><geom size="0.03" pos="0 0 0.2" mass="0.5"/>
        <site name="chip" pos="0.02 0.03 0.1" quat="0.8 0 0.6 0"/></body></body>
  </worldbody>
  <sensor>
    <accelerometer site="chip"/><gyro site="chip"/><jointpos joint="hinge"/><jointvel joint="hinge"/>
    <framepos objtype="xbody" objname="arm"/>
    <framelinvel objtype="xbody" objname="arm"/><frameangvel objtype="xbody" objname="arm"/>
  </sensor>
</mujoco>
"""
SENSORS = (
    cs.sensors.IMU("robot/arm", (0.02, 0.03, 0.1), (0.0, 0.6, 0.0, 0.8)),
    cs.sensors.JointPosition(("robot/hinge",)),
    cs.sensors.JointVelocity(("robot/hinge",)),
    cs.sensors.LinkPose("robot/arm"),
    cs.sensors.LinkVelocity("robot/arm"),
)


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    path = tmp_path_factory.mktemp("sensors") / "model.xml"
    path.write_text(MJCF)
    return Twin.of(path, "elliptic", self_collision=False)


def test_sensors_are_mujocos(twin):
    """Spinning bodies, half of them in touch with the floor."""
    random = np.random.default_rng(0)
    states, torques, readings, pushes = [], [], [], []
    for k in range(10):
        d = twin.data
        d.qpos[:] = twin.model.qpos0
        d.qpos[2] = 0.099 if k % 2 else 0.5
        d.qpos[3:7] = random_rotation(random)
        d.qpos[7] = random.normal()
        d.qvel[:] = random.normal(size=twin.model.nv)
        before, torque, _, contacts = twin.step()
        states.append(before)
        torques.append(torque)
        readings.append(d.sensordata.copy())
        pushes.append(contacts.get((0, 1), np.zeros(6))[:3])  # of the floor on the ball
    x, theirs = torch.tensor(np.array(states)), np.array(readings)
    u = twin.controls(np.array(torques))
    imu, q, v, pose, velocity = (s.read(twin.world, x, u).numpy() for s in SENSORS)
    ours = np.concatenate([imu, q, v, pose[:, :3], velocity], 1)
    assert (np.abs(ours - theirs).max(0) / np.abs(theirs).max(0)).max() < 1e-8
    force = cs.sensors.ContactForce("robot/ball").read(twin.world, x, u).numpy()
    assert np.abs(force).max() > 10
    assert np.abs(force - np.array(pushes)).max() < 1e-6 * np.abs(force).max()


def test_gradients_shapes_and_types(twin):
    state = torch.tensor(twin.state()) + 0.01
    state[2] = 0.5
    u = torch.tensor([0.3], dtype=D)
    imu = SENSORS[0]
    check_gradients(lambda x, u: imu.read(twin.world, x, u), (state, u), names=("state", "control"))
    batch = imu.read(twin.world, state.float().expand(2, 3, -1), u.float())
    assert batch.shape == (2, 3, 6) and batch.dtype == torch.float32


def test_noise():
    generator = torch.Generator().manual_seed(0)
    truth = torch.zeros(200, 4000, 1, dtype=D)
    white = cs.sensors.Noise(gaussian=0.3).apply(truth, generator)
    assert float(white.std()) == pytest.approx(0.3, rel=0.01)
    bias = cs.sensors.Noise(bias=0.5).apply(truth, generator, dt=0.01)
    assert torch.equal(bias[0], bias[-1]) and float(bias[0].std()) == pytest.approx(0.5, rel=0.05)
    walk = cs.sensors.Noise(walk=0.2).apply(truth, generator, dt=0.01)
    assert float(walk[-1].std()) == pytest.approx(0.2 * 1.99**0.5, rel=0.05)
    values = torch.linspace(-1, 1, 50, dtype=D, requires_grad=True)
    steps = cs.sensors.Noise(resolution=0.25).apply(values, generator)
    assert (steps / 0.25 - (steps / 0.25).round()).abs().max() < 1e-12 and (steps - values).abs().max() <= 0.125 + 1e-12
    steps.sum().backward()
    assert values.grad is not None and torch.equal(values.grad, torch.ones_like(values))


def test_errors(twin):
    state = twin.world.initial_state()
    with pytest.raises(ValueError, match="no link 'leg'"):
        cs.sensors.LinkPose("leg").read(twin.world, state)
    with pytest.raises(ValueError, match="no joint 'knee'"):
        cs.sensors.JointPosition(("knee",)).read(twin.world, state)
    with pytest.raises(ValueError, match="no link 'leg'"):
        cs.sensors.ContactForce("leg").read(twin.world, state)
