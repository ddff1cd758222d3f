"""An arm hangs a towel onto a bar: it carries it over by one edge, and lets go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.continuum.cloth.body import Cloth, sheet
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.robots import ClothMotion, ClothWorld, Grip
from costate.continuum.cloth.step import Solver
from costate.robot import Robot
from costate.tasks.cloth.draws import Draws
from costate.tasks.cloth.problem import ClothProblem, ClothTask, Facts
from costate.tasks.cloth.robots.arm import CLAMP, clamp, tool_path
from costate.tasks.soft.robots.arm import TOOL, arm_with

DT = 0.02
LONG, WIDE = 0.36, 0.16
"""Towel [m]: along what hangs, and along the bar."""
BAR = np.array([0.55, 0.0, 0.4])
"""Middle of the bar [m]."""
RADIUS = 0.03
AHEAD = np.array([-0.12, -0.02, 0.06, 0.07])
ABOVE = np.array([0.2, 0.2, 0.1, -0.06])
"""The first guess of the way of the clamp: from the middle of the bar, along x and z [m]; it does not go far enough."""
REACH = 0.12
"""Largest change of a place of that way, in each direction [m]."""


@lru_cache(maxsize=4)
def _scene(shape: tuple[int, int], tolerance: float) -> tuple[Robot, ClothWorld]:
    flat = sheet(shape, (LONG, WIDE))
    hanging = flat.points @ np.array([[0.0, 0, -1.0], [0, 1.0, 0], [1.0, 0, 0]]) - np.array([0, 0, LONG / 2])
    towel = Cloth(hanging, flat.triangles, {"bending": 5e-5}, rest=flat.points, name="towel")
    bar = Collider(cs.shapes.capsule(RADIUS, 0.3, tuple(BAR), (np.pi / 2, 0.0, 0.0)), name="bar")
    edge = list(range(shape[1]))
    model = ClothModel([towel], DT, colliders=[bar], ties=edge, solver=Solver(tolerance))
    robot = arm_with([clamp(WIDE)])
    world = cs.World(robots={"arm": robot}, actuators=cs.PositionServo(), contact=None, dt=DT)
    return robot, ClothWorld(model, world, [Grip(f"arm/{TOOL}", edge)])


@dataclass(frozen=True)
class HangTask(ClothTask):
    """Hang a towel onto a bar with an arm."""

    summary: str = "a UR5 hangs a towel onto a bar, as much of it on one side as on the other"
    steps: int = 60
    """Steps of the motion."""
    held: int = 10
    """Steps after it in which the clamp stays closed."""
    still: int = 30
    """Steps after it has opened."""
    shape: tuple[int, int] = (19, 5)
    """Points along what hangs, and along the bar."""
    limit: float = 0.02
    """Largest difference of the heights of both ends [m]."""

    def problem(self, seed: int) -> ClothProblem:
        draw = Draws(seed)
        robot, scene = _scene(self.shape, self.tolerance)
        world = scene.world
        begin = draw("clamp [m]", [-0.03] * 3, [0.03] * 3)  # where it is held at first
        friction = torch.tensor([draw("friction", 0.4, 0.8)], dtype=torch.float64)
        numbers = {"density": draw("density [kg/m^2]", 0.2, 0.4)}
        places = BAR + np.stack([AHEAD, 0 * AHEAD, ABOVE], -1)
        places[0] += begin
        path = tool_path(robot, places + np.array([0, 0, CLAMP]))
        start = world.initial_state(dtype=torch.float64).clone()
        start[: world.nq] = path.q[0]
        state = scene.model.start(scene.model.start().x + torch.as_tensor(places[0]))
        closed = self.steps + self.held
        grip = (torch.arange(closed + self.still) < closed).double()[:, None]
        rows = self.shape
        top = torch.as_tensor(BAR + np.array([0, 0, RADIUS]))

        def play(z: Tensor) -> ClothMotion:
            moved = torch.cat([z.new_zeros(1, 3), z.reshape(-1, 3)])
            u = path.targets(moved, self.steps, self.held + self.still)
            return scene.run(start, u, state, grip=grip, friction=friction, parameters=numbers)

        def residuals(z: Tensor, motion: ClothMotion) -> Tensor:
            x = motion.x[[closed, -1]].unflatten(1, rows)
            middle = (x[:, rows[0] // 2] - top)[..., [0, 2]].flatten()
            even = (x[:, 0, :, 2] - x[:, -1, :, 2]).flatten()
            aside = x[:, rows[0] // 2, rows[1] // 2, 1]
            return torch.cat([middle / 1e-2, even / 1e-2, aside / 1e-2, 0.1 * z / REACH])

        def judge(motion: ClothMotion) -> tuple[Facts, bool]:
            x = motion.x[-1].detach().unflatten(0, rows)
            even = float((x[0, :, 2] - x[-1, :, 2]).abs().max())
            over = float((x[rows[0] // 2] - top).norm(dim=-1)[rows[1] // 2])
            fast = float((motion.x[-1] - motion.x[-2]).detach().norm(dim=-1).max() / DT)
            facts = {"ends differ [mm]": 1e3 * even, "middle off the bar [mm]": 1e3 * over, "fastest point [m/s]": fast}
            return facts, even < self.limit and over < self.limit and fast < 0.2

        n = 3 * (len(AHEAD) - 1)
        box = -REACH * np.ones(n), REACH * np.ones(n)
        return ClothProblem(scene.model, np.zeros(n), box, play, residuals, judge, world, 0.15, seen=draw.seen)
