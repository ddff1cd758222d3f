"""Steps of cloth that touches itself, in which nothing passes through anything.

Newton's method goes one step at a time here, with the pairs that are near each other where it stands, and only as far as nothing
passes through anything on the way (`nearby.py`). It ends where nothing is left to do and no other pair touches. One more solve,
which begins and ends there, has the gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from costate.continuum.cloth.nearby import Surfaces
from costate.continuum.cloth.pairs import Pairs
from costate.continuum.cloth.rollout import ClothRollOut
from costate.continuum.cloth.state import ClothState
from costate.continuum.cloth.topology import edges_of
from costate.kernel.torch_op import in_transform

if TYPE_CHECKING:
    from costate.continuum.cloth.model import ClothModel

REACH = 2.0
"""Distance within which pairs are kept, by the thickness."""
LEAST = 64
"""Least number of places for pairs; it doubles until all have one."""
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
            solver = replace(model.solver, steps=1)
            self.known[capacity] = replace(roll, step=replace(roll.step, pairs=pairs, solver=solver), kernels={})
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
            y, pairs, told = self._found({k: t.detach() for k, t in given.items()})
        if not (torch.is_grad_enabled() and any(t.requires_grad for t in given.values())):
            return y, (y - state.x) / self.model.dt, told
        kernel, places = self._kernel(*pairs, state.x.dtype)
        out = kernel(**given, ends=y[None].flatten(-2), **places)
        return out.x, out.v, told

    def _found(self, given: dict[str, Tensor]) -> tuple[Tensor, tuple[np.ndarray, np.ndarray], Tensor]:
        """Return the solution of a step, the pairs of its last solve, and numbers about all solves."""
        y = given["x"]
        if self.model.pins:  # they go where they are told, as far as there is room
            told_pins = given["pins"].reshape(-1, 3)
        rubbing = self.surfaces.near_pairs(y.numpy().astype(np.float64), self.model.thickness)
        iterations = newton = 0.0
        for _ in range(LIMIT):
            at = y.numpy().astype(np.float64)
            pairs = _joined(rubbing, self.surfaces.near_pairs(at, REACH * self.model.thickness))
            kernel, places = self._kernel(*pairs, y.dtype)
            start = y if not self.model.pins else y.index_copy(0, torch.tensor(self.model.pins), told_pins)
            out = kernel(**given, ends=start[None].flatten(-2), **places)
            iterations, newton = iterations + float(out.told[0, 2]), newton + float(out.told[0, 3])
            move = (out.x - y).numpy().astype(np.float64)
            share = self.surfaces.free_share(at, move) if np.abs(move).max() > 0 else 1.0
            y = y + share * (out.x - y) if share < 1 else out.x
            if share == 1 and out.told[0, 0] == 1 and self._complete(y, pairs):
                return (
                    y,
                    pairs,
                    torch.stack([out.told[0, 0], out.told[0, 1], y.new_tensor(iterations), y.new_tensor(newton)]),
                )
        return y, pairs, y.new_tensor([0.0, float(out.told[0, 1]), iterations, newton])

    def _complete(self, y: Tensor, pairs: tuple[np.ndarray, np.ndarray]) -> bool:
        """Return whether all pairs that touch are among some."""
        found, _ = self.surfaces.near_pairs(y.numpy().astype(np.float64), self.model.thickness)
        known = {tuple(p) for p in pairs[0].tolist()}
        return all(tuple(p) in known for p in found.tolist())

    def _kernel(self, pairs: np.ndarray, kinds: np.ndarray, dtype: torch.dtype):
        """Return the kernel of one step with places for some pairs, and what it is told about them."""
        capacity = LEAST
        while capacity < len(pairs):
            capacity *= 2
        rows = np.zeros((capacity, 4))
        rows[:, :] = np.arange(4) % max(self.model.points, 1)
        rows[: len(pairs)] = pairs
        numbers = np.zeros((capacity, 2))
        numbers[: len(pairs)] = np.column_stack([np.ones(len(pairs)), kinds])
        places = {f"pair{k}": torch.as_tensor(rows[:, [k]].copy(), dtype=dtype) for k in range(4)}
        places["pairs"] = torch.as_tensor(numbers, dtype=dtype)
        return self.rollout(capacity).kernel(1, True), places


def _joined(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of both, each once: those that rub from the beginning of the step on stay."""
    rows = np.concatenate([np.column_stack([p, k]) for p, k in (first, second)])
    rows = np.unique(rows.reshape(-1, 5), axis=0).astype(np.int64)
    return rows[:, :4], rows[:, 4]
