"""Inverse kinematics: thousands of reachable poses, limits, unreachable poses, gradients, float32."""

from __future__ import annotations

import pytest
import torch
from tests.gradients import Tolerances, check_gradients

import costate as cs

POSES = 4096
ARMS = {"ur5": "tool0", "iiwa7": "iiwa_link_ee", "panda": "panda_hand"}


@pytest.fixture(scope="module", params=ARMS)
def arm(request: pytest.FixtureRequest) -> tuple[cs.Robot, str]:
    return cs.load_robot(request.param), ARMS[request.param]


def reachable(robot: cs.Robot, tip: str, count: int, seed: int = 0) -> tuple[torch.Tensor, cs.Pose]:
    """Configurations uniform within limits, and their poses."""
    q = robot.random_configuration(count, generator=torch.Generator().manual_seed(seed))
    return q, robot.forward_kinematics(q, tip)


def errors(robot: cs.Robot, tip: str, q: torch.Tensor, pose: cs.Pose) -> tuple[torch.Tensor, torch.Tensor]:
    """Distance [m] and angle [rad] from the poses wanted."""
    there = robot.forward_kinematics(q.double(), tip)
    turn = there.rotation @ pose.rotation.double().mT
    chord = (turn - torch.eye(3, dtype=torch.float64)).flatten(-2).norm(dim=-1)  # 2 sqrt(2) sin(angle / 2)
    return (there.position - pose.position.double()).norm(dim=-1), 2 * (chord / 8**0.5).clamp(max=1).asin()


def within_limits(robot: cs.Robot, q: torch.Tensor) -> bool:
    return bool(((q >= robot.lower.to(q.dtype)) & (q <= robot.upper.to(q.dtype))).all())


def test_every_reachable_pose_is_reached(arm: tuple[cs.Robot, str]) -> None:
    robot, tip = arm
    _, pose = reachable(robot, tip, POSES)
    q = robot.inverse_kinematics(pose, tip)
    distance, angle = errors(robot, tip, q, pose)
    missed = int(((distance > 1e-8) | (angle > 1e-8)).sum())
    assert missed == 0, f"{missed} of {POSES} poses missed, by up to {distance.max():.1e} m"
    assert within_limits(robot, q)


def test_float32(arm: tuple[cs.Robot, str]) -> None:
    """A few roundings of lengths near one metre."""
    robot, tip = arm
    _, wide = reachable(robot, tip, 512)
    pose = cs.Pose(wide.position.float(), wide.rotation.float())
    q = robot.inverse_kinematics(pose, tip)
    assert q.dtype == torch.float32
    distance, angle = errors(robot, tip, q, wide)
    assert float(distance.max()) < 1e-4 and float(angle.max()) < 1e-4
    assert float(distance.median()) < 1e-6
    assert within_limits(robot, q)


def test_a_start_nearby_is_kept(arm: tuple[cs.Robot, str]) -> None:
    """From a start that solves the problem nothing moves; from one nearby the solution is nearby."""
    robot, tip = arm
    q, pose = reachable(robot, tip, 64)
    torch.testing.assert_close(robot.inverse_kinematics(pose, tip, q), q, rtol=0, atol=1e-9)
    J = robot.jacobian(q, tip)
    regular = torch.linalg.svdvals(J)[:, 5] > 0.05
    margin = 0.02 * (robot.upper - robot.lower)
    inside = ((q > robot.lower + margin) & (q < robot.upper - margin)).all(-1)
    near = robot.inverse_kinematics(pose, tip, q + 1e-3)
    assert float((near - q)[regular & inside].abs().max()) < 0.05
    assert int((regular & inside).sum()) > 10


def test_every_reachable_position_is_reached(arm: tuple[cs.Robot, str]) -> None:
    """Three numbers are a position; the orientation is free."""
    robot, tip = arm
    _, pose = reachable(robot, tip, 1024, seed=3)
    q = robot.inverse_kinematics(pose.position, tip)
    distance, angle = errors(robot, tip, q, pose)
    assert float(distance.max()) < 1e-8 and within_limits(robot, q)
    assert float(angle.median()) > 0.1  # nobody asked for it
    one = robot.inverse_kinematics(pose.position[0].tolist(), tip)
    assert one.shape == (robot.nq,)
    shaped = robot.inverse_kinematics(pose.position[:6].reshape(2, 3, 3), tip, robot.neutral())
    torch.testing.assert_close(robot.forward_kinematics(shaped, tip).position.reshape(6, 3), pose.position[:6])


def test_gradient_in_the_position_alone() -> None:
    """dq/dp = J^+ of the upper half of the Jacobian; and against differences."""
    for name in ("ur5", "iiwa7"):
        robot, tip = cs.load_robot(name), ARMS[name]
        q, pose = regular_configurations(robot, tip, 1)
        p = pose.position[0]
        dq = torch.func.jacrev(lambda x: robot.inverse_kinematics(x, tip, q[0]))(p)  # noqa: B023
        torch.testing.assert_close(dq, torch.linalg.pinv(robot.jacobian(q[0], tip)[:3]), rtol=1e-6, atol=1e-6)
        forward = torch.func.jacfwd(lambda x: robot.inverse_kinematics(x, tip, q[0]))(p)  # noqa: B023
        torch.testing.assert_close(forward, dq, rtol=1e-9, atol=1e-9)
    check_gradients(
        lambda x: robot.forward_kinematics(robot.inverse_kinematics(x, tip, q[0], **EXACT), tip).position,
        [p],
        reference=lambda x: x,
        step=2e-3,
        float32=False,
        tolerances=TOLERANCES,
        directions=1,
    )


def test_batches_broadcast() -> None:
    robot = cs.load_robot("ur5")
    _, pose = reachable(robot, "tool0", 6)
    shaped = cs.Pose(pose.position.reshape(2, 3, 3), pose.rotation.reshape(2, 3, 3, 3))
    q = robot.inverse_kinematics(shaped, "tool0")
    assert q.shape == (2, 3, 6)
    one = robot.inverse_kinematics(cs.Pose(pose.position[0], pose.rotation[0]), "tool0")
    assert one.shape == (6,)
    starts = robot.random_configuration(5)
    assert robot.inverse_kinematics(cs.Pose(pose.position[0], pose.rotation[0]), "tool0", starts).shape == (5, 6)


def test_unreachable_pose() -> None:
    """A UR5 reaches less than 1 m: for a point 3 m away it stretches out towards it."""
    robot = cs.load_robot("ur5")
    far = torch.tensor([[3.0, 0.0, 0.1], [0.0, 0.0, 5.0], [-2.0, 2.0, 0.0]], dtype=torch.float64)
    pose = cs.Pose(far, torch.eye(3, dtype=torch.float64).expand(3, 3, 3))
    far.requires_grad_()
    q = robot.inverse_kinematics(pose, "tool0")
    assert bool(q.isfinite().all()) and within_limits(robot, q)
    there = robot.forward_kinematics(q, "tool0").position
    aligned = torch.cosine_similarity(there.detach(), far.detach())
    assert float(aligned.min()) > 0.9
    q.sum().backward()
    assert far.grad is not None and bool(far.grad.isfinite().all())


# The solution is only as smooth as the solver is exact: to 1e-14 m and rad.
EXACT = {"tolerance": 1e-14}
TOLERANCES = Tolerances(finite_difference=1e-6, noise=1e-8, value=1e-9)


def test_gradient_in_the_pose() -> None:
    """Of the configuration in position and in quaternion, at regular configurations."""
    robot = cs.load_robot("ur5")
    q, pose = regular_configurations(robot, "tool0", 3)

    def solve(position: torch.Tensor, quaternion: torch.Tensor) -> torch.Tensor:
        return robot.inverse_kinematics(cs.Pose.of(position, quaternion), "tool0", q, **EXACT)

    inputs = [pose.position, pose.quaternion]
    check_gradients(
        solve, inputs, names=("position", "quaternion"), step=2e-3, float32=False, tolerances=TOLERANCES, directions=1
    )


def test_gradient_is_the_inverse_of_the_jacobian() -> None:
    """dq/dp = J^-1 for six joints; for seven the smallest dq that does it, J^+."""
    for name in ("ur5", "iiwa7"):
        robot, tip = cs.load_robot(name), ARMS[name]
        q, pose = regular_configurations(robot, tip, 1)
        q, rotation = q[0], pose.rotation[0]
        dq = torch.func.jacrev(lambda p: robot.inverse_kinematics(cs.Pose(p, rotation), tip, q))(pose.position[0])  # noqa: B023
        expected = torch.linalg.pinv(robot.jacobian(q, tip))[:, :3]
        torch.testing.assert_close(dq, expected, rtol=1e-6, atol=1e-6)


def regular_configurations(robot: cs.Robot, tip: str, count: int) -> tuple[torch.Tensor, cs.Pose]:
    """Well away from singularities and limits."""
    q, _ = reachable(robot, tip, 2000, seed=5)
    good = torch.linalg.svdvals(robot.jacobian(q, tip))[:, 5] > 0.15
    good &= ((q > robot.lower + 0.2) & (q < robot.upper - 0.2)).all(-1)
    q = q[good][:count]
    assert len(q) == count
    return q, robot.forward_kinematics(q, tip)


def test_gradient_at_a_limit() -> None:
    """A joint at its limit stays there when the others can follow the pose."""
    robot, tip = cs.load_robot("iiwa7"), ARMS["iiwa7"]
    q, _ = regular_configurations(robot, tip, 1)
    q = q[0].clone()
    q[0] = robot.upper[0]
    pose = robot.forward_kinematics(q, tip)
    push = torch.func.jacrev(lambda p: robot.inverse_kinematics(cs.Pose(p, pose.rotation), tip, q))(pose.position)
    assert float(push[0].abs().max()) < 1e-3 * float(push.abs().max())
    moved = robot.jacobian(q, tip) @ push
    torch.testing.assert_close(moved[:3], torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-6)


def test_floating_base_and_loss_on_top() -> None:
    """A foot of a free robot; and a gradient through inverse and forward kinematics, which is the identity."""
    robot = cs.load_robot("laikago")
    foot = robot.link_names[-1]
    _, pose = reachable(robot, foot, 4)
    position = pose.position.clone().requires_grad_()
    q = robot.inverse_kinematics(cs.Pose(position, pose.rotation), foot)
    distance, angle = errors(robot, foot, q.detach(), pose)
    assert float(distance.max()) < 1e-8 and float(angle.max()) < 1e-8
    weights = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (robot.forward_kinematics(q, foot).position * weights).sum().backward()
    assert position.grad is not None
    torch.testing.assert_close(position.grad, weights, rtol=0, atol=1e-6)


def test_errors() -> None:
    robot = cs.load_robot("ur5")
    _, pose = reachable(robot, "tool0", 2)
    with pytest.raises(ValueError, match=r"q0.*\(3,\).*6"):
        robot.inverse_kinematics(pose, "tool0", torch.zeros(3, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"'iteration'.*iterations"):
        robot.inverse_kinematics(pose, "tool0", iteration=3)
