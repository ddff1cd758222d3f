"""Joints that were not logged stand still; rotors that the file leaves out do not make links heavier."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.identify.motions import Array, motion, with_friction

import costate as cs
from costate.identify import LogError
from costate.identify.repair.hold import held
from costate.robot import Robot
from costate.robot.identified import with_parameters


@pytest.mark.parametrize(("name", "values"), [("panda", {"panda_finger_joint1": 0.03}), ("ur5", {"elbow_joint": 0.7})])
def test_a_held_joint_is_one_that_does_not_move(name: str, values: dict[str, float]) -> None:
    """Inverse dynamics with the joint held equals that with its position given and no speed."""
    model = cs.load_robot(name).model
    whole, part = Robot(model), Robot(held(model, values))
    rng = np.random.default_rng(0)
    q, v, a = (torch.as_tensor(rng.normal(size=(5, model.nv))) for _ in range(3))
    keep = [k for k, joint in enumerate(j for j in model.joints if j.nv) if joint.name not in values]
    still = [k for k in range(model.nv) if k not in keep]
    q[:, still] = torch.as_tensor(list(values.values()), dtype=torch.float64)
    v[:, still] = a[:, still] = 0.0
    expected = whole.inverse_dynamics(q, v, a)[:, keep]
    torch.testing.assert_close(part.inverse_dynamics(q[:, keep], v[:, keep], a[:, keep]), expected, rtol=0, atol=1e-10)


def columns(log: dict[str, Array], names: list[str]) -> dict[str, Array]:
    table = {"t": log["t"]}
    for quantity in ("q", "v", "a", "tau"):
        table.update({f"{quantity}_{name}": log[quantity][:, k] for k, name in enumerate(names)})
    return table


def test_a_gripper_that_was_not_logged() -> None:
    """It is held by itself if it lies beyond what was logged, and said; a joint in between must be given."""
    robot = cs.load_robot("panda")
    arm = held(robot.model, {"panda_finger_joint1": 0.0})
    names = [j.name for j in arm.joints if j.nv]
    result = cs.identify(robot, columns(motion(arm, n=600), names))
    assert any("panda_finger_joint1" in note and "held at 0" in note for note in result.notes)
    assert result.test is not None and (result.test.after < 1e-6).all()
    assert result.model.joint("panda_finger_joint1").kind == "prismatic"
    asked = cs.identify(robot, columns(motion(arm, n=600), names), hold={"panda_finger_joint1": 0.0})
    assert not any("held at" in note for note in asked.notes)
    ur5 = cs.load_robot("ur5")
    bent = held(ur5.model, {"elbow_joint": 1.2})
    table = columns(motion(bent, n=600), [j.name for j in bent.joints if j.nv])
    with pytest.raises(LogError, match="--hold elbow_joint=0"):
        cs.identify(ur5, table)
    fitted = cs.identify(ur5, table, hold={"elbow_joint": 1.2})
    assert fitted.test is not None and (fitted.test.after < 1e-6).all()
    with pytest.raises(ValueError, match=r"unknown joint 'elbow' \(did you mean 'elbow_joint'"):
        cs.identify(ur5, table, hold={"elbow": 1.2})


@pytest.mark.parametrize("name", ["ur5", "iiwa7"])
def test_rotors_that_the_file_leaves_out(name: str) -> None:
    """The file is right but for rotors. Masses stay what they are, and the rotors are found."""
    true = with_friction(name)
    moving = [j.name for j in true.joints if j.nv]
    true = with_parameters(true, {("armature", j): np.array([1.5]) for j in moving})
    given = with_parameters(true, {("armature", j): np.zeros(1) for j in moving})
    result = cs.identify(Robot(given), motion(true, n=1000))
    for link in result.regressor.links:
        assert result.model.link(link).inertia.mass == pytest.approx(true.link(link).inertia.mass, rel=0.1), link
    first = result.regressor.links[0]
    assert result.model.link(first).inertia.mass == pytest.approx(true.link(first).inertia.mass, rel=1e-6)
    assert result.model.joint(moving[0]).armature == pytest.approx(1.5, rel=0.1)
