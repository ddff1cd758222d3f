"""The robots' part of the accuracy matrix: every function on every kind of joint, in every kind of parameter."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.matrix.cell import Cell, Part, cell_of_input, cells_of
from costate.audit.budget import ALL, Checks
from costate.audit.robots import check_function, random_inputs, references
from costate.model import Model, Transform
from costate.model.model import JOINT_SIZES, Inertia, Joint, Link, Mimic
from costate.physics import FUNCTIONS
from costate.physics.params import KINDS
from costate.robot.kernels import robot_kernel

JOINTS = (*JOINT_SIZES, "mimic")
OF_JOINTS, OF_PARAMETERS = "functions and joints", "functions and parameters"


def robot_parts() -> dict[str, Part]:
    return {f"{name}, {kind} joint": partial(robot_part, name, kind) for kind in JOINTS for name in FUNCTIONS}


def robot_part(function: str, kind: str, checks: Checks = ALL) -> list[Cell]:
    """A function of an arm with a joint of a kind, in all parameters of that joint and of the link it carries."""
    model = arm(kind)
    keys = [(p, {"link": "b", "joint": "second", "model": ""}[owner]) for p, (owner, _) in KINDS.items()]
    options: dict[str, Any] = {"link": "c"} if "link" in FUNCTIONS[function].options else {}
    kernel = robot_kernel(model, function, keys, **options)
    engines, _ = references(model, None)
    report = check_function(kernel, function, model, random_inputs(model, 2), engines, "c", checks)
    cells = cells_of(report, function, kind, OF_JOINTS)
    for spec in kernel.signature.inputs:
        cells += cell_of_input(report, spec.name, spec.name.partition(":")[0], function, OF_PARAMETERS)
    return cells


def arm(kind: str) -> Model:
    """Three moving links; the joint in the middle is of the kind. Numbers are in general position."""
    rng = np.random.default_rng(3)
    middle = "revolute" if kind == "mimic" else kind
    follows = Mimic("first", -0.7, 0.2) if kind == "mimic" else None
    joints = [
        _joint(rng, "first", "revolute", "a", "b0"),
        replace(_joint(rng, "second", middle, "b0", "b"), mimic=follows),
        _joint(rng, "third", "revolute", "b", "c"),
    ]
    links = [Link("a"), *(Link(name, _inertia(rng)) for name in ("b0", "b", "c"))]
    return Model(f"arm_{kind}", tuple(links), tuple(joints))


def _joint(rng: np.random.Generator, name: str, kind: str, parent: str, child: str) -> Joint:
    axis, pose = rng.normal(size=3), Transform(_rotation(rng), rng.uniform(-0.3, 0.3, 3))
    passive: dict[str, Any] = {} if kind == "fixed" else {"damping": 0.2, "friction": 0.1, "armature": 0.03}
    if JOINT_SIZES[kind][1] == 1:
        passive |= {"stiffness": 1.5, "rest": 0.3}
    return Joint(name, kind, parent, child, pose, axis / np.linalg.norm(axis), **passive)


def _inertia(rng: np.random.Generator) -> Inertia:
    points = rng.normal(size=(6, 3)) * 0.2
    masses = rng.uniform(0.1, 0.5, 6)
    com = masses @ points / masses.sum()
    r = points - com
    return Inertia(float(masses.sum()), com, np.einsum("k,kij->ij", masses, _squared(r)))


def _squared(r: np.ndarray) -> np.ndarray:
    """|r|^2 1 - r r^T of every row."""
    return (r * r).sum(-1)[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None, :]


def _rotation(rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.linalg.det(Q)
