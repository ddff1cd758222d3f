"""Robots to measure with: built-in ones, one without lucky zeros, and a humanoid of 35 joints."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from costate.model import Inertia, Joint, Link, Model, Transform, load_model

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}

# Limb -> (limb it hangs on, where, axes of its joints, length of its parts [m], mass of its parts [kg]).
LIMBS: dict[str, tuple[str, tuple[float, float, float], str, float, float]] = {
    "torso": ("pelvis", (0.0, 0.0, 0.1), "zxy", 0.12, 6.0),
    "head": ("torso", (0.0, 0.0, 0.25), "zxy", 0.06, 1.5),
    "left_leg": ("pelvis", (0.0, 0.1, -0.05), "zxyyyx", -0.15, 2.5),
    "right_leg": ("pelvis", (0.0, -0.1, -0.05), "zxyyyx", -0.15, 2.5),
    "left_arm": ("torso", (0.0, 0.2, 0.2), "yxzyzyxx", -0.1, 0.9),
    "right_arm": ("torso", (0.0, -0.2, 0.2), "yxzyzyxx", -0.1, 0.9),
}


def humanoid() -> Model:
    """A floating pelvis and 34 hinges: waist and neck of 3, legs of 6, arms of 7 and a gripper each. Inertias are full
    matrices and centres of mass lie anywhere, so that nothing is cheaper than on a real machine."""
    rng = np.random.default_rng(0)
    links = [Link("world"), Link("pelvis", full_inertia(8.0, rng))]
    joints = [Joint("root", "floating", "world", "pelvis")]
    for limb, (parent, place, axes, length, mass) in LIMBS.items():
        at, origin = parent if parent == "pelvis" else f"{parent}_{len(LIMBS[parent][2])}", np.array(place)
        for k, axis in enumerate(axes, 1):
            links.append(Link(f"{limb}_{k}", full_inertia(mass, rng)))
            pose, direction, limit = Transform(np.eye(3), origin), np.array(AXES[axis]), np.array([2.0])
            name = f"{limb}_{k}"
            joints.append(Joint(name, "revolute", at, name, pose, direction, lower=-limit, upper=limit))
            at, origin = links[-1].name, np.array([0.01, 0.0, length])
    return Model("humanoid35", tuple(links), tuple(joints))


def full_inertia(mass: float, rng: np.random.Generator) -> Inertia:
    """Draw the inertia of a cloud of points a few centimetres wide."""
    points = rng.normal(size=(6, 3)) * 0.06
    second = mass * points.T @ points / len(points)
    return Inertia(mass, rng.normal(size=3) * 0.03, np.trace(second) * np.eye(3) - second)


def ur5_full() -> Model:
    """The UR5 with full inertia matrices and centres of mass off all axes: the published one has many zeros, which our
    code leaves out and Pinocchio's does not."""
    rng = np.random.default_rng(1)
    model = load_model("ur5")
    links = [replace(x, inertia=full_inertia(x.inertia.mass, rng)) if x.inertia.mass else x for x in model.links]
    return replace(model, name="ur5_full", links=tuple(links))


ROBOTS: dict[str, Callable[[], Model]] = {
    "ur5": lambda: load_model("ur5"),
    "ur5, full inertias": ur5_full,
    "iiwa7": lambda: load_model("iiwa7"),
    "laikago": lambda: load_model("laikago"),
    "humanoid, 35 joints": humanoid,
}

FILES = {
    "Talos": "talos_data/robots/talos_reduced.urdf",
    "ANYmal": "anymal_b_simple_description/robots/anymal.urdf",
}
"""Legged robots of the package example-robot-data."""


def legged() -> dict[str, Callable[[], Model]]:
    """Return the robots of example-robot-data, floating, if it is installed, or unpacked where EXAMPLE_ROBOT_DATA says."""
    usual = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
    folder = Path(os.environ.get("EXAMPLE_ROBOT_DATA", usual))
    paths = {name: folder / file for name, file in FILES.items()}
    return {name: lambda p=path: load_model(p, floating_base=True) for name, path in paths.items() if path.exists()}
