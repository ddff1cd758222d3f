"""What the drop-in takes from a file, next to the original; and what its models share, which nothing may change."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

theirs = pytest.importorskip("differentiable_robot_model.robot_model")

from tests.compat.test_same_calls import DATA  # noqa: E402

from costate.compat.differentiable_robot_model import data_utils, rigid_body_params, robot_model  # noqa: E402
from costate.compat.differentiable_robot_model.robot_model import DifferentiableRobotModel  # noqa: E402

IIWA = DATA / "kuka_iiwa/urdf/iiwa7.urdf"
PANDA = DATA / "panda_description/urdf/panda.urdf"
# The original cannot read fetch.urdf: it has a name space that is not declared.
FILES = sorted(str(path.relative_to(DATA)) for path in DATA.rglob("*.urdf") if path.name != "fetch.urdf")
ONE_JOINT = """<robot name="one"><link name="a"/><link name="b"><inertial>
<origin xyz="0 0 0" rpy="0 0 0"/><mass value="{mass}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="{kind}"><parent link="a"/><child link="b"/><origin xyz="0 0 0" rpy="0 0 0"/>
<axis xyz="0 0 1"/>{limit}</joint></robot>"""


def load(path: str | Path, **options: Any) -> DifferentiableRobotModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DifferentiableRobotModel(path, **options)


def original(path: str | Path):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return theirs.DifferentiableRobotModel(str(path))


def write(folder: Path, kind: str, limit: str, mass: float = 1.0) -> Path:
    path = folder / "one.urdf"
    path.write_text(ONE_JOINT.format(kind=kind, limit=limit, mass=mass))
    return path


@pytest.mark.parametrize("file", FILES)
def test_same_joints_and_limits_for_every_file_of_the_original(file: str) -> None:
    ours, expected = load(DATA / file), original(DATA / file)
    assert (ours._n_dofs, ours._controlled_joints) == (expected._n_dofs, expected._controlled_joints)
    assert ours.get_joint_limits() == expected.get_joint_limits()
    assert ours.get_link_names() == expected.get_link_names()


@pytest.mark.parametrize("kind", ["continuous", "revolute", "prismatic"])
@pytest.mark.parametrize(
    "limit",
    [
        '<limit effort="2" velocity="3"/>',
        '<limit effort="2" velocity="3" lower="-1.5"/>',
        '<limit effort="2" velocity="3" upper="1.5"/>',
        '<limit effort="2" velocity="3" lower="-7" upper="6.5"/>',
    ],
)
def test_same_limits_of_any_kind_of_joint(tmp_path: Path, kind: str, limit: str) -> None:
    path = write(tmp_path, kind, limit)
    assert load(path).get_joint_limits() == original(path).get_joint_limits()


def test_joint_without_limit_has_none(tmp_path: Path) -> None:
    (row,) = load(write(tmp_path, "continuous", "")).get_joint_limits()
    assert (row["lower"], row["upper"]) == (-float("inf"), float("inf"))


def test_joints_with_several_degrees_of_freedom_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ball.urdf"
    path.write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="hip" type="spherical"><parent link="a"/>'
        '<child link="b"/></joint></robot>'
    )
    with pytest.raises(ValueError, match="joint hip has several degrees of freedom"):
        DifferentiableRobotModel(path)


def test_random_data_move_joints_whose_limit_gives_no_range(tmp_path: Path) -> None:
    model = load(write(tmp_path, "continuous", '<limit effort="2" velocity="3"/>'))
    q = data_utils.generate_random_inverse_dynamics_data(model, 200).data["q"]
    assert -math.pi <= float(q.min()) < -2.5 and 2.5 < float(q.max()) <= math.pi


def test_mimic_joints_are_joints_unless_asked_to_follow() -> None:
    """The coupling is q = E q'; torques that do the same work are tau' = E^T tau."""
    free, coupled = load(PANDA), load(PANDA, mimic=True)
    assert (free._n_dofs, coupled._n_dofs) == (9, 8)
    E = torch.cat([torch.eye(8), torch.eye(8)[7:]]).double()
    q, qd, qdd = torch.rand(3, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    all_q, all_qd, all_qdd = q @ E.T, qd @ E.T, qdd @ E.T
    for link in ("panda_leftfinger", "panda_rightfinger"):
        for a, b in zip(
            free.compute_forward_kinematics(all_q, link), coupled.compute_forward_kinematics(q, link), strict=True
        ):
            assert torch.allclose(a, b, rtol=0, atol=1e-12)
    torque = free.compute_inverse_dynamics(all_q, all_qd, all_qdd, use_damping=False) @ E
    assert torch.allclose(torque, coupled.compute_inverse_dynamics(q, qd, qdd, use_damping=False), rtol=1e-10)


def results(model: DifferentiableRobotModel) -> list[torch.Tensor]:
    q, qd, x = torch.rand(3, 4, model._n_dofs, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    link = model.get_link_names()[-1]
    return [
        *model.compute_forward_kinematics(q, link),
        *model.compute_endeffector_jacobian(q, link),
        model.compute_inverse_dynamics(q, qd, x),
        model.compute_forward_dynamics(q, qd, x, include_gravity=False),
        model.compute_lagrangian_inertia_matrix(q),
    ]


def equal(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_second_model_of_a_file_traces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = results(load(IIWA))

    def traced(*_: object, **__: object) -> None:
        raise AssertionError("a function was traced again")

    monkeypatch.setattr(robot_model, "folded_kernel", traced)
    monkeypatch.setattr(robot_model, "pose_kernel", traced)
    assert equal(results(load(IIWA)), expected)
    assert equal(results(load(str(IIWA))), expected)


def test_what_one_model_learns_is_not_seen_by_others() -> None:
    before, bystander = results(load(IIWA)), load(IIWA)
    learning = load(IIWA)
    mass = rigid_body_params.PositiveScalar(init_param=torch.tensor(7.0))
    learning.make_link_param_learnable("iiwa_link_5", "mass", mass)
    learning.make_link_param_learnable("iiwa_link_2", "trans", rigid_body_params.UnconstrainedTensor(1, 3))
    learnt = results(learning)
    assert not any(torch.allclose(a, b) for a, b in zip(learnt[4:], before[4:], strict=True))
    assert equal(results(bystander), before) and equal(results(load(IIWA)), before)
    assert not list(load(IIWA).parameters())
    assert equal(results(learning), learnt)
    body = next(b for b in learning._bodies if b.name == "iiwa_link_5")
    same_body = next(b for b in bystander._bodies if b.name == "iiwa_link_5")
    assert float(body.inertia.mass().detach()) == pytest.approx(7.0) and float(
        same_body.inertia.mass()
    ) != pytest.approx(7.0)


def test_nothing_that_is_handed_out_changes_later_models() -> None:
    model = load(IIWA)
    before, limits, masses = results(model), model.get_joint_limits(), [float(b.inertia.mass()) for b in model._bodies]
    model.get_joint_limits()[0]["lower"] = 5.0
    for body in model._bodies:
        body.inertia.mass().zero_()
        body.joint_pose.translation().zero_()
    with pytest.raises(ValueError, match="read-only"):
        model._robot.model.links[2].inertia.com[:] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        model._robot.model.gravity[:] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        model._robot.model.lower[:] = 0.0
    later = load(IIWA)
    assert equal(results(later), before) and later.get_joint_limits() == limits
    assert [float(b.inertia.mass()) for b in later._bodies] == masses


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    x = torch.full((1,), 0.5, dtype=torch.float64)
    limit = '<limit effort="2" velocity="3" lower="-1" upper="1"/>'
    found = []
    for mass in (1.0, 2.0, 1.0):
        model = load(write(tmp_path, "prismatic", limit, mass))
        found.append(float(model.compute_inverse_dynamics(x, x, x)))
    assert found == pytest.approx([9.81 + 0.5, 2 * (9.81 + 0.5), 9.81 + 0.5], rel=1e-12)


def test_options_do_not_mix() -> None:
    file = DATA / "kinova_description/urdf/jaco_clean.urdf"
    plain, massless = load(file), load(file, unit_inertia=False)
    unit = [b.name for b in plain._bodies if float(b.inertia.mass()) == 1.0]
    bare = [b.name for b in massless._bodies if float(b.inertia.mass()) == 0.0]
    assert set(unit) & set(bare)
    assert not equal(results(plain)[-1:], results(massless)[-1:])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_copies(copied) -> None:
    model = load(IIWA)
    before = results(model)
    assert equal(results(copied(model)), before)
