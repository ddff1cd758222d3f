"""The <joint> elements of URDF, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.model.document import Node
from costate.model.errors import Assumptions
from costate.model.joint import JOINT_SIZES, Joint, Mimic
from costate.model.urdf.element import add, number, read_origin, row, write_origin

_KINDS = {kind: kind for kind in JOINT_SIZES} | {"ball": "spherical"}
"""Our kinds by type of URDF. "spherical" and "ball" are common extensions."""
_HAS_AXIS = ("revolute", "continuous", "prismatic", "planar")
_RANGED = ("revolute", "prismatic")
_DYNAMICS = ("damping", "friction", "armature", "stiffness", "rest")
"""Attributes of <dynamics>: two of URDF and three of our own."""

NO_LIMIT = 1e300
"""Limit from which on there is none: `write_urdf` writes 1.8e308, which other readers take as a number."""
_UNLIMITED = np.finfo(float).max


def read_joint(node: Node, links: Mapping[str, object], assumed: Assumptions) -> Joint:
    """Return the joint of a <joint> element between two of the links."""
    name = node.name()
    kind = _KINDS.get(node.text("type")) or node.fail(
        f'has the unknown type "{node.text("type")}"; one of {", ".join(_KINDS)} is expected'
    )
    return Joint(
        name=name,
        kind=kind,
        parent=_end(node, "parent", links),
        child=_end(node, "child", links),
        origin=read_origin(node),
        axis=_axis(node, kind),
        mimic=_mimic(node, kind),
        **_limits(node, name, kind, assumed),
        **_dynamics(node),
    )


def _end(node: Node, which: str, links: Mapping[str, object]) -> str:
    end = node.require(which)
    name = end.text("link")
    if name not in links:
        end.fail(f"names the link {name!r}, but there is no such <link>; add it or correct the name")
    return name


def _axis(node: Node, kind: str) -> Array:
    element = node.child("axis")
    if kind not in _HAS_AXIS:
        return np.array([0.0, 0.0, 1.0])
    if element is None:
        return np.array([1.0, 0.0, 0.0])  # the default of the URDF specification
    axis = element.vector("xyz", (1.0, 0.0, 0.0))
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        element.fail("is zero; give the direction of the joint axis")
    # An axis of unit length up to rounding stays as it is, so that writing and reading again changes nothing.
    return axis if abs(length - 1.0) < 4e-16 else axis / length


def _limits(node: Node, name: str, kind: str, assumed: Assumptions) -> dict[str, Any]:
    """Return the limits of a joint; joints with several velocities may give one number for each of them."""
    limit, n = node.child("limit"), JOINT_SIZES[kind][1]
    if limit is None:
        if kind in _RANGED:
            assumed.note(f"{kind} joints without <limit>, taken as unlimited", name)
        return {}
    found = {key: _unlimited(limit.numbers(key[4:], n, np.inf)) for key in ("max_velocity", "max_effort")}
    for key, value in found.items():
        if np.any(value < 0.0):
            limit.fail(f"has the {key[4:]} {limit.text(key[4:])}; it must not be negative")
    if kind != "continuous":
        found |= _range(limit, name, kind, assumed)
    return found


def _range(limit: Node, name: str, kind: str, assumed: Assumptions) -> dict[str, Array]:
    n, ranged = JOINT_SIZES[kind][1], kind in _RANGED
    if not {"lower", "upper"} & set(limit.element.attrib):
        if ranged:
            assumed.note(f"{kind} joints with neither lower nor upper limit, taken as unlimited", name)
        return {}
    # One limit alone: URDF says that the other one is zero.
    lower = _unlimited(limit.numbers("lower", n, 0.0 if ranged else -np.inf))
    upper = _unlimited(limit.numbers("upper", n, 0.0 if ranged else np.inf))
    if np.any(lower > upper):
        assumed.note("joints whose lower limit is above the upper one, taken as unlimited", name)
        return {}
    return {"lower": lower, "upper": upper}


def _unlimited(values: Array) -> Array:
    return np.where(np.abs(values) >= NO_LIMIT, np.copysign(np.inf, values), values)


def _dynamics(node: Node) -> dict[str, Any]:
    """Return damping and friction of URDF, and our further attributes armature, stiffness and rest."""
    found: dict[str, Any] = dict.fromkeys(_DYNAMICS, 0.0)
    dynamics, armature = node.child("dynamics"), node.child("armature")
    if dynamics:
        found = {key: dynamics.number(key, 0.0) for key in found}
    if armature:
        found["armature"] = armature.number("value")
    for key, value in found.items():
        if value < 0.0 and key != "rest":
            (dynamics or node).fail(f"has the {key} {value}; it must not be negative")
    return found


def _mimic(node: Node, kind: str) -> Mimic | None:
    mimic = node.child("mimic")
    if mimic is None or kind == "fixed":
        return None
    return Mimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


def write_joint(root: Any, joint: Joint) -> None:
    """Add a <joint> element."""
    node = add(root, "joint", name=joint.name, type=joint.kind)
    write_origin(node, joint.origin)
    add(node, "parent", link=joint.parent)
    add(node, "child", link=joint.child)
    if joint.kind in _HAS_AXIS:
        add(node, "axis", xyz=row(joint.axis))
    if joint.kind != "fixed":
        _write_limits(node, joint)
    dynamics = {k: getattr(joint, k) for k in _DYNAMICS}
    if any(dynamics.values()):
        add(node, "dynamics", **{k: number(v) for k, v in dynamics.items() if v or k in ("damping", "friction")})
    if joint.mimic:
        multiplier, offset = number(joint.mimic.multiplier), number(joint.mimic.offset)
        add(node, "mimic", joint=joint.mimic.joint, multiplier=multiplier, offset=offset)


def _write_limits(node: Any, joint: Joint) -> None:
    limits = {"effort": joint.max_effort, "velocity": joint.max_velocity}
    if joint.kind != "continuous":
        limits |= {"lower": joint.lower, "upper": joint.upper}
    if joint.kind in _RANGED or any(np.any(np.isfinite(v)) for v in limits.values()):
        add(node, "limit", **{name: row(np.clip(v, -_UNLIMITED, _UNLIMITED)) for name, v in limits.items()})
