"""Ten boxes on each other, whose masses differ by factors of up to a million: does the stack creep, and what is left unsolved?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

import costate as cs
from benchmarks.convergence.problems import Recorder
from benchmarks.convergence.truth import residual

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
    """Rest of a stack."""

    creep: float
    """Furthest any box moves after it has settled [m]."""
    residual: float
    """Largest residual of a step [m/s]."""


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
    """Leave a stack alone. With `Hard` the residual is the true one of every tenth step, else that which the solver reports."""
    steps = round(seconds / DT) // EVERY * EVERY
    if not isinstance(world.setup.contact, cs.Hard):
        with torch.no_grad():
            states = world.rollout(state, steps=steps, checkpoint=EVERY)
            return Rest(_creep(world, states), float(world.contacts(states).residual.max()))
    # The kernel that keeps problems makes steps, too: so there is one to compile, not two.
    recorder, states, left = Recorder(world), [state], 0.0
    for step in range(1, steps + 1):
        kept = recorder.call(state[None])
        state = torch.tensor(kept["after"][0])
        if step % EVERY == 0:
            states.append(state)
            left = max(left, *(float(residual(p)[0]) for p in recorder.split(kept)))
    return Rest(_creep(world, torch.stack(states)), left)


def _creep(world: cs.World, states: torch.Tensor) -> float:
    bodies = [world.coordinates(f"box{k}")[0] for k in range(world.nv // 6)]
    places = torch.stack([states[:, q][:, :3] for q in bodies], 1)
    start = min(round(SETTLED / DT) // EVERY, len(states) - 1)
    creep = (places[start:] - places[start]).norm(dim=-1).max()
    return float(creep.nan_to_num(nan=torch.inf))
