"""Random robots for hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from costate.model import Inertia, Joint, Link, Mimic, Model, Shape, Transform
from costate.model.joint import JOINT_SIZES

INNER_KINDS = ("revolute", "continuous", "prismatic", "spherical", "planar", "fixed")
"""Joints inside the tree; a floating joint, if any, carries the base."""
_SCALAR = ("revolute", "continuous", "prismatic")


@st.composite
def random_models(
    draw: Any,
    min_joints: int = 1,
    max_joints: int = 40,
    kinds: tuple[str, ...] = INNER_KINDS,
    floating_base: bool | None = None,
    mimic: bool = False,
    oblique_planar: bool = False,
    shapes: bool = False,
) -> Model:
    """Random trees: branches, oblique axes, fixed links, massless links, floating bases, springs, dampers, limits.

    Mass matrices are regular: a massless link moves in one direction only and carries a link with mass. The shape of
    the tree is drawn by hypothesis, so that it shrinks; the numbers come from a seed that it draws.
    floating_base: True, False, or None for either. oblique_planar: let planes of planar joints be inclined too.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    floats = draw(st.booleans()) if floating_base is None else floating_base
    n = draw(st.integers(min_joints, max_joints), label="joints")
    links, joints = [_link("world" if floats else "base", rng, massless=floats)], []
    for i in range(n):
        kind = "floating" if floats and i == 0 else draw(st.sampled_from(kinds))
        first = 1 if floats and i else 0
        # Half of the links continue a chain, so that trees are deep as well as wide.
        parent = i if draw(st.booleans()) else draw(st.integers(first, i))
        joints.append(_joint(f"joint{i}", kind, links[parent].name, f"link{i}", rng, oblique_planar))
        links.append(_link(f"link{i}", rng, massless=False, shapes=shapes))
    links = _some_massless(links, joints, draw)
    if mimic:
        joints = _some_mimic(joints, rng, draw)
    gravity = np.array([0.0, 0.0, -9.81]) if draw(st.booleans()) else rng.normal(size=3) * 5
    return Model("random", tuple(links), tuple(joints), gravity)


def _some_massless(links: list[Link], joints: list[Joint], draw: Any) -> list[Link]:
    links = list(links)
    massless: set[str] = set()
    for i, joint in enumerate(joints):
        carries = any(j.parent == joint.child for j in joints)
        frame = joint.kind == "fixed" and not carries
        carrier = JOINT_SIZES[joint.kind][1] <= 1 and carries
        if (frame or carrier) and joint.parent not in massless and draw(st.integers(0, 3)) == 0:
            massless.add(joint.child)
            links[i + 1] = replace(links[i + 1], inertia=Inertia())
    return links


def _some_mimic(joints: list[Joint], rng: np.random.Generator, draw: Any) -> list[Joint]:
    joints = list(joints)
    for i, joint in enumerate(joints):
        leaders = [j for j in joints if j.kind in _SCALAR and not j.mimic and j is not joint]
        followed = any(j.mimic and j.mimic.joint == joint.name for j in joints)
        if joint.kind in _SCALAR and leaders and not followed and draw(st.integers(0, 2)) == 0:
            leader = draw(st.sampled_from([j.name for j in leaders]))
            joints[i] = replace(joint, mimic=Mimic(leader, float(rng.uniform(-2, 2)), float(rng.normal())))
    return joints


def _link(name: str, rng: np.random.Generator, massless: bool, shapes: bool = False) -> Link:
    seen = tuple(_shape(rng, f"{name}_visual{k}") for k in range(rng.integers(3))) if shapes else ()
    touched = tuple(_shape(rng, f"{name}_collision{k}") for k in range(rng.integers(3))) if shapes else ()
    if massless:
        return Link(name, Inertia(), seen, touched)
    # Second moments of a cloud of points: any inertia made from them is one that a body can have.
    points = rng.normal(size=(6, 3)) * rng.uniform(0.05, 0.2, 3)
    mass = rng.uniform(0.2, 5.0)
    second = mass * points.T @ points / len(points)
    return Link(name, Inertia(mass, rng.uniform(-0.3, 0.3, 3), second.trace() * np.eye(3) - second), seen, touched)


def _shape(rng: np.random.Generator, name: str) -> Shape:
    kind, count = [("sphere", 1), ("box", 3), ("cylinder", 2), ("capsule", 2), ("ellipsoid", 3), ("plane", 0)][
        rng.integers(6)
    ]
    r, g, b, a = rng.uniform(size=4)
    color = (float(r), float(g), float(b), float(a)) if rng.random() < 0.7 else None
    friction = float(rng.uniform(0, 2)) if name.count("collision") and rng.random() < 0.5 else None
    return Shape(
        kind, rng.uniform(0.01, 0.3, count), _pose(rng), name if rng.random() < 0.7 else "", color, friction=friction
    )


def _pose(rng: np.random.Generator) -> Transform:
    if rng.random() < 0.3:  # axis-aligned, as in most files: exact zeros
        rotation = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)
        rotation *= np.sign(np.linalg.det(rotation))
    else:
        rotation = Rotation.random(rng=rng).as_matrix()
    return Transform(rotation + 0.0, rng.uniform(-0.5, 0.5, 3))


def _joint(name: str, kind: str, parent: str, child: str, rng: np.random.Generator, oblique_planar: bool) -> Joint:
    axis = np.eye(3)[rng.integers(3)] if rng.random() < 0.4 else rng.normal(size=3)
    if kind not in (*_SCALAR, "planar") or (kind == "planar" and not oblique_planar):
        axis = np.array([0.0, 0.0, 1.0])
    scalar, n = kind in _SCALAR, JOINT_SIZES[kind][1]
    some = rng.random(6) < 0.5
    limited = kind in ("revolute", "prismatic") and bool(some[0])
    return Joint(
        name,
        kind,
        parent,
        child,
        _pose(rng),
        axis / np.linalg.norm(axis),
        lower=-rng.uniform(0.1, 3, n) if limited else np.zeros(0),
        upper=rng.uniform(0.1, 3, n) if limited else np.zeros(0),
        max_velocity=rng.uniform(0.5, 5, n) if some[1] else np.zeros(0),
        max_effort=rng.uniform(1, 100, n) if some[2] else np.zeros(0),
        damping=float(rng.uniform(0, 1)) if some[3] and n else 0.0,
        friction=float(rng.uniform(0, 1)) if some[4] and n else 0.0,
        armature=float(rng.uniform(0, 0.1)) if some[5] and n else 0.0,
        stiffness=float(rng.uniform(0, 5)) if some[0] and scalar else 0.0,
        rest=float(rng.normal()) if some[0] and scalar else 0.0,
    )
