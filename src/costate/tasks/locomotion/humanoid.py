"""The humanoid of SHAC (Xu et al., 2022): run along x."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.robot import Robot
from costate.sim import Compliant, Torque
from costate.tasks.locomotion.floating import Floating
from costate.tasks.locomotion.humanoid_robot import humanoid
from costate.train.reinforce.shac import ShacOptions


class Humanoid(Floating):
    """Reward vx + 0.1 up + heading + h - 0.002 |action|^2; h = 10 d if d > 0, else -200 d^2, where d is the height above 0.84 m,
    between -1 and 0.1. An episode ends below a height of 0.74 m."""

    name = "humanoid"
    summary = "a humanoid of 41 kg runs along x"
    training = ShacOptions(
        iterations=4000,
        batch=256,
        horizon=24,
        learning_rate=1e-3,
        actor=(256, 128),
        critic=(128, 128),
        critic_passes=16,
        target_memory=0.5,
        state_clip=100.0,
        calming=True,
    )
    lowest, height = 0.74, 1.35
    stance = (0.0,) * 21
    friction = 0.75
    soft = Compliant(
        stiffness=2e4, damping=0.25, friction_speed=0.1, friction_slope=1e3, smoothing=5e-3, limit_damping=0.25
    )
    substeps = 48
    touching = tuple(f"{side}_{part}" for side in ("right", "left") for part in ("foot", "shin", "lower_arm"))

    @cached_property
    def robot(self) -> Robot:
        return Robot(humanoid())

    @cached_property
    def actuators(self):  # type: ignore[override]
        return {j.name: Torque(limit=float(j.max_effort[0])) for j in self.robot.model.joints if j.kind == "revolute"}

    def bonus(self, x: SX, action: SX) -> SX:
        d = ca.fmin(ca.fmax(self.margin_of(x) - 0.1, -1), 0.1)
        return ca.if_else(d > 0, 10 * d, -200 * d * d) - 0.002 * ca.sumsqr(action)

    def taught(self, x: SX, action: SX, after: SX, time: SX) -> tuple[SX, SX, SX]:
        """Return observation, reward and margin in training: a torso that sinks or tilts costs; speed counts up to 1 m/s.

        The reward of a height is the same above 0.94 m, and a robot that falls forward is fast: nothing else warns it.
        """
        seen, reward, margin = self.told(x, action, after, time)
        R, _, v = self.parts(after)
        low, tilt = ca.fmax(1.2 - after[2], 0) / 0.4, 1 - R[2, 2]
        excess = ca.fmax((R @ v[:3])[0] - 1, 0)
        return seen, reward - excess - 10 * (low**2 + tilt), ca.fmin(margin - 0.1, 0.6 - tilt)
