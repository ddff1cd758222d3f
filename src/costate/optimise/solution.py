"""The solution every optimiser returns, the options they share, and the record they keep while they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Record:
    """The record of one iteration."""

    iteration: int
    """Number of the iteration; 0 is the start."""
    loss: Tensor
    """Loss after the iteration, () for one problem or (B,) for a batch of problems."""
    seconds: float
    """Time since the optimiser was called [s]."""
    evaluations: int
    """Evaluations of the loss since the optimiser was called; a batch evaluated at once counts once."""
    detail: Mapping[str, float] = field(default_factory=dict)
    """Further numbers of the optimiser, averaged over a batch: norm of the gradient, length of the step, damping, ..."""


@dataclass(frozen=True)
class Solution:
    """The result of an optimiser."""

    x: Any
    """Unknowns found, in the form of the start: a tensor, a dict or list of tensors, or the module itself with new weights."""
    loss: Tensor
    """Loss at x, () for one problem or (B,) for a batch of problems."""
    solved: Tensor
    """Flags of the problems that met a tolerance or the target, bool, of the shape of loss."""
    reason: str
    """Reason why the optimiser ended, in words."""
    iterations: int
    """Number of iterations."""
    evaluations: int
    """Number of evaluations of the loss; a batch evaluated at once counts once."""
    seconds: float
    """Time taken [s]."""
    history: list[Record]
    """Records of all iterations, the start included."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further results, as the optimiser documents: states of a motion, feedback gains, ..."""

    @property
    def converged(self) -> bool:
        """True if all problems are solved."""
        return bool(self.solved.all())

    def losses(self) -> Tensor:
        """Return the losses over the iterations, (iterations + 1,) or (iterations + 1, B)."""
        return torch.stack([r.loss for r in self.history])

    def __repr__(self) -> str:
        share = f"{int(self.solved.sum())} of {self.solved.numel()} solved" if self.solved.dim() else self.reason
        return (
            f"Solution(loss {self.loss.mean():.6g}, {share}, {self.iterations} iterations, "
            f"{self.evaluations} evaluations, {self.seconds:.3g} s)"
        )


@dataclass(frozen=True, kw_only=True)
class OptimiserOptions:
    """Options that all optimisers share."""

    iterations: int = 100
    """Largest number of iterations."""
    target: float | None = None
    """Loss at which a problem is solved."""
    time_limit: float | None = None
    """Time limit [s], checked after each iteration."""
    progress: bool = False
    """Switch of a progress bar."""
    callback: Callable[[Record], Any] | None = None
    """Function that is called after each iteration; the optimiser ends if it returns True."""


class Run:
    """An optimisation under way: history, progress bar, and the stopping rules that all optimisers share.

    with Run("adam", options) as run:
        for _ in range(options.iterations): ...
            if run.note(loss, evaluations): break
    return run.solution(x, loss, solved)
    """

    def __init__(self, name: str, options: OptimiserOptions):
        if options.iterations < 0:
            raise ValueError(f"iterations={options.iterations}; expected a number from 0 on")
        self.name, self.options = name, options
        self.history: list[Record] = []
        self.evaluations = 0
        self.reason = ""
        self._start = time.perf_counter()
        self._bar: Any = None

    def __enter__(self) -> Run:
        if self.options.progress:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
            self._bar = Progress(*columns, TextColumn("loss {task.fields[loss]}"))
            self._bar.start()
            self._task = self._bar.add_task(self.name, total=self.options.iterations, loss="")
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def note(self, loss: Tensor, solved: Tensor | None = None, **detail: float) -> bool:
        """Record an iteration. Return True if the run should end; `reason` then says why.

        solved: Flags of the problems that met the optimiser's own tolerance, bool, of the shape of loss.
        """
        loss = loss.detach().clone()
        record = Record(len(self.history), loss, self.seconds, self.evaluations, detail)
        self.history.append(record)
        if self._bar:
            self._bar.update(self._task, completed=record.iteration, loss=f"{float(loss.mean()):.6g}")
        stop = self.options.callback is not None and self.options.callback(record) is True
        self.reason = self._why(record, loss, solved, stop)
        return bool(self.reason)

    def met(self, loss: Tensor) -> Tensor:
        """Return flags of the problems that have reached the target, bool."""
        if self.options.target is None:
            return torch.zeros_like(loss, dtype=torch.bool)
        return loss <= self.options.target

    def _why(self, record: Record, loss: Tensor, solved: Tensor | None, stop: bool) -> str:
        limit, met = self.options.time_limit, self.met(loss)
        if bool(met.all()):
            return f"the loss is at most the target, {self.options.target:g}"
        if solved is not None and bool((met | solved).all()):
            return "converged to the tolerance"
        if not bool(torch.isfinite(loss).any()):
            return "the loss is not finite"
        if stop:
            return "the callback said so"
        if limit is not None and record.seconds >= limit:
            return f"the time limit of {limit:g} s"
        return ""

    def solution(self, x: Any, loss: Tensor, solved: Tensor, **extra: Any) -> Solution:
        """Return the solution.

        solved: Flags of the problems that met the optimiser's own tolerance; the target is checked here.
        """
        loss = loss.detach()
        reason = self.reason or f"the limit of {self.options.iterations} iterations"
        iterations = max(len(self.history) - 1, 0)
        done = (solved | self.met(loss)) & torch.isfinite(loss)
        return Solution(x, loss, done, reason, iterations, self.evaluations, self.seconds, self.history, extra)
