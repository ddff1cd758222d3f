"""Two arms stretch a towel that hangs between them until it is flat, and no further."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

import costate as cs
from costate.continuum.cloth.body import Cloth, sheet
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.robots import ClothMotion, ClothWorld, Grip
from costate.continuum.cloth.step import Solver
from costate.model import Transform
from costate.robot import Robot
from costate.tasks.cloth.draws import Draws
from costate.tasks.cloth.problem import ClothProblem, ClothTask, Facts
from costate.tasks.cloth.robots.arm import CLAMP, clamp, tool_path
from costate.tasks.soft.robots.arm import TOOL, arm_with

DT = 0.02
LONG, WIDE = 0.3, 0.2
"""Towel [m]: between the arms, and along their clamps."""
APART = 1.1
"""Distance of the arms [m], which face each other."""
HIGH = 0.3
"""Height at which it should be flat [m]."""
SLACK = 0.8
"""Distance of the clamps at the beginning, by the length of the towel."""
KNOTS = 2
REACH = 0.1
"""Largest change of a knot, in each direction [m]."""
ARMS: tuple[str, ...] = ("left", "right")


@lru_cache(maxsize=4)
def _scene(shape: tuple[int, int], tolerance: float) -> tuple[Robot, ClothWorld]:
    flat = sheet(shape, (LONG, WIDE))
    towel = Cloth(_arc(flat.points), flat.triangles, {"bending": 5e-5}, rest=flat.points, name="towel")
    n = shape[0] * shape[1]
    edges = [list(range(shape[1])), list(range(n - shape[1], n))]
    model = ClothModel([towel], DT, ties=[*edges[0], *edges[1]], solver=Solver(tolerance))
    robot = arm_with([clamp(WIDE)])
    far = Transform(np.diag([-1.0, -1.0, 1.0]), np.array([APART, 0.0, 0.0]))
    robots = dict.fromkeys(ARMS, robot)
    world = cs.World(robots=robots, actuators=cs.PositionServo(), contact=None, dt=DT, poses={"right": far})
    grips = [Grip(f"{name}/{TOOL}", edge) for name, edge in zip(ARMS, edges, strict=True)]
    return robot, ClothWorld(model, world, grips)


def _arc(points: np.ndarray) -> np.ndarray:
    """Return points of the plane z = 0 on an arc that sags, as long as they are, with its ends at SLACK of the distance."""
    half: Any = brentq(lambda a: np.sin(a) / a - SLACK, 1e-3, 3.0)
    r = LONG / 2 / half
    angle = points[:, 0] / r
    return np.stack([r * np.sin(angle), points[:, 1], r * (np.cos(half) - np.cos(angle))], -1)


@dataclass(frozen=True)
class StretchTask(ClothTask):
    """Stretch a towel flat with two arms."""

    summary: str = "two UR5 stretch a towel that hangs between them until it is flat, and no further"
    steps: int = 50
    """Steps of the motion."""
    still: int = 20
    """Steps after it."""
    shape: tuple[int, int] = (11, 8)
    """Points between the arms, and along their clamps."""
    flat: float = 5e-3
    """Largest distance of a point from the plane [m]."""
    strain: float = 0.02
    """Largest strain of an edge of the mesh."""

    def problem(self, seed: int) -> ClothProblem:
        draw = Draws(seed)
        robot, scene = _scene(self.shape, self.tolerance)
        world, model = scene.world, scene.model
        shifts = draw("clamp [m]", [-0.03] * 6, [0.03] * 6).reshape(2, 3)
        middle = np.array([APART / 2, 0.0, HIGH])
        x = model.scene.points + middle
        share = (model.scene.rest[:, :1] + LONG / 2) / LONG
        x = x + (1 - share) * shifts[0] + share * shifts[1]
        ends = np.stack([x[: self.shape[1]].mean(0), x[-self.shape[1] :].mean(0)])
        paths = [self._path(robot, ends[k], k) for k in range(2)]
        start = world.initial_state(dtype=torch.float64).clone()
        start[: world.nq] = torch.cat([p.q[0] for p in paths])
        state = model.start(torch.as_tensor(x))
        numbers = {"density": draw("density [kg/m^2]", 0.2, 0.4)}
        want = torch.as_tensor(model.scene.rest + middle)
        edges, lengths = _edges(model)

        def play(z: Tensor) -> ClothMotion:
            moved = torch.cat([z.new_zeros(2, 1, 3), z.reshape(2, KNOTS, 3)], 1) * SIGNS[:, None]
            u = torch.cat([p.targets(m, self.steps, self.still) for p, m in zip(paths, moved, strict=True)], -1)
            return scene.run(start, u, state, parameters=numbers)

        def residuals(z: Tensor, motion: ClothMotion) -> Tensor:
            return torch.cat([((motion.x[-1] - want) / 2e-3).flatten(), 0.1 * z / REACH])

        def judge(motion: ClothMotion) -> tuple[Facts, bool]:
            end = motion.x[-1].detach()
            centred = end - end.mean(0)
            off = float((centred @ torch.linalg.svd(centred).Vh[-1]).abs().max())
            strain = float(((end[edges[:, 0]] - end[edges[:, 1]]).norm(dim=-1) / lengths - 1).max())
            facts = {"from a plane [mm]": 1e3 * off, "largest strain [%]": 100 * strain}
            return facts, off < self.flat and strain < self.strain

        n = 6 * KNOTS
        box = -REACH * np.ones(n), REACH * np.ones(n)
        return ClothProblem(model, np.zeros(n), box, play, residuals, judge, world, 0.15, seen=draw.seen)

    def _path(self, robot: Robot, end: np.ndarray, arm: int):
        """Return the way of an arm's tool that stays where it is."""
        own = end * SIGNS[arm].numpy() + np.array([APART * arm, 0.0, CLAMP])
        return tool_path(robot, np.tile(own, (KNOTS + 1, 1)))


SIGNS = torch.tensor([[1.0, 1.0, 1.0], [-1.0, -1.0, 1.0]], dtype=torch.float64)
"""Axes of the world in the frames of the arms: the second is turned by half a turn."""


def _edges(model: ClothModel) -> tuple[Tensor, Tensor]:
    """Return the edges of the mesh (n, 2), and their lengths at rest [m]."""
    tri = model.scene.triangles
    every = np.unique(np.sort(np.concatenate([tri[:, [0, 1]], tri[:, [1, 2]], tri[:, [2, 0]]]), axis=1), axis=0)
    rest = torch.as_tensor(model.scene.rest)
    edges = torch.as_tensor(every)
    return edges, (rest[edges[:, 0]] - rest[edges[:, 1]]).norm(dim=-1)
