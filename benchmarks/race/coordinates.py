"""Coordinates that suit the insertion: observations that show errors of the bottle, and actions that are its velocities."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from costate.tasks.insertion import Insertion
from costate.tasks.insertion.scene import ACTION, ARM_Q, OBSERVATION
from costate.tasks.insertion.training import InsertionTraining

FASTEST = (0.3, 0.3, 0.6, 0.5, 0.5, 0.5)
"""Velocity of the bottle for actions of 1: along x, y and z [m/s], and about them [rad/s]."""
UNITS = (1e-3, 5e-3, 1e-2)
"""Units of the errors that are seen: position [m], tilt [rad], velocity [m/s]."""
SEEN = OBSERVATION + 8
"""Size of an observation."""


class Coordinates:
    """Observations that also show the bottle's errors, on a logarithmic scale, and actions that are velocities of the bottle.

    Both follow from the task's own observation: nothing is added that its controllers do not know.
    """

    def __init__(self, task: Insertion):
        self.task = task
        matrix, self.offset = task.features
        self.back = torch.linalg.pinv(matrix)

    def seen(self, observation: Tensor) -> Tensor:
        """Return observations (B, 27): those of the task, and arsinh of the errors of position, tilt and velocity."""
        state = self._state(observation)
        position, _, velocity = self.task.errors(state)
        axis = self.task.arm.forward_kinematics(state[:, ARM_Q], "bottle").rotation[..., 2]
        errors = [e / unit for e, unit in zip((position, axis[:, :2], velocity), UNITS, strict=True)]
        return torch.cat([observation, (torch.cat(errors, -1).asinh() / 3).to(observation.dtype)], -1)

    def acted(self, actions: Tensor, observation: Tensor) -> Tensor:
        """Return the task's actions (B, 6) that move the bottle as these say, in parts of FASTEST, or slower if a joint is too."""
        jacobian = self.task.arm.jacobian(self._state(observation)[:, ARM_Q], "bottle").detach()
        wanted = actions.double() * torch.tensor(FASTEST, dtype=torch.float64)
        joints = torch.linalg.solve(jacobian, wanted) / self.task.action_scale[1]
        return (joints / joints.abs().amax(-1, keepdim=True).clamp(min=1.0)).to(observation.dtype)

    def _state(self, observation: Tensor) -> Tensor:
        return (observation.double() - self.offset) @ self.back


class CoordinatesPolicy(nn.Module):
    """The policy of the task, with one hidden layer, in these coordinates."""

    def __init__(self, coordinates: Coordinates, hidden: int, generator: torch.Generator | None):
        super().__init__()
        self.coordinates = coordinates
        inner, outer = (nn.Linear(n, m, dtype=torch.float32) for n, m in ((SEEN, hidden), (hidden, ACTION)))
        self.net = nn.Sequential(inner, nn.Tanh(), outer, nn.Tanh())
        with torch.no_grad():
            for layer, bound in ((inner, 2 * SEEN**-0.5), (outer, 0.1 * hidden**-0.5)):
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()

    def forward(self, observation: Tensor) -> Tensor:
        return self.coordinates.acted(self.net(self.coordinates.seen(observation)), observation)


class CoordinatesInsertion(Insertion):
    """The task with such a policy."""

    def policy(self, training: InsertionTraining, generator: torch.Generator | None = None) -> nn.Module:
        return CoordinatesPolicy(Coordinates(self), training.hidden, generator)
