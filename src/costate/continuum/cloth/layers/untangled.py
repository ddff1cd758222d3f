"""Steps of cloth that touches itself, in which nothing passes through anything.

Pairs that may touch are looked for once before a solve: all that can come near each other while every point stays within some
distance of where the solve begins. Newton's method goes only as far as nothing passes through anything on the way (`room.py`), and
no point farther than that. If it has to, pairs are looked for again where it stands. One more solve, which begins and ends at the
solution, has the gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from costate.continuum.cloth.layers.nearby import Surfaces
from costate.continuum.cloth.layers.pairs import Pairs
from costate.continuum.cloth.rollout import ClothRollOut
from costate.continuum.cloth.state import ClothState
from costate.continuum.cloth.topology import edges_of
from costate.kernel.torch_op import in_transform

if TYPE_CHECKING:
    from costate.continuum.cloth.model import ClothModel

LEAST = 64
"""Least number of places for pairs."""
GROWTH = 4
"""Factor by which it grows until all have one."""
MARGIN = 2.0
"""Distance by which points may leave the way on which nothing but their weight acts on them, by the thickness; it doubles until the
solve has room enough."""
LIMIT = 300
"""Largest number of steps of Newton's method."""


@dataclass(frozen=True, eq=False)
class Untangled:
    """Steps of a model that touches itself."""

    model: ClothModel
    known: dict[int, ClothRollOut] = field(default_factory=dict)

    @cached_property
    def surfaces(self) -> Surfaces:
        """Everything that may touch."""
        scene = self.model.scene
        edges = [e for e in (edges_of(scene.triangles), scene.segments) if len(e)]
        return Surfaces(scene.triangles, np.concatenate(edges), scene.count, scene.seams)

    def rollout(self, capacity: int) -> ClothRollOut:
        """Return kernels with places for some pairs, made once."""
        if capacity not in self.known:
            roll, model = self.model.rollout, self.model
            pairs = Pairs(capacity, roll.step.points, model.dt, model.thickness, model.push)
            self.known[capacity] = replace(roll, step=replace(roll.step, pairs=pairs), kernels={})
        return self.known[capacity]

    def step(self, state: ClothState, row: dict[str, Tensor], fixed: dict[str, Tensor]):
        """Return positions and velocities after one step, and numbers about its solves."""
        if state.x.dim() > 2:
            raise ValueError(
                "cloth that touches itself is computed one state at a time; call run for each of the batch"
            )
        given = {"x": state.x, "v": state.v, **row, **fixed}
        if in_transform():
            raise ValueError("cloth that touches itself has gradients by torch.autograd, and not yet by torch.func")
        with torch.no_grad():
            y, places, told = self._found({k: t.detach() for k, t in given.items()})
        if not (torch.is_grad_enabled() and any(t.requires_grad for t in given.values())):
            return y, (y - state.x) / self.model.dt, told
        kernel = self.rollout(len(places["pairs"])).kernel(1, True)
        out = kernel(**given, ends=y[None].flatten(-2), **places)
        return out.x, out.v, told

    def _found(self, given: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Return the solution of a step, what the kernel was told about the pairs there, and numbers about all solves."""
        h, thickness = self.model.dt, self.model.thickness
        x, v = given["x"].double().numpy(), given["v"].double().numpy()
        y, reach, iterations, newton = x, MARGIN * thickness, 0.0, 0.0
        move = h * v + h * h * given["gravity"].double().numpy()
        if self.model.pins:  # they go where they are told, as far as there is room
            pins, step = list(self.model.pins), np.zeros_like(x)
            step[pins] = given["pins"].double().numpy().reshape(-1, 3) - x[pins]
            y = x + self.surfaces.free_share(x, step) * step if step.any() else x
            move[pins] = step[pins]
        rubbing = None
        left = x + move - y
        room = np.linalg.norm(left - left.mean(0), axis=1) + reach
        while newton < LIMIT:
            pairs = self.surfaces.near_pairs(y, thickness, room)
            if y is not x:  # those that rub from the beginning of the step on stay
                rubbing = self.surfaces.near_pairs(x, thickness) if rubbing is None else rubbing
                pairs = _joined(rubbing, pairs)
            kernel, places = self._kernel(pairs, y, room, given["x"].dtype)
            out = kernel(**given, ends=torch.as_tensor(y, dtype=given["x"].dtype)[None].flatten(-2), **places)
            told = out.told[0]
            iterations, newton = iterations + float(told[2]), newton + max(float(told[3]), 1.0)
            if told[0] == 1:
                break
            y, reach = out.x.double().numpy(), 2 * reach
            room = np.full(len(x), reach)
        return out.x, places, torch.stack([told[0], told[1], told.new_tensor(iterations), told.new_tensor(newton)])

    def _kernel(self, found: tuple[np.ndarray, np.ndarray], y: np.ndarray, room: np.ndarray, dtype: torch.dtype):
        """Return the kernel of one step with places for some pairs, and what it is told about them."""
        pairs, kinds = found
        n, capacity = len(pairs), LEAST
        while capacity < n:
            capacity *= GROWTH
        rows = np.tile(np.arange(4.0) % max(self.model.points, 1), (capacity, 1))
        rows[:n] = pairs
        numbers = np.zeros((capacity, 2))
        numbers[:n, 0], numbers[:n, 1] = 1, kinds
        places = {f"pair{k}": rows[:, k : k + 1].copy() for k in range(4)}
        places |= {"pairs": numbers, "span": np.array([0.0, n]), "ball": np.column_stack([y, room])}
        return self.rollout(capacity).kernel(1, True), {k: torch.as_tensor(t, dtype=dtype) for k, t in places.items()}


def _joined(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of both, each once."""
    rows = np.concatenate([np.column_stack([p, k]) for p, k in (first, second)])
    rows = np.unique(rows.reshape(-1, 5), axis=0).astype(np.int64)
    return rows[:, :4], rows[:, 4]
