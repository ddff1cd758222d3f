"""Sensors against MuJoCo's on the same model; noise against its own statistics."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from itertools import product

import casadi as ca
import numpy as np
import pytest
import torch
from casadi import SX
from tests.gradients import check_gradients

import costate as cs
from costate.collision import shapes
from costate.collision.mesh.hull import hull_of

mujoco = pytest.importorskip("mujoco")
from tests.sim.mujoco_states import Twin, random_rotation  # noqa: E402

D = torch.float64
MJCF = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="ball" pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1" mass="2"/>
      <site name="skin" size="0.12"/>
      <body name="arm" pos="0.3 0 0.5"><joint name="hinge" axis="0 1 0"/><geom size="0.03" pos="0 0 0.2" mass="0.5"/>
        <site name="chip" pos="0.02 0.03 0.1" quat="0.8 0 0.6 0"/></body></body>
  </worldbody>
  <sensor>
    <accelerometer site="chip"/><gyro site="chip"/><jointpos joint="hinge"/><jointvel joint="hinge"/>
    <framepos objtype="xbody" objname="arm"/>
    <framelinvel objtype="xbody" objname="arm"/><frameangvel objtype="xbody" objname="arm"/>
    <rangefinder site="chip"/><touch site="skin"/>
  </sensor>
</mujoco>
"""
SENSORS = (
    cs.sensors.IMU("robot/arm", (0.02, 0.03, 0.1), (0.0, 0.6, 0.0, 0.8)),
    cs.sensors.JointPosition(("robot/hinge",)),
    cs.sensors.JointVelocity(("robot/hinge",)),
    cs.sensors.LinkPose("robot/arm"),
    cs.sensors.LinkVelocity("robot/arm"),
    cs.sensors.RangeFinder("robot/arm", (0.02, 0.03, 0.1), ((0.96, 0.0, 0.28),)),
    cs.sensors.Touch("robot/ball"),
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
    for k in range(20):
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
    imu, q, v, pose, velocity, away, touch = (s.read(twin.world, x, u).numpy() for s in SENSORS)
    ours = np.concatenate([imu, q, v, pose[:, :3], velocity, away, touch], 1)
    seen = theirs[:, -2] >= 0
    assert 3 < seen.sum() < 17 and not np.isin(away, 10.0)[seen & (theirs[:, -2] < 10)].any()
    theirs[:, -2] = np.where(seen, np.minimum(theirs[:, -2], 10.0), 10.0)
    assert (np.abs(ours - theirs).max(0) / np.abs(theirs).max(0)).max() < 1e-8
    force = cs.sensors.ContactForce("robot/ball").read(twin.world, x, u).numpy()
    assert np.abs(force).max() > 10
    assert np.abs(force - np.array(pushes)).max() < 1e-6 * np.abs(force).max()


def test_gradients_shapes_and_types(twin):
    q = [0.1, -0.2, 0.5, 0.1, -0.1, 0.2, 0.95, 1.2]
    state = torch.tensor([*q, 0.3, -0.4, 0.2, 0.5, -0.3, 0.7, 1.1], dtype=D)
    u = torch.tensor([0.3], dtype=D)
    imu, *_, pose, velocity, away, _ = SENSORS
    check_gradients(lambda x, u: imu.read(twin.world, x, u), (state, u), names=("state", "control"))
    assert 0.5 < float(away.read(twin.world, state)) < 5.0  # down to the floor
    for sensor in (pose, velocity, away):
        check_gradients(lambda x, s=sensor: s.read(twin.world, x), (state,), names=("state",))
    batch = imu.read(twin.world, state.float().expand(2, 3, -1), u.float())
    assert batch.shape == (2, 3, 6) and batch.dtype == torch.float32


def test_gradients_of_contact_force(twin):
    """A ball in the floor, sliding; the arm above it swings."""
    q = [0.0, 0.0, 0.0985, 0.1, -0.2, 0.3, 0.9, 0.4]
    state = torch.tensor([*q, 0.7, -0.2, -0.03, 0.1, 0.3, 0.2, 0.5], dtype=D)
    u, force = torch.tensor([0.3], dtype=D), cs.sensors.ContactForce("robot/ball")
    assert float(force.read(twin.world, state, u)[2]) > 10.0
    near = {"step": 1e-5, "float32": False}
    check_gradients(lambda x, u: force.read(twin.world, x, u), (state, u), names=("state", "control"), **near)
    check_gradients(lambda x: SENSORS[-1].read(twin.world, x, u), (state,), names=("state",), **near)


SIZE = np.array([0.3, 0.2, 0.4])
RAYS = {  # mjtGeom and its sizes
    "plane": (0, np.zeros(3), shapes.Plane()),
    "sphere": (2, np.array([0.3, 0, 0]), shapes.Sphere(0.3)),
    "capsule": (3, np.array([0.3, 0.2, 0]), shapes.Capsule(0.3, 0.4)),
    "ellipsoid": (4, SIZE, shapes.Ellipsoid(SX(ca.DM(SIZE)))),
    "cylinder": (5, np.array([0.3, 0.2, 0]), shapes.Cylinder(0.3, 0.4)),
    "box": (6, SIZE, shapes.Box(SX(ca.DM(2 * SIZE)))),
    "hull": (6, SIZE, hull_of(SIZE * np.array(list(product((-1, 1), repeat=3))))),
}


@pytest.mark.parametrize("kind", RAYS)
def test_rays_are_mujocos(kind):
    """From inside and outside, also along axes; a hull of the corners of a box is that box."""
    number, size, solid = RAYS[kind]
    p, d = SX.sym("p", 3), SX.sym("d", 3)
    ours = ca.Function("ray", [p, d], [solid.ray_distance(p, d)])
    random = np.random.default_rng(0)
    hits = 0
    for k in range(400):
        start = random.normal(size=3) * (0.15 if k % 3 == 0 else 1.0)
        along = random.normal(size=3) - (start if k % 2 else 0)
        along = np.eye(3)[k % 3] if k % 17 == 0 else along / np.linalg.norm(along)
        theirs = mujoco.mju_rayGeom(np.zeros(3), np.eye(3).ravel(), size, start, along, number, None)
        assert float(ours(start, along)) == pytest.approx(theirs if theirs >= 0 else shapes.FAR, abs=1e-12)
        hits += theirs >= 0
    assert 80 < hits < 320


def test_rays_from_the_world():
    """Several rays past scenery that is ignored, through a learnt size; compositions are refused by name."""
    s = cs.shapes
    cup = s.difference(s.cylinder(0.05, 0.1), s.cylinder(0.04, 0.1, position=(0, 0, 0.02)))
    ball = cs.Body("ball", [s.sphere(0.1)], mass=1.0)
    world = cs.World(
        bodies=[ball], scenery=[cs.Static("wall", s.box((0.1, 1, 1), position=(1, 0, 0))), cs.Static("cup", cup)]
    )
    state = world.initial_state()
    state[0] = 0.5
    rays = ((2.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 1.0))
    sensor = cs.sensors.RangeFinder("world", (0.0, 0.0, 0.0), rays, limit=3.0, ignore=("cup",))
    assert sensor.read(world, state).tolist() == pytest.approx([0.4, 3.0, 3.0])
    behind = cs.sensors.RangeFinder("world", directions=rays, ignore=("cup", "ball"), limit=3.0)
    assert behind.read(world, state).tolist() == pytest.approx([0.95, 3.0, 3.0])
    with pytest.raises(ValueError, match=r"do not see a Difference.*leave 'cup' out"):
        cs.sensors.RangeFinder("world").read(world, state)
    with pytest.raises(ValueError, match="nothing is called 'door'"):
        cs.sensors.RangeFinder("world", ignore=("door",)).read(world, state)
    with pytest.raises(ValueError, match="limit must be positive"):
        cs.sensors.RangeFinder("world", limit=0.0)


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
    with pytest.raises(ValueError, match="has no shape 'toe'"):
        cs.sensors.Touch("robot/ball", ("toe",)).read(twin.world, state)
