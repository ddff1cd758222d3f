"""Pendulums of any number of links, and the two-link arm."""

from __future__ import annotations

from costate.model.builtin.parts import (
    BLUE,
    GREY,
    ORANGE,
    Y,
    capsule,
    cylinder,
    degrees,
    joint,
    link,
    moments_of,
    robot,
)
from costate.model.errors import ModelError
from costate.model.model import Model

LENGTH = 1.0
"""Of each link [m]."""
MASS = 1.0
"""Of each link [kg]."""
_RADIUS = 0.05


def pendulum(n: int = 1) -> Model:
    """n equal rods on a chain of free hinges about y; at q = 0 it hangs straight down. n = 2 is the double pendulum."""
    if n < 1:
        raise ModelError(f"pendulum({n}): a pendulum has at least one link")
    links, joints = [link("base", shapes=[cylinder(0.06, (0, -0.06, 0), (0, 0.06, 0), GREY)])], []
    rod = cylinder(_RADIUS, (0, 0, 0), (0, 0, -LENGTH), BLUE)
    for i in range(1, n + 1):
        links.append(link(f"link_{i}", MASS, (0, 0, -LENGTH / 2), moments_of([rod], MASS), [rod]))
        parent, drop = (f"link_{i - 1}", -LENGTH) if i > 1 else ("base", 0.0)
        joints.append(joint(f"joint_{i}", "continuous", parent, f"link_{i}", (0, 0, drop), axis=Y))
    links.append(link("tip"))
    joints.append(joint("tip_fixed", "fixed", f"link_{n}", "tip", (0, 0, -LENGTH)))
    return robot("pendulum" if n == 1 else f"pendulum{n}", links, joints, "homogeneous rods of 1 m and 1 kg")


def two_link() -> Model:
    """A planar arm of two links of 1 m, in the horizontal plane."""
    reach = degrees(-170, 170)
    limits = (reach[0], reach[1], 10.0, 20.0)
    links = [
        link("base", shapes=[cylinder(0.08, (0, 0, 0), (0, 0, 0.1), GREY)]),
        link("arm1", 1.0, (0.5, 0, 0), 0.001, [capsule(0.04, (0, 0, 0), (1, 0, 0), BLUE)]),
        link("arm2", 1.0, (0.5, 0, 0), 0.001, [capsule(0.03, (0, 0, 0), (1, 0, 0), ORANGE)]),
        link("endEffector"),
    ]
    joints = [
        joint("baseHinge", "revolute", "base", "arm1", (0, 0, 0.15), limits=limits, damping=0.5),
        joint("interArm", "revolute", "arm1", "arm2", (1, 0, 0), limits=limits, damping=0.5),
        joint("ee_joint", "fixed", "arm2", "endEffector", (0, 0, 0.05)),
    ]
    return robot("two_link", links, joints, "2link_robot.urdf of differentiable-robot-model")
