"""Simulated tosses with known numbers, for tests."""

from __future__ import annotations

import numpy as np
import torch

from costate.identify.tosses import Thrown, Tosses
from costate.identify.tosses.log import tosses_of
from costate.identify.tosses.thrown import parameter
from costate.identify.tosses.turns import rotated
from costate.sim.scene import shapes

DT = 1 / 148
BOX = Thrown(shapes.box((0.1, 0.1, 0.1)), 0.4, 0.25, 0.2)
TRUTH = {"friction": [0.2], "restitution": [0.12], "com": [0.001, -0.0005, 0.002]}


def thrown(count: int = 12, rows: int = 40, noise: float = 0.0, seed: int = 0) -> tuple[Tosses, torch.Tensor]:
    """Return tosses of a box with the numbers of TRUTH, and their true states (rows, count, 13)."""
    world = BOX.world("hard", DT, 1, tuple(TRUTH))
    random = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    start = world.initial_state(batch=count, dtype=torch.float64)
    start[:, 2] = 0.15
    start[:, 3:7] = torch.nn.functional.normalize(draw(count, 4), dim=-1)
    start[:, 7:] = draw(count, 6) * torch.tensor([0.6] * 3 + [4.0] * 3)
    params = {parameter(name): torch.tensor(value, dtype=torch.float64) for name, value in TRUTH.items()}
    states = world.rollout(start, steps=rows - 1, params=params)
    seen = states.clone()
    seen[..., :3] += noise * draw(rows, count, 3)
    seen[..., 3:7] = torch.nn.functional.normalize(seen[..., 3:7] + 5 * noise * draw(rows, count, 4), dim=-1)
    table = torch.cat(
        [seen[..., :3], seen[..., [6, 3, 4, 5]], rotated(seen[..., 3:7], seen[..., 7:10]), seen[..., 10:]], -1
    )
    flat = table.movedim(0, 1).reshape(-1, 13).numpy()
    return tosses_of(flat, np.arange(count + 1) * rows, DT), states
