"""Pendulums of any number of links."""

from __future__ import annotations

from costate.model.builtin.parts import BLUE, GREY, Y, cylinder, joint, link, moments_of, robot
from costate.model.errors import ModelError
from costate.model.model import Model

LENGTH = 1.0
"""Length of each link [m]."""
MASS = 1.0
"""Mass of each link [kg]."""
_RADIUS = 0.05


def pendulum(n: int = 1) -> Model:
    """Return n equal rods on a chain of free hinges about y, hanging straight down at q = 0; n = 2 is the double pendulum."""
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
