"""The insertion as short-horizon actor-critic takes it: observation and reward as formulas, so that a whole window is one kernel.

The reward is that of `costate.tasks.insertion.reward.step_cost`, which PPO and SAC get, too (tests/tasks/test_insertion_reward.py).
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.core.fork import cached_property
from costate.physics.kinematics import link_poses, link_velocities
from costate.physics.params import Parameters
from costate.sim import World
from costate.tasks.insertion import Insertion
from costate.tasks.insertion.loss import BELOW_FROM, POSITION_UNIT, SPEED_UNIT, TILT_UNIT
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.scene import (
    ARM_Q,
    ARM_V,
    BOTTLE_LENGTH,
    BOTTLE_RADIUS,
    DEPTH,
    SEAT_HEIGHT,
    SOCKET_V,
    SOCKET_XY,
)
from costate.train.episode import Trajectory, Verdict
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.reinforce.shac import ShacOptions


class RewardedInsertion(RewardedTask):
    """The insertion with dense rewards."""

    name = "rewarded insertion"
    summary = "a UR5 puts a bottle into a socket"
    unit = "mm"
    training = ShacOptions()
    stationary = False  # it knows its time

    def __init__(self, insertion: Insertion, rewards: RewardOptions):
        super().__init__(insertion.options)
        self.insertion, self.rewarded = insertion, rewards
        self.length: int = insertion.steps  # type: ignore[misc]

    @cached_property
    def world(self) -> World:
        return self.insertion.smooth  # without contact, as back-propagation trains

    @cached_property
    def action_scale(self) -> tuple[Tensor, Tensor]:
        return self.insertion.action_scale

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        return self.insertion.sample(batch, generator)

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        matrix, offset = (ca.DM(t.numpy()) for t in self.insertion.features)
        clock = ca.fmin(time * self.length / self.options.horizon, 1.0)
        return matrix.T @ x + offset + ca.vertcat(SX.zeros(offset.numel() - 1), clock)

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        w, o = self.rewarded.weights, self.options
        t, last = ca.floor(time * self.length + 0.5), o.horizon - w.early
        position, tilt, velocity = self._errors(after)
        position = position - ca.vertcat(0, 0, w.aim)
        away, turned, speed = _norm(position) / POSITION_UNIT, tilt / TILT_UNIT, _norm(velocity) / SPEED_UNIT
        near = w.position * ca.log(1 + away**2) + w.tilt * ca.log(1 + turned**2)
        far = w.far * ca.fmin(away / 2 + 0.3 * turned + 0.2 * speed, 200.0)
        cost = (near + far) / self.length
        cost += ca.if_else(t > last, w.rest * ca.log(1 + 4 * speed**2) / (self.length - last), 0)
        cost += ca.if_else(t <= o.horizon, self._outside(position, tilt) / (o.horizon + 1), 0)
        low = ca.fmax(BOTTLE_RADIUS * tilt - position[2] - w.aim / 2, 0) / 1e-4
        below = w.floor * ca.log(1 + low**2) / (o.hold + BELOW_FROM + 1)
        cost += ca.if_else(t >= o.horizon - BELOW_FROM, below, 0)
        joints, fastest = after[ARM_V], ca.DM(self.insertion.max_velocity.double().numpy())
        fast = ca.sumsqr(100 * ca.fmax(ca.fabs(joints) / fastest - 0.97, 0))
        speeds = ca.sumsqr(joints)
        cost += (w.smoothness * speeds + w.limits * fast) / (self.length + 1)
        return -(cost + ca.if_else(t <= 1, w.start * speeds, 0))

    def _errors(self, x: SX) -> tuple[SX, SX, SX]:
        """Return errors of the bottle's foot: position [m] (3,), tilt [rad], velocity [m/s] (3,) against its seat."""
        model = self.insertion.arm.model
        known = Parameters.of(model)
        R, p = link_poses(model, known, x[ARM_Q], ["bottle"])["bottle"]
        linear, angular = link_velocities(model, known, x[ARM_Q], x[ARM_V], ["bottle"])["bottle"]
        axis = R[:, 2]
        foot = p - axis * BOTTLE_LENGTH / 2
        tilt = ca.atan2(ca.sqrt(ca.sumsqr(axis[:2]) + 1e-14), axis[2])
        speed = linear + ca.cross(angular, foot - p)
        return foot - ca.vertcat(x[SOCKET_XY], SEAT_HEIGHT), tilt, speed - ca.vertcat(x[SOCKET_V], 0)

    def _outside(self, position: SX, tilt: SX) -> SX:
        w, z = self.rewarded.weights, position[2]
        width = _norm(position[:2]) + (BOTTLE_RADIUS + ca.fmax(DEPTH - z, 0) / 2) * tilt
        allowed = self.options.clearance - w.margin + w.slope * ca.fmax(z - DEPTH - 0.003, 0)
        return w.funnel * ca.log(1 + (ca.fmax(width - allowed, 0) / 1e-3) ** 2)

    def judge(self, trajectory: Trajectory) -> Verdict:
        return self.insertion.judge(trajectory)

    def summarise(self, verdict: Any) -> Any:
        return self.insertion.summarise(verdict)


def _norm(x: SX) -> SX:
    return ca.sqrt(ca.sumsqr(x) + 1e-10)
