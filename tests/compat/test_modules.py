"""The smaller modules of differentiable-robot-model through both packages: same names, arguments and results."""

from __future__ import annotations

import inspect
import math

import pytest
import torch

pytest.importorskip("differentiable_robot_model")

from differentiable_robot_model import se3_so3_util as their_maps
from differentiable_robot_model import spatial_vector_algebra as their_algebra
from differentiable_robot_model import utils as their_utils
from tests.compat.test_same_calls import pair, state

from costate.compat.differentiable_robot_model import se3_so3_util as maps
from costate.compat.differentiable_robot_model import spatial_vector_algebra as algebra
from costate.compat.differentiable_robot_model import utils

TOLERANCE = 2e-6
"""The original computes in float32."""

torch.set_default_dtype(
    torch.float32
)  # of the original, while calls are written down; conftest.py sets it for the tests
W = torch.tensor([0.3, -0.5, 0.8])
TWIST = torch.tensor([0.1, 0.2, -0.4, 0.3, -0.5, 0.8])
ROWS = torch.tensor([[0.1, 0.2, 0.3], [-1.0, 0.5, 0.25]])
MATRIX = torch.zeros(2, 3, 3)

# Function -> arguments.
CALLS = {
    utils: {
        "prod": ([2, 3, 7],),
        "cross_product": (ROWS, ROWS.flip(0)),
        "bfill_lowertriangle": (MATRIX.clone(), ROWS),
        "bfill_diagonal": (MATRIX.clone(), ROWS),
        "vector3_to_skew_symm_matrix": (ROWS,),
        "torch_square": (ROWS,),
        "exp_map_so3": (W,),
        "convert_into_pytorch_tensor": ([1.0, 2.0],),
        "convert_into_at_least_2d_pytorch_tensor": (W,),
    },
    maps: {
        "integrateAxisAngle": (W.double(), W.double().flip(0), 0.1),
        "computeAngularError": (W.double(), W.double().flip(0)),
        "convertAxisAngleToQuaternion": (W,),
        "convertQuaternionToAxisAngle": (torch.tensor([0.1, 0.5, -0.1, 0.85440037]),),
        "getSkewSymMatFromVec3": (W,),
        "getVec3FromSkewSymMat": (their_maps.getSkewSymMatFromVec3(W),),
        "getKseehatFromWrench": (TWIST,),
        "getHomogeneousTransformMatrixFromAxes": (W, *torch.eye(3).unbind(0)),
        "getAxesFromHomogeneousTransformMatrix": (their_maps.expMapse3(their_maps.getKseehatFromWrench(TWIST)),),
        "getInverseHomogeneousTransformMatrix": (their_maps.expMapse3(their_maps.getKseehatFromWrench(TWIST)),),
        "logMapSO3": (their_maps.expMapso3(their_maps.getSkewSymMatFromVec3(W)),),
        "expMapso3": (their_maps.getSkewSymMatFromVec3(W),),
        "logMapSE3": (their_maps.expMapse3(their_maps.getKseehatFromWrench(TWIST.double())),),
        "expMapse3": (their_maps.getKseehatFromWrench(TWIST),),
    },
    algebra: {"x_rot": (W[:, None],), "y_rot": (W[:, None],), "z_rot": (W[0],)},
}
THEIRS = {utils: their_utils, maps: their_maps, algebra: their_algebra}
CASES = [(module, name) for module, calls in CALLS.items() for name in calls]
torch.set_default_dtype(torch.float64)


def close(ours, original) -> None:
    if isinstance(original, tuple):
        for a, b in zip(ours, original, strict=True):
            close(a, b)
    elif isinstance(original, torch.Tensor):
        assert ours.shape == original.shape
        assert torch.allclose(ours.to(original.dtype), original, rtol=0, atol=TOLERANCE)
    else:
        assert ours == original


@pytest.mark.parametrize(("module", "name"), CASES, ids=[name for _, name in CASES])
def test_same_functions(module, name: str) -> None:
    original, ours = getattr(THEIRS[module], name), getattr(module, name)
    if name != "prod":  # a lambda there
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(original).parameters)
    arguments = CALLS[module][name]
    close(ours(*arguments), original(*(x.clone() if isinstance(x, torch.Tensor) else x for x in arguments)))


@pytest.mark.parametrize("module", [utils, maps])
def test_no_function_is_missing(module) -> None:
    theirs = {n for n, x in vars(THEIRS[module]).items() if inspect.isfunction(x) and x.__module__.startswith("diff")}
    assert theirs <= {n for n, x in vars(module).items() if inspect.isfunction(x)}


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 1.0, 3.0, math.pi - 1e-9])
def test_maps_are_inverse_to_each_other_at_any_angle(angle: float) -> None:
    """The original loses half a turn and its gradient at none."""
    twist = torch.cat([TWIST[:3].double(), angle * W.double() / W.double().norm()])
    T = maps.expMapse3(maps.getKseehatFromWrench(twist))
    assert torch.allclose(maps.getWrenchFromKseehat(maps.logMapSE3(T)), twist, atol=1e-7)
    assert torch.allclose(maps.getInverseHomogeneousTransformMatrix(T) @ T, torch.eye(4).double(), atol=1e-12)
    assert torch.allclose(maps.getVec3FromSkewSymMat(maps.logMapSO3(T[:3, :3])), twist[3:], atol=1e-7)
    quaternion = maps.convertAxisAngleToQuaternion(twist[3:])
    assert torch.allclose(maps.convertQuaternionToAxisAngle(quaternion), twist[3:], atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-3, 1.0])
def test_gradients_of_the_maps(angle: float) -> None:
    twist = torch.cat([TWIST[:3].double(), angle * W.double()]).requires_grad_()

    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        T = maps.expMapse3(maps.getKseehatFromWrench(x))
        return maps.getWrenchFromKseehat(maps.logMapSE3(T)) + maps.convertAxisAngleToQuaternion(x[3:]).sum()

    assert torch.autograd.gradcheck(there_and_back, (twist,))


def test_transforms_and_spatial_vectors() -> None:
    found = []
    for a in (algebra, their_algebra):
        R = their_algebra.x_rot(W[:2, None]) @ their_algebra.z_rot(W[1:, None])
        T = a.CoordinateTransform(R, ROWS)
        motion, force = a.SpatialMotionVec(ROWS, ROWS.flip(0)), a.SpatialForceVec(ROWS.flip(1), ROWS)
        turned = motion.transform(T.inverse()).cross_motion_vec(motion).add_motion_vec(motion)
        pushed = motion.cross_force_vec(force).transform(T.multiply_transform(T)).add_force_vec(force)
        values = (T.to_matrix(), T.to_matrix_transpose(), T.trans_cross_rot(), T.get_quaternion())
        found.append(
            (*values, turned.get_vector(), pushed.get_vector(), motion.dot(motion), motion.multiply(W[:2]).lin)
        )
    close(*found)


@pytest.mark.parametrize("name", ["iiwa", "allegro"])
def test_newton_euler_fills_the_bodies(name: str) -> None:
    original, ours = pair(name)
    q, qd, qdd = state(original, (3,))
    found = []
    for model, a in ((ours, algebra), (original, their_algebra)):
        model.update_kinematic_state(q, qd)
        for i, k in enumerate(model._controlled_joints):
            model._bodies[k].update_joint_acc(qdd[:, i : i + 1])
        model.iterative_newton_euler(
            a.SpatialMotionVec(torch.tensor([[0.0, 0.0, 9.81]]).repeat(3, 1), torch.zeros(3, 3))
        )
        rows = []
        for body in model._bodies[1:]:
            parts = (
                body.pose.translation(),
                body.pose.rotation(),
                body.vel.lin,
                body.vel.ang,
                body.acc.lin,
                body.acc.ang,
            )
            rows += [x.expand(3, *x.shape[1:]) for x in (*parts, body.force.lin, body.force.ang)]
        found.append(rows)
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)
    body = ours._bodies[ours._controlled_joints[-1]]
    torque = (body.force.ang * body.joint_axis).sum(-1)
    expected = ours.compute_inverse_dynamics(q, qd, qdd, use_damping=False)[:, -1]
    assert torch.allclose(torque, expected, rtol=1e-4, atol=1e-5)


def test_inertia_of_a_body() -> None:
    original, ours = pair("iiwa")
    a, b = ours._bodies[4], original._bodies[4]
    for name in ("trans", "rot_angles", "joint_damping"):
        close(getattr(a, name)().reshape(-1), getattr(b, name)().reshape(-1))
    for name in ("mass", "com", "inertia_mat", "get_spatial_mat"):
        close(getattr(a.inertia, name)().reshape(-1), getattr(b.inertia, name)().reshape(-1))
