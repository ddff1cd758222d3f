"""An arm folds a towel: it lifts a corner, carries it over to the opposite one, and lets go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.continuum.cloth.body import sheet
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.robots import ClothMotion, ClothWorld, Grip
from costate.continuum.cloth.state import ClothState
from costate.continuum.cloth.step import Solver
from costate.robot import Robot
from costate.tasks.cloth.draws import Draws
from costate.tasks.cloth.problem import ClothProblem, ClothTask, Facts
from costate.tasks.cloth.robots.arm import tool_path
from costate.tasks.soft.robots.arm import TOOL, arm_with

DT = 0.02
SIDE = 0.3
"""Side of the towel [m]."""
HANG = 0.12
"""Distance of the finger tips from the flange [m]."""
LIES = 1.5e-3
"""Height of a towel that lies on the table [m]."""
ALONG = np.array([0.0, 0.04, 0.5, 0.85, 1.0])
HIGH = np.array([0.0, 0.1, 0.15, 0.1, 0.01])
"""The first guess of the way of the corner: shares of the way to the opposite one, and heights [m].

It begins almost straight up, which draws the towel back a little; in the end it is drawn taut into its place. A corner that goes
along at once pushes the towel ahead, and slack is left in the end, where layers that touch lie elsewhere than those that do not.
"""
REACH = 0.1
"""Largest change of a place of that way, in each direction [m]."""


@lru_cache(maxsize=4)
def _scene(points: int, tolerance: float) -> tuple[Robot, ClothWorld, ClothModel]:
    """Return an arm, the world of it and a towel on a table, and the same towel if it touches itself."""
    towel = sheet((points, points), (SIDE, SIDE), name="towel")
    table = Collider(cs.shapes.plane(), name="table")
    model = ClothModel([towel], DT, colliders=[table], ties=[0], solver=Solver(tolerance))
    layered = ClothModel([towel], DT, colliders=[table], ties=[0], solver=Solver(tolerance), self_contact=True)
    fingers = [cs.shapes.box((0.01, 0.02, HANG), (side * 0.007, 0, HANG / 2)) for side in (-1, 1)]
    robot = arm_with(fingers)
    world = cs.World(robots={"arm": robot}, actuators=cs.PositionServo(), contact=None, dt=DT)
    return robot, ClothWorld(model, world, [Grip(f"arm/{TOOL}", [0])]), layered


@dataclass(frozen=True)
class FoldTask(ClothTask):
    """Fold a towel from corner to corner with an arm."""

    summary: str = "a UR5 folds a towel that lies anywhere in front of it, from corner to corner"
    steps: int = 60
    """Steps of the motion."""
    iterations: int = 12
    held: int = 12
    """Steps after it in which the fingers stay closed."""
    still: int = 25
    """Steps after they have opened."""
    points: int = 9
    """Points along a side."""
    aim: float = 3e-3
    """Largest distance of a corner from its place at which the search for a motion ends [m]; layers do not touch in it."""
    limit: float = 1e-2
    """Largest distance with which the towel counts as folded [m], with layers that touch."""

    def problem(self, seed: int) -> ClothProblem:
        draw = Draws(seed)
        robot, scene, layered = _scene(self.points, self.tolerance)
        world = scene.world
        middle = draw("middle of the towel [m]", [0.42, -0.15], [0.58, 0.15])
        angle = draw.angle("the towel")
        stiffer = np.exp(draw("logarithm of the bending stiffness by 6e-5 N m", -0.7, 0.7))
        numbers = {"bending": 6e-5 * stiffer, "density": draw("density [kg/m^2]", 0.2, 0.4)}
        friction = torch.tensor([draw("friction", 0.3, 0.8)], dtype=torch.float64)
        state = scene.model.start(torch.as_tensor(_placed(scene.model.scene.points, middle, angle)))
        first, last = state.x[0].numpy(), state.x[-1].numpy()
        places = first + ALONG[:, None] * (last - first) + HIGH[:, None] * np.array([0, 0, 1]) + np.array([0, 0, HANG])
        path = tool_path(robot, places)
        start = world.initial_state(dtype=torch.float64).clone()
        start[: world.nq] = path.q[0]
        closed = self.steps + self.held
        grip = (torch.arange(closed + self.still) < closed).double()[:, None]
        want = wanted(state.x, self.points)

        def play(z: Tensor) -> ClothMotion:
            moved = torch.cat([z.new_zeros(1, 3), z.reshape(-1, 3)])
            u = path.targets(moved, self.steps, self.held + self.still)
            return scene.run(start, u, state, grip=grip, friction=friction, parameters=numbers)

        def residuals(z: Tensor, motion: ClothMotion) -> Tensor:
            off = (corners(motion.x[-1], self.points) - want).flatten()
            return torch.cat([off / 1e-3, 0.1 * z / REACH])

        def judge(motion: ClothMotion) -> tuple[Facts, bool]:
            off = self.error(motion.x, want)
            return {"corner error [mm]": 1e3 * off}, off < self.aim

        n = 3 * (len(ALONG) - 1)
        box = -REACH * np.ones(n), REACH * np.ones(n)
        extra = {"layered": layered, "friction": friction, "parameters": numbers, "want": want}
        return ClothProblem(
            scene.model, np.zeros(n), box, play, residuals, judge, world, 0.1, seen=draw.seen, extra=extra
        )

    def error(self, x: Tensor, want: Tensor) -> float:
        """Return the largest distance [m] of a corner at the end of a motion x (frames, points, 3) from its place."""
        return float((corners(x[-1].detach(), self.points) - want).norm(dim=-1).max())

    def check(self, problem: ClothProblem, motion: ClothMotion, solved: bool) -> tuple[Facts, bool]:
        """Play the motion of the fingers again, with layers that touch each other, from where they come near."""
        assert problem.world is not None
        model: ClothModel = problem.extra["layered"]
        x, robot = motion.x.detach(), motion.robot.detach()
        place, R = problem.world.link_pose(robot, f"arm/{TOOL}")
        held = place + (R @ ((x[0, 0] - place[0]) @ R[0])[:, None])[..., 0]
        ties = torch.cat([torch.zeros_like(held[1:, :1]), held[1:]], -1)[:, None]
        ties[: self.steps + self.held, 0, 0] = Grip.stiffness
        k = _apart(x, torch.as_tensor(model.scene.rest), SIDE / (self.points - 1))
        given: dict[str, Any] = {name: problem.extra[name] for name in ("friction", "parameters")}
        try:
            with torch.no_grad():
                begin = ClothState(x[k], (x[k] - x[k - 1]) / DT)
                again = model.run(len(x) - 1 - k, begin, ties=ties[k:], **given)
        except FloatingPointError:
            return {"corner error, layers touch [mm]": float("nan")}, False
        motion.x[k:] = again.x
        off = self.error(again.x, problem.extra["want"])
        return {"corner error, layers touch [mm]": 1e3 * off}, off < self.limit


def corners(x: Tensor, points: int) -> Tensor:
    """Return the corners (4, 3) of a towel; the first is the one that is gripped, the last the opposite one."""
    n = points
    return x[[0, n - 1, n * (n - 1), n * n - 1]]


def wanted(x: Tensor, points: int) -> Tensor:
    """Return where corners should be (4, 3): the first at the opposite one, the others where they are at the beginning."""
    found = corners(x, points).clone()
    found[0] = found[3]
    return found


def _placed(points: np.ndarray, middle: np.ndarray, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    found = points @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T
    return found + np.array([*middle, LIES])


def _apart(x: Tensor, rest: Tensor, spacing: float) -> int:
    """Return the last frame (from 1 on) before points that are apart in the rest shape come nearer than they may be."""
    far = torch.cdist(rest, rest) > 2 * spacing
    near = torch.stack([(torch.cdist(frame, frame) < spacing)[far].any() for frame in x])
    first = int(near.double().argmax()) if near.any() else len(x) - 1
    return max(first - 1, 1)
