"""Robots that come with the package, as .urdf files next to this table; pendulums of any length are made by code.

To add a robot: put its .urdf file here, with simple shapes for drawing and contact, and add a row to ROBOTS and to the table
of docs/robots.md. The tests check every row; add the published file, if there is one, to FILES of tests/model/builtin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import pi
from pathlib import Path

import numpy as np

from costate.model.actuation import Actuator
from costate.model.builtin.pendulum import pendulum
from costate.model.model import Model
from costate.model.shape import Shape
from costate.model.urdf import Faulty, read_urdf


@dataclass(frozen=True)
class Builtin:
    """A built-in robot: what its .urdf file, which has the robot's name, cannot say."""

    source: str
    """Publication of its numbers, and how ours differ."""
    home: tuple[float, ...] | None = None
    """Configuration to start from (nq,)."""
    gear: float | None = None
    """Torque of a motor per unit of control [N m], if every joint has one with a control in [-1, 1]."""


_STANCE = (0.0, 0.07, -0.59)
"""Hip, thigh and knee of the Laikago [rad]: each toe stands about below its hip."""

ROBOTS: dict[str, Builtin] = {
    "ur5": Builtin(
        "ROS-Industrial ur_description: offsets, masses, centres of mass, limits, and inertias of cylinders; those of the "
        "wrists have a radius of 0.6 m there, which can only be a slip, and 0.06 m here as all the others",
        (0, -pi / 2, pi / 2, -pi / 2, -pi / 2, 0),
    ),
    "iiwa7": Builtin(
        "iiwa_stack (IFL-CAMP), as shipped in diff_robot_data of differentiable-robot-model",
        (0, 0.6, 0, -1.4, 0, 1.1, 0),
    ),
    "panda": Builtin(
        "franka_ros, as shipped in diff_robot_data of differentiable-robot-model: masses, centres of mass, joints, limits. "
        "That file has placeholders (0.1 kg m^2) as inertias; here they follow from the masses and our shapes",
        (0, -pi / 4, 0, -3 * pi / 4, 0, pi / 2, pi / 4, 0.02),
    ),
    "fetch_arm": Builtin(
        "fetch_description (Fetch Robotics), as shipped in diff_robot_data of differentiable-robot-model",
        (0.0, 0.6, 0.0, 0.9, 0.0, 0.6, 0.0),
    ),
    "allegro_hand": Builtin(
        "allegro_hand_description (SimLab), as shipped in diff_robot_data of differentiable-robot-model, with small "
        "damping; its Coulomb friction, larger than what the motors can overcome, is left out"
    ),
    "shadow_hand": Builtin(
        "Shadow Robot's sr_description in the MuJoCo model of Kumar et al., as refined by OpenAI and shipped in "
        "gymnasium-robotics"
    ),
    "laikago": Builtin(
        "Unitree, as shipped in pybullet_data: laikago_toes_zup.urdf; the limits are those of laikago_toes_limits.urdf",
        (0, 0, 0.48576, 0, 0, 0, 1, *_STANCE * 4),
    ),
    "ant": Builtin(
        "MuJoCo ant.xml (Schulman et al. 2015), as shipped in gymnasium: all solids of density 5",
        (0, 0, 0.5561, 0, 0, 0, 1, 0, 1, 0, -1, 0, -1, 0, 1),
        gear=150.0,
    ),
    "racecar": Builtin(
        "MIT racecar, as shipped in pybullet_data: racecar.urdf; there only the left steering hinge is limited, here both "
        "are. Wheels are touched as spheres of the same radius, so that they roll on one point",
        (0, 0, 0, 0, 0, 0, 1, *[0.0] * 6),
    ),
    "two_link": Builtin("2link_robot.urdf of differentiable-robot-model"),
}

_PENDULUM = re.compile(r"pendulum(?:\(?(\d{1,3})\)?)?$")


def builtin_names() -> tuple[str, ...]:
    """Return the names that `load_model` knows. A number may follow "pendulum": "pendulum7" has seven links."""
    return (*ROBOTS, "pendulum")


def builtin(name: str, inertia: Faulty = "refuse") -> Model | None:
    """Return the built-in robot of that name, or None. inertia: as for `load_model`; the inertias of pendulums are sound."""
    if match := _PENDULUM.match(name):
        return pendulum(int(match[1] or 1))
    return _load(name, ROBOTS[name], inertia) if name in ROBOTS else None


def _load(name: str, row: Builtin, inertia: Faulty) -> Model:
    model = read_urdf(Path(__file__).with_name(f"{name}.urdf"), inertia=inertia)
    home = None if row.home is None else np.array(row.home, float)
    motors = [j.name for j in model.joints if j.nv == 1] if row.gear else []
    actuators = tuple(Actuator(each, each, row.gear or 0.0, -1.0, 1.0) for each in motors)
    links = tuple(replace(link, visuals=tuple(map(_rounded, link.visuals))) for link in model.links)
    return replace(model, links=links, source=row.source, home=home, actuators=actuators)


def _rounded(shape: Shape) -> Shape:
    """Round the edges of what is drawn of a box or a cylinder, more of those that are larger."""
    if shape.kind not in ("box", "cylinder"):
        return shape
    r = shape.size if shape.kind == "box" else shape.size * np.array([2.0, 1.0])
    return replace(shape, rounding=min(0.2 * float(r.min()), 0.03))
