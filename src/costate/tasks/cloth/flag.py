"""The cut of a flag: a rest shape with which it hangs as a rectangle, however much its cloth gives way to its weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from costate.continuum.cloth.body import sheet
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.state import ClothHistory
from costate.continuum.cloth.step import Solver
from costate.tasks.cloth.problem import ClothProblem, ClothTask, Facts

DT = 0.05
WIDE, TALL = 0.45, 0.3
"""Wanted size [m], along x from the mast and along z."""
CONTROLS = 4
"""Places along each side at which the cut is given; it is bilinear between them."""
REACH = 0.06
"""Largest change of the cut at one of them, in each direction [m]."""


@lru_cache(maxsize=4)
def _model(shape: tuple[int, int], tolerance: float) -> ClothModel:
    flag = sheet(shape, (WIDE, TALL), name="flag")
    upright = flag.points @ np.array([[1.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    body = type(flag)(upright, flag.triangles, name="flag")
    mast = list(range(shape[1]))
    return ClothModel([body], DT, pins=mast, solver=Solver(tolerance))


@dataclass(frozen=True)
class FlagTask(ClothTask):
    """Cut a flag of stretchy cloth so that it hangs as a rectangle."""

    summary: str = "the cut (rest shape) of a flag of stretchy cloth with which it hangs as a rectangle"
    steps: int = 30
    """Steps in which it comes to rest."""
    shape: tuple[int, int] = (13, 9)
    """Points along x and z."""
    limit: float = 2e-3
    """Largest distance of a point of the border from where it should be [m]."""

    def problem(self, seed: int) -> ClothProblem:
        random = np.random.default_rng(seed)
        model = _model(self.shape, self.tolerance)
        stiff = float(np.exp(random.uniform(np.log(60.0), np.log(150.0))))
        numbers = {"warp": stiff, "weft": stiff, "shear": 0.4 * stiff, "bending": 1e-3, "density": 0.2}
        state = model.start()
        want, weights = state.x, torch.as_tensor(_weights(self.shape))
        edge = torch.as_tensor(_border(self.shape))

        def play(z: Tensor) -> ClothHistory:
            moved = weights @ z.reshape(-1, 2)
            rest = want + torch.stack([moved[:, 0], 0 * moved[:, 0], moved[:, 1]], -1)
            return model.run(self.steps, state, parameters=numbers, rest=rest)

        def residuals(z: Tensor, motion: ClothHistory) -> Tensor:
            return torch.cat([((motion.x[-1] - want)[edge] / 1e-3).flatten(), 0.1 * z / REACH])

        def judge(motion: ClothHistory) -> tuple[Facts, bool]:
            off = (motion.x[-1].detach() - want)[edge].norm(dim=-1)
            fast = float((motion.x[-1] - motion.x[-2]).detach().norm(dim=-1).max() / DT)
            facts = {"largest distance of the border [mm]": 1e3 * float(off.max()), "fastest point [mm/s]": 1e3 * fast}
            return facts, bool(off.max() < self.limit)

        n = weights.shape[1] * 2
        box = -REACH * np.ones(n), REACH * np.ones(n)
        return ClothProblem(model, np.zeros(n), box, play, residuals, judge, spread=0.15)


def _weights(shape: tuple[int, int]) -> np.ndarray:
    """Return shares (points, CONTROLS * (CONTROLS - 1)) of the places at which the cut is given; at the mast it is."""

    def hats(n: int) -> np.ndarray:
        at = np.linspace(0, CONTROLS - 1, n)[:, None]
        return np.clip(1 - np.abs(at - np.arange(CONTROLS)), 0, None)

    both = np.einsum("ia,jb->ijab", hats(shape[0])[:, 1:], hats(shape[1]))
    return both.reshape(shape[0] * shape[1], -1)


def _border(shape: tuple[int, int]) -> np.ndarray:
    i, j = np.meshgrid(*map(np.arange, shape), indexing="ij")
    return np.nonzero(((j == 0) | (j == shape[1] - 1) | (i == shape[0] - 1)).ravel() & (i > 0).ravel())[0]
