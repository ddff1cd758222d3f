"""Inertias that no body can have: what is tolerated, kept, repaired or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from costate.core.arrays import Array
from costate.core.names import unknown
from costate.model.document import Node
from costate.model.errors import Assumptions
from costate.model.joint import Joint
from costate.model.model import Inertia, Link
from costate.model.transform import Transform

Faulty = Literal["refuse", "keep", "repair"]
"""Answers to an inertia that no body can have."""

_ROUNDED = 1e-5
"""Error of printed inertias relative to the largest principal moment: files print about six digits."""
_RADIUS = 1e-6
"""Radius of gyration below which the moments of a link are rounding [m]."""
_DUST = 1e-20
"""Moment of inertia below which any is rounding [kg m^2]; a grain of dust has more."""


def check_answer(inertia: object) -> None:
    """Raise if what is to be done with faulty inertias is none of the answers there are."""
    if inertia not in get_args(Faulty):
        raise ValueError(unknown("answer to a faulty inertia", str(inertia), get_args(Faulty)))


def is_possible(matrix: Array) -> bool:
    """Tell whether some distribution of mass has a rotational inertia (3, 3), without any tolerance."""
    low, middle, high = np.linalg.eigvalsh(matrix)
    return bool(low >= 0.0 and low + middle >= high)


def settle_inertias(
    root: Node, links: tuple[Link, ...], joints: tuple[Joint, ...], faulty: Faulty, assumed: Assumptions
) -> tuple[Link, ...]:
    """Return the links with inertias as they are to be used; refuse or note those that no mass distribution has."""
    check_answer(faulty)
    nodes = {node.name(): node for node in root.children("link")}
    bodies: dict[int, Inertia] = {}
    settled = []
    for i, link in enumerate(links):
        moments = np.linalg.eigvalsh(link.inertia.matrix)
        if link.inertia.mass == 0.0 and moments[2] > 0.0:
            assumed.note("links with a rotational inertia but no mass, kept", link.name)
        negative, own = _negative(moments), link.inertia
        if faulty == "repair" and (negative or _uneven(moments)):
            assumed.note("inertias that no body can have, repaired", link.name)
            own = replace(own, matrix=nearest_inertia(own.matrix))
        elif negative and -moments[0] <= own.mass * _RADIUS**2 + _DUST:
            assumed.note("principal moments that are negative by rounding, kept", link.name)
        elif negative and faulty == "keep":
            assumed.note("inertias with negative principal moments, kept", link.name)
        elif negative:
            bodies = bodies or _rigid_bodies(links, joints)
            if _negative(np.linalg.eigvalsh(bodies[i].matrix)):
                _refuse(nodes[link.name], moments)
            assumed.note("inertias with negative moments, kept because links fixed to theirs outweigh them", link.name)
        elif _uneven(moments):
            assumed.note(
                "inertias that no body can have (one principal moment exceeds the sum of the others), kept", link.name
            )
        settled.append(link if own is link.inertia else replace(link, inertia=own))
    return tuple(settled)


def nearest_inertia(matrix: Array) -> Array:
    """Return the rotational inertia (3, 3) of the nearest mass distribution.

    The second moments of mass along the principal axes, s_i = (d_1 + d_2 + d_3) / 2 - d_i for the principal moments d, must not
    be negative: those that are become zero.
    """
    d, R = np.linalg.eigh(matrix)
    s = np.maximum(d.sum() / 2 - d, 0.0)
    return R @ np.diag(s.sum() - s) @ R.T


def _negative(moments: Array) -> bool:
    return bool(moments[0] < -_ROUNDED * abs(moments[2]) or moments[2] < 0.0)


def _uneven(moments: Array) -> bool:
    return bool(moments[0] + moments[1] < moments[2] * (1 - _ROUNDED))


def _refuse(node: Node, moments: Array) -> None:
    inertial = node.require("inertial")
    low, middle, high = moments
    (inertial.child("inertia") or inertial).fail(
        f"has the principal moments {low:.6g}, {middle:.6g}, {high:.6g} kg m^2; none may be negative. Mend the file, or load "
        'it with inertia="repair" (the nearest inertia that a body can have) or inertia="keep"'
    )


def _rigid_bodies(links: tuple[Link, ...], joints: tuple[Joint, ...]) -> dict[int, Inertia]:
    """Return, by the index of each link, the inertia of it and all links that are fixed to it, in one frame."""
    index = {link.name: i for i, link in enumerate(links)}
    first, pose = {0: 0}, {0: Transform()}
    for i, joint in enumerate(joints, start=1):
        parent = index[joint.parent]
        held = joint.kind == "fixed"
        first[i], pose[i] = (first[parent], pose[parent] @ joint.origin) if held else (i, Transform())
    parts: dict[int, list[tuple[Inertia, Transform]]] = {}
    for i, f in first.items():
        parts.setdefault(f, []).append((links[i].inertia, pose[i]))
    whole = {f: _sum(those) for f, those in parts.items()}
    return {i: whole[f] for i, f in first.items()}


def _sum(parts: list[tuple[Inertia, Transform]]) -> Inertia:
    mass = sum(inertia.mass for inertia, _ in parts)
    points = [X.rotation @ inertia.com + X.translation for inertia, X in parts]
    com = sum((inertia.mass * p for (inertia, _), p in zip(parts, points, strict=True)), np.zeros(3)) / (mass or 1.0)
    matrix = np.zeros((3, 3))
    for (inertia, X), p in zip(parts, points, strict=True):
        arm = p - com
        matrix += X.rotation @ inertia.matrix @ X.rotation.T
        matrix += inertia.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertia(mass, com, matrix)
