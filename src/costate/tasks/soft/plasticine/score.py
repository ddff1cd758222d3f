"""PlasticineLab's losses and score: how near plasticine is to a wanted shape, from the mass at the nodes of a grid.

    score    how much of the way the overlap has gone, from that at the beginning (0) to that of the target with itself (1)
    density  sum of |mass - wanted mass| over the nodes
    distance sum of mass * distance to the wanted shape

Masses are shares of the whole, so both losses do not depend on the number of particles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt
from torch import Tensor

from costate.continuum.mpm.grid import MpmGrid


def mass_at_nodes(grid: MpmGrid, x: Tensor) -> Tensor:
    """Return the share of the mass at each node (..., nodes) of particles x (..., particles, 3), with quadratic splines."""
    place = (x - torch.tensor(grid.lower, dtype=x.dtype)) / grid.dx
    base = torch.floor(place.detach() - 0.5)
    r = place - base  # 0.5 to 1.5
    weights = (0.5 * (1.5 - r) ** 2, 0.75 - (r - 1) ** 2, 0.5 * (r - 0.5) ** 2)
    found = x.new_zeros(*x.shape[:-2], grid.count)
    stride = torch.tensor([grid.shape[1] * grid.shape[2], grid.shape[2], 1])
    first = (base.long() * stride).sum(-1)
    for i, j, k in product(range(3), repeat=3):
        w = weights[i][..., 0] * weights[j][..., 1] * weights[k][..., 2]
        found = found.scatter_add(-1, first + int((torch.tensor([i, j, k]) * stride).sum()), w)
    return found / x.shape[-2]


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """Return the soft intersection over union (...) of masses at nodes (..., nodes), each over its greatest."""
    a, b = (m / m.amax(-1, keepdim=True) for m in (a, b))
    both = (a * b).sum(-1)
    return both / (a.sum(-1) + b.sum(-1) - both)


@dataclass(frozen=True, eq=False)
class Target:
    """A wanted shape."""

    grid: MpmGrid
    begin: Tensor
    """Particles at the beginning (particles, 3) [m]."""
    end: Tensor
    """Particles of the wanted shape (any number, 3) [m]."""

    @cached_property
    def mass(self) -> Tensor:
        """Wanted share of the mass at each node."""
        return mass_at_nodes(self.grid, self.end)

    @cached_property
    def far(self) -> Tensor:
        """Distance [m] of each node to the wanted shape."""
        there = (self.mass > 0.5 / len(self.end)).numpy().reshape(self.grid.shape)
        return torch.as_tensor(self.grid.dx * np.asarray(distance_transform_edt(~there)).ravel()).to(self.mass)

    @cached_property
    def range(self) -> tuple[float, float]:
        """Overlap at the beginning, and of the target with itself."""
        first = mass_at_nodes(self.grid, self.begin)
        return float(overlap(first, self.mass)), float(overlap(self.mass, self.mass))

    def score(self, mass: Tensor) -> Tensor:
        """Return the normalised incremental overlap (...), at most 1; below 0 it is worse than at the beginning."""
        low, high = self.range
        return (overlap(mass.detach(), self.mass) - low) / (high - low)

    def losses(self, mass: Tensor) -> tuple[Tensor, Tensor]:
        """Return the losses of density and of distance [m] (...)."""
        return (mass - self.mass).abs().sum(-1), (mass * self.far).sum(-1)


def pairs(x: Tensor, target: Tensor, count: int, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return some particles (count,) and the points of the target that they should go to (count, 3): those of least work."""
    from scipy.optimize import linear_sum_assignment

    rows = torch.as_tensor(random.choice(len(x), min(count, len(x)), replace=False))
    points = torch.as_tensor(random.choice(len(target), min(count, len(target)), replace=False))
    cost = torch.cdist(x.detach()[rows], target[points]).square().numpy()
    first, second = linear_sum_assignment(cost)
    return rows[first], target[points[second]]
