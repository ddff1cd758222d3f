"""Position and quaternion of a link from one kernel, and rotations of roll, pitch and yaw from another."""

from __future__ import annotations

from functools import cache

import casadi as ca
import torch

from costate.kernel import Kernel
from costate.physics import Parameters, build
from costate.robot import Robot


def signed(x: ca.SX) -> ca.SX:
    """Of the two quaternions xyzw of a rotation, the one with w > 0 if the rotation's trace is positive (w^2 > 1/4), else with the
    largest of x, y, z > 0."""
    largest = x[0]
    for k in (1, 2):
        largest = ca.if_else(ca.fabs(x[k]) > ca.fabs(largest), x[k], largest)
    decides = ca.if_else(x[3] ** 2 > 0.25, x[3], largest)
    return ca.if_else(decides < 0, -1, 1) * x


def pose_kernel(robot: Robot, link: str) -> tuple[Kernel, list[str]]:
    """Kernel q, learnable parameters -> position (3,), quaternion xyzw (4,); and the names of these parameters."""
    params, symbols = Parameters.of(robot.model).symbolic(robot.learnt.keys())
    inputs, outputs = build(robot.model, params, "forward_kinematics", link=link, with_quaternion=True)
    found = {"position": outputs["position"], "quaternion": signed(outputs["quaternion"])}
    everything = ca.vertcat(*found.values())
    used = {name: x for name, x in symbols.items() if ca.depends_on(everything, x)}
    return Kernel(f"{robot.name}.pose", {**inputs, **used}, found), list(used)


@cache
def _rpy_kernel() -> Kernel:
    rpy = ca.SX.sym("rpy", 3)
    (cr, cp, cy), (sr, sp, sy) = ca.vertsplit(ca.cos(rpy)), ca.vertsplit(ca.sin(rpy))
    rows = [
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    ]
    return Kernel("rpy", {"rpy": rpy}, {"R": ca.vertcat(*[ca.horzcat(*row) for row in rows])})


def rpy_rotation(rpy: torch.Tensor) -> torch.Tensor:
    """Rz(yaw) Ry(pitch) Rx(roll) of angles (..., 3) [rad], shape (..., 3, 3)."""
    return _rpy_kernel().apply([rpy])[0]
