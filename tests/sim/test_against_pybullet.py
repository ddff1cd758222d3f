"""Worlds against PyBullet, which reads URDF files that we write.

Without contact both integrate by semi-implicit Euler, so states of robots agree to rounding. Contact in Bullet is projected
Gauss-Seidel on velocities too, with margins and corrections of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import costate as cs
from costate.model import Inertia, Model, Shape, Transform, load_model, write_urdf
from costate.sim import Body, Hard, Static, World

bullet = pytest.importorskip("pybullet")

DT = 0.002
GRAVITY = 9.81
MARGIN = 2e-3
"""Bullet's contacts leave this much between shapes, or let them sink in by it [m]."""
ROUNDING = 1e-10
"""Of a state after 100 steps; measured: 1e-12."""
LIMIT = 1e-2
"""How far Bullet overshoots a joint limit [rad]: the way of one step."""
PLANE = Shape("plane", np.zeros(0))
EDGES = np.array([0.3, 0.2, 0.1])
BOX = Body("box", [Shape("box", EDGES)], 2.0)


@pytest.fixture
def client() -> Iterator[int]:
    c = bullet.connect(bullet.DIRECT)
    bullet.setGravity(0, 0, -GRAVITY, physicsClientId=c)
    bullet.setPhysicsEngineParameter(fixedTimeStep=DT, numSolverIterations=200, physicsClientId=c)
    yield c
    bullet.disconnect(c)


class BulletRobot:
    """A robot in Bullet, without its default motors and damping."""

    def __init__(self, client: int, model: Model, folder: Path, friction: float = 0.8):
        self.client, self.model = client, model
        path = folder / "robot.urdf"
        fixed = not model.floating_base
        write_urdf(model if fixed else replace(model, links=model.links[1:], joints=model.joints[1:], home=None), path)
        self.body = bullet.loadURDF(
            str(path), useFixedBase=fixed, flags=bullet.URDF_USE_INERTIA_FROM_FILE, physicsClientId=client
        )
        number = bullet.getNumJoints(self.body, physicsClientId=client)
        self.index = {bullet.getJointInfo(self.body, k, physicsClientId=client)[1].decode(): k for k in range(number)}
        self.moving = [j for j in model.joints if j.nv == 1]
        self.joints = [self.index[j.name] for j in self.moving]
        for k in range(-1, number):
            bullet.changeDynamics(
                self.body, k, linearDamping=0, angularDamping=0, jointDamping=0, lateralFriction=friction,
                maxJointVelocity=1e4, physicsClientId=client,
            )  # fmt: skip
        bullet.setJointMotorControlArray(
            self.body, self.joints, bullet.VELOCITY_CONTROL, forces=[0.0] * len(self.joints), physicsClientId=client
        )

    def set(self, q: np.ndarray, v: np.ndarray) -> None:
        """Base (position, quaternion xyzw, linear and angular velocity in base axes), then joints, as ours."""
        if self.model.floating_base:
            R = Rotation.from_quat(q[3:7]).as_matrix()
            com = R @ self._centre()
            bullet.resetBasePositionAndOrientation(self.body, q[:3] + com, q[3:7], physicsClientId=self.client)
            spin = R @ v[3:6]
            bullet.resetBaseVelocity(self.body, R @ v[:3] + np.cross(spin, com), spin, physicsClientId=self.client)
            q, v = q[7:], v[6:]
        for k, x, s in zip(self.joints, q, v, strict=True):
            bullet.resetJointState(self.body, k, x, s, physicsClientId=self.client)

    def state(self) -> np.ndarray:
        joints = bullet.getJointStates(self.body, self.joints, physicsClientId=self.client)
        q, v = [s[0] for s in joints], [s[1] for s in joints]
        if not self.model.floating_base:
            return np.array([*q, *v])
        position, quaternion = bullet.getBasePositionAndOrientation(self.body, physicsClientId=self.client)
        linear, spin = (np.array(x) for x in bullet.getBaseVelocity(self.body, physicsClientId=self.client))
        R = Rotation.from_quat(quaternion).as_matrix()
        com = R @ self._centre()
        return np.array(
            [*(position - com), *quaternion, *q, *(R.T @ (linear - np.cross(spin, com))), *(R.T @ spin), *v]
        )

    def _centre(self) -> np.ndarray:
        return self.model.links[1].inertia.com

    def step(self, torque: np.ndarray) -> None:
        bullet.setJointMotorControlArray(
            self.body, self.joints, bullet.TORQUE_CONTROL, forces=list(torque), physicsClientId=self.client
        )
        bullet.stepSimulation(physicsClientId=self.client)

    def ground_force(self) -> float:
        """[N]."""
        return sum(c[9] * abs(c[7][2]) for c in bullet.getContactPoints(self.body, physicsClientId=self.client))


def unlimited(model: Model) -> Model:
    none = {"kind": "continuous", "lower": np.array([-np.inf]), "upper": np.array([np.inf])}
    return replace(model, joints=tuple(replace(j, **none) if j.kind == "revolute" else j for j in model.joints))


def bare(model: Model) -> Model:
    """Without passive forces, which Bullet has in another form; and no link is massless, for Bullet would make it 1 kg."""
    joints = tuple(replace(j, damping=0.0, friction=0.0, stiffness=0.0, armature=0.0) for j in model.joints)
    light = Inertia(0.05, np.zeros(3), 1e-4 * np.eye(3))
    links = tuple(
        x if x.inertia.mass > 0 or (k == 0 and model.floating_base) else replace(x, inertia=light)
        for k, x in enumerate(model.links)
    )
    return replace(model, joints=joints, links=links)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


# --- without contact --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iiwa7", "ur5", "two_link", "laikago"])
def test_random_torques(client: int, name: str, tmp_path: Path) -> None:
    model = unlimited(bare(load_model(name)))
    world = World(robots=[cs.Robot(model)], actuators=cs.Torque(), contact=None, integrator="euler", dt=DT)
    x = world.initial_state()
    x[: world.nq] = x[: world.nq] + (0.1 * random(world.nq) if not model.floating_base else 0)
    x[world.nq :] = random(world.nv) / 4
    u = 0.02 * world.setup.scene.model.max_effort.clip(max=100)[-world.nu :] * random(100, world.nu).numpy()
    robot = BulletRobot(client, model, tmp_path)
    robot.set(x[: world.nq].numpy(), x[world.nq :].numpy())
    theirs = [x.numpy()]
    for torque in u:
        robot.step(torque)
        theirs.append(robot.state())
    ours = world.rollout(x, torch.as_tensor(u)).numpy()
    np.testing.assert_allclose(ours, np.array(theirs), rtol=0, atol=ROUNDING)


def test_free_fall_of_a_spinning_box(client: int) -> None:
    """Bullet turns free bodies by a first-order quaternion step, so only the flight is the same to rounding."""
    world = World(bodies=[BOX], dt=DT, contact=None)
    x = world.initial_state()
    x[7:] = torch.tensor([1.0, -0.5, 2.0, 0.3, -0.2, 0.5], dtype=torch.float64)
    body = bullet_box(client)
    bullet.resetBaseVelocity(body, [1.0, -0.5, 2.0], [0.3, -0.2, 0.5], physicsClientId=client)
    for _ in range(500):
        bullet.stepSimulation(physicsClientId=client)
    position, quaternion = bullet.getBasePositionAndOrientation(body, physicsClientId=client)
    ours = world.rollout(x, torch.zeros(500, 0, dtype=torch.float64))[-1].numpy()
    np.testing.assert_allclose(ours[:3], position, rtol=0, atol=ROUNDING)
    assert abs(np.dot(ours[3:7], quaternion)) == pytest.approx(1.0, abs=1e-6)


# --- joint limits -----------------------------------------------------------------------------------------------------


def test_hinge_limits(client: int, tmp_path: Path) -> None:
    """Constant torques drive both joints into their limits again and again: impacts there go through the whole arm."""
    model = bare(load_model("two_link"))
    low, high = np.array([-0.5]), np.array([0.7])
    model = replace(model, joints=tuple(replace(j, lower=low, upper=high) if j.nv else j for j in model.joints))
    world = World(robots=[cs.Robot(model)], actuators=cs.Torque(), integrator="euler", dt=DT)
    u = np.tile([1.0, -0.5], (2500, 1))
    ours = world.rollout(world.initial_state(), torch.as_tensor(u)).numpy()
    robot = BulletRobot(client, model, tmp_path)
    robot.set(np.zeros(2), np.zeros(2))
    theirs = [ours[0]]
    for torque in u:
        robot.step(torque)
        theirs.append(robot.state())
    for path in (ours, np.array(theirs)):
        assert path[:, 0].max() == pytest.approx(high[0], abs=LIMIT)
        assert path[:, 1].min() == pytest.approx(low[0], abs=LIMIT)
    np.testing.assert_allclose(ours[:, :2], np.array(theirs)[:, :2], rtol=0, atol=0.02)


# --- boxes ------------------------------------------------------------------------------------------------------------


def bullet_box(client: int, turn: Rotation | None = None, friction: float = 0.5) -> int:
    """The box, lying on a plane that is turned, or free."""
    shape = bullet.createCollisionShape(bullet.GEOM_BOX, halfExtents=EDGES / 2, physicsClientId=client)
    pose = Rotation.identity() if turn is None else turn
    place = pose.apply([0.0, 0.0, EDGES[2] / 2]) if turn is not None else np.zeros(3)
    body = bullet.createMultiBody(2.0, shape, -1, place, pose.as_quat(), physicsClientId=client)
    bodies = [body]
    if turn is not None:
        plane = bullet.createCollisionShape(
            bullet.GEOM_PLANE, planeNormal=list(turn.apply([0.0, 0.0, 1.0])), physicsClientId=client
        )
        bodies.append(bullet.createMultiBody(0.0, plane, physicsClientId=client))
    for b in bodies:  # Bullet multiplies the two coefficients
        bullet.changeDynamics(
            b, -1, linearDamping=0, angularDamping=0, lateralFriction=np.sqrt(friction), physicsClientId=client
        )
    return body


def slide(client: int, degrees: float, friction: float, steps: int) -> tuple[np.ndarray, np.ndarray, World]:
    """Paths (steps + 1, 3) of a box on a slope, ours and theirs."""
    turn = Rotation.from_euler("y", degrees, degrees=True)
    slope = Static("slope", PLANE, Transform(turn.as_matrix(), np.zeros(3)))
    world = World(bodies=[BOX], scenery=[slope], contact=Hard(friction=friction), dt=DT)
    x = world.initial_state()
    x[:3] = torch.as_tensor(turn.apply([0.0, 0.0, EDGES[2] / 2]))
    x[3:7] = torch.as_tensor(turn.as_quat())
    ours = world.rollout(x, torch.zeros(steps, 0, dtype=torch.float64))[:, :3].numpy()
    body = bullet_box(client, turn, friction)
    theirs = [ours[0]]
    for _ in range(steps):
        bullet.stepSimulation(physicsClientId=client)
        theirs.append(np.array(bullet.getBasePositionAndOrientation(body, physicsClientId=client)[0]))
    return ours, np.array(theirs), world


@pytest.mark.parametrize("degrees", [0.0, 25.0])
def test_a_box_rests_for_ten_seconds(client: int, degrees: float) -> None:
    """tan 25 deg = 0.466 < 0.5."""
    ours, theirs, _ = slide(client, degrees, 0.5, 5000)
    assert np.abs(ours - ours[0]).max() < 1e-6
    np.testing.assert_allclose(ours[-1], theirs[-1], rtol=0, atol=MARGIN)


def test_a_box_slides_down_a_steeper_slope(client: int) -> None:
    ours, theirs, world = slide(client, 35.0, 0.5, 500)
    slope = np.radians(35.0)
    expected = GRAVITY * (np.sin(slope) - 0.5 * np.cos(slope)) * world.dt**2 * 500 * 501 / 2
    assert np.linalg.norm(ours[-1] - ours[0]) == pytest.approx(expected, rel=1e-4)
    assert np.linalg.norm(theirs[-1] - theirs[0]) == pytest.approx(expected, rel=1e-2)


# --- walking robots ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "touching", "gains"), [("laikago", "toe", (300.0, 6.0)), ("ant", "foot", (1.5, 0.05))]
)
def test_dropped_and_settled(client: int, name: str, touching: str, gains: tuple[float, float], tmp_path: Path) -> None:
    """From 2 cm above the ground, under the same proportional-derivative torques; after 3 s it stands on its weight."""
    model = bare(load_model(name))
    links = tuple(x if touching in x.name else replace(x, collisions=()) for x in model.links)
    model = replace(model, links=links)
    contact = Hard(friction=0.8, joint_limits=False)
    world = World([cs.Robot(model)], scenery=[Static("ground", PLANE)], actuators=cs.Torque(), contact=contact, dt=DT)
    x = world.initial_state()
    x[2] += 0.02
    home = x[7 : world.nq].clone()

    def hold(state: torch.Tensor, _: int) -> torch.Tensor:
        return gains[0] * (home - state[7 : world.nq]) - gains[1] * state[world.nq + 6 :]

    with torch.no_grad():
        ours = world.rollout(x, hold, steps=1500)
    robot = BulletRobot(client, unlimited(model), tmp_path)
    robot.set(x[: world.nq].numpy(), x[world.nq :].numpy())
    ground = bullet.createCollisionShape(bullet.GEOM_PLANE, physicsClientId=client)
    bullet.changeDynamics(bullet.createMultiBody(0.0, ground, physicsClientId=client), -1, lateralFriction=1.0)
    for _ in range(1500):
        robot.step(hold(torch.as_tensor(robot.state()), 0).numpy())
    weight = model.total_mass * GRAVITY
    assert float(world.contacts(ours[-1], hold(ours[-1], 0)).forces.sum()) == pytest.approx(weight, rel=1e-3)
    assert robot.ground_force() == pytest.approx(weight, rel=1e-2)
    assert float(ours[-1, 2]) == pytest.approx(robot.state()[2], abs=MARGIN)
