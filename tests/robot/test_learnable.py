"""Learnable robots: values, modules as any nn.Module's, files, and what is refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.robot.test_learnable_gradients import arm, learn_everything, state
from torch import nn

import costate as cs
from costate.model import Inertia, Shape, load_model
from costate.robot import Robot

SAME: dict[str, Any] = {"rtol": 0, "atol": 1e-12}


def test_learning_starts_where_the_robot_is() -> None:
    plain, robot = Robot(arm("revolute")), Robot(arm("revolute"))
    learn_everything(robot)
    q, v, x = state(plain, 5)
    assert torch.allclose(robot.inverse_dynamics(q, v, x), plain.inverse_dynamics(q, v, x), **SAME)
    assert torch.allclose(robot.forward_dynamics(q, v, x), plain.forward_dynamics(q, v, x), rtol=1e-9)
    assert torch.allclose(robot.jacobian(q, "link2"), plain.jacobian(q, "link2"), **SAME)


def test_a_learnt_value_is_the_same_as_one_in_the_model() -> None:
    model = arm("prismatic")
    robot = Robot(model)
    robot.learn("link1", "mass", cs.params.Positive(init=2.5))
    robot.learn("joint1", "damping", cs.params.Positive(init=0.7))
    link = model.links[1]
    changed = replace(link, inertia=Inertia(2.5, link.inertia.com, link.inertia.matrix))
    other = Robot(
        replace(
            model,
            links=(model.links[0], changed, model.links[2]),
            joints=(replace(model.joints[0], damping=0.7), model.joints[1]),
        )
    )
    q, v, x = state(robot, 4)
    assert torch.allclose(robot.inverse_dynamics(q, v, x), other.inverse_dynamics(q, v, x), **SAME)


def test_only_what_a_function_depends_on_is_its_input() -> None:
    robot = cs.load_robot("pendulum2")
    robot.learn("link_2", "mass")
    robot.learn("joint_1", "friction", cs.params.OfState(nn.Linear(4, 1).double()))
    assert [s.name for s in robot.kernel("forward_kinematics", link="tip").signature.inputs] == ["q"]
    assert [s.name for s in robot.kernel("mass_matrix").signature.inputs] == ["q", "mass:link_2"]
    assert len(robot.kernel("inverse_dynamics").signature.inputs) == 5


def test_modules_of_other_functions_are_not_run() -> None:
    class Refuses(nn.Module):
        def forward(self, q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            raise AssertionError("not asked for")

    robot = cs.load_robot("pendulum2")
    robot.learn("joint_1", "friction", Refuses())
    robot.mass_matrix(robot.neutral())
    with pytest.raises(AssertionError, match="not asked for"):
        robot.inverse_dynamics(robot.neutral(), torch.zeros(2).double(), torch.zeros(2).double())


def test_values_that_differ_per_sample() -> None:
    class Masses(nn.Module):
        def forward(self) -> torch.Tensor:
            return torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)

    robot = cs.load_robot("pendulum2")
    robot.learn("link_2", "mass", Masses())
    q = torch.tensor([0.3, -0.4], dtype=torch.float64)
    M = robot.mass_matrix(q)
    assert M.shape == (3, 2, 2)
    for mass, found in zip((1.0, 2.0, 3.0), M, strict=True):
        one = cs.load_robot("pendulum2")
        one.learn("link_2", "mass", cs.params.Positive(init=mass))
        assert torch.allclose(one.mass_matrix(q), found, **SAME)


def test_as_any_module() -> None:
    robot = cs.load_robot("pendulum2")
    assert list(robot.parameters()) == []
    robot.learn("link_2", "inertial", cs.params.PhysicalInertia())
    robot.learn("joint_2", "damping", cs.params.Positive(init=0.2))
    assert set(robot.state_dict()) == {"learnt.inertial:link_2.raw", "learnt.damping:joint_2.raw"}

    other = copy.deepcopy(robot)
    with torch.no_grad():
        for p in other.parameters():
            p += 0.1
    q, v, x = state(robot, 3)
    before = robot.inverse_dynamics(q, v, x)
    assert not torch.allclose(before, other.inverse_dynamics(q, v, x))
    other.load_state_dict(robot.state_dict())
    assert torch.equal(before, other.inverse_dynamics(q, v, x))

    other.to(torch.float32)
    assert all(p.dtype == torch.float32 for p in other.parameters())
    narrow = other.inverse_dynamics(q.float(), v.float(), x.float())
    assert narrow.dtype == torch.float32
    assert torch.allclose(narrow.double(), before, rtol=1e-4, atol=1e-4)


def test_freeze_unfreeze_list_unlearn() -> None:
    robot = cs.load_robot("pendulum2")
    robot.learn("link_2", "mass", cs.params.Positive())
    robot.learn("link_1", "damping", cs.params.Positive(init=1.0))  # the joint that moves link_1
    robot.freeze("link_2", "mass")
    assert [(e.owner, e.parameter, e.frozen) for e in robot.learnable()] == [
        ("link_2", "mass", True),
        ("joint_1", "damping", False),
    ]
    q, v, x = state(robot, 3)
    robot.inverse_dynamics(q, v, x).sum().backward()
    assert [p.grad is None for p in robot.parameters()] == [True, False]
    robot.unfreeze("link_2", "mass")
    robot.inverse_dynamics(q, v, x).sum().backward()
    assert all(p.grad is not None for p in robot.parameters())
    robot.unlearn("joint_1", "damping")
    robot.unlearn("link_2", "mass")
    assert torch.equal(robot.inverse_dynamics(q, v, x), cs.load_robot("pendulum2").inverse_dynamics(q, v, x))


def test_physical_inertia_is_always_possible() -> None:
    random = torch.Generator().manual_seed(0)
    for _ in range(200):
        module = cs.params.PhysicalInertia((1.0, torch.zeros(3).double(), torch.eye(3).double()))
        assert module.raw is not None
        with torch.no_grad():
            module.raw.copy_(2 * torch.randn(10, generator=random, dtype=torch.float64))
        mass, _, inertia = (x.detach() for x in module())
        a, b, c = np.linalg.eigvalsh(inertia.numpy())
        assert float(mass) > 0 and a > 0 and a + b > c * (1 - 1e-9)


def test_physical_inertia_keeps_a_possible_one() -> None:
    for name in ("ur5", "iiwa7", "panda"):
        for link in load_model(name).links:
            if link.inertia.mass == 0 or not np.any(link.inertia.matrix):
                continue
            module = cs.params.PhysicalInertia((link.inertia.mass, link.inertia.com, link.inertia.matrix))
            mass, com, inertia = (x.detach().numpy() for x in module())
            np.testing.assert_allclose(mass, link.inertia.mass, rtol=1e-12)
            np.testing.assert_allclose(com, link.inertia.com, rtol=0, atol=1e-15)
            np.testing.assert_allclose(inertia, link.inertia.matrix, rtol=0, atol=1e-12)


def test_physical_inertia_warns_of_an_impossible_start() -> None:
    with pytest.warns(UserWarning, match="triangle"):
        cs.params.PhysicalInertia((1.0, torch.zeros(3), torch.diag(torch.tensor([1.0, 1.0, 3.0]))))


@pytest.mark.parametrize("name", ["ur5", "iiwa7"])
def test_saved_urdf_has_the_same_dynamics(name: str, tmp_path: Path) -> None:
    robot = cs.load_robot(name)
    random = torch.Generator().manual_seed(4)
    joints = robot.joint_names
    for link in [j.child for j in robot.model.joints if j.name in joints[1:3]]:
        robot.learn(link, "inertial", cs.params.PhysicalInertia())
    robot.learn(joints[1], "rotation", cs.params.Rotation())
    robot.learn(joints[1], "translation")
    robot.learn(joints[2], "axis")
    for parameter in ("damping", "friction", "armature"):
        robot.learn(joints[0], parameter, cs.params.Positive(init=0.3))
    robot.learn(None, "gravity")
    with torch.no_grad():
        for p in robot.parameters():
            p += 0.1 * torch.randn(p.shape, generator=random, dtype=torch.float64)
    robot.save_urdf(tmp_path / "identified.urdf")
    again = cs.load_robot(tmp_path / "identified.urdf")
    assert (again.joint_names, again.link_names) == (robot.joint_names, robot.link_names)
    assert torch.equal(again.lower, robot.lower) and torch.equal(again.max_effort, robot.max_effort)
    q, v, x = state(robot, 20)
    with torch.no_grad():
        torque = robot.inverse_dynamics(q, v, x)
        assert float((again.inverse_dynamics(q, v, x) - torque).abs().max() / torque.abs().max()) < 1e-9
        assert torch.allclose(
            again.forward_kinematics(q)[robot.link_names[-1]].position,
            robot.forward_kinematics(q)[robot.link_names[-1]].position,
            atol=1e-9,
        )


def test_saved_urdf_keeps_meshes(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    mesh = tmp_path / "meshes" / "arm.stl"
    mesh.write_bytes(b"solid arm\nendsolid arm\n")
    model = arm("revolute")
    shape = Shape("mesh", np.ones(3), mesh=str(mesh), uri="meshes/arm.stl")
    robot = Robot(replace(model, links=(*model.links[:2], replace(model.links[2], visuals=(shape,)))))
    robot.learn("link2", "mass", cs.params.Positive())
    robot.save_urdf(tmp_path / "robot.urdf")
    assert cs.load_robot(tmp_path / "robot.urdf").model.links[2].visuals[0].mesh_file() == mesh


def test_inverse_kinematics_uses_learnt_kinematics() -> None:
    robot = cs.load_robot("ur5")
    robot.learn("elbow_joint", "translation", cs.params.Unconstrained(init=[-0.5, 0.01, 0.02]))
    q = torch.tensor([0.1, -1.0, 1.2, -0.5, 0.4, 0.2], dtype=torch.float64)
    with torch.no_grad():
        pose = robot.forward_kinematics(q, "tool0")
        found = robot.inverse_kinematics(pose, "tool0", q + 0.1)
        assert torch.allclose(robot.forward_kinematics(found, "tool0").position, pose.position, atol=1e-8)


class TestRefused:
    def test_unknown_names(self) -> None:
        robot = cs.load_robot("pendulum2")
        with pytest.raises(ValueError, match=r"no link 'forearm'.*link_1"):
            robot.learn("forearm", "mass")
        with pytest.raises(ValueError, match=r"no joint 'elbow'.*joint_1"):
            robot.learn("elbow", "damping")
        with pytest.raises(ValueError, match=r"no parameter 'colour'.*inertial"):
            robot.learn("link_1", "colour")
        with pytest.raises(KeyError, match=r"not learnable.*nothing"):
            robot.freeze("link_1", "mass")

    def test_twice(self) -> None:
        robot = cs.load_robot("pendulum2")
        robot.learn("link_1", "mass")
        with pytest.raises(ValueError, match="learnable already"):
            robot.learn("link_1", "inertial", cs.params.PhysicalInertia())

    def test_values_outside(self) -> None:
        robot = cs.load_robot("pendulum2")
        with pytest.raises(ValueError, match=r"damping of 'joint_1'.*start at 0.*init="):
            robot.learn("joint_1", "damping", cs.params.Positive())
        with pytest.raises(ValueError, match="between 5 and 6"):
            robot.learn("link_1", "mass", cs.params.Bounded(5, 6))
        with pytest.raises(ValueError, match="lower < upper"):
            cs.params.Bounded(1, 1)

    def test_wrong_modules(self) -> None:
        robot = cs.load_robot("pendulum2")
        with pytest.raises(ValueError, match=r"asks for input.*OfState"):
            robot.learn("joint_1", "friction", nn.Linear(4, 1))
        with pytest.raises(ValueError, match=r"gave shape \(2,\), expected \(\.\.\., 3\)"):
            robot.learn("link_1", "com", cs.params.Unconstrained(init=[1.0, 2.0]))
        with pytest.raises(ValueError, match="Rotation"):
            robot.learn("joint_1", "rotation", cs.params.Unconstrained(init=torch.ones(3, 3)))

    def test_state_in_a_file(self, tmp_path: Path) -> None:
        robot = cs.load_robot("pendulum2")
        robot.learn("joint_1", "friction", cs.params.OfState(nn.Linear(4, 1)))
        with pytest.raises(ValueError, match="depends on the state"):
            robot.save_urdf(tmp_path / "x.urdf")

    def test_impossible_inertia_is_said(self, tmp_path: Path) -> None:
        robot = cs.load_robot("pendulum2")
        robot.learn("link_1", "inertia", cs.params.Unconstrained(init=torch.diag(torch.tensor([1.0, 1.0, 3.0]))))
        with pytest.warns(UserWarning, match="link_1"):
            robot.save_urdf(tmp_path / "x.urdf")
