"""Solvable tasks: numbered random problems that an optimiser can solve.

Tasks know nothing of optimisers; `recipes.py` has the table that brings both together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from costate.sim import World
from costate.train.task import Task


@dataclass(frozen=True, eq=False, kw_only=True)
class Problems:
    """Independent problems, solved side by side; B of them."""

    x0: Tensor
    """Point to start from, (B, n), in units in which steps of one are reasonable."""
    residuals: Callable[[Tensor], Tensor]
    """Function x (B, n) -> residuals (B, m), to be brought to zero or near it."""
    states: Callable[[Tensor], Tensor]
    """Function x (B, n) -> the motion that belongs to it, (T + 1, B, nx)."""
    error: Callable[[Tensor], Tensor]
    """Function x (B, n) -> error that the task is judged by, (B,); solved when at most the task's tolerance."""
    target: float | None
    """Loss at which an optimiser may stop; None: it has to find the minimum."""
    facts: Callable[[Tensor], Mapping[str, Any]] = field(default=lambda x: {})
    """Function x (1, n) -> numbers to report about one solution."""
    stages: Sequence[Callable[[Tensor], Tensor]] = ()
    """Easier residuals to be minimised first, one after the other."""

    def loss(self, x: Tensor) -> Tensor:
        """Return half the sum of squared residuals, (B,)."""
        return self.residuals(x).square().sum(-1) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Motions:
    """Optimal control problems with costs over time, solved side by side; B of them.

    stage and final take a point of a motion in symbols and return residuals in symbols: see `costate.optimise.cost.Cost`.
    """

    state0: Tensor
    """States at the start, (B, nx)."""
    controls0: Tensor
    """Guess of the controls, (T, B, nu)."""
    stage: Callable[..., Any]
    final: Callable[..., Any]
    inputs: Mapping[str, Tensor]
    """Further inputs of the costs, name -> (B, n) or (T + 1, B, n)."""
    bounds: tuple[Any, Any] | None
    """Lowest and highest controls."""
    states0: Tensor | None = None
    """Guess of the states, (T + 1, B, nx), which need not follow from the controls: multiple shooting."""
    error: Callable[[Tensor, Tensor], Tensor]
    """Function (states (T + 1, B, nx), controls (T, B, nu)) -> error that the task is judged by, (B,)."""
    group: int = 1
    """Number of problems in a row that are tries at the same one: the best of them counts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Timed:
    """Motions of least time; B of them. limits and inputs: see `costate.optimise.direct`."""

    world: World
    """World whose motion is sought."""
    state0: Tensor
    """States at the start, (B, nx)."""
    states0: Tensor
    """Guess of the states, (T + 1, B, nx)."""
    phases: tuple[int, ...]
    """Number of steps of each phase."""
    limits: Sequence[tuple[Callable[..., Any], range]]
    """Functions whose values must not be positive, and at which of the times."""
    inputs: Mapping[str, Tensor]
    """Inputs of the limits, name -> (B, n)."""
    state_bounds: tuple[Tensor, Tensor]
    """Lowest and highest states, (nx,) each."""
    controls: tuple[Tensor, Tensor]
    """Lowest and highest controls, (nu,) each."""
    durations: tuple[Sequence[float], Sequence[float]]
    """Shortest and longest duration of each phase [s]."""
    duration: float
    """Guess of the duration [s]."""
    after: float = 0.0
    """Time at the end of the motion that is not counted [s]."""
    rates: tuple[float | None, float | None] = (None, None)
    """Largest acceleration and jerk of any joint [rad/s^2, rad/s^3], for the method "inverse"; None: no limit."""
    play: Callable[[Tensor, Tensor], Tensor]
    """Function (times (T + 1, B), controls (T, B, nu)) -> the states (N, B, nx) that follow in the task's world."""
    error: Callable[[Tensor], Tensor]
    """Function of those states -> error that the task is judged by, (B,)."""
    columns: Callable[[Tensor], Mapping[str, Tensor]] = field(default=lambda states: {})
    """Function of those states -> more numbers to report about each, (B,)."""


class Solvable(Task):
    """A task made of numbered problems. Problem number k is the same whenever it is asked for."""

    tolerance: float
    """Largest error of a solved problem, in the task's unit."""
    attempts: ClassVar[int] = 1
    """Number of starts a problem may be tried from; further ones are for problems that the first leave unsolved."""

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        """Return problems for optimisers of functions. attempt: which start."""
        raise ValueError(f"task '{self.name}' is solved by iLQR only")

    def motions(self, numbers: Sequence[int]) -> Motions:
        """Return problems for optimisers of motions."""
        raise ValueError(f"task '{self.name}' has no costs over time: solve it by Gauss-Newton, gradients or search")

    def least_times(self, numbers: Sequence[int]) -> Timed:
        """Return problems for direct optimal control."""
        raise ValueError(f"task '{self.name}' does not ask for the shortest time: solve it by another method")
