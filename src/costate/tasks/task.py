"""What a task is: a world, and numbered random problems in it that an optimiser can solve.

Tasks know nothing of optimisers; `costate.train.solve` has the table that brings both together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from costate.core.fork import cached_property
from costate.sim import World

Tensor = torch.Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Problems:
    """Independent problems, solved side by side; B of them."""

    x0: Tensor
    """Where to start, (B, n), in units in which steps of one are reasonable."""
    residuals: Callable[[Tensor], Tensor]
    """x (B, n) -> (B, m), to be brought to zero, or near it."""
    states: Callable[[Tensor], Tensor]
    """x (B, n) -> the motion that belongs to it, (T + 1, B, nx)."""
    error: Callable[[Tensor], Tensor]
    """x (B, n) -> what the task is judged by, (B,); solved when at most the task's tolerance."""
    target: float | None
    """Loss at which an optimiser may stop; None: it has to find the minimum."""
    facts: Callable[[Tensor], Mapping[str, Any]] = field(default=lambda x: {})
    """x (1, n) -> numbers to tell about one solution."""
    stages: Sequence[Callable[[Tensor], Tensor]] = ()
    """Easier residuals to be minimised first, one after the other."""

    def loss(self, x: Tensor) -> Tensor:
        """Half the sum of squared residuals, (B,)."""
        return self.residuals(x).square().sum(-1) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Motions:
    """Optimal control problems with costs over time, solved side by side; B of them.

    stage and final take a point of a motion in symbols and return residuals in symbols: see `costate.optimise.cost.Cost`.
    """

    state0: Tensor
    """(B, nx)."""
    controls0: Tensor
    """Guess, (T, B, nu)."""
    stage: Callable[..., Any]
    final: Callable[..., Any]
    inputs: Mapping[str, Tensor]
    """Further inputs of the costs, name -> (B, n) or (T + 1, B, n)."""
    bounds: tuple[Any, Any] | None
    """Lowest and highest controls."""
    states0: Tensor | None = None
    """Guess of the states, (T + 1, B, nx), which need not follow from the controls: multiple shooting."""
    error: Callable[[Tensor, Tensor], Tensor]
    """(states (T + 1, B, nx), controls (T, B, nu)) -> what the task is judged by, (B,)."""
    group: int = 1
    """How many problems in a row are tries at the same one: the best of them counts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Timed:
    """Motions of least time; B of them. limits and inputs: see `costate.optimise.direct`."""

    world: World
    """Whose motion it is."""
    state0: Tensor
    """(B, nx)."""
    states0: Tensor
    """Guess, (T + 1, B, nx)."""
    phases: tuple[int, ...]
    """Steps of each phase."""
    limits: Sequence[tuple[Callable[..., Any], range]]
    """What must not be positive, and at which of the times."""
    inputs: Mapping[str, Tensor]
    """Of the limits, name -> (B, n)."""
    state_bounds: tuple[Tensor, Tensor]
    """Lowest and highest states, (nx,) each."""
    controls: tuple[Tensor, Tensor]
    """Lowest and highest controls, (nu,) each."""
    durations: tuple[Sequence[float], Sequence[float]]
    """Shortest and longest duration of each phase [s]."""
    duration: float
    """Guess [s]."""
    after: float = 0.0
    """Of the motion, that is not counted [s]."""
    play: Callable[[Tensor, Tensor], Tensor]
    """(times (T + 1, B), controls (T, B, nu)) -> states (N, B, nx) that come of them in the task's world."""
    error: Callable[[Tensor], Tensor]
    """Those states -> what the task is judged by, (B,)."""
    columns: Callable[[Tensor], Mapping[str, Tensor]] = field(default=lambda states: {})
    """Those states -> more numbers to tell about each, (B,)."""


class Task(ABC):
    """Something to be solved. Problem number k is the same whenever it is asked for."""

    name: ClassVar[str]
    summary: ClassVar[str]
    unit: ClassVar[str]
    """Of the error, and of the tolerance."""
    trails: ClassVar[tuple[str, ...]] = ()
    """Links whose path a replay draws."""
    tolerance: float

    @cached_property
    @abstractmethod
    def world(self) -> World: ...

    def shown(self, number: int) -> World:
        """What a replay of a problem draws: other than `world` where problems differ in what stands around."""
        return self.world

    attempts: ClassVar[int] = 1
    """How many starts a problem may be tried from; further ones are for what the first leave unsolved."""

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        """For optimisers of functions. attempt: which start."""
        raise ValueError(f"task '{self.name}' is solved by iLQR only")

    def motions(self, numbers: Sequence[int]) -> Motions:
        """For optimisers of motions."""
        raise ValueError(f"task '{self.name}' has no costs over time: solve it by Gauss-Newton, gradients or search")

    def least_times(self, numbers: Sequence[int]) -> Timed:
        """For direct optimal control."""
        raise ValueError(f"task '{self.name}' does not ask for the shortest time: solve it by another method")


TARGET = (0.2, 0.7, 0.3, 1.0)
"""Colour of marks that say where something has to go; nothing touches them."""


def normal(numbers: Sequence[int], *shape: int) -> Tensor:
    """Standard normal numbers of each problem, (B, *shape)."""
    return torch.stack([torch.randn(*shape, dtype=torch.float64, generator=_source(k)) for k in numbers])


def uniform(numbers: Sequence[int], low: Sequence[float], high: Sequence[float]) -> Tensor:
    """Uniform numbers of each problem between bounds, (B, len(low))."""
    a, b = (torch.tensor(v, dtype=torch.float64) for v in (low, high))
    return a + (b - a) * torch.stack([torch.rand(len(a), dtype=torch.float64, generator=_source(k)) for k in numbers])


def interpolate(knots: Tensor, steps: int) -> Tensor:
    """Values (K, ..., n) at even distances, joined by straight lines: (steps, ..., n)."""
    place = torch.linspace(0, knots.shape[0] - 1, steps, dtype=knots.dtype)
    left = place.floor().clamp(max=knots.shape[0] - 2).long()
    part = (place - left).reshape(-1, *[1] * (knots.dim() - 1))
    return (1 - part) * knots[left] + part * knots[left + 1]


def _source(number: int) -> torch.Generator:
    # Seeds next to each other are alike in the first numbers of some generators: spread them.
    return torch.Generator().manual_seed(0x9E3779B9 * (number + 1) % 2**31)
