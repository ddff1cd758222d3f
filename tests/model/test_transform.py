"""Poses in all forms in which a user gives them, against SciPy's rotations; and what is no pose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import costate as cs
from costate.model.rotation import to_xyzw
from costate.model.transform import as_transform

POSITION, RPY = (0.1, -0.2, 0.3), (0.4, -0.5, 1.6)
TURN = Rotation.from_euler("xyz", RPY)
MATRIX = np.block([[TURN.as_matrix(), np.array(POSITION)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
ANY: Any = cs  # as a user without a type checker sees it

FORMS: dict[str, Any] = {
    "position and angles": (POSITION, RPY),
    "lists": [list(POSITION), list(RPY)],
    "an array of both": np.array([POSITION, RPY]),
    "position and quaternion": (POSITION, TURN.as_quat()),
    "a long quaternion": (POSITION, 3 * TURN.as_quat()),
    "its negative": (POSITION, tuple(-TURN.as_quat())),
    "position and matrix": (POSITION, TURN.as_matrix()),
    "coordinates of a state": torch.tensor([*POSITION, *TURN.as_quat()], dtype=torch.float64),
    "a 4x4 matrix": MATRIX,
    "a 4x4 tensor": torch.tensor(MATRIX),
    "a 4x4 list": MATRIX.tolist(),
    "a transform": cs.Transform.at(POSITION, RPY),
    "a pose of tensors": cs.Pose(torch.tensor(POSITION, dtype=torch.float64), torch.tensor(TURN.as_matrix())),
    "numbers of tensors": (tuple(torch.tensor(x, dtype=torch.float64) for x in POSITION), RPY),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    found = as_transform(FORMS[form])
    np.testing.assert_allclose(found.rotation, TURN.as_matrix(), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.translation, POSITION, rtol=0, atol=0)
    np.testing.assert_allclose(found.matrix, MATRIX, rtol=0, atol=1e-15)


def test_a_position_alone_turns_nothing() -> None:
    found = as_transform((1, 2, 3))
    assert np.array_equal(found.rotation, np.eye(3)) and found.translation.tolist() == [1, 2, 3]
    assert cs.Transform().is_identity() and not found.is_identity()


def test_single_precision_becomes_a_rotation() -> None:
    """Rounding of float32 would otherwise stretch a body by 1e-7."""
    found = as_transform(MATRIX.astype(np.float32))
    assert np.abs(found.rotation @ found.rotation.T - np.eye(3)).max() < 8 * np.finfo(float).eps
    assert np.abs(found.rotation - TURN.as_matrix()).max() < 1e-7


def test_quaternions_against_scipy() -> None:
    """Also half turns, where w is zero; the largest component is positive."""
    half = [Rotation.from_rotvec(np.pi * x) for x in (*np.eye(3), np.array([0.6, 0.0, -0.8]))]
    for turn in (*half, *Rotation.from_quat(np.random.default_rng(0).normal(size=(200, 4)))):
        found = to_xyzw(turn.as_matrix())
        expected = turn.as_quat()
        expected = expected * np.sign(expected[np.abs(expected).argmax()])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    assert cs.Transform().coordinates.tolist() == [0, 0, 0, 0, 0, 0, 1]


def test_angles_come_back() -> None:
    np.testing.assert_allclose(cs.Transform.at(POSITION, RPY).rpy, RPY, rtol=0, atol=1e-15)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "both": (lambda: cs.Transform.at(POSITION, RPY, (0, 0, 0, 1)), "rpy= or quaternion=, not both"),
    "no rotation": (
        lambda: cs.Transform.at(quaternion=(0, 0, 0, 0)),
        r"quaternion is zero.*\(0, 0, 0, 1\): x, y, z, w",
    ),
    "nan": (lambda: cs.Transform.at((0, 0, np.nan)), "finite"),
    "scaled": (lambda: as_transform(np.diag([2.0, 2, 2, 1])), "not a rigid transform.*differs from the identity by 3"),
    "mirrored": (lambda: as_transform(np.diag([1.0, 1, -1, 1])), "not a rigid transform.*mirrors"),
    "transposed": (lambda: as_transform(MATRIX.T), "last row.*0, 0, 0, 1"),
    "two numbers": (lambda: as_transform((1, 2)), r"expected one of \(x, y, z\), \(position, rpy\)"),
    "3x3": (lambda: as_transform(np.eye(3)), r"shape \(3, 3\); expected one of"),
    "words": (lambda: as_transform("here"), "is 'here'; expected one of"),
    "angles of two": (lambda: cs.Transform.at(rpy=(0, 1)), r"rpy of the transform has shape \(2,\); expected \(3,\)"),
    "a mirror of a transform": (
        lambda: cs.Static("wall", cs.shapes.plane(), cs.Transform(-np.eye(3))),
        "'wall': the matrix is not a rigid",
    ),
    "pose and position": (
        lambda: cs.Body("b", [], 1.0, pose=(0, 0, 1), position=(0, 0, 1)),
        "body 'b': give pose=, or position=",
    ),
    "the wrong number of robots": (
        lambda: cs.World([cs.load_robot("two_link")], poses=[(0, 0, 0), (1, 0, 0)]),
        "one for each robot",
    ),
    "one pose for robots": (lambda: ANY.World([cs.load_robot("two_link")], poses=(0, 0, 1)), "expected robot -> pose"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_no_pose(mistake: str) -> None:
    call, message = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError), match=message):
        call()
