"""A hat is put onto a head: a motion of two hands that hold its brim (the trajectory task of DiffCloth, in our form)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.continuum.cloth.body import Cloth
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.state import ClothHistory
from costate.continuum.cloth.step import Solver
from costate.tasks.cloth.draws import Draws
from costate.tasks.cloth.knots import smooth
from costate.tasks.cloth.problem import ClothProblem, ClothTask, Facts

DT = 0.02
HEAD = 0.1
"""Radius of the head [m]."""
HAT = 0.104
"""Radius of the hat [m]."""
BRIM = 1.45
"""Angle of the brim from the top of the hat [rad]."""
HELD = 300.0
"""Stiffness of the springs by which hands hold it [N/m]; a hand holds two points of the brim."""
ALONG = (0.0, 0.5, 1.0, 1.0, 1.0)
OVER = (0.0, 0.15, 0.2, 0.1, 0.0)
"""The first guess: shares of the way, and how far above of it [m]."""
KNOTS = len(ALONG) - 1
REACH = 0.15
"""Largest change of a knot, in each direction [m]."""


def cap(rings: int, around: int) -> Cloth:
    """Return a part of a sphere about the origin, open below: its top is point 0, then rings of points from the top to the brim."""
    polar = np.linspace(0, BRIM, rings + 1)[1:]
    turn = 2 * np.pi * np.arange(around) / around
    ring = np.stack([np.cos(turn), np.sin(turn), np.zeros(around)], -1)
    points = [np.array([[0, 0, HAT]])]
    points += [HAT * (np.sin(a) * ring + np.cos(a) * np.array([0, 0, 1.0])) for a in polar]
    k, after = np.arange(around), (np.arange(around) + 1) % around
    faces = [np.stack([0 * k, 1 + k, 1 + after], -1)]
    for r in range(rings - 1):
        a, b = 1 + r * around + k, 1 + r * around + after
        faces += [np.stack([a, a + around, b + around], -1), np.stack([a, b + around, b], -1)]
    numbers: dict[str, float | np.ndarray] = {"bending": 3e-4, "warp": 300.0, "weft": 300.0, "shear": 120.0}
    return Cloth(np.concatenate(points), np.concatenate(faces), numbers, name="hat")


@lru_cache(maxsize=4)
def _model(rings: int, around: int, tolerance: float) -> ClothModel:
    first = 1 + (rings - 1) * around
    held = first + np.array([1, around - 1, around // 2 - 1, around // 2 + 1])
    head = Collider(cs.shapes.sphere(HEAD), 0.3, moves=True, name="head")
    return ClothModel([cap(rings, around)], DT, colliders=[head], ties=held.tolist(), solver=Solver(tolerance))


@dataclass(frozen=True)
class HatTask(ClothTask):
    """Put a hat onto a head that is somewhere, and let go."""

    summary: str = "two hands put a hat onto a head: the way that each of them goes"
    steps: int = 50
    """Steps in which it is held."""
    still: int = 15
    """Steps after that."""
    rings: int = 7
    around: int = 16
    """Rings of points, and points on each."""
    limit: float = 1e-2
    """Root mean square distance of its points from where they should be with which the hat is on [m]."""

    def problem(self, seed: int) -> ClothProblem:
        draw = Draws(seed)
        model = _model(self.rings, self.around, self.tolerance)
        head = torch.as_tensor(draw("head [m]", [-0.05, -0.05, -0.05], [0.05, 0.05, 0.05]))
        start = torch.as_tensor(draw("hat [m]", [-0.35, -0.1, 0.1], [-0.25, 0.1, 0.2]))
        lean = draw("lean of the hat [rad]", -0.3, 0.3)
        own = model.start().x
        about = torch.tensor([[np.cos(lean), 0, np.sin(lean)], [0, 1, 0], [-np.sin(lean), 0, np.cos(lean)]])
        state = model.start(own @ about.T + start)
        want = own + head  # upright, and the top of the hat at the top of the head
        held = state.x[list(model.ties)]
        # The first guess goes to where the head is on average, from above.
        rise = torch.tensor(OVER, dtype=torch.float64)[:, None, None] * torch.tensor([0.0, 0.0, 1.0])
        guess = held + torch.tensor(ALONG, dtype=torch.float64)[:, None, None] * (own[list(model.ties)] - held) + rise
        pose = torch.cat([head, torch.eye(3, dtype=torch.float64).flatten()])
        poses = pose.expand(self.steps + self.still + 1, 1, 12)
        firm = torch.where(torch.arange(self.steps + self.still) < self.steps, HELD, 0.0).double()[:, None, None]

        def play(z: Tensor) -> ClothHistory:
            moved = z.reshape(KNOTS, 2, 1, 3).expand(-1, -1, 2, -1).flatten(1, 2)  # both points of a hand
            path = smooth(torch.cat([guess[:1], guess[1:] + moved]), self.steps)
            path = torch.cat([path, path[-1:].expand(self.still, -1, -1)])
            ties = torch.cat([firm.expand(-1, 4, 1), path], -1)
            return model.run(len(path), state, ties=ties, poses=poses)

        def residuals(z: Tensor, motion: ClothHistory) -> Tensor:
            off = (motion.x[[self.steps, -1]] - want) / 1e-2  # when hands let go, which guides there, and in the end
            return torch.cat([off.flatten(), 0.1 * z / REACH])

        def judge(motion: ClothHistory) -> tuple[Facts, bool]:
            off = float((motion.x[-1].detach() - want).square().sum(-1).mean().sqrt())
            return {"distance of the hat [mm]": 1e3 * off}, off < self.limit

        n = 6 * KNOTS
        box = -REACH * np.ones(n), REACH * np.ones(n)
        return ClothProblem(model, np.zeros(n), box, play, residuals, judge, spread=0.15, poses=poses, seen=draw.seen)
