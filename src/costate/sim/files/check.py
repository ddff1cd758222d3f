"""Numbers of a robot that was read from the file of a world: those that no body and no joint can have are refused.

Readers of URDF and MJCF check what they read where it stands. A world's file has the model itself, whose classes check kinds and
shapes only. Negative principal moments are taken as they are: a URDF may be read with `inertia="keep"`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from costate.model import Model

UNBOUNDED = ("lower", "upper", "max_velocity", "max_effort", "weakest", "strongest", "max_angle", "efforts", "range")
"""Fields that may be infinite."""
TOLERANCE = 1e-6
"""Largest error of a rotation and of the length of an axis."""


def check_model(model: Model, where: str) -> None:
    """Raise a ValueError that names the first link or joint with an impossible number. where: place of the model in its file."""
    for place, name, value in _numbers(model, where):
        if np.isnan(value).any() or (name not in UNBOUNDED and np.isinf(value).any()):
            raise ValueError(f"{place} is {value.tolist()}; expected finite numbers")
    for link in model.links:
        if link.inertia.mass < 0:
            raise ValueError(f"{where}: link '{link.name}' has the mass {link.inertia.mass}; expected 0 or more")
        for shape in (*link.visuals, *link.collisions):
            _check_rotation(shape.pose.rotation, f"{where}: a {shape.kind} of link '{link.name}'")
    for joint in model.joints:
        at = f"{where}: joint '{joint.name}'"
        _check_rotation(joint.origin.rotation, at)
        if joint.nv == 1 and abs(np.linalg.norm(joint.axis) - 1) > TOLERANCE:
            raise ValueError(f"{at} has the axis {joint.axis.tolist()}; expected one of length 1")
        if (joint.lower > joint.upper).any():
            raise ValueError(
                f"{at} has the limits {joint.lower.tolist()}, {joint.upper.tolist()}; expected lower <= upper"
            )
        for name in ("damping", "friction", "armature"):
            if getattr(joint, name) < 0:
                raise ValueError(f"{at} has {name} {getattr(joint, name)}; expected 0 or more")


def _check_rotation(R: np.ndarray, where: str) -> None:
    if np.abs(R @ R.T - np.eye(3)).max() > TOLERANCE or np.linalg.det(R) < 0:
        raise ValueError(f"{where} has the rotation {R.tolist()}; expected a proper one, with determinant 1")


def _numbers(value: Any, where: str, name: str = "") -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield the place, the field and the value of all numbers in nested dataclasses."""
    if is_dataclass(value):
        for f in fields(value):
            yield from _numbers(getattr(value, f.name), f"{where}.{f.name}", f.name)
    elif isinstance(value, tuple):
        for k, v in enumerate(value):
            yield from _numbers(v, f"{where}[{k}]", name)
    elif isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        yield where, name, np.asarray(value)
