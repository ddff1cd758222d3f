"""Position and quaternion of a link, from one kernel."""

from __future__ import annotations

import casadi as ca

from costate.kernel import Kernel
from costate.robot import Robot
from costate.robot.kernels import folded_kernel


def signed(x: ca.SX) -> ca.SX:
    """Of the two quaternions xyzw of a rotation, the one with w > 0 if the rotation's trace is positive (w^2 > 1/4), else with the
    largest of x, y, z > 0."""
    largest = x[0]
    for k in (1, 2):
        largest = ca.if_else(ca.fabs(x[k]) > ca.fabs(largest), x[k], largest)
    decides = ca.if_else(x[3] ** 2 > 0.25, x[3], largest)
    return ca.if_else(decides < 0, -1, 1) * x


def with_signed_quaternion(outputs: dict[str, ca.SX]) -> dict[str, ca.SX]:
    """Position (3,) and quaternion xyzw (4,) of the outputs of forward kinematics."""
    return {"position": outputs["position"], "quaternion": signed(outputs["quaternion"])}


def pose_kernel(robot: Robot, link: str) -> Kernel:
    """Kernel q, learnable parameters -> position (3,), quaternion xyzw (4,)."""
    return folded_kernel(
        robot.model, "forward_kinematics", robot.learnable(), with_signed_quaternion, link=link, with_quaternion=True
    )
