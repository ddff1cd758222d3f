"""Unknowns of a body from short stretches of its tosses, by gradients through flight and impacts.

Over a whole toss a tumbling body forgets where it started: errors grow from impact to impact, and so do gradients. So every toss is
cut into short stretches that overlap, each from its own start (multiple shooting whose gaps are no unknowns), and the last stage
fits longer ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.core.arrays import Array
from costate.identify.tosses.log import Tosses
from costate.identify.tosses.start import estimated_start
from costate.identify.tosses.thrown import values
from costate.identify.tosses.turns import turn_between
from costate.sim.world import World

Raws = dict[str, Tensor]
Progress = Callable[[int, float], None]
SOFT = 2e-3
"""Error, relative to the body's width, below which the loss is quadratic instead of linear: noise of cameras."""


@dataclass(frozen=True)
class Stage:
    """One stage of the fit."""

    rows: int
    """Number of steps of a stretch."""
    stride: int
    """Number of rows from one stretch of a toss to the next."""
    iterations: int
    rate: float = 0.02
    """Step of Adam at the start; it falls to a twentieth along a cosine."""
    batch: int = 300
    """Number of stretches per gradient."""


STAGES = (Stage(20, 10, 60), Stage(50, 14, 20, 0.01, 200))


@dataclass(frozen=True, eq=False)
class Trial:
    """A world to simulate in, and the tosses that it is compared with."""

    world: World
    """World whose parameters are the unknowns."""
    tosses: Tosses
    length: float
    """Width of the body [m]."""
    rows: int
    """Number of rows of a toss that count."""
    first_rows: int
    """Number of rows that a start is estimated from; 1: the first row as logged."""

    def values(self, raws: Raws) -> dict[str, Tensor]:
        """Return the world's parameters."""
        return values(self.world, raws, self.length)

    def start(self, rows: Tensor, params: Mapping[str, Tensor]) -> Tensor:
        """Return the states (n, 13) in which stretches (T, n, 13) start."""
        if self.first_rows < 2:
            return rows[0]
        return estimated_start(self.world, rows[: self.first_rows], self.length / 2, params)

    def stretches(self, index: Array, stage: Stage, params: Mapping[str, Tensor]) -> Stretches:
        """Return the stretches of some tosses."""
        rows, toss = [], []
        for first in range(0, max(self.rows - stage.rows, 1), stage.stride):
            enough = index[self.tosses.lengths[index] > first + stage.rows]
            rows.append(self.tosses.windows(enough, first, stage.rows + 1))
            toss.append(enough)
        together = torch.cat(rows, 1)
        return Stretches(self.start(together, params), together, np.concatenate(toss))


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of tosses."""

    start: Tensor
    """States at their beginning, shape (n, 13)."""
    rows: Tensor
    """Rows as they were logged, shape (steps + 1, n, 13)."""
    toss: Array
    """Number of the toss each belongs to, shape (n,)."""


def distances(states: Tensor, rows: Tensor, length: float) -> tuple[Tensor, Tensor]:
    """Return errors of positions relative to a length, and of rotations [rad], both (T, n)."""
    shift = (states[..., :3] - rows[..., :3]).square().sum(-1) / length**2
    turn = turn_between(rows[..., 3:7], states[..., 3:7]).square().sum(-1)
    return (shift + 1e-16).sqrt(), (turn + 1e-16).sqrt()


def loss_of(states: Tensor, rows: Tensor, length: float) -> Tensor:
    """Return the mean error (n,) of stretches in widths: that of positions, and that of rotations times half a width."""
    shift, turn = distances(states, rows, length)
    return ((shift**2 + SOFT**2).sqrt() + ((turn / 2) ** 2 + SOFT**2).sqrt()).mean(0)


def fit(
    trial: Trial,
    raws: Raws,
    index: Array,
    stages: tuple[Stage, ...] = STAGES,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Raws, list[float]]:
    """Return the unknowns that explain some tosses best, as raw numbers, and the loss of each iteration."""
    raws = {name: raw.clone().requires_grad_() for name, raw in raws.items()}
    unknowns, random, losses = list(raws.values()), np.random.default_rng(seed), []
    for stage in stages:
        known = {name: value.detach() for name, value in trial.values(raws).items()}
        parts = trial.stretches(index, stage, known)
        optimizer = torch.optim.Adam(unknowns, lr=stage.rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, stage.iterations, stage.rate / 20)
        for _ in range(stage.iterations):
            pick = torch.as_tensor(random.permutation(len(parts.start))[: stage.batch])
            optimizer.zero_grad()
            states = trial.world.rollout(parts.start[pick], steps=stage.rows, params=trial.values(raws))
            loss = loss_of(states, parts.rows[:, pick], trial.length)
            loss[torch.isfinite(loss)].mean().backward()
            if torch.nn.utils.clip_grad_norm_(unknowns, 1.0).isfinite():
                optimizer.step()
            schedule.step()
            losses.append(float(loss.detach().nanmean()))
            if progress:
                progress(len(losses), losses[-1])
    return {name: raw.detach() for name, raw in raws.items()}, losses


def covariance(trial: Trial, raws: Raws, parts: Stretches) -> Tensor:
    """Return the covariance of the raw numbers, in their order, from the scatter between tosses.

    It is the jackknife: the scatter of what would be found without one toss, each by a step of Gauss-Newton with errors weighted by
    the inverse of their size. So errors of a toss may go together in any way, nor need they be those of cameras.
    """
    sizes = [raw.numel() for raw in raws.values()]

    def residual(flat: Tensor) -> Tensor:
        named = dict(zip(raws, flat.split(sizes), strict=True))
        states = trial.world.rollout(parts.start, steps=parts.rows.shape[0] - 1, params=trial.values(named))
        turn = turn_between(parts.rows[..., 3:7], states[..., 3:7]) / 2
        return torch.cat([(states[..., :3] - parts.rows[..., :3]) / trial.length, turn], -1)

    flat = torch.cat(list(raws.values()))
    r, columns = residual(flat), []
    for k in range(len(flat)):
        along = torch.zeros_like(flat)
        along[k] = 1.0
        columns.append(torch.func.jvp(residual, (flat,), (along,))[1])
    J = torch.stack(columns, -1)  # (T, n, 6, number of unknowns)
    size = torch.stack([r[..., :3].norm(dim=-1), r[..., 3:].norm(dim=-1)], -1).repeat_interleave(3, -1)
    weight = 1 / (size**2 + SOFT**2).sqrt()
    fine = torch.isfinite(J).all(-1).all(-1).all(0)
    J, r, weight = J[:, fine], r[:, fine], weight[:, fine]
    toss = torch.as_tensor(np.unique(parts.toss[fine.numpy()], return_inverse=True)[1])
    count, n = int(toss.max()) + 1, len(flat)
    H = torch.einsum("tnia,tni,tnib->nab", J, weight, J)
    H = torch.zeros(count, n, n, dtype=flat.dtype).index_add(0, toss, H)
    gradients = torch.einsum("tnia,tni,tni->na", J, weight, r)
    gradients = torch.zeros(count, n, dtype=flat.dtype).index_add(0, toss, gradients)
    without = H.sum(0) - H + 1e-9 * H.sum(0).diagonal().mean() * torch.eye(n, dtype=flat.dtype)
    steps = torch.linalg.solve(without, gradients[..., None])[..., 0]
    return (count - 1) / count * steps.T @ steps
