"""The definition that the tasks of gymnasium's version 5 share: a file of gymnasium, forward speed as reward, ranges of health."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, ClassVar

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.core.fork import cached_property
from costate.kernel.ir.program import Program
from costate.sim import World
from costate.sim.files.load import load_world
from costate.tasks.locomotion.gym_files import gym_file
from costate.tasks.locomotion.random import uniform
from costate.train.episode import Stepper
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.reinforce.shac import ShacOptions

PRACTICE = ShacOptions(
    iterations=1500,
    batch=256,
    horizon=8,
    learning_rate=1e-3,
    critic_rate=1e-3,
    critic=(128, 128),
    critic_passes=8,
    state_clip=100,
)
"""Options of training: windows of stiff contact are short, and long gradients are shortened, or else they say nothing (docs)."""

INTEGRATORS = {"RK4": "rk4", "Euler's": "euler"}
"""Integrators that a policy is tried with: those of gymnasium's files."""


class VersionFive(RewardedTask):
    """A task of gymnasium: reward weight * (x after - x before) / dt + alive - cost |control|^2, alive only while healthy.

    The world is that of gymnasium's file, with MuJoCo's contact, integrator and time step. Contact costs are left out.
    """

    staggered = True
    gym: ClassVar[str]
    """Name of the environment in gymnasium."""
    gym_options: ClassVar[dict[str, Any]] = {}
    """Options with which gymnasium's environment has the observations of this task."""
    file: ClassVar[str]
    """Name of gymnasium's file."""
    skip: ClassVar[int]
    """Steps of physics under one action."""
    weight: ClassVar[float] = 1.0
    """Weight of the forward speed."""
    alive: ClassVar[float] = 1.0
    """Reward of a step that ends in health."""
    cost: ClassVar[float]
    """Weight of the squared controls."""
    noise: ClassVar[float]
    """Size of what is random about a start."""
    normal: ClassVar[bool] = False
    """True: random velocities of a start are normal numbers, not uniform ones."""
    practice: ClassVar[dict[str, Any]] = {}
    """Arguments of `World` that are others in training: a cheaper integrator, or softer contact."""
    care: ClassVar[float] = 0.0
    """Cost of a step in training that is not safe at all."""
    transfer = "costate.tasks.locomotion.v5.transfer:try_in_gymnasium"

    @cached_property
    def world(self) -> World:
        return self._world()

    @cached_property
    def motion(self) -> Program:
        return self.program_of(self._world(**self.practice))

    def _world(self, **options: Any) -> World:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*settotalmass")  # MuJoCo will not always read it
            return load_world(gym_file(self.file), substeps=self.skip, check=False, **options)

    def worlds(self) -> Mapping[str, Callable[[], Stepper]]:
        return {f"{name} integrator": partial(self._world, integrator=kind) for name, kind in INTEGRATORS.items()}

    @cached_property
    def home(self) -> Tensor:
        """State at rest, (nx,)."""
        return self.world.initial_state().reshape(-1).float()

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        nq, nv = self.world.nq, self.world.nv
        q = uniform(batch, nq, generator)
        v = torch.randn(batch, nv, generator=generator) if self.normal else uniform(batch, nv, generator)
        return self.home + self.noise * torch.cat([q, v], 1)

    def state_of(self, qpos: Any, qvel: Any) -> Tensor:
        """Return the state (nx,) of MuJoCo's coordinates and velocities."""
        return torch.cat([torch.tensor(qpos, dtype=torch.float64), torch.tensor(qvel, dtype=torch.float64)])

    def forward(self, x: SX) -> SX:
        """Return how far the robot has come [m]."""
        return x[0]

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        speed = (self.forward(after) - self.forward(x)) / self.world.dt
        healthy = ca.if_else(self.margin_of(after) < 0, 0, self.alive)
        return self.weight * speed + healthy - self.cost * ca.sumsqr(self.control_of(action))

    def safety_of(self, x: SX) -> SX:
        """Return how safe a state is in training: below 0 an episode ends, above 1 nothing threatens."""
        return self.margin_of(x)

    def taught(self, x: SX, action: SX, after: SX, time: SX) -> tuple[SX, SX, SX]:
        """Return observation, reward and margin in training: what is not safe costs, by the square of what it lacks.

        A fall alone has no gradient, since the reward of health is the same right up to it.
        """
        seen, reward, _ = self.told(x, action, after, time)
        safety = self.safety_of(after)
        if self.care:
            reward -= self.care * (1 - ca.fmin(ca.fmax(safety, 0), 1)) ** 2
        return seen, reward, safety


def least(*values: SX) -> SX:
    """Return the least of all numbers."""
    return reduce(ca.fmin, (v[k] for v in values for k in range(v.numel())))
