"""Soft fingers and arms, held at one end, whose tip goes to a place and stays there: every piece has muscles around it.

The finger stands on the floor, arms hang from the ceiling, as those of ChainQueen (ICRA 2019) in a form of our own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.walls import MARGIN
from costate.tasks.soft.actuation import between_knots
from costate.tasks.soft.found import SoftFound, Tell, descend

HELD = 0.2
"""Share of the time, at the end, in which the tip should be at its place."""
BEND = (0.5, 1.1)
"""Range of angles [rad] of the arcs at whose ends places are."""


@dataclass(frozen=True)
class ReachTask:
    """Bring the tip to a place."""

    summary: str = "a soft finger in 2D, standing on the floor, brings its tip to a place and holds it there"
    dim: int = 2
    hangs: bool = False
    """It hangs from the ceiling; else it stands on the floor."""
    pieces: int = 3
    """Pieces along its length, each with two muscles in 2D and four in 3D."""
    length: float = 0.36
    width: float = 0.1
    cells: int = 64
    """Nodes along a metre."""
    dt: float = 2e-3
    steps: int = 640
    knots: int = 10
    """Points in time between which actuation is a straight line."""
    iterations: int = 80
    rate: float = 0.15
    goal: float = 0.01
    """Distance [m] of tip and place, in the mean over the last fifth of the time, up to which it is solved."""

    def model(self) -> MpmModel:
        """Return the finger or arm in the middle of its grid."""
        dx = 1 / self.cells
        around, tall = round(0.9 * self.cells), round((self.length + 0.2) * self.cells)
        grid = MpmGrid((*(around,) * (self.dim - 1), tall), dx)
        middle = [dx * (around - 1) / 2] * (self.dim - 1)
        base = dx * (tall - MARGIN if self.hangs else MARGIN - 1)
        ends = sorted((base, base + self._up * self.length))
        lower = [*(m - self.width / 2 for m in middle), ends[0]]
        upper = [*(m + self.width / 2 for m in middle), ends[1]]
        points = fill.box(lower, upper, dx / 2)
        along = np.abs(points[:, -1] - base) / self.length
        muscles = (2 ** (self.dim - 1)) * np.minimum((along * self.pieces).astype(int), self.pieces - 1)
        for k in range(self.dim - 1):
            muscles += 2**k * (points[:, k] > middle[k])
        law = "muscle" if self.dim == 2 else "neo_hookean_muscle"
        fibre = {"fibre_x": 0.0, "fibre_y": float(self.dim == 2), "fibre_z": float(self.dim == 3)}
        numbers = {"density": 1.0, "E": 25.0, "nu": 0.25, "strength": 6.0, **fibre}
        body = SoftBody(points, dx / 2, law, numbers, muscles, name="robot")
        gravity = (0.0,) * (self.dim - 1) + (-3.8,)
        side = ("+" if self.hangs else "-") + "xyz"[self.dim - 1]
        return MpmModel(grid, [body], self.dt, None, gravity, {side: "sticky"}, segment=16)  # type: ignore[arg-type]

    @property
    def _up(self) -> float:
        return -1.0 if self.hangs else 1.0

    def tip(self, model: MpmModel, x: Tensor) -> Tensor:
        """Return the position (..., dim) [m] of the tip: the mean of the particles in the last tenth of the length."""
        along = self._up * torch.as_tensor(model.bodies[0].points[:, -1])
        last = along > along.max() - 0.1 * self.length
        return x[..., last, :].mean(-2)

    def place(self, seed: int) -> np.ndarray:
        """Return where the tip should go, from the middle of the base (dim) [m]: the end of an arc, a little stretched or not."""
        random = np.random.default_rng(seed)
        bend, stretch = random.uniform(*BEND), random.uniform(0.95, 1.05)
        length = 0.95 * stretch * self.length
        out, up = length * (1 - np.cos(bend)) / bend, length * np.sin(bend) / bend
        if self.dim == 2:
            return np.array([random.choice([-1, 1]) * out, self._up * up])
        turn = random.uniform(0, 2 * np.pi)
        return np.array([out * np.cos(turn), out * np.sin(turn), self._up * up])

    def solve(self, seed: int, tell: Tell, dtype: torch.dtype = torch.float64) -> SoftFound:
        """Solve for a random place."""
        model = self.model()
        points = model.bodies[0].points
        base = np.append(points[:, :-1].mean(0), (points[:, -1] * self._up).min() * self._up)
        place = torch.as_tensor(base + self.place(seed), dtype=dtype)
        knots = torch.zeros(self.knots, model.n_muscles, dtype=dtype, requires_grad=True)
        start = model.start(dtype=dtype)

        def run():
            return model.run(self.steps, start, act=torch.tanh(between_knots(knots, self.steps)))

        def distances(x: Tensor) -> Tensor:
            far = (self.tip(model, x) - place).square().sum(-1)
            return far[..., -round(HELD * x.shape[-3]) :]

        losses = descend(lambda: 100 * distances(run().x).mean(), [knots], self.iterations, self.rate, tell)
        with torch.no_grad():
            history = run()
        found = float(distances(history.x).sqrt().mean())
        first = float((self.tip(model, start.x) - place).norm())
        facts = {"distance [m]": found, "distance before [m]": first, "particles": model.particles}
        facts |= {"steps": self.steps * model.substeps, "unknowns": knots.numel()}
        act = torch.tanh(between_knots(knots.detach(), self.steps)).numpy()
        way = self.tip(model, history.x).numpy()
        goals = {f"place {'xyz'[k]}": np.full(len(way), float(place[k])) for k in range(self.dim)}
        curves = {
            "Actuation": (
                self.dt * np.arange(self.steps),
                {f"muscle {k}": act[:, k] for k in range(model.n_muscles)},
                "time [s]",
                "actuation",
            ),
            "Tip": (
                history.times.numpy(),
                {f"tip {'xyz'[k]}": way[:, k] for k in range(self.dim)} | goals,
                "time [s]",
                "position [m]",
            ),
        }
        return SoftFound(facts, found < self.goal, losses, model, history.x, history.times, curves)
