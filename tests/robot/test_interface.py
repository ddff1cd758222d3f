"""How a robot is used: shapes, number types, NumPy, copies, files, errors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.robot.reference import random_states

import costate as cs


@pytest.fixture(scope="module")
def robot() -> cs.Robot:
    return cs.load_robot("ur5")


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (2, 1, 4), (0,), (3, 0)], ids=str)
def test_any_batch_shape(robot: cs.Robot, batch: tuple[int, ...]) -> None:
    """Every sample is the same, to the last bit, as on its own."""
    count = int(np.prod(batch))
    x = random_states(robot.model, max(count, 1))
    q, v, tau = (x[k][:count].reshape(*batch, -1) if count else x[k][:0].reshape(*batch, 6) for k in ("q", "v", "tau"))
    a = robot.forward_dynamics(q, v, tau)
    assert a.shape == (*batch, 6)
    for name, shape in {"jacobian": (6, 6), "jacobian_dot": (6, 6)}.items():
        args = (q,) if name == "jacobian" else (q, v)
        assert getattr(robot, name)(*args, "tool0").shape == (*batch, *shape)
    pose = robot.forward_kinematics(q, "tool0")
    assert pose.position.shape == (*batch, 3) and pose.rotation.shape == (*batch, 3, 3)
    assert pose.quaternion.shape == (*batch, 4)
    assert robot.mass_matrix(q).shape == (*batch, 6, 6)
    assert robot.kinetic_energy(q, v).shape == batch
    assert robot.potential_energy(q).shape == batch
    assert robot.integrate(q, v, 0.1).shape == q.shape
    for k in range(count):
        q_k, v_k, tau_k = (t.reshape(-1, 6)[k] for t in (q, v, tau))
        alone = robot.forward_dynamics(q_k, v_k, tau_k)
        assert torch.equal(a.reshape(-1, 6)[k], alone)


def test_arguments_broadcast(robot: cs.Robot) -> None:
    x = random_states(robot.model, 4)
    a = robot.forward_dynamics(x["q"][:, None], x["v"][None, :2], x["tau"][0])
    assert a.shape == (4, 2, 6)
    assert torch.equal(a[3, 1], robot.forward_dynamics(x["q"][3], x["v"][1], x["tau"][0]))


def test_number_types(robot: cs.Robot) -> None:
    x = random_states(robot.model, 4)
    wide = robot.inverse_dynamics(x["q"], x["v"], x["a"])
    narrow = robot.inverse_dynamics(x["q"].float(), x["v"].float(), x["a"].float())
    assert (wide.dtype, narrow.dtype) == (torch.float64, torch.float32)
    torch.testing.assert_close(narrow.double(), wide, rtol=1e-5, atol=1e-4)
    mixed = robot.inverse_dynamics(x["q"].float(), x["v"], x["a"])
    assert torch.equal(mixed, robot.inverse_dynamics(x["q"].float().double(), x["v"], x["a"]))


def test_callers_tensors_stay_as_they_are(robot: cs.Robot) -> None:
    x = random_states(robot.model, 4)
    before = {k: value.clone() for k, value in x.items()}
    tau = x["tau"].requires_grad_()
    robot.forward_dynamics(x["q"], x["v"], tau, {"tool0": x["wrench"]}).sum().backward()
    robot.inverse_kinematics(robot.forward_kinematics(x["q"], "tool0"), "tool0", x["q"])
    assert all(torch.equal(before[k], value) for k, value in x.items())


def test_strided_and_expanded_tensors(robot: cs.Robot) -> None:
    x = random_states(robot.model, 6)
    strided = torch.stack([x["q"], x["v"]], -1)[..., 0]
    backwards = x["v"].flip(0).T.contiguous().T
    expanded = x["tau"][:1].expand(6, -1)
    found = robot.forward_dynamics(strided, backwards, expanded)
    plain = robot.forward_dynamics(x["q"], x["v"].flip(0).contiguous(), expanded.contiguous())
    assert torch.equal(found, plain)


def test_numpy_and_bound_buffers(robot: cs.Robot) -> None:
    x = random_states(robot.model, 3)
    arrays = {k: x[k].numpy().copy() for k in ("q", "v", "tau")}
    expected = robot.forward_dynamics(x["q"], x["v"], x["tau"]).numpy()
    kernel = robot.kernel("forward_dynamics")
    np.testing.assert_array_equal(kernel.numpy(**arrays).a, expected)
    np.testing.assert_array_equal(kernel.numpy(**{k: a[0] for k, a in arrays.items()}).a, expected[0])
    step = kernel.bind(**arrays)
    step()
    np.testing.assert_array_equal(step.outputs.a, expected)
    arrays["q"][:] = arrays["q"][::-1].copy()
    step()
    assert not np.array_equal(step.outputs.a, expected)


def test_copies(robot: cs.Robot) -> None:
    x = random_states(robot.model, 3)
    expected = robot.forward_dynamics(x["q"], x["v"], x["tau"])
    for other in (copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        assert (other.link_names, other.joint_names) == (robot.link_names, robot.joint_names)
        assert torch.equal(other.upper, robot.upper)
        assert torch.equal(other.forward_dynamics(x["q"], x["v"], x["tau"]), expected)


def test_structure() -> None:
    robot = cs.load_robot("laikago")
    assert (robot.nq, robot.nv) == (19, 18)
    assert robot.lower.shape == robot.upper.shape == robot.max_velocity.shape == robot.max_effort.shape == (18,)
    assert bool((robot.lower <= robot.upper).all())
    q = robot.random_configuration(50)
    assert q.shape == (50, 19)
    torch.testing.assert_close(q[:, 3:7].norm(dim=-1), torch.ones(50, dtype=torch.float64))
    assert bool((q[:, 7:] >= robot.lower[6:]).all() and (q[:, 7:] <= robot.upper[6:]).all())
    neutral = robot.neutral(2)
    assert torch.equal(neutral[0], torch.tensor([0.0] * 6 + [1.0] + [0.0] * 12, dtype=torch.float64))


def test_seeds() -> None:
    robot = cs.load_robot("two_link")
    q = robot.random_configuration(2, 3, seed=1)
    assert torch.equal(q, robot.random_configuration(2, 3, seed=1))
    assert torch.equal(q, robot.random_configuration(2, 3, generator=torch.Generator().manual_seed(1)))
    assert not torch.equal(q, robot.random_configuration(2, 3, seed=2))
    torch.testing.assert_close(robot.random_configuration(2, 3, seed=1, dtype=torch.float32), q.float())


def test_repr() -> None:
    """It says what is inside."""
    robot = cs.load_robot("laikago")
    robot.learn("trunk" if "trunk" in robot.link_names else robot.link_names[1], "mass", cs.params.Positive())
    robot.augment(cs.residual.JointFriction(robot.nv))
    text = repr(robot)
    for part in ("Robot 'laikago'", "floating base", "12 revolute joints", "nq = 19", "nv = 18", "float64"):
        assert part in text
    assert robot.link_names[1] in text and robot.joint_names[1] in text
    assert "mass of" in text and "(Positive)" in text and "JointFriction" in text
    mass = sum(link.inertia.mass for link in robot.model.links)
    assert f"{mass:.4g} kg" in text
    assert "fixed base" in repr(cs.load_robot("ur5"))
    assert "float32" in repr(cs.load_robot("ur5").float())


def test_poses_from_quaternions(robot: cs.Robot) -> None:
    pose = robot.forward_kinematics(random_states(robot.model, 5)["q"], "tool0")
    again = cs.Pose.of(pose.position, pose.quaternion)
    torch.testing.assert_close(again.rotation, pose.rotation, rtol=0, atol=1e-14)


def test_unknown_link(robot: cs.Robot) -> None:
    q = torch.zeros(6, dtype=torch.float64)
    calls = [
        lambda: robot.forward_kinematics(q, "tool1"),
        lambda: robot.jacobian(q, "tool1"),
        lambda: robot.inverse_dynamics(q, q, q, {"tool1": q}),
        lambda: robot.inverse_kinematics(robot.forward_kinematics(q, "tool0"), "tool1"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"'ur5' has no link 'tool1'.*tool0"):
            call()


def test_wrong_shapes(robot: cs.Robot) -> None:
    q = torch.zeros(6, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"(?s)'q'.*7.*6"):
        robot.mass_matrix(torch.zeros(7, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"(?s)'tau'.*\b2\b.*6"):
        robot.forward_dynamics(q, q, torch.zeros(2, dtype=torch.float64))
    with pytest.raises(ValueError, match="wrench:tool0"):
        robot.forward_dynamics(q, q, q, {"tool0": torch.zeros(3, dtype=torch.float64)})
    with pytest.raises((ValueError, RuntimeError), match=r"(?s)3.*4|broadcast"):
        robot.forward_dynamics(q.expand(3, 6), q.expand(4, 6), q)
    with pytest.raises((TypeError, ValueError), match="tensor, or an array or list of numbers"):
        robot.mass_matrix(["a"] * 6)  # type: ignore[arg-type]


def test_unknown_robot_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match="ur5"):
        cs.load_robot("ur6")
    with pytest.raises((ValueError, FileNotFoundError), match=r"arm\.urdf"):
        cs.load_robot(tmp_path / "arm.urdf")
