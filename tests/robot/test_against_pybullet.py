"""Against PyBullet, on the seven robots and with the protocol of differentiable-robot-model's own tests.

Its tolerances, which are for float32, and what is asked here:

    quantity                theirs                    here                      Bullet's own error, measured
    position, quaternion    1e-6                      4e-7                      3e-7: getLinkState goes through float32
    Jacobian                1e-6                      1e-12                     2e-15
    inverse dynamics        1e-5                      1e-11                     2e-14
    mass matrix             1e-5 + 1e-3 relative      1e-10 relative            2e-12
    forward dynamics        1e-3 + 1e-2 relative      1e-10 relative            7e-13: one step of 1/240 s, (v' - v) / dt
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import costate as cs
from costate.model import Inertia, Model, ModelWarning, load_model

bullet = pytest.importorskip("pybullet")
found = find_spec("diff_robot_data")
if found is None or not found.submodule_search_locations:
    pytest.skip("needs the robots of differentiable-robot-model", allow_module_level=True)
DATA = Path(found.submodule_search_locations[0])

POSE, JACOBIAN, TORQUE, MASS, ACCELERATION = 4e-7, 1e-12, 1e-11, 1e-10, 1e-10

# Robot -> file, tips. Their choice: variants with small damping, as Bullet clips the forces of large ones.
ROBOTS = {
    "fetch_arm": ("fetch_description/urdf/fetch_arm_no_gripper_small_damping.urdf", ["virtual_ee_link"]),
    "two_link": ("2link_robot.urdf", ["endEffector"]),
    "iiwa7": ("kuka_iiwa/urdf/iiwa7.urdf", ["iiwa_link_ee"]),
    "panda": ("panda_description/urdf/panda_no_gripper.urdf", ["panda_virtual_ee_link"]),
    "allegro": (
        "allegro/urdf/allegro_hand_description_left_small_damping.urdf",
        ["link_11.0_tip", "link_7.0_tip", "link_3.0_tip", "link_15.0_tip"],
    ),
    "trifinger": (
        "trifinger_edu_description/trifinger_edu.urdf",
        ["finger_tip_link_0", "finger_tip_link_120", "finger_tip_link_240"],
    ),
    "jaco": ("kinova_description/urdf/jaco_clean.urdf", ["j2n6s300_end_effector"]),
}
BATCHES = [(), (1,), (3,), (6,), (7,)]
"""Theirs: chosen to collide with axes of 3 (positions), 6 (spatial vectors) and 7 (joints)."""


class Pair(NamedTuple):
    """The same robot in both engines."""

    robot: cs.Robot
    body: int
    joints: list[int]
    """Bullet's indices of our joints, in our order."""
    links: dict[str, int]
    order: list[int]
    """Our index of each of Bullet's coordinates."""
    tips: list[str]

    def states(self, batch: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q within limits, v at 1 % of the velocity limits, a at ten times that: theirs."""
        random = torch.Generator().manual_seed(len(batch) + sum(batch))
        speed = self.robot.max_velocity.nan_to_num(posinf=1.0) * 0.01

        def uniform() -> torch.Tensor:
            return 2 * torch.rand(*batch, self.robot.nv, dtype=torch.float64, generator=random) - 1

        return self.robot.random_configuration(*batch, generator=random), uniform() * speed, uniform() * speed * 10

    def each(self, *tensors: torch.Tensor) -> Iterator[list[np.ndarray]]:
        """Samples, in Bullet's order of coordinates."""
        for sample in zip(*(x.reshape(-1, x.shape[-1]).numpy() for x in tensors), strict=True):
            yield [x[self.order] for x in sample]

    def ours(self, x: object) -> np.ndarray:
        """Columns in our order."""
        result = np.empty_like(np.asarray(x, float))
        result[..., self.order] = np.asarray(x, float)
        return result

    def place(self, q: np.ndarray, v: np.ndarray) -> None:
        moving = [self.joints[k] for k in self.order]
        for joint, position, velocity in zip(moving, q, v, strict=True):
            bullet.resetJointState(self.body, joint, position, velocity)


@pytest.fixture(scope="module", params=ROBOTS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    file, tips = ROBOTS[request.param]
    client = bullet.connect(bullet.DIRECT)
    bullet.setGravity(0, 0, -9.81)
    body = bullet.loadURDF(str(DATA / file), useFixedBase=True, flags=bullet.URDF_USE_INERTIA_FROM_FILE)
    infos = [bullet.getJointInfo(body, i) for i in range(bullet.getNumJoints(body))]
    for info in infos:
        # Bullet adds viscous damping of its own to every link; its motors brake; its own joint damping is left out of
        # its inverse dynamics and clipped in its steps.
        bullet.changeDynamics(body, info[0], linearDamping=0, angularDamping=0, jointDamping=0)
    moving = {info[1].decode(): info[0] for info in infos if info[2] != bullet.JOINT_FIXED}
    bullet.setJointMotorControlArray(body, list(moving.values()), bullet.VELOCITY_CONTROL, forces=[0.0] * len(moving))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = cs.Robot(as_bullet_reads_it(load_model(DATA / file), DATA / file))
    names = robot.joint_names
    assert sorted(names) == sorted(moving)
    links = {info[12].decode(): info[0] for info in infos}
    yield Pair(robot, body, [moving[n] for n in names], links, [names.index(n) for n in moving], tips)
    bullet.disconnect(client)


def as_bullet_reads_it(model: Model, file: Path) -> Model:
    """A link without <inertial> weighs 1 kg there, with inertias of 1 kg m^2; passive forces are left out of both."""
    heavy = Inertia(1.0, np.zeros(3), np.eye(3))
    without = {x.get("name") for x in ElementTree.parse(file).iter("link") if x.find("inertial") is None}
    links = tuple(replace(link, inertia=heavy) if link.name in without else link for link in model.links)
    joints = tuple(replace(j, damping=0.0, friction=0.0) for j in model.joints)
    return replace(model, links=links, joints=joints)


def largest(found: np.ndarray | torch.Tensor, expected: object) -> float:
    return float(np.abs(np.asarray(found) - np.asarray(expected, float)).max())


def relative(found: np.ndarray, expected: object) -> float:
    return largest(found, expected) / float(np.abs(np.asarray(expected)).max())


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_poses_of_all_links(pair: Pair, batch: tuple[int, ...]) -> None:
    q, v, _ = pair.states(batch)
    poses = pair.robot.forward_kinematics(q)
    positions = {name: pose.position.reshape(-1, 3) for name, pose in poses.items()}
    quaternions = {name: pose.quaternion.reshape(-1, 4) for name, pose in poses.items()}
    for k, sample in enumerate(pair.each(q, v)):
        pair.place(*sample)
        for name, index in pair.links.items():
            state = bullet.getLinkState(pair.body, index, computeForwardKinematics=True)
            assert largest(positions[name][k], state[4]) <= POSE, name
            theirs, ours = np.array(state[5]), quaternions[name][k].numpy()
            assert largest(ours, theirs * np.sign(theirs @ ours)) <= POSE, name


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_jacobian_of_the_tips(pair: Pair, batch: tuple[int, ...]) -> None:
    q, _, _ = pair.states(batch)
    for tip in pair.tips:
        J = pair.robot.jacobian(q, tip)
        assert J.shape == (*batch, 6, pair.robot.nv)
        for k, (sample,) in enumerate(pair.each(q)):
            still = [0.0] * len(sample)
            linear, angular = bullet.calculateJacobian(
                pair.body, pair.links[tip], [0.0] * 3, list(sample), still, still
            )
            expected = pair.ours(np.vstack([linear, angular]))
            assert largest(J.reshape(-1, 6, pair.robot.nv)[k], expected) <= JACOBIAN


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_inverse_dynamics(pair: Pair, batch: tuple[int, ...]) -> None:
    q, v, a = pair.states(batch)
    tau = pair.robot.inverse_dynamics(q, v, a)
    assert tau.shape == (*batch, pair.robot.nv)
    for k, sample in enumerate(pair.each(q, v, a)):
        expected = pair.ours(bullet.calculateInverseDynamics(pair.body, *map(list, sample)))
        assert largest(tau.reshape(-1, pair.robot.nv)[k], expected) <= TORQUE


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_mass_matrix(pair: Pair, batch: tuple[int, ...]) -> None:
    q, _, _ = pair.states(batch)
    n = pair.robot.nv
    M = pair.robot.mass_matrix(q)
    assert M.shape == (*batch, n, n)
    for k, (sample,) in enumerate(pair.each(q)):
        expected = np.array(bullet.calculateMassMatrix(pair.body, list(sample)))
        assert relative(M.reshape(-1, n, n)[k].numpy(), pair.ours(pair.ours(expected).T)) <= MASS


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_forward_dynamics(pair: Pair, batch: tuple[int, ...]) -> None:
    """One step of Bullet. And back by inverse dynamics, which they ask only of robots without damping."""
    q, v, a = pair.states(batch)
    n, dt = pair.robot.nv, 1 / 240
    tau = pair.robot.inverse_dynamics(q, v, a)
    back = pair.robot.forward_dynamics(q, v, tau)
    torch.testing.assert_close(back, a, rtol=1e-9, atol=1e-9)
    bullet.setTimeStep(dt)
    moving = [pair.joints[k] for k in pair.order]
    for k, (q_k, v_k, tau_k) in enumerate(pair.each(q, v, tau)):
        pair.place(q_k, v_k)
        bullet.setJointMotorControlArray(pair.body, moving, bullet.TORQUE_CONTROL, forces=list(tau_k))
        bullet.stepSimulation()
        after = np.array([bullet.getJointState(pair.body, j)[1] for j in moving])
        assert relative(back.reshape(-1, n)[k].numpy(), pair.ours((after - v_k) / dt)) <= ACCELERATION
