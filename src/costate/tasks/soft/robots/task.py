"""A robot among soft matter: targets of its joints at some times are found by gradients through robot and matter together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm.robots import SoftMotion, SoftWorld
from costate.tasks.soft.actuation import between_knots
from costate.tasks.soft.found import SoftFound, Tell, descend
from costate.tasks.soft.shown import moved_surfaces

SEGMENT = 5
"""Steps between two frames."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A scene and where the search begins."""

    soft: SoftWorld
    start: Tensor
    """State of the world (nx)."""
    knots: Tensor
    """Targets of the joints (k, nu) at equal distances in time: the first guess."""
    scale: Tensor
    """Factor of the rate of each joint's target (nu); 0: it is not changed."""


@dataclass(frozen=True)
class RobotTask(ABC):
    """Find a motion of a robot among soft matter."""

    summary: str
    steps: int
    iterations: int
    rate: float
    spacing: float
    """Distance of particles [m]; cells are twice as large."""

    @abstractmethod
    def setting(self, seed: int) -> Setting:
        """Return the scene of a problem."""

    @abstractmethod
    def loss(self, setting: Setting, motion: SoftMotion) -> Tensor:
        """Return what is to be small."""

    @abstractmethod
    def judge(self, setting: Setting, motion: SoftMotion) -> tuple[dict[str, Any], bool]:
        """Return the numbers that matter of a motion, and whether it does what is wanted."""

    def play(self, setting: Setting, change: Tensor) -> SoftMotion:
        """Return the motion when the knots are changed, (k, nu), in shares of the scale."""
        controls = between_knots(setting.knots + setting.scale * change, self.steps)
        return setting.soft.run(setting.start, controls)

    def solve(self, seed: int, tell: Tell, dtype: torch.dtype = torch.float64) -> SoftFound:
        """Solve from the first guess; robots among soft matter are computed in float64."""
        if dtype != torch.float64:
            raise ValueError("--single is given, but robots among soft matter are computed in float64: leave it out")
        setting = self.setting(seed)
        change = torch.zeros_like(setting.knots, requires_grad=True)
        with torch.no_grad():
            before, _ = self.judge(setting, self.play(setting, change))
        losses = descend(
            lambda: self.loss(setting, self.play(setting, change)), [change], self.iterations, self.rate, tell
        )
        with torch.no_grad():
            motion = self.play(setting, change)
        facts, solved = self.judge(setting, motion)
        model, world = setting.soft.model, setting.soft.world
        facts |= {f"{name}, before": before[name] for name in facts}
        facts |= {"particles": model.particles, "unknowns": int((setting.scale != 0).sum()) * len(change)}
        times = SEGMENT * model.dt * torch.arange(len(motion.x), dtype=dtype)
        wide = model.dt * np.arange(self.steps)
        force = motion.wrenches[..., :3].norm(dim=-1).numpy()
        names = [p.link.split("/")[-1] for p in setting.soft.pushers]
        curves = {"Force": (wide, {n: force[:, k] for k, n in enumerate(names)}, "time [s]", "force on the link [N]")}
        tools = surfaces(setting.soft, motion.robot[::SEGMENT])
        return SoftFound(
            facts, solved, losses, model, motion.x, times, curves, tools=tools, robot=(world, motion.robot)
        )


def surfaces(soft: SoftWorld, states: Tensor) -> Tensor:
    """Return points (frames, n, 3) on what touches the particles, for pictures."""
    poses = [soft.world.link_pose(states, p.link) for p in soft.pushers]
    rows = torch.stack([torch.cat([p.position, p.rotation.flatten(-2)], -1) for p in poses], -2)
    return moved_surfaces(soft.pushers, rows, soft.model.obstacles, soft.model.grid.dx / 2)
