"""The pendulum of n links of Qiao et al. (2021): swing the tip from level with the base to straight above it, in 100 steps.

The motors are far too weak to hold many links out level, so they have to be swung up. Rewards add up to

    |tip(0) - target|^2 - 2 |tip(T) - target|^2,

at most n^2 / 2: where the tip is at the end counts, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.core.fork import cached_property
from costate.model.builtin.parts import BLUE, GREY, ORANGE, X, capsule, joint, link, robot, sphere
from costate.robot import Robot
from costate.sim import Torque, World
from costate.train.episode import Episodes, Trajectory, Verdict
from costate.train.plan import Schedule
from costate.train.reinforce.bptt import BpttOptions
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.reinforce.sac import SacOptions
from costate.train.reinforce.shac import ShacOptions

LENGTH = 0.5
"""Length of each link [m]."""
FIRST, OTHERS, TIP = (1.0, 0.00494875), (2.16, 0.00539427), (0.01, 1e-4)
"""Mass [kg] and moment of inertia about the axis [kg m^2] at the end of the first link, of each other one, and of the tip."""

FASTEST = 100.0
"""Speed of a joint that ends an episode [rad/s]: a step is then longer than a quarter of a turn, and follows no motion any more."""


@dataclass(frozen=True)
class LinkPendulumOptions:
    """Options of the task."""

    links: int = 7
    """Number of links."""

    def __post_init__(self) -> None:
        if self.links < 1:
            raise ValueError(f"links is {self.links}; it must be at least 1")


class LinkPendulum(RewardedTask):
    """Reward d^2 before - d^2 after a step, d the distance from tip to target; in the last step less d^2 once more."""

    name = "link_pendulum"
    summary = "a pendulum of up to seven links swings its tip up"
    unit = "m"
    length = 100
    stationary = False
    training = BpttOptions(
        iterations=300,
        batch=128,
        learning_rate=2e-3,
        calming=True,
        actor=(64, 64),
        state_clip=1e6,
        interval=20,
        attempts=3,
    )
    algorithms: ClassVar[Mapping[str, Schedule]] = {
        "shac": ShacOptions(
            iterations=300, batch=64, horizon=100, learning_rate=2e-3, actor=(64, 64), critic_passes=1, minibatches=1,
            discount=1.0, calming=True, state_clip=1e6, interval=20,
        ),
        "sac": SacOptions(
            iterations=160, batch=16, horizon=25, updates=50, learning_rate=3e-3, actor=(64, 64), critic=(64, 64),
            target_memory=0.9, discount=1.0, entropy=-1.0, interval=10,
        ),
    }  # fmt: skip
    options = LinkPendulumOptions()
    tolerance: ClassVar[float] = 0.1  # type: ignore[assignment]  (never None)
    """Largest distance of the tip from its target at the end [m]."""

    @cached_property
    def world(self) -> World:
        n = self.options.links
        rod = capsule(0.02, (0, 0, 0), (0, LENGTH, 0), GREY)
        links, joints = [link("base")], []
        for k in range(n):
            mass, moment = OTHERS if k else FIRST
            ball = sphere(0.05, (0, LENGTH, 0), BLUE)
            links.append(link(f"link_{k}", mass, (0, LENGTH, 0), moment, shapes=[], visuals=[rod, ball]))
            parent, away = (f"link_{k - 1}", LENGTH) if k else ("base", 0.0)
            joints.append(joint(f"joint_{k}", "continuous", parent, f"link_{k}", (0, away, 0), axis=X))
        links.append(link("tip", TIP[0], inertia=TIP[1], shapes=[], visuals=[sphere(0.06, color=ORANGE)]))
        joints.append(joint("tip_fixed", "fixed", f"link_{n - 1}", "tip", (0, LENGTH, 0)))
        made = Robot(robot("link_pendulum", links, joints, "Qiao et al., 2021"))
        motors = Torque(limit=10.0)
        return World(
            [made], actuators=motors, contact=None, integrator="euler", gravity=(0, 0, -9.8), dt=1 / 60, check=False
        )

    @property
    def best(self) -> float:
        """Largest sum of rewards."""
        return self.options.links**2 / 2

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        return torch.zeros(batch, self.world.nx)

    def places_of(self, x: SX) -> SX:
        """Return the positions of joints and tip in the plane, y and z [m], (n + 1, 2)."""
        n = self.options.links
        angle = ca.cumsum(x[:n])
        steps = LENGTH * ca.horzcat(ca.cos(angle), ca.sin(angle))
        return ca.vertcat(SX(1, 2), ca.cumsum(steps, 0))

    def apart_of(self, x: SX) -> SX:
        """Return the square of the distance from tip to target [m^2]."""
        return ca.sumsqr(self.places_of(x)[-1, :] - ca.DM([[0, self.options.links * LENGTH]]))

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        places = self.places_of(x)
        return ca.vertcat(x[self.options.links :], ca.vec(ca.horzcat(SX(places.shape[0], 1), places).T), time)

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        apart = self.apart_of(after)
        ends = ca.logic_or(time > 1 - 0.5 / self.length, self.margin_of(after) < 0)
        return self.apart_of(x) - apart - ca.if_else(ends, apart, 0)

    def margin_of(self, x: SX) -> SX:
        return FASTEST - ca.norm_inf(x[self.options.links :])

    def judge(self, trajectory: Trajectory) -> Verdict:
        total = self.rewards(trajectory)[0].sum(0)
        error = ((self.best - total) / 2).clamp(min=0).sqrt()
        return Verdict(
            error < self.tolerance, error, columns={"return": total, "length [steps]": 0 * error + self.length}
        )

    def marks(self, episodes: Episodes) -> Tensor:
        return episodes.state.new_tensor([0, 0, self.options.links * LENGTH]).expand(len(episodes.state), 1, 3)
