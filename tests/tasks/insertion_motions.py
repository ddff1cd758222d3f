"""What tests of the insertion task share: a bottle held over the socket's mouth, and pressed down."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from costate.robot import Pose
from costate.tasks.insertion import Insertion
from costate.tasks.insertion.scene import ARM_Q, BOTTLE_LENGTH, BOTTLE_RADIUS, CLEARANCE, MOUTH_HEIGHT, SOCKET_XY
from costate.train.episode import Stepper

BORE = BOTTLE_RADIUS + CLEARANCE


def held(task: Insertion, offset: float = 0.0, tilt: float = 0.0, height: float = 0.01) -> Tensor:
    """State (18,) at rest with the bottle's foot over the mouth, beside its middle and tilted about x."""
    c, s = math.cos(tilt), math.sin(tilt)
    R = torch.tensor([[1, 0, 0], [0, c, -s], [0, s, c]], dtype=torch.float64)
    x, y = task.options.center
    foot = torch.tensor([x + offset, y, MOUTH_HEIGHT + height], dtype=torch.float64)
    state = torch.zeros(18, dtype=torch.float64)
    state[ARM_Q] = task.arm.inverse_kinematics(Pose(foot + R[:, 2] * BOTTLE_LENGTH / 2, R), "bottle", task.start)
    state[SOCKET_XY] = torch.tensor([x, y], dtype=torch.float64)
    return state


def pressing(task: Insertion, starts: Tensor, states: Tensor, speed: float = 0.04) -> Tensor:
    """Controls (B, 6) by which the arm pushes the bottle down and tries to keep it where and as it was at the starts."""
    gain = 20.0  # [1/s]: of the pose's errors, fed back
    q = states[:, ARM_Q]
    start, now = (task.arm.forward_kinematics(x[:, ARM_Q], "bottle") for x in (starts, states))
    linear = gain * (start.position - now.position)
    linear[:, 2] = -speed
    angular = gain / 2 * torch.linalg.cross(now.rotation.mT, start.rotation.mT).sum(1)
    return torch.linalg.solve(task.arm.jacobian(q, "bottle"), torch.cat([linear, angular], -1))


def press(task: Insertion, world: Stepper, states: Tensor, steps: int = 220, speed: float = 0.04) -> Tensor:
    """States (steps + 1, B, 18) while the arm pushes the bottle down."""
    path = [states]
    for _ in range(steps):
        path.append(world.step(path[-1], pressing(task, states, path[-1], speed)))
    return torch.stack(path)


def jam_depth(tilt: float, overlap: float = 0.0) -> float:
    """How deep the middle of a tilted bottle's foot gets [m], until the foot touches the wall and the body the mouth opposite.

    overlap: by how much each of the two is pressed into the socket.
    """
    across = 2 * (BORE + overlap) - 2 * BOTTLE_RADIUS * math.cos(tilt)
    return across / math.tan(tilt) - BOTTLE_RADIUS * math.sin(tilt)
