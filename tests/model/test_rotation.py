"""Angles, quaternions and matrices agree with scipy, also where angles are ill-defined."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from costate.model.rotation import about_axis, aligning_z, from_rpy, from_wxyz, to_rpy

ANGLES = st.floats(-4, 4) | st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, np.pi / 2 + 1e-9, np.pi / 2 - 1e-13])


@given(st.tuples(ANGLES, ANGLES, ANGLES))
def test_rpy(rpy) -> None:
    R = from_rpy(rpy)
    np.testing.assert_allclose(R, Rotation.from_euler("xyz", rpy).as_matrix(), rtol=0, atol=3e-15)
    np.testing.assert_allclose(from_rpy(to_rpy(R)), R, rtol=0, atol=2e-15)


@given(st.integers(0, 2**32 - 1))
def test_quaternions_axes_and_directions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w, x, y, z = q = rng.normal(size=4)
    np.testing.assert_allclose(from_wxyz(q), Rotation.from_quat([x, y, z, w]).as_matrix(), atol=3e-15)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    angle = rng.uniform(-7, 7)
    np.testing.assert_allclose(about_axis(axis, angle), Rotation.from_rotvec(angle * axis).as_matrix(), atol=3e-15)
    R = aligning_z(3 * axis)
    np.testing.assert_allclose(R @ [0, 0, 1], axis, atol=1e-15)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(R) > 0


def test_quarter_turns_are_exact() -> None:
    assert np.array_equal(from_rpy((np.pi / 2, 0, np.pi)), [[-1, 0, 0], [0, 0, 1], [0, 1, 0]])
