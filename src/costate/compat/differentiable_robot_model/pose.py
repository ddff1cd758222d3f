"""Position and quaternion of a link from one kernel, and the sign of quaternions."""

from __future__ import annotations

from functools import cache

import casadi as ca

from costate.kernel import Kernel
from costate.physics.algebra import quaternion
from costate.robot import Robot
from costate.robot.kernels import folded_kernel


def signed(x: ca.SX) -> ca.SX:
    """Return one of the two quaternions xyzw of a rotation, the one that differentiable-robot-model returns.

    Its w is positive if the rotation's trace is positive (w^2 > 1/4), else the largest of its x, y, z is.
    """
    largest = x[0]
    for k in (1, 2):
        largest = ca.if_else(ca.fabs(x[k]) > ca.fabs(largest), x[k], largest)
    decides = ca.if_else(x[3] ** 2 > 0.25, x[3], largest)
    return ca.if_else(decides < 0, -1, 1) * x


def with_signed_quaternion(outputs: dict[str, ca.SX]) -> dict[str, ca.SX]:
    """Return position (3,) and quaternion xyzw (4,) from the outputs of forward kinematics."""
    return {"position": outputs["position"], "quaternion": signed(outputs["quaternion"])}


def pose_kernel(robot: Robot, link: str) -> Kernel:
    """Return the kernel (q, learnable parameters) -> (position (3,), quaternion xyzw (4,)) of a link."""
    return folded_kernel(
        robot.model, "forward_kinematics", robot.learnable(), with_signed_quaternion, link=link, with_quaternion=True
    )


@cache
def quaternion_kernel() -> Kernel:
    """Return the kernel rotation (3, 3) -> quaternion xyzw (4,)."""
    R = ca.SX.sym("R", 3, 3)
    return Kernel("signed_quaternion", {"rotation": R}, {"quaternion": signed(quaternion.from_rotation(R))})
