"""Smoke to a picture: the velocity at the beginning with which smoke becomes a letter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from costate.continuum.fluid.grid import Grid
from costate.continuum.fluid.model import FluidModel
from costate.tasks.additive.descent import descend
from costate.tasks.additive.problem import Tell
from costate.tasks.smoke.problem import TOLERANCE, Film, FoundFlow, cells_of

LETTERS = "COSTAEUXH"
"""Letter of a problem, by its number."""


def letter(text: str, n: int) -> np.ndarray:
    """Return a letter in the middle of a square (n, n), 1 inside and 0 outside; the first axis goes to the right, the second up."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("L", (n, n))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(0.75 * n)
    draw.text((n / 2, n / 2), text, 255, font, anchor="mm", stroke_width=n // 40)
    return np.asarray(image)[::-1].T / 255.0


def disk(n: int, area: float) -> np.ndarray:
    """Return a disk in the middle of a square (n, n), with a soft edge; area: by that of the square."""
    x = (np.arange(n) + 0.5) / n - 0.5
    distance = np.hypot(x[:, None], x) - np.sqrt(area / np.pi)
    return 1 / (1 + np.exp(np.clip(distance * n / 0.7, -50, 50)))


@dataclass(frozen=True)
class TargetTask:
    """Find the velocity at the beginning with which a puff of smoke becomes a letter."""

    summary = "velocity at the beginning with which a puff of smoke becomes a letter"
    size: str = "medium"
    iterations: int = 80
    rate: float = 0.03
    steps: int | None = None
    """Number of steps; None: 40, or as many as published."""
    left: float = 0.2
    """Share of the squared difference at the beginning that may be left to count as solved."""

    def solve(self, number: int, tell: Tell, dtype: torch.dtype = torch.float64) -> FoundFlow:
        """Solve the problem of a number: that of its letter."""
        n = cells_of(self.size)
        steps = self.steps or (100 if self.size == "published" else 40)
        grid = Grid((n, n), 1 / n)
        model = FluidModel(grid, 1.0 / steps, steps, advection="maccormack", tolerance=TOLERANCE)
        target = letter(LETTERS[number % len(LETTERS)], n)
        start, wanted = (torch.as_tensor(x.copy(), dtype=dtype) for x in (disk(n, target.mean()), target))
        u = torch.nn.Parameter(torch.zeros(2, n, n, dtype=dtype))

        def loss() -> torch.Tensor:
            return (model.run(u, start).smoke[-1] - wanted).square().mean()

        losses = descend(loss, [u], self.iterations, self.rate, tell)
        with torch.no_grad():
            history = model.run(u, start)
        left = min(losses) / losses[0]
        facts = {
            "squared difference before": losses[0],
            "squared difference after": min(losses),
            "share left": left,
            "cells": grid.count,
            "steps": steps,
            "iterations of the pressure solve, mean": float(history.iterations.mean()),
        }
        films = {"Smoke": Film(history.times, history.smoke, grid.cell, limits=(0.0, 1.0))}
        films["Target"] = Film(history.times[:1], wanted[None], grid.cell, limits=(0.0, 1.0))
        return FoundFlow(facts, left <= self.left, losses, films)
