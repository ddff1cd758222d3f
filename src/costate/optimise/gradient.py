"""Descent along the gradient: Adam, SGD with momentum, L-BFGS; on controls, parameters or policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from costate.core.names import unknown
from costate.optimise.lbfgs import LBFGS
from costate.optimise.solution import OptimiserOptions, Run, Solution
from costate.optimise.unknowns import Unknowns


@dataclass(frozen=True, kw_only=True)
class GradientOptions(OptimiserOptions):
    """Options of `gradient`."""

    method: str = "adam"
    """Method: "adam", "sgd" or "lbfgs"."""
    lr: float = 0.01
    """Step size (learning rate). With L-BFGS it is the length of the first step; a line search finds the others."""
    momentum: float = 0.0
    """Momentum of SGD."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay factors of Adam, for the mean gradient and for the mean square."""
    memory: int = 10
    """Number of pairs that L-BFGS remembers."""
    clip: float | None = None
    """Largest norm of the gradient of each problem; Adam and SGD only."""
    tolerance: float = 0.0
    """Norm of the gradient at which a problem is solved."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest values, numbers or tensors that broadcast with x0, which is then one tensor. x is clamped to them after
    each step. Not with L-BFGS."""


def gradient(loss: Callable[[Any], Tensor], x0: Any, options: GradientOptions = GradientOptions()) -> Solution:  # noqa: B008
    """Minimise loss(x) from x0. The solution is the best x seen.

    Args:
        loss: Function of x that returns () for one problem, or (B,) for B independent problems, whose x are then the rows of x0
            (B, ...). A problem that is solved, or whose loss is not finite, is not changed any more.
        x0: A tensor, a dict or list of tensors, or an nn.Module (loss is then called with the module).
    """
    _check(options)
    with Run(options.method, options) as run:
        objective = Objective(loss, Unknowns(x0), run)
        return (_lbfgs if options.method == "lbfgs" else _first_order)(objective, x0, options, run)


class Objective:
    """The losses and their gradients as a function of rows of unknowns."""

    def __init__(self, loss: Callable[[Any], Tensor], unknowns: Unknowns, run: Run):
        self._loss, self.unknowns, self._run = loss, unknowns, run
        with torch.no_grad():
            value = unknowns.call(loss, unknowns.rows(None), None)
        if not isinstance(value, Tensor) or value.dim() > 1:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"the loss is {shape}; expected (), or (B,) for B independent problems")
        self.problems = value.shape[0] if value.dim() else None
        self.start = unknowns.rows(self.problems)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the losses (B,) and their gradients (B, n)."""
        self._run.evaluations += 1
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            value = self.unknowns.call(self._loss, x, self.problems).reshape(-1)
        if not value.requires_grad:
            raise ValueError("the loss does not depend on x, or lost its gradient on the way (detach, numpy, no_grad)")
        (g,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), g

    def shaped(self, value: Tensor) -> Tensor:
        """Return (B,) as it is, or () for one problem."""
        return value if self.problems is not None else value[0]

    def solution(self, run: Run, x: Tensor, value: Tensor, solved: Tensor) -> Solution:
        found = self.unknowns.result(x, self.problems)
        return run.solution(found, self.shaped(value), self.shaped(solved))


# --- Adam and SGD -----------------------------------------------------------------------------------------------------


class Adam:
    """Adam (Kingma and Ba 2015)."""

    def __init__(self, options: GradientOptions):
        self.lr, self.betas = options.lr, options.betas
        self.mean: Tensor | float = 0.0
        self.square: Tensor | float = 0.0
        self.count = 0

    def step(self, g: Tensor) -> Tensor:
        a, b = self.betas
        self.count += 1
        self.mean = a * self.mean + (1 - a) * g
        self.square = b * self.square + (1 - b) * g * g
        mean, square = self.mean / (1 - a**self.count), self.square / (1 - b**self.count)
        return -self.lr * mean / (square.sqrt() + 1e-8)


class SGD:
    """Steepest descent with momentum."""

    def __init__(self, options: GradientOptions):
        self.lr, self.momentum = options.lr, options.momentum
        self.velocity: Tensor | float = 0.0

    def step(self, g: Tensor) -> Tensor:
        self.velocity = self.momentum * self.velocity + g
        return -self.lr * self.velocity


METHODS = {"adam": Adam, "sgd": SGD}


def _first_order(objective: Objective, x0: Any, options: GradientOptions, run: Run) -> Solution:
    method = METHODS[options.method](options)
    into = _projection(options.bounds, x0, objective.problems)
    x = into(objective.start)
    value, g = objective(x)
    best, best_x = value, x
    solved = _small(g, options.tolerance)
    ended = run.note(objective.shaped(value), objective.shaped(solved), gradient=_norm(g))
    while not ended and len(run.history) <= options.iterations:
        active = ~(solved | run.met(value)) & torch.isfinite(value)
        moved = into(x + method.step(_clipped(g, options.clip)))
        x = torch.where(active[:, None], moved, x)
        value, g = objective(x)
        better = value < best
        best, best_x = torch.where(better, value, best), torch.where(better[:, None], x, best_x)
        solved = solved | _small(g, options.tolerance)
        ended = run.note(objective.shaped(value), objective.shaped(solved), gradient=_norm(g))
    return objective.solution(run, best_x, best, solved)


def _projection(bounds: tuple[Any, Any] | None, x0: Any, problems: int | None) -> Callable[[Tensor], Tensor]:
    if bounds is None:
        return lambda x: x
    if not isinstance(x0, Tensor):
        raise TypeError(f"bounds are for an x0 that is one tensor, not a {type(x0).__name__}")
    low, high = (
        torch.as_tensor(b, dtype=x0.dtype).expand(x0.shape).reshape(problems if problems is not None else 1, -1)
        for b in bounds
    )
    return lambda x: torch.minimum(torch.maximum(x, low), high)


def _clipped(g: Tensor, most: float | None) -> Tensor:
    return g if most is None else g * (most / g.norm(dim=1, keepdim=True).clamp(min=most))


def _small(g: Tensor, tolerance: float) -> Tensor:
    return g.norm(dim=1) <= tolerance


def _norm(g: Tensor) -> float:
    return float(g.norm(dim=1).mean())


# --- L-BFGS -----------------------------------------------------------------------------------------------------------


def _lbfgs(objective: Objective, x0: Any, options: GradientOptions, run: Run) -> Solution:
    x = objective.start
    value, g = objective(x)
    solved = _small(g, options.tolerance)
    stuck = torch.zeros_like(solved)
    search = LBFGS(options.memory, options.lr)
    ended = run.note(objective.shaped(value), objective.shaped(solved), gradient=_norm(g))
    while not ended and len(run.history) <= options.iterations:
        active = ~(solved | stuck | run.met(value)) & torch.isfinite(value)
        x, value, g, moved = search.step(objective, x, value, g, active)
        stuck = stuck | (active & ~moved)
        solved = solved | _small(g, options.tolerance)
        ended = run.note(objective.shaped(value), objective.shaped(solved), gradient=_norm(g))
        if not ended and bool((stuck | solved | run.met(value)).all()):
            run.reason = "the line search found no lower loss"
            break
    return objective.solution(run, x, value, solved)


def _check(options: GradientOptions) -> None:
    if options.method not in (*METHODS, "lbfgs"):
        raise ValueError(unknown("method", options.method, [*METHODS, "lbfgs"]))
    if not options.lr > 0:
        raise ValueError(f"lr={options.lr}; expected a positive number")
    if options.method == "lbfgs" and options.bounds is not None:
        raise ValueError("L-BFGS has no bounds: use adam or sgd, or write x as a function of something free")
