"""The ant of SHAC (Xu et al., 2022): run along x."""

from __future__ import annotations

from costate.core.fork import cached_property
from costate.robot import Robot
from costate.sim import Compliant
from costate.tasks.locomotion.floating import Floating
from costate.tasks.locomotion.gym_files import gym_robot
from costate.train.reinforce.shac import ShacOptions


class Ant(Floating):
    """Reward vx + 0.1 up + heading + (height - 0.27); an episode ends below a height of 0.27 m."""

    name = "ant"
    summary = "an ant of 182 kg runs along x"
    training = ShacOptions(iterations=7000, horizon=24, actor=(400, 200, 100), critic=(128, 128))
    lowest, height = 0.27, 0.75
    stance = (0, 1, 0, -1, 0, -1, 0, 1)
    friction = 0.75
    soft = Compliant(stiffness=4e4, damping=0.25, friction_speed=0.3, smoothing=5e-3, limit_damping=0.1)

    @cached_property
    def robot(self) -> Robot:
        return gym_robot("ant", {"geom": {"density": 1000}, "joint": {"armature": 0.05}}, gear=200)
