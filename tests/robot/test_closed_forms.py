"""Small robots whose answers are known on paper: each a thing that robot libraries have been seen to get wrong.

Prismatic joints taken for revolute ones; axes rounded to x, y or z; rotated inertial frames ignored; wrong gradients of
quaternions; poses that depend on earlier calls; continuous joints without limits refused; links expected in order; single
precision only; gravity along z only; no floating base; missing inertias replaced by 1 kg; damping in one direction only.
(Torques changed in place: see test_interface.py.)
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
import pytest
import torch
from tests.robot.reference import random_states

import costate as cs
from costate.model import ModelWarning


def assert_exact(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


def tensor(*x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def load(folder: Path, body: str, **options) -> cs.Robot:
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="small">{body}</robot>')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return cs.load_robot(path, **options)


def link(name: str, mass: float = 0.0, com: str = "0 0 0", rpy: str = "0 0 0", inertia: tuple = (0, 0, 0)) -> str:
    if not mass:
        return f'<link name="{name}"/>'
    ixx, iyy, izz = inertia
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>'
        f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(
    name: str, kind: str, parent: str, child: str, axis: str = "0 0 1", more: str = "", xyz: str = "0 0 0"
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{more}</joint>'
    )


def test_prismatic_joint(tmp_path: Path) -> None:
    """A slide of 2 kg, inclined by 30 degrees: a = tau / m - g sin 30."""
    axis = f"{math.cos(math.pi / 6)!r} 0 {math.sin(math.pi / 6)!r}"
    robot = load(tmp_path, link("base") + link("cart", 2.0) + joint("slide", "prismatic", "base", "cart", axis))
    q, v, tau = tensor(0.7), tensor(1.3), tensor(3.0)
    assert_exact(robot.forward_dynamics(q, v, tau), tensor(1.5 - 9.81 / 2))
    assert_exact(robot.mass_matrix(q), tensor(2.0)[None])
    position = robot.forward_kinematics(q, "cart").position
    assert_exact(position, 0.7 * tensor(math.cos(math.pi / 6), 0, 0.5))
    J = robot.jacobian(q, "cart")
    assert_exact(J[:, 0], tensor(math.cos(math.pi / 6), 0, 0.5, 0, 0, 0))


def test_oblique_axis(tmp_path: Path) -> None:
    """A third of a turn about (1, 1, 1) takes x to y to z; the inertia about that axis is n^T I n."""
    body = link("base") + link("arm", 1.0, inertia=(1, 2, 3)) + joint("hinge", "continuous", "base", "arm", "1 1 1")
    robot = load(tmp_path, body)
    pose = robot.forward_kinematics(tensor(2 * math.pi / 3), "arm")
    cycle = torch.stack([tensor(0, 0, 1), tensor(1, 0, 0), tensor(0, 1, 0)])
    assert_exact(pose.rotation, cycle)
    assert_exact(robot.mass_matrix(tensor(0.4)), tensor(2.0)[None])
    assert_exact(robot.inverse_dynamics(tensor(0.4), tensor(1.0), tensor(3.0)), tensor(6.0))


def test_rotated_inertial_frame(tmp_path: Path) -> None:
    """Inertias (1, 2, 2.5) in a frame turned by a quarter about z: about the link's x it is 2."""
    quarter = f"0 0 {math.pi / 2!r}"
    body = link("base") + link("arm", 1.0, rpy=quarter, inertia=(1, 2, 2.5))
    robot = load(tmp_path, body + joint("hinge", "continuous", "base", "arm", "1 0 0"))
    assert_exact(robot.mass_matrix(tensor(0.3)), tensor(2.0)[None])


def test_gradient_of_the_quaternion(tmp_path: Path) -> None:
    """Of a hinge about z: (0, 0, sin(q/2), cos(q/2)), so d/dq = (0, 0, cos(q/2), -sin(q/2)) / 2."""
    robot = load(tmp_path, link("base") + link("arm", 1.0) + joint("hinge", "continuous", "base", "arm"))
    q = torch.linspace(-1.5, 1.5, 7, dtype=torch.float64)[:, None]
    value, slope = torch.func.jvp(lambda q: robot.forward_kinematics(q, "arm").quaternion, (q,), (torch.ones_like(q),))[
        :2
    ]
    zero, half = torch.zeros(7, dtype=torch.float64), q[:, 0] / 2
    assert_exact(value, torch.stack([zero, zero, half.sin(), half.cos()], -1))
    assert_exact(slope, torch.stack([zero, zero, half.cos(), -half.sin()], -1) / 2)


def test_earlier_calls_leave_no_trace() -> None:
    robot = cs.load_robot("iiwa7")
    x = random_states(robot.model, 4)
    first = robot.forward_kinematics(x["q"], "iiwa_link_ee")
    robot.forward_dynamics(x["q"] + 1, x["v"], x["tau"])
    robot.forward_kinematics(x["q"] * 2)
    again = robot.forward_kinematics(x["q"], "iiwa_link_ee")
    assert torch.equal(first.position, again.position) and torch.equal(first.rotation, again.rotation)


def test_mass_matrix_costs_less_than_one_inverse_dynamics_per_joint() -> None:
    robot = cs.load_robot("iiwa7")
    mass, inverse = (robot.kernel(name).report(batch=64).ops for name in ("mass_matrix", "inverse_dynamics"))
    assert mass < 2 * inverse, (mass, inverse)


def test_links_in_any_order(tmp_path: Path) -> None:
    """Tip first: same robot as root first."""
    links = [link("base"), link("upper", 1.0, "0.5 0 0", inertia=(0.1, 0.1, 0.1)), link("lower", 2.0, "0.4 0 0")]
    joints = [
        joint("shoulder", "continuous", "base", "upper", "0 1 0"),
        joint("elbow", "continuous", "upper", "lower", "0 1 0", xyz="1 0 0"),
    ]
    robot = load(tmp_path, "".join(links + joints))
    mixed = load(tmp_path, "".join(joints[::-1] + links[::-1]))
    assert mixed.joint_names == robot.joint_names
    x = random_states(robot.model, 3)
    assert torch.equal(*(r.forward_dynamics(x["q"], x["v"], x["tau"]) for r in (robot, mixed)))


def test_continuous_joint_has_no_limits(tmp_path: Path) -> None:
    robot = load(tmp_path, link("base") + link("wheel", 1.0) + joint("spin", "continuous", "base", "wheel"))
    assert robot.lower.tolist() == [-math.inf] and robot.upper.tolist() == [math.inf]
    q = robot.random_configuration(1000)
    assert float(q.abs().max()) <= math.pi


def test_double_precision() -> None:
    """A pendulum's torque at 1e-9 rad, to twelve digits: single precision has seven."""
    robot = cs.load_robot("pendulum")
    torque = float(robot.gravity_torques(tensor(1e-9)).abs())
    assert abs(torque / (1.0 * 9.81 * 0.5 * math.sin(1e-9)) - 1) < 1e-12  # a rod of 1 kg and 1 m


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, 9.81, 0.0), (1.0, -2.0, 3.0)])
def test_gravity_in_any_direction(tmp_path: Path, gravity: tuple[float, float, float]) -> None:
    """A hinge about z at the origin, its mass at r: tau = -(r x m g)_z."""
    body = link("base") + link("arm", 2.0, "0.3 0 0.2") + joint("hinge", "continuous", "base", "arm")
    robot = load(tmp_path, body, gravity=gravity)
    q = tensor(0.8)
    r = np.array([0.3 * math.cos(0.8), 0.3 * math.sin(0.8), 0.2])
    expected = -np.cross(r, 2.0 * np.array(gravity))[2]
    assert_exact(robot.gravity_torques(q), tensor(expected))


def test_floating_base_falls(tmp_path: Path) -> None:
    """A free body turned on its side falls along the world's -z, which is its own -x; spinning adds -omega x v."""
    robot = load(tmp_path, link("body", 3.0, inertia=(0.1, 0.2, 0.3)), floating_base=True)
    assert (robot.nq, robot.nv) == (7, 6)
    side = tensor(0, 0, 0, 0, -math.sqrt(0.5), 0, math.sqrt(0.5))  # the body's x points up
    still = torch.zeros(6, dtype=torch.float64)
    assert_exact(robot.forward_dynamics(side, still, still), tensor(-9.81, 0, 0, 0, 0, 0))
    spinning = tensor(0, 1, 0, 0, 0, 2)
    a = robot.forward_dynamics(side, spinning, still)
    assert_exact(a, tensor(-9.81 + 2, 0, 0, 0, 0, 0))  # -(0, 0, 2) x (0, 1, 0) = (2, 0, 0)
    euler = robot.forward_dynamics(robot.neutral(), tensor(0, 0, 0, 1, 2, 3), still)  # I dw = -w x I w
    assert_exact(euler[3:], tensor(-0.1 * 6 / 0.1, 0.2 * 3 / 0.2, -0.1 * 2 / 0.3))


def test_missing_inertia_is_no_kilogram(tmp_path: Path) -> None:
    """A frame at the tip without <inertial> weighs nothing, and is warned of where it moves by itself."""
    body = link("base") + link("arm", 1.0, "0 0 -1") + link("tip")
    body += joint("hinge", "continuous", "base", "arm", "0 1 0") + joint("end", "fixed", "arm", "tip", xyz="0 0 -2")
    robot = load(tmp_path, body)
    assert_exact(robot.mass_matrix(tensor(0.0)), tensor(1.0)[None])
    path = tmp_path / "massless.urdf"
    path.write_text(
        f'<robot name="m">{link("base") + link("arm") + link("tip", 1.0)}'
        f"{joint('a', 'continuous', 'base', 'arm') + joint('b', 'continuous', 'arm', 'tip')}</robot>"
    )
    with pytest.warns(ModelWarning, match="arm"):
        cs.load_robot(path)


def test_damping_friction_rotor_and_mimic(tmp_path: Path) -> None:
    """Two equal wheels, the second turning -2 times as fast: I (1 + 4) + rotor, and friction that opposes the motion, in both
    directions of the dynamics alike."""
    dynamics = '<dynamics damping="0.3" friction="0.2" armature="0.05"/>'
    body = link("base") + link("one", 1.0, inertia=(1, 1, 0.1)) + link("two", 1.0, inertia=(1, 1, 0.1))
    body += joint("a", "continuous", "base", "one", more=dynamics)
    body += joint("b", "continuous", "base", "two", more='<mimic joint="a" multiplier="-2" offset="0.5"/>')
    robot = load(tmp_path, body)
    assert robot.nv == 1
    inertia = 0.1 * 5 + 0.05
    assert_exact(robot.mass_matrix(tensor(0.1)), tensor(inertia)[None])
    v, a = tensor(2.0), tensor(1.5)
    tau = robot.inverse_dynamics(tensor(0.1), v, a)
    assert_exact(tau, tensor(inertia * 1.5 + 0.3 * 2.0 + 0.2))
    assert_exact(robot.forward_dynamics(tensor(0.1), v, tau), a)
    turned = robot.forward_kinematics(tensor(0.1), "two").quaternion
    assert_exact(turned[2:], tensor(math.sin(0.15), math.cos(0.15)))


def test_file_read_by_pinocchio_itself(tmp_path: Path) -> None:
    """All of it in one file, read by both: prismatic, oblique, rotated inertias, branches, fixed links, links in any order."""
    body = (
        joint("slide", "prismatic", "tower", "cart", "1 2 -1", xyz="0.1 0.2 0.3")
        + link("cart", 1.5, "0.1 -0.2 0.3", "0.3 -0.5 0.7", (0.1, 0.2, 0.25))
        + link("wrist", 0.7, "0 0.1 0.2", "1 0.2 -0.4", (0.01, 0.02, 0.025))
        + joint(
            "twist",
            "revolute",
            "cart",
            "wrist",
            "0.3 -0.4 0.5",
            '<limit effort="9" velocity="9" lower="-3" upper="3"/>',
        )
        + joint(
            "side", "revolute", "tower", "branch", "-1 0 2", '<limit effort="9" velocity="9" lower="-3" upper="3"/>'
        )
        + link("branch", 2.0, "0.2 0 0", "0 0.6 0", (0.3, 0.2, 0.4))
        + joint("stand", "revolute", "base", "tower", "0 0 -1", '<limit effort="9" velocity="9" lower="-3" upper="3"/>')
        + link("base")
        + link("tower", 3.0, "0 0 0.5", "0.1 0 0.2", (0.4, 0.5, 0.6))
        + joint("mount", "fixed", "wrist", "tool", xyz="0 0 0.3")
        + link("tool", 0.4, "0 0 0.1", "0.5 0 0", (0.01, 0.02, 0.02))
    ).replace('"prismatic"><', '"prismatic"><limit effort="9" velocity="9" lower="-1" upper="1"/><')
    robot = load(tmp_path, body)
    theirs = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    data = theirs.createData()
    order = [robot.joint_names.index(name) for name in list(theirs.names)[1:]]
    x = {k: value[0].numpy() for k, value in random_states(robot.model, 1).items()}
    expected = np.empty(robot.nv)
    expected[order] = pin.aba(theirs, data, *(x[k][order] for k in ("q", "v", "tau")))
    q, v, tau = (torch.from_numpy(x[k]) for k in ("q", "v", "tau"))
    found = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    pin.framesForwardKinematics(theirs, data, x["q"][order])
    tool = robot.forward_kinematics(q, "tool")
    np.testing.assert_allclose(tool.position, data.oMf[theirs.getFrameId("tool")].translation, atol=1e-14)
