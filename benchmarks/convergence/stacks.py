"""Ten boxes on each other, whose masses differ by factors of up to a million: does the stack creep, and what is left unsolved?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

import costate as cs

EDGE, DT = 0.1, 0.002
"""Edge of a box, and the step [m, s]."""
RATIOS = (1.0, 1e2, 1e4, 1e6)
SETTLED = 1.0
"""Time at which creep begins to count [s]."""
EVERY = 10
"""Steps between states that are kept."""
LOST = EDGE / 2
"""A box that has moved further has fallen [m]."""


def masses(order: str, ratio: float, boxes: int) -> list[float]:
    """Return masses from the ground up: "even" steps of the same factor, "top" (one heavy box above light ones), "alternating"."""
    if order == "even":
        return np.geomspace(1.0, ratio, boxes).tolist()
    if order == "top":
        return [1.0] * (boxes - 1) + [ratio]
    return [1.0 if k % 2 == 0 else ratio for k in range(boxes)]


ORDERS = {"even": "heavier from box to box", "top": "one heavy box on top", "alternating": "light and heavy in turn"}


@dataclass(frozen=True)
class Rest:
    """How a stack rests."""

    creep: float
    """Furthest any box moves after it has settled [m]."""
    states: torch.Tensor
    """Every tenth state, (t, nx)."""
    reported: float
    """Largest residual that the solver itself reports of these [m/s]."""


def stack(weights: list[float], contact: cs.ContactModel) -> tuple[cs.World, torch.Tensor]:
    """Return a world, and its state with the boxes on each other, not quite above each other. A box touches its neighbours."""
    names = [f"box{k}" for k in range(len(weights))]
    bodies = [cs.Body(n, [cs.shapes.box((EDGE,) * 3)], m) for n, m in zip(names, weights, strict=True)]
    world = cs.World(
        bodies=bodies,
        scenery=[cs.Static("ground", cs.shapes.plane())],
        contact=contact,
        dt=DT,
        collide=[("ground", names[0]), *pairwise(names)],
        check=False,
    )
    state = world.initial_state(dtype=torch.float64)
    for k, name in enumerate(names):
        q, _ = world.coordinates(name)
        # A hundredth of an edge to either side, so that the four corners of a box do not carry the same.
        state[q][0], state[q][2] = 0.01 * EDGE * (-1) ** k, (k + 0.5) * EDGE
    return world, state


def rest(world: cs.World, state: torch.Tensor, seconds: float) -> Rest:
    """Leave a stack alone."""
    steps = round(seconds / DT) // EVERY * EVERY
    with torch.no_grad():
        states = world.rollout(state, steps=steps, checkpoint=EVERY)
        reported = float(world.contacts(states).residual.max())
    bodies = [world.coordinates(f"box{k}")[0] for k in range(world.nv // 6)]
    places = torch.stack([states[:, q][:, :3] for q in bodies], 1)
    start = min(round(SETTLED / DT) // EVERY, len(states) - 1)
    creep = (places[start:] - places[start]).norm(dim=-1).max()
    return Rest(float(creep.nan_to_num(nan=torch.inf)), states, reported)
