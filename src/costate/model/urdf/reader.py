"""Reads URDF files. What is read, assumed and refused is listed in docs/robots.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from costate.model.base import with_floating_base
from costate.model.document import Node
from costate.model.errors import Assumptions
from costate.model.joint import Joint
from costate.model.model import Link, Model
from costate.model.tree import note_massless, order, resolve_mimics
from costate.model.urdf.inertia import Faulty, settle_inertias
from costate.model.urdf.joint import read_joint
from costate.model.urdf.link import read_link
from costate.model.urdf.macros import parse_urdf
from costate.model.urdf.mesh_path import Places
from costate.model.urdf.shape import ShapeContext, read_materials


def read_urdf(
    path: str | Path,
    floating_base: bool | None = None,
    package_dirs: Sequence[str | Path] = (),
    inertia: Faulty = "refuse",
) -> Model:
    """Return the robot in a URDF file, or in a file named *.xacro, which the package xacro expands.

    floating_base: True adds a link "world" and a floating joint, False fixes a base the file lets float, None keeps it.
    package_dirs: folders in which the packages of package://... meshes are looked for, besides those above the file.
    inertia: what to do with negative principal moments: "refuse" the file, "keep" them, or "repair" all inertias no body can have.
    Raises ModelError for a faulty file; warns with ModelWarning of what it had to assume.
    """
    path = Path(path)
    model, assumed = _read(parse_urdf(path), path, package_dirs, inertia)
    assumed.warn()
    return with_floating_base(model, floating_base)


def _read(root: Node, path: Path, package_dirs: Sequence[str | Path], inertia: Faulty) -> tuple[Model, Assumptions]:
    if root.tag != "robot":
        root.fail("is not a robot; the root element of a URDF file is <robot>")
    assumed = Assumptions(str(path))
    context = ShapeContext(Places(path, package_dirs), read_materials(root), assumed)
    links: dict[str, Link] = {}
    for node in root.children("link"):
        _unique(node, links)
        links[node.name()] = read_link(node, context)
    joints: dict[str, Joint] = {}
    for node in root.children("joint"):
        _unique(node, joints)
        joints[node.name()] = read_joint(node, links, assumed)
    chain_free = resolve_mimics(str(path), list(joints.values()))
    ordered_links, ordered_joints = order(str(path), links, chain_free)
    ordered_links = settle_inertias(root, ordered_links, ordered_joints, inertia, assumed)
    _note_moving_without_inertial(root, ordered_joints, assumed)
    note_massless(ordered_links, ordered_joints, assumed)
    model = Model(root.text("name", path.stem), ordered_links, ordered_joints, source=str(path))
    gravity = root.child("gravity")
    return (model.with_gravity(gravity.vector("xyz", (0.0, 0.0, -9.81))) if gravity else model), assumed


def _unique(node: Node, known: Mapping[str, object]) -> None:
    if node.name() in known:
        node.fail("has the name of an earlier one; names must be unique")


def _note_moving_without_inertial(root: Node, joints: tuple[Joint, ...], assumed: Assumptions) -> None:
    silent = {node.name() for node in root.children("link") if node.child("inertial") is None}
    for joint in joints:
        if joint.child in silent and joint.kind != "fixed":
            assumed.note("moving links without <inertial>, taken as massless", joint.child)
