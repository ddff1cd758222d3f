"""Robots in a vertical plane, as SHAC (Xu et al., 2022) defines their tasks: the hopper, the walker
and the half-cheetah run along x."""

from __future__ import annotations

import math

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.core.fork import cached_property
from costate.robot import Robot
from costate.sim import Compliant
from costate.tasks.locomotion.gym_files import gym_robot
from costate.tasks.locomotion.random import uniform
from costate.tasks.locomotion.walking import Walking
from costate.train.reinforce.shac import ShacOptions


class Planar(Walking):
    """A robot whose state is (x, z, pitch, joints) and their velocities. A policy sees all but x."""

    spread: tuple[float, float]
    """Largest difference of the first q and v from those at rest."""
    soft = Compliant(stiffness=2e4, damping=0.05, friction_speed=0.5, smoothing=5e-3, limit_damping=0.1)

    @cached_property
    def home(self) -> Tensor:
        """State at rest, (nx,)."""
        return self.world.initial_state().reshape(-1).float()

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        nq, nv = self.world.nq, self.world.nv
        around = torch.cat([s * uniform(batch, n, generator) for s, n in zip(self.spread, (nq, nv), strict=True)], 1)
        return self.home + around

    def height(self, x: SX) -> SX:
        """Return the height above that at rest [m]."""
        return x[1] - float(self.home[1])

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        return ca.vertcat(self.height(x), x[2:])


class Hopper(Planar):
    """Reward vx + height + 1 - (pitch / 30 deg)^2 - 0.1 |action|^2; an episode ends 0.45 m below the height at rest."""

    name = "hopper"
    summary = "a one-legged robot hops along x"
    training = ShacOptions(iterations=1500, batch=256, critic_rate=5e-4)
    friction, spread = 0.9, (0.05, 0.05)

    @cached_property
    def robot(self) -> Robot:
        return gym_robot("hopper", {"geom": {"density": 1000}, "joint": {"armature": 1, "damping": 2}}, gear=200)

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        z = ca.fmin(ca.fmax(self.height(after) + 0.30, -1), 0.3)
        upright = 1 - (after[2] / (math.pi / 6)) ** 2
        return after[self.world.nq] + ca.if_else(z < 0, -200 * z * z, z) + upright - 0.1 * ca.sumsqr(action)

    def margin_of(self, x: SX) -> SX:
        return self.height(x) + 0.45


class Walker(Hopper):
    """Two legs in the plane, rewarded as the hopper is. The family of SHAC has none: robot and start are those of gymnasium's
    walker, with the density of the family, armature and damping of the half-cheetah, and the strength of the hopper's motors."""

    name = "walker"
    summary = "a two-legged robot walks along x"
    training = ShacOptions(horizon=24, actor=(256, 128, 64), critic=(128, 128))

    @cached_property
    def robot(self) -> Robot:
        return gym_robot("walker2d_v5", {"geom": {"density": 1000}, "joint": {"armature": 0.1, "damping": 1}}, gear=200)


class HalfCheetah(Planar):
    """Reward vx - 0.1 |action|^2; an episode always lasts its time."""

    name = "half_cheetah"
    summary = "a two-legged robot runs along x"
    training = ShacOptions(horizon=24, actor=(256, 128, 64), critic=(128, 128))
    friction, spread = 1.0, (0.1, 0.25)

    @cached_property
    def robot(self) -> Robot:
        return gym_robot(
            "half_cheetah", {"geom": {"density": 1000}, "joint": {"armature": 0.1, "damping": 1}}, gear=200
        )

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        return after[self.world.nq] - 0.1 * ca.sumsqr(action)
