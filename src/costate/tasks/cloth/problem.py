"""Problems of cloth: unknown numbers, the motion that they lead to, and what it should be like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.continuum.cloth.model import ClothModel
from costate.model.shape import Shape
from costate.sim.world import World

Tell = Callable[[str], object]
"""Function that shows what is being done."""
Facts = dict[str, Any]
"""Name, with its unit -> number or text."""


@dataclass(frozen=True, eq=False)
class ClothProblem:
    """A problem: find numbers z with which residuals are small."""

    model: ClothModel
    first: np.ndarray
    """Numbers to begin with (n)."""
    bounds: tuple[np.ndarray, np.ndarray]
    """Least and greatest numbers, (n) each."""
    play: Callable[[Tensor], Any]
    """Function from z (n) to a motion (`ClothHistory` or `ClothMotion`); differentiable."""
    residuals: Callable[[Tensor, Any], Tensor]
    """Function from z and its motion to what should be 0 (m), in units in which 1 is little."""
    judge: Callable[[Any], tuple[Facts, bool]] | None = None
    """Function from a motion to the numbers that matter, and whether it is as wanted; None: the least residuals are wanted."""
    world: World | None = None
    """World of the robots, if any take part."""
    spread: float = 0.2
    """Standard deviation of the first candidates of CMA-ES, in shares of the bounds."""
    poses: Tensor | None = None
    """Poses of the shapes that move without a link (frames, shapes, 12), if there are any."""
    drawn: dict[str, list[Shape]] = field(default_factory=dict)
    """Shapes that are drawn for colliders which are unions, by name."""
    seen: dict[str, float] = field(default_factory=dict)
    """Numbers of order one that a policy sees of the problem, by name; empty: the task has no policy."""
    extra: dict[str, Any] = field(default_factory=dict)
    """More that `ClothTask.check` needs."""


@dataclass
class ClothFound:
    """The result of a task."""

    facts: Facts
    solved: bool
    losses: list[float]
    """Half the mean of the squares of the residuals, of every evaluation."""
    model: ClothModel
    times: Tensor
    """Times of the frames (frames,) [s]."""
    x: Tensor
    """Positions (frames, points, 3) [m]."""
    rows: list[dict[str, float | str]] = field(default_factory=list)
    """Table of what was found."""
    robot: tuple[World, Tensor] | None = None
    """World and its states (frames, nx), if robots take part."""
    poses: Tensor | None = None
    """Poses of the shapes that move without a link (frames, shapes, 12), if there are any."""
    drawn: dict[str, list[Shape]] = field(default_factory=dict)
    """Shapes that are drawn for colliders which are unions, by name."""


@dataclass(frozen=True)
class ClothTask(ABC):
    """A task with random problems."""

    summary: str
    steps: int
    """Steps of a roll-out."""
    iterations: int = 30
    """Largest number of iterations; ten times as many of L-BFGS-B, and populations of CMA-ES."""
    method: str = "gauss_newton"
    """Method: one of METHODS."""
    tolerance: float = 1e-4
    """Largest force of a step that does not balance, by the weight."""

    @abstractmethod
    def problem(self, seed: int) -> ClothProblem:
        """Return a random problem."""

    def check(self, problem: ClothProblem, motion: Any, solved: bool) -> tuple[Facts, bool]:
        """Return what a closer look at the motion that was found says, and whether the problem is solved."""
        return {}, solved

    def solve(self, seed: int, tell: Tell) -> ClothFound:
        """Solve a problem; a method ends when its motion is judged to be as wanted."""
        from costate.tasks.cloth.methods import minimise

        problem = self.problem(seed)
        assert problem.judge is not None
        counted = minimise(problem, self.method, self.iterations, tell)
        with torch.no_grad():
            before, _ = problem.judge(problem.play(torch.as_tensor(problem.first)))
            motion = problem.play(torch.as_tensor(counted.best))
        facts, solved = problem.judge(motion)
        more, solved = self.check(problem, motion, solved)
        facts |= more | {f"{name}, before": value for name, value in before.items()}
        facts |= {"unknowns": len(problem.first)} | counted.facts
        return found_of(problem, motion, facts, solved, counted.losses)


def found_of(problem: ClothProblem, motion: Any, facts: Facts, solved: bool, losses: list[float]) -> ClothFound:
    """Return the result of a motion."""
    times = problem.model.dt * torch.arange(len(motion.x), dtype=motion.x.dtype)
    robot = (problem.world, motion.robot.detach()) if problem.world is not None else None
    shown = {"robot": robot, "poses": problem.poses, "drawn": problem.drawn}
    return ClothFound(facts, solved, losses, problem.model, times, motion.x.detach(), **shown)
