"""The same calls through differentiable-robot-model and through its drop-in, on the seven robots it was tested with."""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

theirs = pytest.importorskip("differentiable_robot_model.robot_model")
diff_robot_data = pytest.importorskip("diff_robot_data")

from costate.compat.differentiable_robot_model.robot_model import (  # noqa: E402
    DifferentiableFrankaPanda,
    DifferentiableKUKAiiwa,
    DifferentiableRobotModel,
    DifferentiableTrifingerEdu,
    DifferentiableTwoLinkRobot,
)

DATA = Path(diff_robot_data.__path__[0])
# Robot -> its file and the links whose poses are compared: those of the original's own tests.
ROBOTS: dict[str, tuple[str, list[str]]] = {
    "iiwa": ("kuka_iiwa/urdf/iiwa7.urdf", ["iiwa_link_ee"]),
    "panda": ("panda_description/urdf/panda_no_gripper.urdf", ["panda_virtual_ee_link"]),
    "2link": ("2link_robot.urdf", ["endEffector"]),
    "fetch arm": ("fetch_description/urdf/fetch_arm_no_gripper_small_damping.urdf", ["virtual_ee_link"]),
    "allegro": (
        "allegro/urdf/allegro_hand_description_left_small_damping.urdf",
        [f"link_{k}.0_tip" for k in (3, 7, 11, 15)],
    ),
    "trifinger": ("trifinger_edu_description/trifinger_edu.urdf", [f"finger_tip_link_{k}" for k in (0, 120, 240)]),
    "jaco": ("kinova_description/urdf/jaco_clean.urdf", ["j2n6s300_link_ee"]),
}
BATCHES = [(), (1,), (3,), (6,), (7,)]
CASES = [(name, batch) for name in ROBOTS for batch in (BATCHES if name == "2link" else [(), (3,)])]
"""Every batch for the smallest robot: what a batch changes is the same for all."""


@cache
def pair(name: str) -> tuple[Any, DifferentiableRobotModel]:
    path = str(DATA / ROBOTS[name][0])
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        original = theirs.DifferentiableRobotModel(path, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return original, DifferentiableRobotModel(path, name)


def state(model: Any, batch: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(3)
    q, qd, x = (2 * torch.rand(*batch, model._n_dofs, generator=random) - 1 for _ in range(3))
    return q, qd, x


def same(ours: torch.Tensor, original: torch.Tensor, tolerance: float = 2e-5) -> None:
    """Relative to the largest entry; the original computes in float32."""
    assert ours.shape == original.shape and ours.dtype == original.dtype
    scale = max(float(original.detach().abs().max()), 1e-3)
    assert float((ours - original).detach().abs().max()) < tolerance * scale


@pytest.mark.parametrize("name", ROBOTS)
def test_structure(name: str) -> None:
    original, ours = pair(name)
    assert ours.get_link_names() == original.get_link_names()
    assert (ours._n_dofs, ours._controlled_joints) == (original._n_dofs, original._controlled_joints)
    assert ours.get_joint_limits() == original.get_joint_limits()
    for a, b in zip(ours._bodies[1:], original._bodies[1:], strict=True):
        assert a.get_joint_limits() == b.get_joint_limits()


@pytest.mark.parametrize(("name", "batch"), CASES, ids=str)
def test_kinematics(name: str, batch: tuple[int, ...]) -> None:
    original, ours = pair(name)
    q, _, _ = state(original, batch)
    for link in ROBOTS[name][1]:
        for a, b in zip(
            ours.compute_forward_kinematics(q, link), original.compute_forward_kinematics(q, link), strict=True
        ):
            same(a, b)
        for a, b in zip(
            ours.compute_endeffector_jacobian(q, link), original.compute_endeffector_jacobian(q, link), strict=True
        ):
            same(a, b)


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("name", ROBOTS)
def test_recursive_kinematics(name: str, batch: tuple[int, ...]) -> None:
    """Each beside a new model of the original: one that was used before mixes in poses of links that it saw then."""
    _, ours = pair(name)
    q, _, _ = state(ours, batch)
    original, _ = pair.__wrapped__(name)
    link = ROBOTS[name][1][0]
    expected = original.compute_forward_kinematics(q, link, recursive=True)
    for a, b in zip(ours.compute_forward_kinematics(q, link, recursive=True), expected, strict=True):
        same(a, b)


@pytest.mark.parametrize(("name", "batch"), CASES, ids=str)
def test_dynamics(name: str, batch: tuple[int, ...]) -> None:
    original, ours = pair(name)
    q, qd, x = state(original, batch)
    for gravity in (True, False):
        for damping in (True, False):
            flags = {"include_gravity": gravity, "use_damping": damping}
            same(
                ours.compute_inverse_dynamics(q, qd, x, **flags),
                original.compute_inverse_dynamics(q, qd, x, **flags),
            )
            same(ours.compute_non_linear_effects(q, qd, **flags), original.compute_non_linear_effects(q, qd, **flags))
            torque = ours.compute_inverse_dynamics(q, qd, x, **flags)
            found = ours.compute_forward_dynamics(q, qd, torque, **flags)
            expected = original.compute_forward_dynamics(q, qd, torque.clone(), **flags)
            # As torques: fingers of 1e-7 kg m^2 turn float32's roundings of these into visible accelerations.
            M = ours.compute_lagrangian_inertia_matrix(q)
            same((M @ found[..., None])[..., 0], (M @ expected[..., None])[..., 0], 1e-4)
    same(ours.compute_lagrangian_inertia_matrix(q), original.compute_lagrangian_inertia_matrix(q), 1e-4)


@pytest.mark.parametrize("default", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")], ids=str)
def test_every_method_on_a_device_whatever_the_default_type(device: Any, default: torch.dtype) -> None:
    """The original cannot be made under another default type than float32."""
    original, _ = pair.__wrapped__("2link")
    x = torch.rand(1, original._n_dofs, generator=torch.Generator().manual_seed(1))
    expected = _every_method(original, x)
    torch.set_default_dtype(default)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = DifferentiableRobotModel(DATA / "2link_robot.urdf", "2link", device=device)
        found = _every_method(ours, x.to(default))
    finally:
        torch.set_default_dtype(torch.float32)
    assert ours._device == torch.device("cpu") and {y.dtype for y in found} == {default}
    for a, b in zip(found, expected, strict=True):
        same(a.float(), b)


def _every_method(model: Any, x: torch.Tensor) -> list[torch.Tensor]:
    poses = model.compute_forward_kinematics_all_links(
        x
    )  # first: in the original it mixes in poses that were set before
    model.update_kinematic_state(x, x)
    body = model._bodies[-1]
    return [
        body.pose.translation().reshape(-1, 3).expand(1, 3),
        body.vel.ang,
        body.vel.lin,
        *model.compute_forward_kinematics(x, "endEffector"),
        *(part for link in sorted(poses) for part in poses[link]),
        model.compute_inverse_dynamics(x, x, x),
        model.compute_non_linear_effects(x, x),
        model.compute_lagrangian_inertia_matrix(x),
        model.compute_forward_dynamics(x, x, x),
        *model.compute_endeffector_jacobian(x, "endEffector"),
    ]


def test_other_devices_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="device cuda: kernels run on the processor; pass device='cpu'"):
        DifferentiableRobotModel(DATA / "2link_robot.urdf", device="cuda")


@pytest.mark.parametrize("name", ROBOTS)
def test_round_trip_in_float64(name: str) -> None:
    _, ours = pair(name)
    q, qd, x = (y.double() for y in state(ours, (5,)))
    torque = ours.compute_inverse_dynamics(q, qd, x, use_damping=True)
    same(ours.compute_forward_dynamics(q, qd, torque, use_damping=True), x, 1e-7)
    same(ours.compute_forward_dynamics_old(q, qd, torque, use_damping=True), x, 1e-7)


@pytest.mark.parametrize("name", ["iiwa", "allegro"])
def test_gradients(name: str) -> None:
    original, ours = pair(name)
    q, qd, x = state(original, (3,))
    found = []
    for model in (ours, original):
        leaves = [y.clone().requires_grad_() for y in (q, qd, x)]
        torque = model.compute_inverse_dynamics(leaves[0], leaves[1], leaves[2])
        found.append(torch.autograd.grad((torque * torch.arange(model._n_dofs)).sum(), leaves))
    for a, b in zip(*found, strict=True):
        same(a, b, 1e-4)


def test_learnable_parameters_give_the_same_torques_and_gradients() -> None:
    from differentiable_robot_model import rigid_body_params as their_params

    from costate.compat.differentiable_robot_model import rigid_body_params as our_params

    path = str(DATA / ROBOTS["iiwa"][0])
    found = []
    for module, params in ((theirs.DifferentiableRobotModel, their_params), (DifferentiableRobotModel, our_params)):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            model = module(path, "iiwa")
        start = torch.tensor([[0.01, 0.02, 0.2]])
        model.make_link_param_learnable("iiwa_link_2", "trans", params.UnconstrainedTensor(1, 3, init_tensor=start))
        angles = torch.tensor([[1.5, 0.1, 3.0]])
        model.make_link_param_learnable(
            "iiwa_link_2", "rot_angles", params.UnconstrainedTensor(1, 3, init_tensor=angles)
        )
        model.make_link_param_learnable("iiwa_link_3", "mass", params.PositiveScalar(init_param=torch.tensor(2.0)))
        com = params.UnconstrainedTensor(1, 3, init_tensor=torch.tensor([[0.0, 0.1, 0.1]]))
        model.make_link_param_learnable("iiwa_link_3", "com", com)
        inertia = torch.tensor([[[0.1, 0.01, 0.0], [0.01, 0.2, 0.0], [0.0, 0.0, 0.15]]])
        net = params.CovParameterized3DInertiaMatrixNet(init_param=inertia)
        model.make_link_param_learnable("iiwa_link_3", "inertia_mat", net)
        damping = params.UnconstrainedScalar(torch.tensor([0.3]))
        model.make_link_param_learnable("iiwa_link_4", "joint_damping", damping)
        q, qd, x = state(model, (7,))
        torque = model.compute_inverse_dynamics(q, qd, x)
        gradients = torch.autograd.grad((torque**2).sum(), list(model.parameters()))
        position, _ = model.compute_forward_kinematics(q, "iiwa_link_ee")
        found.append((torque, position, sorted(gradients, key=lambda g: (g.shape, float(g.sum())))))
    same(found[1][0], found[0][0])
    same(found[1][1], found[0][1])
    for a, b in zip(found[1][2], found[0][2], strict=True):
        same(a, b, 1e-4)


@pytest.mark.parametrize(
    "ours",
    [DifferentiableKUKAiiwa, DifferentiableFrankaPanda, DifferentiableTwoLinkRobot, DifferentiableTrifingerEdu],
)
def test_shipped_robots(ours: type) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ours(device="cpu")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        original = getattr(theirs, ours.__name__)()
    assert model.get_link_names() == original.get_link_names()
    assert model.name == original.name
