"""A melt pool of constant depth, although the part gets hotter with every layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from costate.continuum.heat.melt import MeltDepth
from costate.tasks.additive.descent import descend
from costate.tasks.additive.problem import Found, Tell, case_of


@dataclass(frozen=True)
class MeltPoolTask:
    """Find a power for every layer, and its slope along it, such that the melt pool has the same depth everywhere."""

    summary = "power over time that holds the depth of the melt pool"
    size: str = "fine"
    iterations: int = 40
    rate: float = 0.05
    depth: float = 1e-3
    """Wanted depth [m]."""
    tolerance: float = 0.06
    """Root mean square of the relative error of the depth that counts as solved."""

    def solve(self, number: int, tell: Tell, dtype: torch.dtype = torch.float64) -> Found:
        """Solve the problem of a number, which changes the first guess of the power."""
        case = case_of(self.size)
        model = case.model(segment=8)
        measure = MeltDepth(model, reach=4 * self.depth)
        pieces = _pieces(model.timeline.times, model.timeline.on)
        start = 0.5 + 0.1 * float(torch.rand((), generator=torch.Generator().manual_seed(number)))
        shares = nn.Parameter(torch.full((int(pieces.max()) + 1,), start, dtype=dtype))
        index = torch.as_tensor(pieces)

        def power() -> Tensor:
            return case.power * shares.clamp(0.0, 2.0)[index]

        T0 = torch.full((len(model.mesh.nodes),), case.surroundings.ambient, dtype=dtype)
        T0[torch.as_tensor(model.mesh.node_birth > -float("inf"))] = (
            model.material.solidus
        )  # what is added is about to melt

        def error() -> Tensor:
            return measure(model.run(power(), T0).T) / self.depth - 1

        losses = descend(lambda: error().square().mean(), [shares], self.iterations, self.rate, tell)
        with torch.no_grad():
            constant = measure(model.run(case.power * start, T0).T)
            found = model.run(power(), T0)
            reached = measure(found.T)
        before, after = (float((d / self.depth - 1).square().mean().sqrt()) for d in (constant, reached))
        on = model.timeline.on > 0
        t = measure.times
        depths = {"constant power": 1e3 * constant.numpy(), "found": 1e3 * reached.numpy()}
        wanted = {"wanted": np.full(len(t), 1e3 * self.depth)}
        return Found(
            {"error before [%]": 100 * before, "error after [%]": 100 * after, "looks at the pool": len(t)},
            after <= self.tolerance,
            losses,
            {
                "Depth of the melt pool": (t, depths | wanted, "time [s]", "depth [mm]"),
                "Power while the laser is on": (
                    model.timeline.times[on],
                    {"found": power().detach().numpy()[on]},
                    "time [s]",
                    "power [W]",
                ),
            },
            model,
            found.T,
            found.times,
        )


def _pieces(times: np.ndarray, on: np.ndarray, pieces: int = 4) -> np.ndarray:
    """Return the number of the piece of a track that each step belongs to: every time the laser is on without a break has four."""
    lit = on > 0
    begins = np.flatnonzero(lit & ~np.concatenate([[False], lit[:-1]]))
    track = np.clip(np.searchsorted(begins, np.arange(len(times)), side="right") - 1, 0, None)
    first = begins[track] if len(begins) else np.zeros(len(times), int)
    length = np.bincount(track[lit], minlength=track.max() + 1)[track] if lit.any() else np.ones(len(times), int)
    inside = np.clip((np.arange(len(times)) - first) * pieces // np.maximum(length, 1), 0, pieces - 1)
    return track * pieces + inside
