"""Reach, learnt: a UR5 brings its tool to a random position, and keeps it there.

The policy sees joint positions and velocities, and how far the goal is from the tool; it commands joint velocities. An episode
succeeds if the tool is within `tolerance` of the goal during the last steps, and the joints stay within their limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.robot import Robot, load_robot
from costate.sim import VelocityServo, World
from costate.train import episode
from costate.train.episode import Trajectory, Verdict
from costate.train.network import Names, Network, Scaling
from costate.train.plan import Iteration, TrainOptions
from costate.train.trainable import Trainable

TOOL = "tool0"
SPEED = 0.95
"""Share of the joints' velocity limits that may be commanded."""


@dataclass(frozen=True)
class ReachOptions:
    """Options of the task."""

    steps: int = 60
    """Control steps of an episode."""
    hold: int = 10
    """Last steps, in which the tool must be at its goal."""
    dt: float = 0.02
    """Control period [s]."""
    low: tuple[float, float, float] = (0.3, -0.3, 0.2)
    """Lowest corner of the box that goals are in [m]."""
    high: tuple[float, float, float] = (0.6, 0.3, 0.6)
    """Highest corner of it [m]."""
    start_range: float = 0.3
    """Largest difference of joints from home at the start [rad]."""

    def __post_init__(self) -> None:
        if not 0 < self.hold < self.steps:
            raise ValueError(f"hold is {self.hold}; it must be between 1 and {self.steps - 1}, one less than steps")
        if not all(a < b for a, b in zip(self.low, self.high, strict=True)):
            raise ValueError(f"the box from {self.low} to {self.high} m is empty; every low must be below its high")


@dataclass(frozen=True)
class Episodes(episode.Episodes):
    """Starts, and positions to reach."""

    goal: Tensor
    """Positions of the goals [m], (B, 3)."""


class ReachPosition(Trainable):
    """The task."""

    name: ClassVar[str] = "reach"
    summary: ClassVar[str] = "a UR5 brings its tool to a random position"
    unit: ClassVar[str] = "mm"
    trails: ClassVar[tuple[str, ...]] = (f"ur5/{TOOL}",)
    tolerance: ClassVar[float] = 5.0
    training: ClassVar[TrainOptions] = TrainOptions(
        iterations=300, batch=128, learning_rate=4e-3, hidden=128, watch_interval=50
    )
    options: ReachOptions = ReachOptions()

    @cached_property
    def arm(self) -> Robot:
        """Arm alone."""
        return load_robot("ur5").double()

    @cached_property
    def world(self) -> World:
        """World without contact: nothing is in the way."""
        servo = VelocityServo(gravity_compensation="nominal")
        return World(
            robots={"ur5": self.arm}, actuators=servo, contact=None, dt=self.options.dt, substeps=2, check=False
        )

    @cached_property
    def home(self) -> Tensor:
        """Middle of the starts, (6,)."""
        return self.world.initial_state()[:6]

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        """Draw random starts and goals."""
        drawn = torch.rand(batch, 9, generator=generator, dtype=torch.float64)
        low, high = (torch.tensor(corner, dtype=torch.float64) for corner in (self.options.low, self.options.high))
        start = self.home + self.options.start_range * (2 * drawn[:, :6] - 1)
        state = torch.cat([start, torch.zeros_like(start)], -1)
        return Episodes(state.to(dtype), (low + (high - low) * drawn[:, 6:]).to(dtype))

    def away(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the way from the tool to the goal [m], (..., 3)."""
        return goal - self.arm.forward_kinematics(state[..., :6], TOOL).position

    def observe(self, state: Tensor, step: int, episodes: Episodes) -> Tensor:
        """Return (B, 15): joint positions and velocities, the way to the goal; each of order one."""
        q, v = state[..., :6] - self.home.to(state.dtype), state[..., 6:]
        return torch.cat([q, v / 2, 4 * self.away(state, episodes.goal)], -1)

    @cached_property
    def action_scale(self) -> tuple[Tensor, Tensor]:
        """Offset and scale of the commanded joint velocities [rad/s], (6,)."""
        return torch.zeros(6, dtype=torch.float64), SPEED * self.arm.max_velocity.double()

    def loss(self, trajectory: Trajectory, iteration: Iteration) -> dict[str, Tensor]:
        """Return the terms: the way that is left, over the whole motion and in the end, as a logarithm; and effort."""
        states = trajectory.states[1:]
        left = (self.away(states, trajectory.episodes.goal).square().sum(-1) + 1e-8).sqrt()
        end, speed = left[-self.options.hold :], states[..., 6:].square().sum(-1)
        return {
            "way": left.mean(0),
            "goal": 0.2 * torch.log1p((end / 2e-3).square()).mean(0),
            "rest": 0.05 * speed[-self.options.hold :].mean(0),
            "smoothness": 1e-3 * speed.mean(0),
            "limits": 10 * self._beyond(states[..., :6]).square().sum(-1).mean(0),
        }

    def _beyond(self, q: Tensor) -> Tensor:
        """Return how far joint positions are outside of their limits [rad], of the shape of q."""
        low, high = (x.to(q.dtype) for x in (self.arm.lower, self.arm.upper))
        return torch.relu(low - q) + torch.relu(q - high)

    def judge(self, trajectory: Trajectory) -> Verdict:
        """Judge the largest distance from the goal in the last steps."""
        end = trajectory.states[-self.options.hold :]
        error = 1e3 * self.away(end, trajectory.episodes.goal).norm(dim=-1).amax(0)
        within = self._beyond(trajectory.states[..., :6]).amax((0, -1)) <= 0
        speed = end[..., 6:].abs().amax((0, -1))
        success = (error <= self.tolerance) & within
        return Verdict(success, error, columns={"fastest joint in the end [rad/s]": speed})

    def marks(self, episodes: Episodes) -> Tensor:
        """Return the goals, (B, 1, 3)."""
        return episodes.goal[:, None]

    @cached_property
    def inputs(self) -> Names:
        """Name of each number of an observation; they are scaled to order one."""
        joints = [j.name for j in self.arm.model.joints if j.nv]
        seen = [f"position of {j}" for j in joints] + [f"velocity of {j}" for j in joints]
        return tuple((name, "1") for name in [*seen, *(f"way to the goal, {axis}" for axis in "xyz")])

    def exported(self, policy: nn.Module) -> Network:
        """Return the network that takes measurements in SI units: joints, and the way to the goal in the frame of the base."""
        gain = np.repeat([1.0, 0.5, 4.0], (6, 6, 3))
        middle = np.concatenate([self.home.numpy(), np.zeros(9)])
        units = ["rad"] * 6 + ["rad/s"] * 6 + ["m"] * 3
        names = tuple((name, unit) for (name, _), unit in zip(self.inputs, units, strict=True))
        return self.network(policy).measured(names, Scaling(middle, gain, np.full(15, np.inf)), self.summary)

    @cached_property
    def outputs(self) -> Names:
        """Name and unit of each command."""
        return tuple((f"velocity of {j.name}", "rad/s") for j in self.arm.model.joints if j.nv)
