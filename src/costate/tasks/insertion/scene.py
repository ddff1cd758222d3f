"""The insertion cell: the arm with gripper and bottle, the socket on its carriage, the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from costate.model import Inertia, Joint, Link, Model, Shape, Transform, load_model
from costate.sim import Body, Static
from costate.sim.scene import shapes
from costate.sim.scene.parts import solid_inertia

BOTTLE_RADIUS, BOTTLE_LENGTH, BOTTLE_MASS = 0.03, 0.2, 0.5
"""Size and mass of the bottle [m, m, kg]."""
CLEARANCE, DEPTH = 0.001, 0.06
"""Clearance of the socket's bore on the radius, and its depth from mouth to floor [m]."""
WALL, FLOOR = 0.015, 0.02
"""Thickness of the socket's wall and floor [m]."""
GRIPPER_MASS = 0.6
CARRIAGE_MASS = 1e4
"""Mass under the socket, so large that nothing the arm does disturbs it [kg]."""
GRIP = 0.15
"""Distance from the tool flange to the middle of the bottle [m]."""
MOUTH_HEIGHT = 0.1
"""Height of the socket's mouth above the arm's base [m]."""
SEAT_HEIGHT = MOUTH_HEIGHT - DEPTH
"""Height of the bottle's foot when it is seated [m]."""
TOUCHING = (("ur5/bottle", "socket/body"),)
"""The links that may touch."""
ARM_Q, SOCKET_XY = slice(0, 6), slice(6, 8)
ARM_V, SOCKET_V = slice(9, 15), slice(15, 17)
"""Parts of a state (18,): q = arm joints (6), socket x, y, angle; v = arm joints (6), socket x, y, angle."""
ARRIVAL = 0.6
"""Part of the horizon after which the bottle is over the socket's mouth."""
OBSERVATION = 19
"""Size of an observation: joint positions 6, joint velocities 6, target position 3, target velocity 3, time index 1."""
ACTION = 6
"""Size of an action: one number per joint."""


def arm_with_bottle() -> Model:
    """Return the UR5 with a gripper, and the bottle fixed to it; the bottle's foot points away from the flange."""
    ur5 = load_model("ur5")
    shape = Shape("cylinder", np.array([BOTTLE_RADIUS, BOTTLE_LENGTH]), name="bottle", color=(0.16, 0.56, 0.38, 1.0))
    bottle = Link("bottle", Inertia(BOTTLE_MASS, np.zeros(3), solid_inertia(shape, BOTTLE_MASS)), (shape,), (shape,))
    palm = Shape("box", np.array([0.09, 0.07, 0.05]), _up(0.025), "palm", (0.28, 0.29, 0.32, 1.0))
    fingers = tuple(
        Shape("box", np.array([0.012, 0.03, 0.09]), _up(0.09, side * 0.036), "finger", (0.4, 0.41, 0.44, 1.0))
        for side in (-1, 1)
    )
    inertia = Inertia(GRIPPER_MASS, np.array([0, 0, 0.03]), 1e-3 * np.eye(3))
    gripper = Link("gripper", inertia, (palm, *fingers))
    grip = Joint("grip", "fixed", "gripper", "bottle", Transform(np.diag([1.0, -1.0, -1.0]), np.array([0, 0, GRIP])))
    flange = Joint("flange", "fixed", "tool0", "gripper")
    return replace(ur5, name="ur5_bottle", links=(*ur5.links, gripper, bottle), joints=(*ur5.joints, flange, grip))


def socket_body(clearance: float = CLEARANCE, chamfer: float = 0.0) -> Body:
    """Return the socket on its carriage, which glides in the plane; chamfer: width of the chamfer at its mouth [m]."""
    bore = BOTTLE_RADIUS + clearance
    cup = shapes.socket(bore, bore + WALL, DEPTH, FLOOR, color=(0.72, 0.73, 0.77, 1.0), chamfer=chamfer)
    shape = replace(cup, name="socket")
    pose = Transform(np.eye(3), np.array([0.0, 0.0, MOUTH_HEIGHT]))
    return Body("socket", [shape], CARRIAGE_MASS, inertia=CARRIAGE_MASS * np.eye(3), joint="planar", pose=pose)


def table(center: tuple[float, float]) -> Static:
    """Return the table that the carriage glides on, for pictures: nothing touches it."""
    top = MOUTH_HEIGHT - DEPTH - FLOOR - 1e-3  # a gap, or the two surfaces flicker
    shape = Shape("box", np.array([0.5, 0.7, top]), name="table", color=(0.36, 0.40, 0.45, 1.0))
    return Static("table", shape, Transform(np.eye(3), np.array([*center, top / 2])))


def _up(z: float, x: float = 0.0) -> Transform:
    return Transform(np.eye(3), np.array([x, 0.0, z]))
