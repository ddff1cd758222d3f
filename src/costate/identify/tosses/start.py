"""The state at the start of a toss, estimated from its first poses with the physics of the flight."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from costate.identify.tosses.turns import turn_between, turned
from costate.sim.world import World

ITERATIONS = 4
"""Number of Gauss-Newton steps."""
PRIOR = 30.0
"""Number by which the way that a velocity is off by in one row is divided before it counts as an error of a pose: the logged
velocities count only where poses say nothing."""


def estimated_start(
    world: World, rows: Tensor, lever: float, params: Mapping[str, Tensor], iterations: int = ITERATIONS
) -> Tensor:
    """Return the states (n, 13) from which the world passes nearest to the poses of the first rows (k, n, 13).

    Each is the least-squares solution of its own 12 unknowns, by Gauss-Newton through the simulated motion. Turns count as
    lengths, by a lever [m]. The logged velocities of the first row are where the search starts.
    """
    steps, first = rows.shape[0] - 1, rows[0]
    delta = torch.zeros(len(first), 12, dtype=rows.dtype)
    rates = world.dt / PRIOR * rows.new_tensor([1.0] * 3 + [lever] * 3)

    def residual(delta: Tensor) -> Tensor:
        states = world.rollout(moved(first, delta), steps=steps, params=dict(params))
        away = torch.cat([states[..., :3] - rows[..., :3], lever * turn_between(rows[..., 3:7], states[..., 3:7])], -1)
        return torch.cat([away.movedim(0, 1).flatten(1), delta[:, 6:] * rates], 1)

    for _ in range(iterations):
        along = torch.eye(12, dtype=rows.dtype)[:, None].expand(
            12, len(first), 12
        )  # one direction for all tosses at a time
        columns = [torch.func.jvp(residual, (delta,), (each.contiguous(),))[1] for each in along]
        r = residual(delta)
        J, r = torch.stack(columns, -1).nan_to_num(), r.nan_to_num()
        size = J.square().sum(1).sqrt().clamp(min=1e-12)  # columns of unit length
        A = (J / size[:, None]).mT @ (J / size[:, None]) + 1e-9 * torch.eye(12, dtype=J.dtype)
        b = (J / size[:, None]).mT @ r[..., None]
        delta = delta - torch.linalg.solve(A, b)[..., 0] / size
    with torch.no_grad():
        before, after = (residual(x).square().sum(1) for x in (torch.zeros_like(delta), delta))
        delta = torch.where((after < before)[:, None], delta, torch.zeros_like(delta))  # impacts may lead a step astray
    return moved(first, delta)


def moved(states: Tensor, delta: Tensor) -> Tensor:
    """Return states (n, 13), moved by positions, turns in body axes, and velocities, (n, 12)."""
    turn = turned(states[:, 3:7], delta[:, 3:6])
    return torch.cat([states[:, :3] + delta[:, :3], turn, states[:, 7:] + delta[:, 6:]], 1)
