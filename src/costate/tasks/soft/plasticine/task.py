"""A task of plasticine: actions of tools that bring it into a wanted shape, found by gradients through the whole episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.robots import SoftTools
from costate.continuum.mpm.state import MpmHistory
from costate.tasks.soft.found import SoftFound, Tell
from costate.tasks.soft.plasticine.scenes import SCENES, STEPS, Scene
from costate.tasks.soft.plasticine.score import Target, mass_at_nodes, pairs
from costate.tasks.soft.shown import moved_surfaces

CONTROL = 2e-3
"""Length of a control step [s]."""
SUBSTEPS = 8
FRAME = 5
"""Control steps between two looks at the loss."""
ROOM, MARGIN = 0.25, 6
"""Room around the plasticine at the beginning [m], and cells around it as it is wanted."""
PAIRS = 400
"""Particles whose way to the target is counted."""
DENSITY, DISTANCE, CONTACT = 10.0, 10.0, 1.0
"""Weights of the losses; PlasticineLab's."""


@dataclass(frozen=True, eq=False)
class Episode:
    """A scene that can be played."""

    scene: Scene
    dx: float
    dtype: torch.dtype = torch.float64

    @cached_property
    def model(self) -> MpmModel:
        """Plasticine on its floor, in a grid with room around it."""
        s, dx = self.scene, self.dx
        places = [s.points.min(0) - ROOM, s.points.max(0) + ROOM]
        if not s.is_demonstrated:
            places += [s.target.min(0) - MARGIN * dx, s.target.max(0) + MARGIN * dx]
        low, high = np.floor(np.min(places, 0) / dx), np.ceil(np.max(places, 0) / dx)
        low[2] = max(low[2], -2.0)  # the floor is the third node
        numbers = {"E": 5e3, "nu": s.nu, "yield": s.strength, "density": 1.0}
        body = SoftBody(s.points, dx / 2, "plasticine", numbers, name="plasticine")
        grid = MpmGrid(tuple(int(n) + 1 for n in high - low), dx, tuple(float(x) for x in low * dx))
        sides = {"-z": s.floor}
        gravity = (0.0, 0.0, -s.gravity)
        return MpmModel(grid, [body], CONTROL / SUBSTEPS, 1, gravity, sides, s.obstacles, segment=FRAME * SUBSTEPS)

    @cached_property
    def target_points(self) -> np.ndarray:
        """Particles of the wanted shape (n, 3) [m]."""
        if not self.scene.is_demonstrated:
            return self.scene.target
        with torch.no_grad():
            return self.play(torch.as_tensor(self.scene.target))[0].x[-1].numpy()

    @cached_property
    def tools(self) -> SoftTools:
        """Plasticine and tools."""
        return SoftTools(self.model, self.scene.hand.tools())

    @cached_property
    def target(self) -> Target:
        """The wanted shape."""
        begin, end = (torch.as_tensor(p, dtype=self.dtype) for p in (self.scene.points, self.target_points))
        return Target(self.model.grid, begin, end)

    def play(self, actions: Tensor) -> tuple[MpmHistory, Tensor]:
        """Return the motion under actions (STEPS, count), and the rows of the tools (substeps, tools, 18)."""
        rows, _ = self.scene.hand.rows(actions.clamp(-1, 1), SUBSTEPS, CONTROL / SUBSTEPS)
        return self.tools.run(rows), rows

    def judge(self, history: MpmHistory, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of a motion, the mean over its frames, and its score at the end."""
        mass = mass_at_nodes(self.model.grid, history.x[1:])
        density, distance = self.target.losses(mass)
        gaps = self.scene.hand.gaps(rows[FRAME * SUBSTEPS - 1 :: FRAME * SUBSTEPS], history.x[1:])
        loss = DENSITY * density + DISTANCE * distance + CONTACT * gaps.square().sum(-1)
        return loss.mean(), self.target.score(mass[-1])

    def shown(self, rows: Tensor) -> Tensor:
        """Return points (frames, n, 3) on the tools and obstacles, for pictures, from the rows of the tools."""
        every = torch.cat([rows[:: FRAME * SUBSTEPS], rows[-1:]]).detach()
        return moved_surfaces(self.tools.tools, every, self.scene.obstacles, self.dx / 2)


@dataclass(frozen=True)
class PlasticineTask:
    """Bring plasticine into a wanted shape within a number of episodes."""

    summary: str
    scene: str
    """Name of the scene, see `SCENES`."""
    cells: int = 32
    """Cells along a metre."""
    iterations: int = 200
    """Episodes at most; PlasticineLab's budget of gradient methods."""
    rate: float = 0.1
    decay: float = 0.99
    """Factor of the rate from episode to episode."""
    shape: float = 1.0
    """Factor of PlasticineLab's losses: density, distance and contact."""
    transport: float = 0.0
    """Weight of the mean squared distance [m^2] of particles at the end to those points of the target that they reach with the
    least work together."""
    goal: float = 0.8
    """Score from which on it counts as solved."""
    enough: float = 0.9
    """Score at which the search ends."""
    policy: bool = False
    """Find a network that acts on what it sees, instead of a sequence of actions."""

    def episode(self, seed: int, dtype: torch.dtype = torch.float64) -> Episode:
        """Return the scene of a problem."""
        dx = 1 / self.cells
        return Episode(SCENES[self.scene](np.random.default_rng(seed), dx / 2), dx, dtype)

    def solve(self, seed: int, tell: Tell, dtype: torch.dtype = torch.float64) -> SoftFound:
        """Solve from a hand at rest."""
        episode = self.episode(seed, dtype)
        if self.policy:
            from costate.tasks.soft.plasticine.policy import train

            return train(self, episode, seed, tell)
        actions = torch.zeros(STEPS, episode.scene.hand.count, dtype=dtype, requires_grad=True)
        random = np.random.default_rng(seed)

        def loss() -> tuple[Tensor, float]:
            history, rows = episode.play(actions)
            value, score = episode.judge(history, rows)
            return self.shape * value + self._transport(episode, history.x[-1], random), float(score)

        losses, scores = search(self, loss, actions, tell)
        with torch.no_grad():
            history, rows = episode.play(actions)
        return self.found(episode, history, rows, losses, scores)

    def _transport(self, episode: Episode, x: Tensor, random: np.random.Generator) -> Tensor | float:
        if not self.transport:
            return 0.0
        some, goals = pairs(x, episode.target.end, PAIRS, random)
        return self.transport * (x[some] - goals).square().sum(-1).mean()

    def found(
        self, episode: Episode, history: MpmHistory, rows: Tensor, losses: list[float], scores: list[float]
    ) -> SoftFound:
        """Return the result with its facts and curves."""
        score = float(episode.judge(history, rows)[1])
        low, high = episode.target.range
        first = next((k for k, s in enumerate(scores, 1) if s >= self.goal), None)
        facts = {
            "score": round(score, 3),
            "episodes": len(scores),
            f"episodes to {self.goal:g}": "none" if first is None else first,
            "overlap at first": round(low, 3),
            "overlap of the target": round(high, 3),
            "particles": episode.model.particles,
        }
        curves = {"Score": (np.arange(1, len(scores) + 1), {"score": np.array(scores)}, "episode", "score")}
        tools = episode.shown(rows)
        return SoftFound(
            facts, score >= self.goal, losses, episode.model, history.x, history.times, curves, tools=tools
        )


def search(
    task: PlasticineTask, loss: Callable[[], tuple[Tensor, float]], actions: Tensor, tell: Tell
) -> tuple[list[float], list[float]]:
    """Lower a loss by Adam until the score is enough; the actions end as those of the best score. Returns losses and scores."""
    optimiser = torch.optim.Adam([actions], lr=task.rate)
    shrink = torch.optim.lr_scheduler.ExponentialLR(optimiser, task.decay)
    best, kept, losses, scores = -np.inf, actions.detach().clone(), [], []
    while len(scores) < task.iterations:
        optimiser.zero_grad()
        try:
            value, score = loss()
        except FloatingPointError:  # tools that tear matter apart: half the way from the best actions
            with torch.no_grad():
                actions.copy_((actions + kept) / 2)
            losses.append(losses[-1] if losses else np.inf)
            scores.append(-1.0)
            continue
        losses.append(float(value.detach()))
        scores.append(score)
        if score > best:
            best, kept = score, actions.detach().clone()
        tell(f"episode {len(scores)} of {task.iterations}, score {score:.3f}, best {best:.3f}")
        if best >= task.enough:
            break
        value.backward()
        optimiser.step()
        shrink.step()
        with torch.no_grad():
            actions.clamp_(-1, 1)
    with torch.no_grad():
        actions.copy_(kept)
    return losses, scores
