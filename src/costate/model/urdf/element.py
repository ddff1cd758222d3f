"""Parts that elements of URDF share: poses and numbers, read and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.model.document import Node
from costate.model.rotation import from_rpy, to_rpy
from costate.model.transform import Transform


def read_origin(node: Node) -> Transform:
    """Return the pose in the <origin> of an element; the identity if it has none."""
    origin = node.child("origin")
    if origin is None:
        return Transform()
    rotation = from_rpy(origin.vector("rpy", (0.0, 0.0, 0.0))) if "rpy" in origin.element.attrib else np.eye(3)
    return Transform(rotation, origin.vector("xyz", (0.0, 0.0, 0.0)))


def write_origin(node: Any, pose: Transform) -> None:
    """Add an <origin>, unless the pose is the identity."""
    rpy = np.zeros(3) if np.array_equal(pose.rotation, np.eye(3)) else to_rpy(pose.rotation)
    if np.any(rpy) or np.any(pose.translation):
        add(node, "origin", xyz=row(pose.translation), rpy=row(rpy))


def add(parent: Any, tag: str, **attributes: str) -> Any:
    """Add an element and return it."""
    return etree.SubElement(parent, tag, **attributes)


def row(values: Iterable[float]) -> str:
    """Return numbers separated by spaces."""
    return " ".join(number(value) for value in values)


def number(value: float) -> str:
    """Return the shortest decimal that reads back as the same number."""
    return repr(float(value) + 0.0)
