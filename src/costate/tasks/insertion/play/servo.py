"""A servo that moves the arm between two insertions, without a policy: resolved-rate control."""

from __future__ import annotations

import torch
from torch import Tensor

from costate.tasks.insertion import Insertion
from costate.tasks.insertion.scene import ARM_Q, ARM_V, BOTTLE_LENGTH, SEAT_HEIGHT, SOCKET_V, SOCKET_XY


class Servo:
    """A servo whose commands, in the task's own actuation, follow a socket or reach a configuration."""

    GAIN = 8.0
    """Gain of position errors [1/s]."""
    RATE = 0.35
    """Highest vertical speed [m/s]."""
    SHARE = 0.5
    """Share of the velocity limits that is used on the way back."""
    DAMPING = 0.02
    """Damping of the inverse of the Jacobian, near singular postures."""

    def __init__(self, task: Insertion):
        self.task, self.arm, self.fastest = task, task.arm, task.max_velocity.double()

    def height(self, state: Tensor) -> float:
        """Return the height of the bottle above its seat [m]."""
        return float(self.task.errors(state)[0][2])

    def towards(self, state: Tensor, q: Tensor) -> Tensor:
        """Return the command that moves towards joint positions (6,)."""
        error = self.GAIN * (q - state[ARM_Q])
        share = (error.abs() / (self.SHARE * self.fastest)).max().clamp(min=1.0)  # all joints slow down together
        return self._command(state, error / share)

    def over_socket(self, state: Tensor, height: float) -> Tensor:
        """Return the command that keeps the bottle upright over the socket, and moves it to a height above the seat [m]."""
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
        """Return the command that makes the joints turn at v (6,) [rad/s]."""
        if self.task.options.actuation == "velocity":
            return v
        now = state[ARM_V]
        return self.arm.inverse_dynamics(state[ARM_Q], now, (v - now) / (4 * self.task.options.dt))
