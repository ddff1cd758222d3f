"""Compiled robots against Pinocchio: every method of Robot, built-in robots, robots from files, random trees."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
import pybullet_data
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from tests.physics.strategies import random_models
from tests.robot.reference import random_states, relative_error

import costate as cs
from costate.audit.pinocchio_reference import Reference
from costate.model import Model, ModelWarning, load_model
from costate.model.builtin import builtin_names

# Both sides round differently in some thousand operations; forward dynamics multiplies that by the condition of M.
TOLERANCE = 1e-9
FLOAT32 = 2e-5  # a few hundred roundings of 6e-8
BATCH = 2

BUILT_IN = [name for name in builtin_names() if name != "pendulum"] + ["pendulum1", "pendulum3"]
FILES = [
    "laikago/laikago_toes.urdf", "xarm/xarm6_robot.urdf", "kuka_iiwa/model.urdf", "franka_panda/panda.urdf",
    "racecar/racecar.urdf", "cartpole.urdf", "humanoid/humanoid.urdf", "quadruped/minitaur.urdf", "r2d2.urdf",
]  # fmt: skip


def load(source: str | Path, **options) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_model(source, **options)


def evaluate(robot: cs.Robot, x: dict[str, torch.Tensor], link: str) -> dict[str, torch.Tensor]:
    """Every method, under the names of `Reference`."""
    q, v, a, tau, wrench = (x[k] for k in ("q", "v", "a", "tau", "wrench"))
    pose = robot.forward_kinematics(q, link)
    return {
        "position": pose.position,
        "rotation": pose.rotation,
        "jacobian": robot.jacobian(q, link),
        "jacobian_dot": robot.jacobian_dot(q, v, link),
        "link_velocity": robot.link_velocity(q, v, link),
        "link_acceleration": robot.link_acceleration(q, v, a, link),
        "mass_matrix": robot.mass_matrix(q),
        "inverse_dynamics": robot.inverse_dynamics(q, v, a),
        "inverse_dynamics_pushed": robot.inverse_dynamics(q, v, a, {link: wrench}),
        "bias_forces": robot.bias_forces(q, v),
        "gravity_torques": robot.gravity_torques(q),
        "forward_dynamics": robot.forward_dynamics(q, v, tau),
        "forward_dynamics_pushed": robot.forward_dynamics(q, v, tau, {link: wrench}),
        "center_of_mass": robot.center_of_mass(q),
        "com_jacobian": robot.com_jacobian(q),
        "kinetic_energy": robot.kinetic_energy(q, v),
        "potential_energy": robot.potential_energy(q),
        "momentum_matrix": robot.momentum_matrix(q),
        "momentum": robot.momentum(q, v),
    }


def assert_same(model: Model, found: dict[str, torch.Tensor], x: dict[str, torch.Tensor], link: str, tolerance: float):
    reference = Reference(model)
    for k in range(len(x["q"])):
        expected = reference({name: value[k].double().numpy() for name, value in x.items()}, link)
        for name, value in expected.items():
            # An angular momentum, a Jacobian of a link that cannot move: zero but for rounding.
            scale = np.abs(expected["mass_matrix"]).max() if name.startswith("momentum") else 1e-3
            error = relative_error(found[name][k].double().numpy(), np.asarray(value), scale)
            assert error <= tolerance, f"{name} of sample {k}: relative error {error:.1e}"


def last_moving_link(model: Model) -> str:
    return [j.child for j in model.joints if j.kind != "fixed"][-1]


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_robot(name: str) -> None:
    model = load(name)
    check_float64(model, model.links[-1].name)


@pytest.mark.parametrize("file", FILES, ids=lambda f: Path(f).stem)
def test_robot_from_a_file(file: str, tmp_path: Path) -> None:
    """The functions that hold all the others, poses of all links, and integration."""
    fixed = file in ("xarm/xarm6_robot.urdf", "kuka_iiwa/model.urdf", "franka_panda/panda.urdf", "cartpole.urdf")
    copy = tmp_path / Path(file).name
    copy.write_bytes((Path(pybullet_data.getDataPath()) / file).read_bytes().rstrip(b"\0"))  # the humanoid ends in one
    model = load(copy, floating_base=not fixed)
    robot, x = cs.Robot(model), random_states(model, BATCH)
    check_functions(robot, x, last_moving_link(model), TOLERANCE)
    check_motions(model, robot, x)


def check_float64(model: Model, link: str) -> None:
    robot = cs.Robot(model)
    x = random_states(model, BATCH)
    assert_same(model, evaluate(robot, x, link), x, link, TOLERANCE)
    check_motions(model, robot, x)


def check_motions(model: Model, robot: cs.Robot, x: dict[str, torch.Tensor]) -> None:
    every = robot.forward_kinematics(x["q"])
    assert list(every) == robot.link_names
    check_all_poses(model, every, x["q"][0].numpy())
    check_integration(model, robot, x)


def check_all_poses(model: Model, poses: dict[str, cs.Pose], q: np.ndarray) -> None:
    reference = Reference(model)
    m, d = reference.oracle.model, reference.oracle.data
    pin.framesForwardKinematics(m, d, reference.oracle.configuration(reference.free_q(q)))
    for link, pose in poses.items():
        placement = d.oMf[reference.oracle.frame(link)]
        assert relative_error(pose.position[0], placement.translation, 1.0) <= TOLERANCE, link
        assert relative_error(pose.rotation[0], placement.rotation) <= TOLERANCE, link
        aligned = pin.Quaternion(pose.quaternion[0].numpy()).toRotationMatrix()
        assert relative_error(aligned, placement.rotation) <= TOLERANCE, link


def check_integration(model: Model, robot: cs.Robot, x: dict[str, torch.Tensor]) -> None:
    """Without mimic joints, which have no coordinates; q of planar joints is an angle here and cos, sin there."""
    if any(j.mimic for j in model.joints):
        return
    oracle = Reference(model).oracle
    moved = robot.integrate(x["q"], x["v"], 0.3)
    back = robot.difference(x["q"], moved)
    assert relative_error(back, 0.3 * x["v"].numpy()) <= TOLERANCE
    for k, q in enumerate(x["q"].numpy()):
        expected = pin.integrate(oracle.model, oracle.configuration(q), 0.3 * x["v"][k].numpy()[oracle.order])
        apart = pin.difference(oracle.model, expected, oracle.configuration(moved[k].numpy()))
        assert np.abs(apart).max() <= TOLERANCE


def prepared(model: Model) -> Model:
    """Springs only at joints with one coordinate, where the reference has them."""
    joints = tuple(j if j.nv == 1 else replace(j, stiffness=0.0) for j in model.joints)
    return replace(model, joints=joints)


# No shrinking: every example compiles several kernels.
eight = settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.slow
@eight
@given(random_models(max_joints=12))
def test_random_trees(model: Model) -> None:
    """The functions that hold all the others: the rest of the table is compared on such trees, uncompiled, in
    tests/physics, and compiled on the robots above."""
    assume(model.nv > 0)
    model = prepared(model)
    robot, link, x = cs.Robot(model), model.links[-1].name, random_states(model, BATCH)
    check_functions(robot, x, link, TOLERANCE)
    check_functions(robot, {name: value.float() for name, value in x.items()}, link, FLOAT32)


def check_functions(robot: cs.Robot, x: dict[str, torch.Tensor], link: str, tolerance: float) -> None:
    """Forward dynamics may lose as many digits as the mass matrix has in its condition number."""
    q, v, push = x["q"], x["v"], {link: x["wrench"]}
    found = {
        "position": robot.forward_kinematics(q, link).position,
        "jacobian_dot": robot.jacobian_dot(q, v, link),
        "mass_matrix": robot.mass_matrix(q),
        "inverse_dynamics_pushed": robot.inverse_dynamics(q, v, x["a"], push),
        "forward_dynamics_pushed": robot.forward_dynamics(q, v, x["tau"], push),
    }
    reference = Reference(robot.model)
    for k in range(BATCH):
        expected = reference({name: value[k].double().numpy() for name, value in x.items()}, link)
        for name, value in found.items():
            assert value.dtype == q.dtype
            float32 = q.dtype == torch.float32
            lost = np.linalg.cond(expected["mass_matrix"]) if float32 and name.startswith("forward_dyn") else 1.0
            error = relative_error(value[k].double().numpy(), expected[name], 1e-2)
            assert error <= tolerance * lost, f"{name} of sample {k}, {q.dtype}: relative error {error:.1e}"
