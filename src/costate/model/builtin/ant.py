"""The ant of reinforcement learning: a ball on four two-jointed legs, floating base."""

from __future__ import annotations

from dataclasses import replace

from costate.model.builtin.parts import (
    INF,
    SAND,
    capsule,
    degrees,
    floating,
    joint,
    robot,
    solid,
    sphere,
)
from costate.model.model import Actuator, Link, Model, Shape

SOURCE = "MuJoCo ant.xml (Schulman et al. 2015), as shipped in gymnasium: all solids of density 5"

_DENSITY = 5.0
_RADIUS = 0.08
# number, names of the three parts, direction of the leg, ankle axis, sign of the ankle's range
_LEGS = (
    (1, ("front_left_leg", "aux_1", "front_left_foot"), (1, 1), (-1.0, 1.0, 0.0), 1),
    (2, ("front_right_leg", "aux_2", "front_right_foot"), (-1, 1), (1.0, 1.0, 0.0), -1),
    (3, ("back_leg", "aux_3", "left_back_foot"), (-1, -1), (-1.0, 1.0, 0.0), -1),
    (4, ("right_back_leg", "aux_4", "right_back_foot"), (1, -1), (1.0, 1.0, 0.0), 1),
)
_GEAR = 150.0


def _part(name: str, shape: Shape) -> Link:
    return Link(name, solid([shape], _DENSITY), (shape,), (shape,))


def ant() -> Model:
    world, root = floating("torso", "root")
    links, joints = [world, _part("torso", sphere(0.25, color=SAND, name="torso_geom"))], [root]
    home = [0, 0, 0.5561, 0, 0, 0, 1]
    for number, (leg, thigh, foot), (x, y), ankle_axis, sign in _LEGS:
        short, long = (0.2 * x, 0.2 * y, 0.0), (0.4 * x, 0.4 * y, 0.0)
        for name, end in ((leg, short), (thigh, short), (foot, long)):
            links.append(_part(name, capsule(_RADIUS, (0, 0, 0), end, SAND, name=f"{name}_geom")))
        lower, upper = degrees(*sorted((30 * sign, 70 * sign)))
        left, right = degrees(-30, 30)
        swing = (left, right, INF, _GEAR)
        hip = joint(f"hip_{number}", "revolute", leg, thigh, short, limits=swing, damping=1, armature=1)
        bend = (lower, upper, INF, _GEAR)
        ankle = joint(
            f"ankle_{number}", "revolute", thigh, foot, short, (0, 0, 0), ankle_axis, bend, damping=1, armature=1
        )
        joints += [joint(f"{leg}_fixed", "fixed", "torso", leg), hip, ankle]
        home += [0.0, float(sign)]
    model = robot("ant", links, joints, SOURCE, home)
    moving = [j.name for j in model.joints if j.nv == 1]
    return replace(model, actuators=tuple(Actuator(name, name, _GEAR, -1.0, 1.0) for name in moving))
