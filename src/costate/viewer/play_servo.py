"""What moves the arm between two insertions: no policy, plain resolved-rate control."""

from __future__ import annotations

import torch

from costate.tasks.insertion import Insertion
from costate.tasks.insertion.scene import BOTTLE_LENGTH, SEAT_HEIGHT
from costate.tasks.insertion.task import ARM_Q, ARM_V, SOCKET_V, SOCKET_XY

Tensor = torch.Tensor


class Servo:
    """Commands, in the task's own actuation, that follow a socket or reach a configuration."""

    GAIN = 8.0
    """[1/s]."""
    RATE = 0.35
    """Highest vertical speed [m/s]."""
    SHARE = 0.5
    """Of the velocity limits, used on the way back."""
    DAMPING = 0.02
    """Of the inverse of the Jacobian, near singular postures."""

    def __init__(self, task: Insertion):
        self.task, self.arm, self.fastest = task, task.arm, task.max_velocity.double()

    def height(self, state: Tensor) -> float:
        """Of the bottle above its seat [m]."""
        return float(self.task.errors(state)[0][2])

    def towards(self, state: Tensor, q: Tensor) -> Tensor:
        """Reach joint positions (6,)."""
        error = self.GAIN * (q - state[ARM_Q])
        share = (error.abs() / (self.SHARE * self.fastest)).max().clamp(min=1.0)  # all joints slow down together
        return self._command(state, error / share)

    def over_socket(self, state: Tensor, height: float) -> Tensor:
        """Keep the bottle upright over the socket, wherever that goes; rise or sink to a height above the seat [m]."""
        q = state[ARM_Q]
        pose = self.arm.forward_kinematics(q, "bottle")
        axis, up = pose.rotation[..., 2], torch.tensor([0.0, 0.0, 1.0], dtype=q.dtype)
        goal = torch.cat([state[SOCKET_XY], (SEAT_HEIGHT + height + BOTTLE_LENGTH / 2) * up[2:]])
        linear = self.GAIN * (goal - pose.position)
        linear[2] = linear[2].clamp(-self.RATE, self.RATE)
        linear[:2] += state[SOCKET_V]
        twist = torch.cat([linear, self.GAIN * torch.linalg.cross(axis, up)])
        J = self.arm.jacobian(q, "bottle")
        damped = J @ J.T + self.DAMPING**2 * torch.eye(6, dtype=q.dtype)
        v = J.T @ torch.linalg.solve(damped, twist)
        return self._command(state, torch.minimum(torch.maximum(v, -self.fastest), self.fastest))

    def _command(self, state: Tensor, v: Tensor) -> Tensor:
        """That makes the joints turn at v (6,) [rad/s]."""
        if self.task.options.actuation == "velocity":
            return v
        now = state[ARM_V]
        return self.arm.inverse_dynamics(state[ARM_Q], now, (v - now) / (4 * self.task.options.dt))
