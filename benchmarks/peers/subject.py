"""The subjects of all computations: robots and a scene, written as files that every peer reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from costate.model import Inertia, Joint, Link, Model, Transform, load_model, write_urdf
from costate.model.base import WORLD
from costate.model.mjcf.writer import add_body, add_geom, numbers

STIFFNESS, DAMPING = 300.0, 2.0
"""Springs and dampers that keep a Laikago on its feet [N m/rad, N m s/rad]. More damping needs an implicit method at steps of 2 ms:
beyond 6 the explicit ones that some engines use go unstable."""
TORQUE = 5.0
"""Standard deviation of random controls [N m]."""
DT = 0.002
FRICTION = 0.8


@dataclass(frozen=True)
class Subject:
    """A robot as files. What a job says of it, see Job in workers/worker.py."""

    name: str
    facts: dict[str, Any]

    def job(self, quantity: str, **more: Any) -> dict[str, Any]:
        return {"quantity": quantity, **self.facts, **more}


def arm(folder: Path) -> Subject:
    """A UR5: six joints on a fixed base."""
    return _write("ur5", bare(load_model("ur5")), folder)


def quadruped(folder: Path) -> Subject:
    """A Laikago in the air: a floating base and twelve joints."""
    return _write("laikago", bare(load_model("laikago")), folder)


def standing(folder: Path) -> Subject:
    """A Laikago on the ground: four foot spheres may touch it, springs and dampers in the joints hold it up."""
    model = load_model("laikago")
    feet = [link.name for link in model.links if "toe" in link.name]
    model = bare(model, keep=feet)
    sprung = replace(model, joints=tuple(_spring(j, q) for j, q in zip(model.joints, _homes(model), strict=True)))
    scene = _write("standing laikago", sprung, folder, feet)
    _save(_loose(model), Path(scene.facts["free_urdf"]))  # springs are for each engine to add in its own way
    facts = {"stiffness": STIFFNESS, "damping": DAMPING, "friction": FRICTION, "torque": TORQUE, "dt": DT}
    return replace(scene, facts=scene.facts | facts)


def bare(model: Model, keep: list[str] | None = None) -> Model:
    """Remove damping, friction, springs and limits, which not all engines have, and all shapes but those of links to keep."""
    joints = (replace(j, damping=0.0, friction=0.0, stiffness=0.0) for j in model.joints)
    links = (replace(x, visuals=(), collisions=x.collisions if x.name in (keep or ()) else ()) for x in model.links)
    return replace(model, joints=tuple(joints), links=tuple(links))


def _homes(model: Model) -> list[float]:
    assert model.home is not None
    return [float(model.home[i]) if j.nv == 1 else 0.0 for j, i in zip(model.joints, model.q_index, strict=True)]


def _spring(joint: Joint, rest: float) -> Joint:
    return replace(joint, stiffness=STIFFNESS, damping=DAMPING, rest=rest) if joint.nv == 1 else joint


def _loose(model: Model) -> Model:
    """Convert for readers that hold a root called world and let any other float: drop the floating joint, or add such a root."""
    if model.floating_base:
        return replace(model, links=model.links[1:], joints=model.joints[1:], home=None)
    root = model.links[0].name
    if root == WORLD:
        return model
    return replace(
        model, links=(Link(WORLD), *model.links), joints=(Joint("to_world", "fixed", WORLD, root), *model.joints)
    )


def _fused(model: Model) -> Model:
    """Links that do not move against their parents become part of them: Brax would do so and lose their inertia."""
    links, joints = {x.name: x for x in model.links}, list(model.joints)
    for joint in [j for j in reversed(model.joints) if j.kind == "fixed"]:
        parent, child, at = links[joint.parent], links.pop(joint.child), joint.origin
        shapes = tuple(replace(shape, pose=at @ shape.pose) for shape in child.collisions)
        inertia = _sum(parent.inertia, child.inertia, at)
        links[parent.name] = replace(parent, inertia=inertia, collisions=(*parent.collisions, *shapes))
        joints.remove(joint)
        joints = [replace(j, parent=parent.name, origin=at @ j.origin) if j.parent == child.name else j for j in joints]
    return replace(model, links=tuple(links.values()), joints=tuple(joints))


def _sum(a: Inertia, b: Inertia, at: Transform) -> Inertia:
    """Add the inertias of two bodies, the second one's frame being at a pose in the first one's."""
    mass = a.mass + b.mass
    if mass == 0:
        return a
    places, matrices = (a.com, at.rotation @ b.com + at.translation), (a.matrix, at.rotation @ b.matrix @ at.rotation.T)
    com = (a.mass * places[0] + b.mass * places[1]) / mass
    total = np.zeros((3, 3))
    for m, place, matrix in zip((a.mass, b.mass), places, matrices, strict=True):
        d = place - com
        total += matrix + m * (d @ d * np.eye(3) - np.outer(d, d))
    return Inertia(mass, com, total)


def _save(model: Model, path: Path) -> None:
    write_urdf(model, path)
    spell_out(path)


def spell_out(path: Path) -> Path:
    """Write into a URDF what some readers do not take as read: origins of inertias, and that a link without one has no mass."""
    tree = ET.parse(path)
    for link in tree.iter("link"):
        inertial = link.find("inertial")
        if inertial is None:
            inertial = ET.SubElement(link, "inertial")
            ET.SubElement(inertial, "mass", value="0")
            ET.SubElement(inertial, "inertia", dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "0"))
        if inertial.find("origin") is None:
            ET.SubElement(inertial, "origin", xyz="0 0 0", rpy="0 0 0")
    tree.write(path)
    return path


def _write(name: str, model: Model, folder: Path, feet: list[str] | None = None) -> Subject:
    stem = name.replace(" ", "_")
    files = {key: folder / f"{stem}{end}" for key, end in _FILES.items()}
    _save(model, files["urdf"])
    _save(_loose(model), files["free_urdf"])
    files["mjcf"].write_text(_mjcf(_fused(model), feet or []))
    joints = [j.name for j in model.joints if j.nv == 1]
    facts: dict[str, Any] = {key: str(path) for key, path in files.items()} | {
        "joints": joints,
        "floating": model.floating_base,
        "link": [j.child for j in model.joints if j.nv][0 if feet else -1],
        "rest": [q for q, j in zip(_homes(model), model.joints, strict=True) if j.nv == 1],
        "height": float(model.home[2]) if model.floating_base and model.home is not None else 0.0,
        "feet": feet or [],
    }
    return Subject(name, facts)


_FILES = {"urdf": ".urdf", "free_urdf": "_free.urdf", "mjcf": ".xml"}


def _mjcf(model: Model, feet: list[str]) -> str:
    """Write a file for MuJoCo and those that read its files: a motor at every joint, and the ground if there are feet."""
    root = ET.Element("mujoco", model=model.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", boundmass="0", boundinertia="0")
    ET.SubElement(root, "option", timestep=repr(DT), gravity=numbers(model.gravity))
    elements = {model.links[0].name: ET.SubElement(root, "worldbody")}
    touch = {"condim": "3", "friction": numbers((FRICTION, 0.005, 1e-4))}
    if feet:
        plane = {"name": "ground", "type": "plane", "size": "0 0 1", "contype": "0", "conaffinity": "1"}
        ET.SubElement(elements[model.links[0].name], "geom", plane | touch)
    for joint, link in zip(model.joints, model.links[1:], strict=True):
        elements[link.name] = add_body(elements[joint.parent], joint, link, limits=False)
        for shape in link.collisions:
            add_geom(elements[link.name], shape, shape.pose, name=shape.name, contype="1", conaffinity="0", **touch)
    motors = ET.SubElement(root, "actuator")
    for joint in model.joints:
        if joint.nv == 1:
            ET.SubElement(motors, "motor", joint=joint.name)
    return ET.tostring(root, encoding="unicode")
