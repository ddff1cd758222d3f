"""A pourer fills a cup: an arm tilts a jug such that the liquid lands in the cup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.collision.shapes import Solid
from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.fill import distance_of
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.robots import Pusher, SoftMotion, SoftWorld
from costate.continuum.mpm.walls import Obstacle
from costate.tasks.soft.robots.arm import DOWN, TOOL, about_y, arm_with, through
from costate.tasks.soft.robots.task import SEGMENT, RobotTask, Setting

DT = 5e-3
CUP = np.array([0.5, 0.0])
"""Place of the cup [m]."""
CUP_RADIUS, CUP_HEIGHT = 0.055, 0.08
JUG_RADIUS, JUG_HEIGHT, FULL = 0.035, 0.1, 0.06
"""Inside of the jug, and how high the liquid stands in it [m]."""
WALL = 0.03
"""Thickness of walls and floors [m]: two cells and more."""
HANG = 0.18
"""Distance of the jug's floor from the flange [m]."""
NEAR = (0.0, -1.2, 1.6, -2.0, -1.57, -1.57)


@dataclass(frozen=True, eq=False)
class Vessel(Solid):
    """An open vessel, whose walls push everything in them to the inside: those of a difference of two cylinders push what is beyond
    their middle outwards, and a liquid seeps through."""

    radius: float
    height: float
    """Inside [m]."""
    base: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Middle of the floor inside [m]."""
    up: float = 1.0
    """1 if it opens along z, -1 if against it."""

    def distance(self, p: ca.SX) -> ca.SX:
        x, y, z = self.base
        middle = (x, y, z + self.up * (self.height - WALL) / 2)
        outer = distance_of(cs.shapes.cylinder(self.radius + WALL, self.height + WALL, middle), p)
        above = (x, y, z + self.up * (self.height + WALL) / 2)
        inner = distance_of(cs.shapes.cylinder(self.radius, self.height + WALL, above), p)
        return ca.if_else(outer < 0, -inner, ca.fmax(outer, -inner))


@dataclass(frozen=True)
class PourTask(RobotTask):
    """Pour a liquid from a jug on an arm into a cup."""

    summary: str = "a UR5 pours a liquid from a jug into a cup"
    steps: int = 240
    iterations: int = 25
    rate: float = 0.02
    spacing: float = 0.0065
    knots: int = 9
    goal: float = 0.9
    """Share of the liquid in the cup from which on it counts as solved."""

    def setting(self, seed: int) -> Setting:
        random = np.random.default_rng(seed)
        dx, h = 2 * self.spacing, self.spacing
        jug = np.array([CUP[0] - 0.12 + random.uniform(-0.01, 0.01), 0.0, 0.16])
        low = jug - [JUG_RADIUS, JUG_RADIUS, 0]
        inside = cs.shapes.cylinder(JUG_RADIUS - h / 2, FULL, tuple(jug + np.array([0, 0, FULL / 2])))
        points = fill.fill(inside, h, tuple(low), tuple(jug + np.array([JUG_RADIUS, JUG_RADIUS, FULL])))
        liquid = SoftBody(points, h, "liquid", {"bulk": 8e3, "viscosity": 0.5}, name="liquid")
        lower = np.array([CUP[0] - 0.24, -0.13, -2 * dx])
        upper = np.array([CUP[0] + 0.14, 0.13, 0.36])
        grid = MpmGrid(tuple(int(n) + 1 for n in np.ceil((upper - lower) / dx)), dx, tuple(lower))
        cup = Obstacle(Vessel(CUP_RADIUS, CUP_HEIGHT, (float(CUP[0]), float(CUP[1]), 0.0)), "slip")
        model = MpmModel(grid, [liquid], DT, obstacles=[cup], segment=SEGMENT)
        robot = arm_with([cs.shapes.cylinder(JUG_RADIUS + WALL, JUG_HEIGHT, (0, 0, HANG - JUG_HEIGHT / 2))])
        world = cs.World(robots={"arm": robot}, actuators=cs.PositionServo(), contact=None, dt=DT)
        shape = Vessel(JUG_RADIUS, JUG_HEIGHT, (0.0, 0.0, HANG), -1.0)
        soft = SoftWorld(model, world, [Pusher(f"arm/{TOOL}", shape, "slip")])
        q = self._guess(robot, jug)
        start = world.initial_state(dtype=torch.float64).clone()
        start[: world.nq] = q[0]
        return Setting(soft, start, q, torch.ones(world.nu, dtype=torch.float64))

    def _guess(self, robot: cs.Robot, jug: np.ndarray) -> Tensor:
        """Return a jug that is held where it is and tilted: some of the liquid misses the cup."""
        tilt = np.array([0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 1.7, 1.8, 1.8])
        turns = np.stack([about_y(t) @ DOWN for t in tilt])
        places = jug + np.stack([0 * tilt, 0 * tilt, 0.04 * tilt], -1) - HANG * turns[:, :, 2]
        return through(robot, TOOL, places, turns, NEAR)

    def loss(self, setting: Setting, motion: SoftMotion) -> Tensor:
        x = motion.x[-1]
        off = torch.sqrt((x[:, :2] - torch.as_tensor(CUP)).square().sum(-1) + 1e-8)
        outside = (off - 0.8 * CUP_RADIUS).clamp(min=0) / CUP_RADIUS
        above = (x[:, 2] - CUP_HEIGHT).clamp(min=0) / CUP_HEIGHT
        nq = setting.soft.world.nq
        return (outside + above).mean() + 1e-3 * motion.robot[:, nq:].square().mean()

    def judge(self, setting: Setting, motion: SoftMotion) -> tuple[dict[str, Any], bool]:
        x = motion.x[-1]
        off = (x[:, :2] - torch.as_tensor(CUP)).norm(dim=-1)
        inside = off < CUP_RADIUS + setting.soft.model.grid.dx  # a wall holds what is up to a cell in it
        share = float((inside & (x[:, 2] < CUP_HEIGHT)).double().mean())
        spilt = float((~inside & (x[:, 2] < CUP_HEIGHT)).double().mean())
        return {"share in the cup": share, "spilt": spilt}, share >= self.goal
