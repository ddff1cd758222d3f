"""Quaternions against scipy, and their derivatives where formulas usually break: at no rotation and at half turns."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from casadi import SX
from scipy.spatial.transform import Rotation
from tests.physics.evaluate import evaluate

from costate.physics.algebra import quaternion

AXES = [*np.eye(3), *(-np.eye(3)), np.array([1.0, 2.0, 2.0]) / 3, np.array([1.0, -1.0, 0.0]) / np.sqrt(2)]
ANGLES = [0.0, 1e-9, 1e-3, 3.1e-3, 3.3e-3, 0.5, 2.0, np.pi - 1e-3, np.pi - 1e-9, np.pi]
vectors = pytest.mark.parametrize("w", [angle * axis for angle in ANGLES for axis in AXES])


def same_rotation(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-14) -> bool:
    return min(np.abs(a - b).max(), np.abs(a + b).max()) <= tolerance


def run(function, *values: np.ndarray) -> np.ndarray:
    inputs = [SX.sym("x", *np.atleast_2d(np.asarray(v).T).T.shape) for v in values]
    return evaluate(inputs, [function(*inputs)], *values)[0]


@vectors
def test_exp_and_rotation(w: np.ndarray) -> None:
    expected = Rotation.from_rotvec(w)
    assert same_rotation(run(quaternion.exp, w), expected.as_quat())
    np.testing.assert_allclose(run(quaternion.to_rotation, expected.as_quat()), expected.as_matrix(), atol=1e-14)
    assert same_rotation(run(quaternion.from_rotation, expected.as_matrix()), expected.as_quat())


@vectors
def test_log_inverts_exp(w: np.ndarray) -> None:
    back = run(lambda x: quaternion.log(quaternion.exp(x)), w)
    # At pi both directions are the same rotation.
    assert np.abs(back - w).max() < 1e-14 or (np.linalg.norm(w) > 3.14159 and np.abs(back + w).max() < 1e-8)


@vectors
def test_derivatives_against_differences(w: np.ndarray) -> None:
    """Derivatives of exp, and of the quaternion of a rotation matrix along nearby rotations, match differences."""
    x = SX.sym("x", 3)
    R0 = ca.SX(ca.DM(Rotation.from_rotvec(w).as_matrix()))
    functions = {
        "exp": (quaternion.exp(x), w),
        "from_rotation": (quaternion.from_rotation(R0 @ quaternion.to_rotation(quaternion.exp(x))), np.zeros(3)),
    }
    h = 1e-6
    for name, (expression, at) in functions.items():
        f, J = ca.Function("f", [x], [expression]), ca.Function("J", [x], [ca.jacobian(expression, x)])
        slope = np.array(J(at))
        for k in range(3):
            sides = [np.array(f(at + s * h * np.eye(3)[k]))[:, 0] for s in (1, -1)]
            # Either sign is the same rotation: take that of the middle.
            sides = [side * np.sign(side @ np.array(f(at))[:, 0]) for side in sides]
            assert np.abs(slope[:, k] - (sides[0] - sides[1]) / (2 * h)).max() < 1e-8, name


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 1.0, 3.0])
def test_log_derivative(angle: float) -> None:
    """d log(exp(x)) / dx is the identity: the two derivatives undo each other, also at zero."""
    x = SX.sym("x", 3)
    w = angle * np.array([1.0, 2.0, 2.0]) / 3
    J = evaluate([x], [ca.jacobian(quaternion.log(quaternion.exp(x)), x)], w)[0]
    np.testing.assert_allclose(J, np.eye(3), atol=1e-12)


@vectors
def test_left_jacobian(w: np.ndarray) -> None:
    """V(w) is the mean rotation on the way: the integral of exp(s w) over s in [0, 1], by Gauss-Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    mean = sum(a * Rotation.from_rotvec(w * (s + 1) / 2).as_matrix() / 2 for s, a in zip(nodes, weights, strict=True))
    V = run(quaternion.left_jacobian, w)
    np.testing.assert_allclose(V, mean, atol=1e-14)
    np.testing.assert_allclose(V @ run(quaternion.left_jacobian_inverse, w), np.eye(3), atol=1e-12)


@vectors
def test_length_does_not_matter(w: np.ndarray) -> None:
    q = Rotation.from_rotvec(w).as_quat()
    for function in (quaternion.to_rotation, quaternion.log):
        np.testing.assert_allclose(run(function, 3.0 * q), run(function, q), atol=1e-14)
