"""Identification by stochastic gradients: for parameters of any kind, through any module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from costate.core.arrays import Array
from costate.identify.log import Log
from costate.robot import Robot


@dataclass(frozen=True)
class AdamOptions:
    """Options of training with Adam."""

    epochs: int = 200
    """Number of passes over the log."""
    learning_rate: float = 1e-2
    """Learning rate at the start; it falls to a hundredth along a cosine."""
    batch: int = 256
    """Number of samples per step."""
    seed: int = 0
    """Seed of the order of the samples."""


def train(
    robot: Robot,
    log: Log,
    train_index: Array,
    test_index: Array,
    options: AdamOptions,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[list[float], list[float]]:
    """Fit the robot's learnable parameters to measured torques, in place.

    The loss is the mean squared error of torques, each joint relative to its variance. Returns it per epoch, on the samples
    trained on and on those held out.
    """
    if not any(p.requires_grad for p in robot.parameters()):
        raise ValueError("nothing to train: make parameters learnable with robot.learn, or unfreeze some")
    assert log.v is not None and log.a is not None
    q, v, a, tau = (torch.as_tensor(np.ascontiguousarray(x)) for x in (log.q, log.v, log.a, log.tau))
    weight = 1 / tau[train_index].var(0).clamp(min=1e-12)
    random = torch.Generator().manual_seed(options.seed)
    optimizer = torch.optim.Adam(robot.parameters(), lr=options.learning_rate)
    floor = options.learning_rate / 100
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs, floor)

    def loss(index: torch.Tensor) -> torch.Tensor:
        error = robot.inverse_dynamics(q[index], v[index], a[index]) - tau[index]
        return (error**2 * weight).mean()

    seen, unseen = torch.as_tensor(train_index), torch.as_tensor(test_index)
    losses: list[float] = []
    held_out: list[float] = []
    for epoch in range(options.epochs):
        total = 0.0
        for part in seen[torch.randperm(len(seen), generator=random)].split(options.batch):
            optimizer.zero_grad()
            value = loss(part)
            value.backward()
            optimizer.step()
            total += value.item() * len(part)
        schedule.step()
        losses.append(total / len(seen))
        if len(unseen):
            with torch.no_grad():
                held_out.append(loss(unseen).item())
        if progress:
            progress(epoch, losses[-1])
    return losses, held_out
