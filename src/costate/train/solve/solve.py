"""Solving the problems of a task with an optimiser, and judging what it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from costate.core import display
from costate.optimise.cost import Cost
from costate.optimise.direct import DirectOptions
from costate.optimise.gauss_newton import gauss_newton
from costate.optimise.gradient import GradientOptions, gradient
from costate.optimise.ilqr import ILQROptions, ilqr
from costate.optimise.search import SearchOptions, search
from costate.optimise.solution import Solution
from costate.train.solve.least_time import least_times
from costate.train.solve.problems import Problems, Solvable
from costate.train.solve.recipes import recipe

SETTLED = 0.05
"""A cost has settled when it stays within this part of its last value."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of solving B problems of a task."""

    task: Solvable
    method: str
    numbers: tuple[int, ...]
    solution: Solution
    """Solution of the first attempt, or of the whole if there was only one."""
    x: Tensor
    """(B, n), or controls (T, B, nu)."""
    error: Tensor
    """Error that the task is judged by, (B,)."""
    iterations: Tensor
    """Iterations until the target was met, or (iLQR) the cost stayed within 5 % of its last value, or until the end, (B,)."""
    seconds: Tensor
    """Seconds until then, of all problems together where they are solved side by side, (B,)."""
    states: Tensor
    """(T + 1, B, nx)."""
    facts: Mapping[str, Any]
    """Facts about the first problem."""
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    """More numbers about each problem, (B,)."""

    @property
    def solved(self) -> Tensor:
        return self.error <= self.task.tolerance

    @property
    def total_seconds(self) -> float:
        """Time of all problems, side by side or one after the other."""
        one_by_one = self.method in ("search", "direct")
        return float(self.seconds.sum()) if one_by_one else self.solution.seconds

    def __repr__(self) -> str:
        return (
            f"{self.task.name} by {self.method}: {int(self.solved.sum())} of {len(self.numbers)} solved to "
            f"{display.number(self.task.tolerance)} {self.task.unit}, {float(self.iterations.median()):g} iterations, "
            f"{display.number(self.total_seconds)} s"
        )


def solve(
    name: str,
    numbers: Sequence[int] = range(20),
    method: str | None = None,
    changes: Mapping[str, Any] | None = None,
    task: Solvable | None = None,
) -> Outcome:
    """Solve problems of a task side by side (one after the other by search).

    Args:
        name: A key of `RECIPES`.
        numbers: Which problems.
        method: A key of the recipe's options; default its first.
        changes: Options of the optimiser to change.
        task: With other options than the recipe's.
    """
    own = recipe(name)
    method = method or next(iter(own.options))
    if method not in own.options:
        raise ValueError(f"task '{name}' is solved by {', '.join(own.options)}, not by '{method}'")
    options = replace(own.options[method], **(changes or {}))
    task = task or own.make()
    if method == "ilqr":
        return _by_ilqr(task, numbers, options)  # type: ignore[arg-type]
    if isinstance(options, DirectOptions):
        return _by_direct(task, numbers, options)
    if isinstance(options, SearchOptions):
        return _by_search(task, numbers, options)
    return _by_function(task, method, numbers, options, own.to_the_end)


def _by_function(task: Solvable, method: str, numbers: Sequence[int], options: Any, to_the_end: bool) -> Outcome:
    """Solve all problems side by side; then those left unsolved again, from further starts if the task has some."""
    left, found = list(range(len(numbers))), None
    for attempt in range(task.attempts):
        now = _attempt(task, method, [numbers[k] for k in left], options, to_the_end, attempt)
        found = now if found is None else _updated(found, now, left)
        left = (~found.solved).nonzero()[:, 0].tolist()
        if not left:
            break
    assert found is not None
    return found


def _attempt(
    task: Solvable, method: str, numbers: Sequence[int], options: Any, to_the_end: bool, attempt: int
) -> Outcome:
    problems = task.problems(numbers, attempt)
    x, before, spent = problems.x0, 0.0, 0.0
    for stage in problems.stages:
        short = _minimise(method, stage, x, options)
        x, before, spent = short.x, before + short.iterations, spent + short.seconds
    wanted = options if to_the_end else replace(options, target=problems.target)
    solution = _minimise(method, problems.residuals, x, wanted)
    x = solution.x.detach()
    iterations, seconds = _until(solution, problems.target)
    facts = task.problems(numbers[:1], attempt).facts(x[:1])
    states = problems.states(x).detach()
    error = problems.error(x).detach()
    return Outcome(
        task, method, tuple(numbers), solution, x, error, iterations + before, seconds + spent, states, facts
    )


def _updated(old: Outcome, new: Outcome, rows: list[int]) -> Outcome:
    """Return an outcome with what another attempt found for some problems; iterations and seconds add up."""
    x, states, iterations, seconds = (v.clone() for v in (old.x, old.states, old.iterations, old.seconds))
    better = [(k, row) for k, row in enumerate(rows) if new.error[k] < old.error[row]]
    error = old.error.clone()
    for k, row in better:
        x[row], states[:, row], error[row] = new.x[k], new.states[:, k], new.error[k]
    iterations[rows] += new.iterations
    seconds[rows] += new.seconds
    facts = new.facts if (0, 0) in better else old.facts
    return replace(old, x=x, states=states, error=error, iterations=iterations, seconds=seconds, facts=facts)


def _minimise(method: str, residuals: Callable[[Tensor], Tensor], x: Tensor, options: Any) -> Solution:
    if method == "gauss_newton":
        return gauss_newton(lambda x: {"residuals": residuals(x)}, x, options)
    assert isinstance(options, GradientOptions)
    return gradient(lambda x: residuals(x).square().sum(-1) / 2, x, options)


def _by_search(task: Solvable, numbers: Sequence[int], options: SearchOptions) -> Outcome:
    """Solve one problem after the other, each with a whole population at once."""
    problems = task.problems(numbers)
    found = []
    for k, number in enumerate(numbers):
        sized: dict[int, Problems] = {}

        def loss(x: Tensor, number: int = number, sized: dict[int, Problems] = sized) -> Tensor:
            if len(x) not in sized:
                sized[len(x)] = task.problems([number] * len(x))
            return sized[len(x)].loss(x)

        found.append(search(loss, problems.x0[k], replace(options, target=problems.target)))
    x = torch.stack([s.x for s in found])
    longest = max(found, key=lambda s: s.iterations)
    iterations = torch.tensor([float(s.iterations) for s in found])
    seconds = torch.tensor([s.seconds for s in found])
    return Outcome(
        task, "search", tuple(numbers), longest, x, problems.error(x).detach(), iterations, seconds,
        problems.states(x).detach(), problems.facts(x[:1]) if len(numbers) == 1 else {},
    )  # fmt: skip


def _until(solution: Solution, target: float | None) -> tuple[Tensor, Tensor]:
    """Return iterations and seconds until the loss was at the target, or until the end, each (B,)."""
    losses = solution.losses()
    met = losses <= target if target is not None else torch.zeros_like(losses, dtype=torch.bool)
    last = len(losses) - 1
    first = torch.where(met.any(0), met.double().argmax(0), last)
    seconds = torch.tensor([r.seconds for r in solution.history])
    return first.double(), seconds[first]


def _until_settled(solution: Solution) -> tuple[Tensor, Tensor]:
    """Return iterations and seconds from which on the loss stays near its last value, each (B,).

    With multiple shooting the first losses may lie below the last one: that motion has gaps.
    """
    losses = solution.losses()
    away = (losses - losses[-1]).abs() > SETTLED * losses[-1].abs()
    first = (len(losses) - away.flip(0).double().argmax(0)) * away.any(0)
    seconds = torch.tensor([r.seconds for r in solution.history])
    return first.double(), seconds[first]


def _by_ilqr(task: Solvable, numbers: Sequence[int], options: ILQROptions) -> Outcome:
    """Solve all problems, and all tries at each, side by side; the try with the least error counts."""
    motions = task.motions(numbers)
    cost = Cost(task.world, motions.stage, motions.final, {k: v.shape[-1] for k, v in motions.inputs.items()})
    wanted = replace(options, bounds=motions.bounds)
    solution = ilqr(
        task.world, cost, motions.state0, motions.controls0, wanted, states0=motions.states0, inputs=motions.inputs
    )
    states, controls = solution.extra["states"], solution.x
    errors = motions.error(states, controls).unflatten(0, (len(numbers), motions.group))
    error, k = errors.min(-1)
    rows = torch.arange(len(numbers)) * motions.group + k
    iterations, seconds = _until_settled(solution)
    return Outcome(
        task, "ilqr", tuple(numbers), solution, controls[:, rows].detach(), error.detach(), iterations[rows], seconds[rows],
        states[:, rows].detach(), {"tries at each problem": motions.group} if motions.group > 1 else {},
    )  # fmt: skip


def _by_direct(task: Solvable, numbers: Sequence[int], options: DirectOptions) -> Outcome:
    """Find one motion of least time after the other; then play all of them in the task's world."""
    timed = task.least_times(numbers)
    found = least_times(timed, options)
    times, controls = torch.stack([s.extra["times"] for s in found], 1), torch.stack([s.x for s in found], 1)
    states = timed.play(times, controls)
    error = torch.where(torch.stack([s.solved for s in found]), timed.error(states), torch.inf)
    least = times[-1] - timed.after
    facts = {"least time, mean [s]": float(least.mean()), "longest [s]": float(least.max())}
    return Outcome(
        task, "direct", tuple(numbers), max(found, key=lambda s: s.iterations), controls, error,
        torch.tensor([float(s.iterations) for s in found]), torch.tensor([s.seconds for s in found]), states, facts,
        {"least time [s]": least} | dict(timed.columns(states)),
    )  # fmt: skip
