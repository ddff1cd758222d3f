"""Unitree Laikago quadruped, floating base, twelve joints, round feet."""

from __future__ import annotations

from math import pi

from costate.model.builtin.parts import (
    DARK,
    GREY,
    WHITE,
    X,
    box,
    capsule,
    cylinder,
    floating,
    joint,
    link,
    robot,
    sphere,
)
from costate.model.model import Model

SOURCE = "Unitree, as shipped in pybullet_data: laikago_toes_zup.urdf; the limits are those of laikago_toes_limits.urdf"

# leg, hip position [m], side (+1 left), where the upper leg starts in the hip [m], xx yy zz of the upper leg [kg m^2]
_LEGS = (
    ("FR", (0.199095, -0.0817145, -0.03), -1, -0.053565, (0.015, 0.007, 0.010)),
    ("FL", (0.199095, 0.0817145, -0.03), 1, 0.055855, (0.016, 0.007, 0.011)),
    ("RR", (-0.238195, -0.0817145, -0.03), -1, -0.053565, (0.016, 0.007, 0.011)),
    ("RL", (-0.238195, 0.0817145, -0.03), 1, 0.055855, (0.016, 0.007, 0.011)),
)
TOE_RADIUS = 0.03
_HIP, _THIGH, _KNEE = (-0.873, 1.0472, 100.0, 100.0), (-1.3, 3.4, 100.0, 100.0), (-2.164, 0.0, 100.0, 100.0)
_STANCE = (0.0, 0.07, -0.59)
"""Hip, thigh and knee [rad]: standing, each toe about below its hip."""
_STANDING_HEIGHT = 0.48576
"""Of the chassis above the ground in that stance [m]."""


def laikago() -> Model:
    world, base_joint = floating("chassis")
    trunk = [box((0.56, 0.17, 0.15), (-0.02, 0, 0.0), DARK)]
    links, joints = [world, link("chassis", 13.715, inertia=(0.22, 0.431, 0.565), shapes=trunk)], [base_joint]
    for name, at, side, offset, thigh_inertia in _LEGS:
        knee, toe = (-side * 0.02069, -0.20833, -0.1422), (0, -0.25, -0.022)
        hip, upper, lower = f"{name}_hip_motor", f"{name}_upper_leg", f"{name}_lower_leg"
        motor = cylinder(0.042, (0, 0, -0.05), (0, 0, 0.05), GREY)
        links += [
            link(hip, 1.095, (-side * 0.02, 0, 0), (0.002, 0.002, 0.001), [motor]),
            link(upper, 1.527, (0, -0.04, -0.04), thigh_inertia, [capsule(0.03, (0, 0, 0), knee, WHITE)]),
            link(lower, 0.241, (0, -0.16, -0.02), 0.002, [capsule(0.015, (0, 0, 0), toe, DARK)]),
            link(f"toe{name}", 0.1, inertia=2.5e-05, shapes=[sphere(TOE_RADIUS, color=GREY, name=f"toe{name}")]),
        ]
        # The leg's frame: x to the left, y up, z forward.
        turn, axis = (pi / 2, 0, pi / 2), (0.0, 0.0, float(side))
        joints += [
            joint(f"{name}_hip_motor_2_chassis_joint", "revolute", "chassis", hip, at, turn, axis, _HIP),
            joint(f"{name}_upper_leg_2_hip_motor_joint", "revolute", hip, upper, (offset, 0, 0), axis=X, limits=_THIGH),
            joint(f"{name}_lower_leg_2_upper_leg_joint", "revolute", upper, lower, knee, axis=X, limits=_KNEE),
            joint(f"jtoe{name}", "fixed", lower, f"toe{name}", toe),
        ]
    home = (0, 0, _STANDING_HEIGHT, 0, 0, 0, 1, *_STANCE * 4)
    return robot("laikago", links, joints, SOURCE, home)
