"""Reach: a Panda moves its hand to a pose without touching the obstacles that stand around, hundreds of problems at once.

A path is `waypoints` configurations joined by straight lines, the last of which must bring the hand to its pose. Every problem
has its own obstacles, start and goal. Distances to all obstacles are residuals at points along the path; they count where they
are below `margin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.model import Shape, Transform
from costate.robot import Pose, Robot, load_robot
from costate.sim import Static, World
from costate.sim.scene.shapes import box, capsule, sphere
from costate.tasks.numbers import TARGET, uniform
from costate.train.solve.problems import Problems, Solvable

HAND = "panda_hand"
ARM = 7
MOVING = (*(f"panda/panda_link{k}" for k in range(3, 8)), "panda/panda_hand")
"""Links that may meet an obstacle: those below turn close to the base."""
RED = (0.85, 0.3, 0.25, 1.0)
OBSTACLES: dict[str, Shape] = {
    "left": sphere(0.1, color=RED),
    "right": sphere(0.1, color=RED),
    "post": capsule(0.05, 0.8, color=RED),
}
# x, y, z of each obstacle and of the hand at the goal [m]; its turn against pointing down, joints at the start against home [rad].
LOW = (0.35, 0.15, 0.3, 0.35, -0.45, 0.3, 0.5, -0.25, 0.3, 0.4, -0.5, 0.2, *[-0.5] * 3, *[-0.4] * ARM)
HIGH = (0.6, 0.45, 0.7, 0.6, -0.15, 0.7, 0.6, 0.25, 0.3, 0.6, 0.5, 0.6, *[0.5] * 3, *[0.4] * ARM)
ACROSS = 0.7
"""The arm starts turned to the other side of the goal by this [rad], so that obstacles are in the way."""


@dataclass(frozen=True, eq=False)
class Scenes:
    """Problems: where obstacles, start and goal are."""

    params: dict[str, Tensor]
    """Parameters of the world, (B, 3) each."""
    start: Tensor
    """(B, 8)."""
    goal: Pose
    """Pose of the hand at the goal, (B, ...)."""


@dataclass(frozen=True, eq=False)
class Reach(Solvable):
    """The task. Unknowns are the arm's joints at the waypoints."""

    name: ClassVar[str] = "reach"
    summary: ClassVar[str] = "a Panda reaches a pose among obstacles"
    unit: ClassVar[str] = "m"
    trails: ClassVar[tuple[str, ...]] = ("panda/panda_hand",)
    attempts: ClassVar[int] = 6

    tolerance: float = 0.001
    """Largest error of the hand's position [m] and orientation [rad]; a path that touches has failed."""
    waypoints: int = 5
    points: int = 4
    """Number of points where distances are looked at, per stretch between waypoints."""
    margin: float = 0.04
    """Distance to keep [m]."""
    smooth: float = 0.002
    """Weight of the changes of joint speed between stretches."""

    target: float = 2e-5
    """Loss: 0.6 mm or mrad off the goal, or 3 mm too near somewhere."""

    @cached_property
    def robot(self) -> Robot:
        return load_robot("panda").double()

    @cached_property
    def world(self) -> World:
        return World(
            robots=[self.robot],
            scenery=[Static(name, shape) for name, shape in OBSTACLES.items()],
            collide=[(link, name) for link in MOVING for name in OBSTACLES],
            parameters=[f"position:{name}" for name in OBSTACLES],
        )

    def shown(self, number: int = 0) -> World:
        """Return a world with the obstacles of one problem, and its goal."""
        scenes = self.scenes([number])
        placed = [
            Static(name, shape, Transform(translation=scenes.params[f"position:{name}"][0].numpy()))
            for name, shape in OBSTACLES.items()
        ]
        goal = Transform(scenes.goal.rotation[0].numpy(), scenes.goal.position[0].numpy())
        placed.append(Static("target", box((0.02, 0.2, 0.02), color=TARGET), goal))
        return World(robots=[self.robot], scenery=placed, contact=None)

    # --- problems -------------------------------------------------------------------------------------------------

    def scenes(self, numbers: Sequence[int]) -> Scenes:
        """Draw random scenes whose start and goal are free: those that are not are drawn again."""
        drawn = uniform(numbers, LOW, HIGH)
        for again in range(1, 50):
            scenes = self._placed(drawn)
            bad = ~self._possible(scenes)
            if not bool(bad.any()):
                return scenes
            drawn[bad] = uniform([numbers[i] + 100_000 * again for i in bad.nonzero()[:, 0].tolist()], LOW, HIGH)
        raise RuntimeError("no possible scene in 50 draws")  # about one draw in two is possible

    def _placed(self, drawn: Tensor) -> Scenes:
        params = {f"position:{name}": drawn[:, 3 * k : 3 * k + 3] for k, name in enumerate(OBSTACLES)}
        home = self.world.initial_state()[: self.robot.nq]
        goal, turn, joints = drawn[:, 9:12], drawn[:, 12:15], drawn[:, 15:]
        start = home + torch.cat([joints, torch.zeros_like(joints[:, :1])], -1)
        start[:, 0] -= ACROSS * goal[:, 1].sign()
        down = self.robot.forward_kinematics(home, HAND).rotation
        return Scenes(params, start, Pose(goal, _turn(turn) @ down))

    def _possible(self, scenes: Scenes) -> Tensor:
        """Return whether the start is free and some configuration at the goal is, (B,)."""
        found = self._goals(scenes, 8, 0)
        reached = self._pose_error(found, _repeat(scenes.goal, 8)).norm(dim=-1) < 1e-6
        free = self._clearance(found, _repeat_params(scenes.params, 8)) > self.margin
        start_free = self._clearance(scenes.start, scenes.params) > self.margin
        return start_free & (reached & free).unflatten(0, (-1, 8)).any(-1)

    def _goals(self, scenes: Scenes, tries: int, seed: int) -> Tensor:
        """Return configurations that bring the hand to its goal, from random starts, (B tries, 8)."""
        source = torch.Generator().manual_seed(seed)
        count = scenes.start.shape[0]
        q0 = self.robot.random_configuration(count, tries, generator=source)
        q0[:, 0] = scenes.start
        q0[..., ARM] = scenes.start[:, None, ARM]
        goal = _repeat(scenes.goal, tries)
        return self.robot.inverse_kinematics(goal, HAND, q0.flatten(0, 1), attempts=0)

    def guess(self, scenes: Scenes, attempt: int) -> Tensor:
        """Return straight lines to configurations at the goal: to the nearest free one first, (B, waypoints * 7)."""
        tries = 8
        found = self._goals(scenes, tries, attempt // 2)
        wrong = self._pose_error(found, _repeat(scenes.goal, tries)).norm(dim=-1) > 1e-6
        touching = self._clearance(found, _repeat_params(scenes.params, tries)) < self.margin
        far = (found.unflatten(0, (-1, tries)) - scenes.start[:, None])[..., :ARM].norm(dim=-1)
        far = far + 100.0 * (wrong | touching).unflatten(0, (-1, tries))
        rank = far.argsort(-1)[:, attempt % 2]
        goal = found.unflatten(0, (-1, tries))[torch.arange(len(rank)), rank]
        part = torch.arange(1, self.waypoints + 1, dtype=goal.dtype) / self.waypoints
        line = scenes.start[:, None] + part[:, None] * (goal - scenes.start)[:, None]
        return line[..., :ARM].flatten(1)

    # --- residuals ------------------------------------------------------------------------------------------------

    def path(self, x: Tensor, start: Tensor, points: int | None = None) -> Tensor:
        """Return configurations along the way, (B, waypoints * points + 1, 8)."""
        corners = torch.cat([start[:, None, :ARM], x.unflatten(-1, (self.waypoints, ARM))], 1)
        part = torch.arange(points or self.points, dtype=x.dtype) / (points or self.points)
        between = corners[:, :-1, None] + part[:, None] * (corners[:, 1:] - corners[:, :-1])[:, :, None]
        arm = torch.cat([between.flatten(1, 2), corners[:, -1:]], 1)
        return torch.cat([arm, start[:, None, ARM:].expand(-1, arm.shape[1], -1)], -1)

    def gaps(self, q: Tensor, params: dict[str, Tensor]) -> Tensor:
        """Return distances of links to obstacles [m] at configurations (B, ..., 8)."""
        state = torch.cat([q, torch.zeros_like(q)], -1)
        shaped = {k: p.reshape(p.shape[0], *[1] * (q.dim() - 2), 3) for k, p in params.items()}
        return self.world.gaps(state, params=shaped)

    def _clearance(self, q: Tensor, params: dict[str, Tensor]) -> Tensor:
        return self.gaps(q, params).amin(-1)

    def _pose_error(self, q: Tensor, goal: Pose) -> Tensor:
        """Return position [m] and orientation [rad, small angles] of the hand against its goal, (B, 6)."""
        hand = self.robot.forward_kinematics(q, HAND)
        R = hand.rotation @ goal.rotation.mT
        turn = torch.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1)
        return torch.cat([hand.position - goal.position, turn / 2], -1)

    def residuals(self, x: Tensor, scenes: Scenes) -> Tensor:
        path = self.path(x, scenes.start)
        pose = self._pose_error(path[:, -1], scenes.goal)
        close = torch.relu(self.margin - self.gaps(path[:, 1:], scenes.params))
        low, high = self.robot.lower[:ARM], self.robot.upper[:ARM]
        corners = torch.cat([scenes.start[:, None, :ARM], x.unflatten(-1, (self.waypoints, ARM))], 1)
        outside = torch.relu(low - corners) + torch.relu(corners - high)
        bends = corners.diff(n=2, dim=1)
        return torch.cat([10 * pose, 2 * close.flatten(1), outside.flatten(1), self.smooth * bends.flatten(1)], 1)

    def error(self, x: Tensor, scenes: Scenes) -> Tensor:
        """Pose error at the end; infinite if the path touches or leaves the joints' range, on a finer grid, (B,)."""
        path = self.path(x, scenes.start, points=20)
        missed = self._pose_error(path[:, -1], scenes.goal)
        worst = torch.maximum(missed[:, :3].norm(dim=-1), missed[:, 3:].norm(dim=-1))
        free = self.gaps(path, scenes.params).amin((-1, -2)) > 0
        arm = path[..., :ARM]
        inside = ((arm >= self.robot.lower[:ARM] - 1e-3) & (arm <= self.robot.upper[:ARM] + 1e-3)).all(-1).all(-1)
        return torch.where(free & inside, worst, torch.full_like(worst, torch.inf))

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        scenes = self.scenes(numbers)
        return Problems(
            x0=self.guess(scenes, attempt),
            residuals=lambda x: self.residuals(x, scenes),
            states=lambda x: self._states(x, scenes),
            error=lambda x: self.error(x, scenes),
            target=self.target,
            facts=lambda x: {
                "least distance [m]": float(self.gaps(self.path(x, scenes.start, 20), scenes.params).min())
            },
        )

    def _states(self, x: Tensor, scenes: Scenes) -> Tensor:
        q = self.path(x, scenes.start, points=20).movedim(1, 0)
        return torch.cat([q, torch.zeros_like(q)], -1)


def _turn(v: Tensor) -> Tensor:
    """Turn rotation vectors (..., 3) to matrices."""
    zero = torch.zeros_like(v[..., 0])
    x, y, z = v.unbind(-1)
    return torch.linalg.matrix_exp(torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).unflatten(-1, (3, 3)))


def _repeat(pose: Pose, times: int) -> Pose:
    return Pose(pose.position.repeat_interleave(times, 0), pose.rotation.repeat_interleave(times, 0))


def _repeat_params(params: dict[str, Tensor], times: int) -> dict[str, Tensor]:
    return {k: p.repeat_interleave(times, 0) for k, p in params.items()}
