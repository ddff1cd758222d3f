"""Matrix-free Gauss-Newton and Levenberg-Marquardt: least squares by products with J and J^T only.

A step solves (J^T J + damping) p = -J^T r by conjugate gradients, preconditioned if asked for. The loop is in `gauss_newton`:

1. `Problem` calls the user's residuals, weights them and flattens them to rows (B, m), one row for each of B problems.
2. `Linearization` holds one recorded evaluation. Its products J v and J^T u replay that record (see the class), so a CG
   iteration evaluates nothing non-linear again.
3. `Linearization.solve` finds the step p, and the decrease of the loss that the linear model predicts.
4. `Trust` takes the step, or the longest half, quarter, ... of it that lowers the loss enough, and adapts the damping.

Each problem of a batch has its own damping, its own step length and its own end; problems never influence each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from costate.optimise.conjugate import conjugate_gradients
from costate.optimise.solution import OptimiserOptions, Run, Solution
from costate.optimise.unknowns import Unknowns

Residuals = Callable[[Any], Mapping[str, Tensor]]


@dataclass(frozen=True, kw_only=True)
class GaussNewtonOptions(OptimiserOptions):
    """Options of `gauss_newton`. A problem is solved when it meets one of the three tolerances."""

    weights: Mapping[str, float | Tensor] = field(default_factory=dict)
    """Weights of the squares of residual blocks, by name: numbers, or tensors that broadcast with the block; default 1."""
    damping: float = 1e-3
    """Damping in the first step, added to the diagonal of J^T J (Tikhonov); 0 for pure Gauss-Newton."""
    adaptive: bool = True
    """Switch that lets the damping follow the ratio of actual to predicted decrease (Levenberg-Marquardt)."""
    cg_iterations: int = 100
    """Largest number of CG iterations per step."""
    cg_tolerance: float = 1e-2
    """Ratio of the CG residual to the gradient at which CG ends."""
    precondition: Callable[[Tensor, Tensor], Tensor] | None = None
    """Product of an approximate inverse of J^T J + damping, symmetric and positive definite, as a function of rows (B, n) and the
    damping (B,): CG then needs fewer iterations. `optimise.kronecker` has one for networks; None: the identity."""
    guess: Tensor | None = None
    """Step at which CG of the first step begins, such as a part of that of a similar problem, (B, n) or (n,); None: zero."""
    gradient_tolerance: float = 1e-8
    """Largest entry of J^T r at a solution; 0: J^T r is not looked at, which saves a backward pass after the last step."""
    step_tolerance: float = 1e-10
    """Largest norm of a step at a solution, relative to that of x."""
    loss_tolerance: float = 0.0
    """Largest decrease of the loss by a step at a solution, relative to the loss."""
    batched: bool = False
    """Switch for independent problems, which the first dimension of every tensor of x and of every residual block counts."""


def gauss_newton(
    residuals: Residuals,
    x0: Any,
    options: GaussNewtonOptions = GaussNewtonOptions(),  # noqa: B008
) -> Solution:
    """Minimise 1/2 sum_k w_k |r_k(x)|^2 from x0.

    The extra of the solution holds "blocks", the share of each block in the loss, and "products", the number of products with J or
    J^T.

    Args:
        residuals: Function of x that returns named blocks of residuals of any shape; with `batched` (B, ...).
        x0: A tensor, a dict or list of tensors, or an nn.Module (residuals is then called with the module).
    """
    unknowns = Unknowns(x0)
    with Run("gauss-newton", options) as run:
        problem = Problem(residuals, unknowns, options, run)
        x = unknowns.rows(problem.problems)
        trust = Trust(options, x)
        line = problem.linearize(x)
        solved = _flat(line, options)
        ended = run.note(problem.shaped(line.loss), problem.shaped(solved), damping=float(trust.damping.mean()))
        while not ended and len(run.history) <= options.iterations:
            active = ~(solved | trust.failed | run.met(line.loss)) & torch.isfinite(line.loss)
            guess = options.guess if len(run.history) == 1 else None
            p, least, count = line.solve(trust.damping, active, options, guess)
            before = line
            taken, x1, line = trust.advance(problem, x, p, line, least, active)
            little = _little(x1 - x, x, before.loss - line.loss, line.loss, options)
            solved, x = solved | _flat(line, options) | (taken & little), x1
            detail = {
                "damping": float(trust.damping.mean()),
                "cg_iterations": float(count),
                "step": float(p.norm(dim=1).mean()),
            }
            ended = run.note(problem.shaped(line.loss), problem.shaped(solved), **detail)
            if not ended and bool((solved | trust.failed | run.met(line.loss)).all()):
                run.reason, ended = "no step lowers the loss any more", True
        found = unknowns.result(x, problem.problems)
        extra = {"blocks": problem.shares(line.residual), "products": problem.products}
        return run.solution(found, problem.shaped(line.loss), problem.shaped(solved), **extra)


class Problem:
    """The weighted residuals as a function of rows of unknowns (B, n)."""

    def __init__(self, residuals: Residuals, unknowns: Unknowns, options: GaussNewtonOptions, run: Run):
        self._residuals, self._unknowns, self._options, self._run = residuals, unknowns, options, run
        self.problems = unknowns.problems() if options.batched else None
        self.products = 0
        self._scale: Tensor | None = None
        self._columns: dict[str, int] = {}

    def __call__(self, x: Tensor) -> Tensor:
        """Return the weighted residuals sqrt(w) r, (B, m)."""
        self._run.evaluations += 1
        named = self._unknowns.call(self._residuals, x, self.problems)
        _check_blocks(named, self._options, self.problems)
        parts = [r.reshape(self.problems or 1, -1) for r in named.values()]
        columns = {name: part.shape[1] for name, part in zip(named, parts, strict=True)}
        if self._options.weights and columns != self._columns:
            self._scale = torch.cat([self._root_of_weight(name, r) for name, r in named.items()], 1)
        self._columns = columns
        r = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
        return r if self._scale is None else r * self._scale

    def _root_of_weight(self, name: str, r: Tensor) -> Tensor:
        """Return sqrt(w) of a block, (B, its columns)."""
        weight = torch.as_tensor(self._options.weights.get(name, 1.0), dtype=r.dtype)
        return weight.sqrt().expand_as(r).reshape(self.problems or 1, -1)

    def shares(self, residual: Tensor) -> dict[str, Tensor]:
        """Return the share of each block in the loss of weighted residuals (B, m)."""
        parts = residual.square().split(list(self._columns.values()), 1)
        return {name: self.shaped(part.sum(1) / 2) for name, part in zip(self._columns, parts, strict=True)}

    def linearize(self, x: Tensor) -> Linearization:
        """Evaluate the residuals at x with a record of the evaluation."""
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            r = self(x)
        if not r.requires_grad:
            raise ValueError(
                "the residuals do not depend on x, or lost their gradient on the way (detach, numpy, no_grad)"
            )
        return Linearization(self, x, r)

    def shaped(self, value: Tensor) -> Tensor:
        """Return (B,) as it is, or () for one problem."""
        return value if self.problems is not None else value[0]


class Linearization:
    """The linear model r(x + p) ~ r + J p, from one recorded evaluation.

    J^T u replays the record backwards. Its result is linear in u, so replaying the record of that replay backwards gives J v.
    Neither product evaluates the residuals again. The first replay is left until a gradient or a product is asked for.
    """

    def __init__(self, problem: Problem, x: Tensor, r: Tensor):
        self._problem, self._x, self._r = problem, x, r
        self.residual = r.detach()
        self.loss = self.residual.square().sum(1) / 2
        self._u = self.residual.clone().requires_grad_()

    @cached_property
    def _back(self) -> Tensor:
        self._problem.products += 1
        with torch.enable_grad():
            return torch.autograd.grad(self._r, self._x, self._u, create_graph=True)[0]

    @property
    def gradient(self) -> Tensor:
        """J^T r, (B, n)."""
        return self._back.detach()

    def times(self, v: Tensor) -> Tensor:
        """Return J v, (B, n) -> (B, m)."""
        self._problem.products += 1
        (product,) = torch.autograd.grad(self._back, self._u, v, retain_graph=True)
        return product

    def transposed(self, u: Tensor) -> Tensor:
        """Return J^T u, (B, m) -> (B, n)."""
        self._problem.products += 1
        (product,) = torch.autograd.grad(self._r, self._x, u, retain_graph=True)
        return product

    def solve(
        self, damping: Tensor, active: Tensor, options: GaussNewtonOptions, guess: Tensor | None = None
    ) -> tuple[Tensor, Tensor, int]:
        """Return the step p (B, n), the predicted decrease of the loss (B,) and the number of CG iterations."""

        def hessian(v: Tensor) -> Tensor:
            return self.transposed(self.times(v)) + damping[:, None] * v

        def inverse(r: Tensor) -> Tensor:
            assert options.precondition is not None
            return options.precondition(r, damping)

        b, nearly = -self.gradient * active[:, None], inverse if options.precondition else None
        first = None if guess is None else guess.expand_as(b) * active[:, None]
        p, rest, count = conjugate_gradients(hessian, b, options.cg_iterations, options.cg_tolerance, nearly, first)
        # The decrease is b.p - p.J^T J p / 2; as A p = b - rest, it takes no further product.
        least = (b * p).sum(1) - (p * (b - rest)).sum(1) / 2 + damping * p.square().sum(1) / 2
        return p, least, count


class Trust:
    """Step lengths and damping of each problem.

    A step that does not lower the loss is halved until it does. With adaptive damping the next step is then damped more; after a
    full step the damping follows the ratio of actual to predicted decrease (Nielsen 1999).
    """

    MOST = 1e16
    """Damping beyond which a problem has failed."""
    PARTS = 10
    """Number of step lengths that are tried: 1, 1/2, 1/4, ..."""
    ENOUGH = 1e-4
    """Least decrease of the loss, relative to the predicted one."""

    def __init__(self, options: GaussNewtonOptions, x: Tensor):
        if options.damping < 0:
            raise ValueError(f"damping={options.damping}; expected a number from 0 on")
        self._adaptive = options.adaptive
        self.damping = torch.full_like(x[:, 0], options.damping)
        self._raise = torch.full_like(self.damping, 2.0)
        self.failed = torch.zeros_like(self.damping, dtype=torch.bool)

    def advance(
        self, problem: Problem, x: Tensor, p: Tensor, line: Linearization, least: Tensor, active: Tensor
    ) -> tuple[Tensor, Tensor, Linearization]:
        """Take the step p, or a part of it, in the active problems: return which moved (B,), the new x (B, n), and what is linear
        there.

        line: The linear model at x.
        least: Predicted decrease of the losses (B,).
        """
        least = least.clamp(min=0)  # few CG iterations from a bad guess may predict an increase
        part, taken, ratio, tried = torch.ones_like(least), torch.zeros_like(active), None, line
        for _ in range(self.PARTS):
            tried = problem.linearize(x + part[:, None] * p)
            fallen = line.loss - tried.loss
            ratio = fallen / least.clamp(min=1e-300) if ratio is None else ratio
            taken = taken | (active & (fallen > self.ENOUGH * part * least))  # false where the loss is NaN
            if bool((taken | ~active).all()):
                break
            part = torch.where(taken, part, part / 2)
        assert ratio is not None
        if self._adaptive:
            self._adapt(ratio, taken & (part == 1), active)
            self.failed = self.failed | (self.damping > self.MOST)
        else:
            self.failed = self.failed | (active & ~taken)
        x1 = torch.where(taken[:, None], x + part[:, None] * p, x)
        if not bool(taken.any()):  # the old linear model still holds
            return taken, x1, line
        return taken, x1, tried if bool((taken | ~active).all()) else problem.linearize(x1)

    def _adapt(self, ratio: Tensor, whole: Tensor, active: Tensor) -> None:
        short = active & ~whole
        fall = (1 - (2 * ratio - 1) ** 3).clamp(1 / 3, 2)
        rise = self.damping.clamp(min=1e-8) * self._raise
        self.damping = torch.where(whole, self.damping * fall, torch.where(short, rise, self.damping))
        self._raise = torch.where(whole, 2.0, torch.where(short, 2 * self._raise, self._raise))


def covariance(residuals: Residuals, x: Any, options: GaussNewtonOptions = GaussNewtonOptions()) -> Tensor:  # noqa: B008
    """Return the covariance (n, n) of a least-squares estimate x, in the order of the tensors of x.

    It is s^2 (J^T J)^-1 with s^2 = |r|^2 / (m - n) of the m weighted residuals. J is computed column by column, so this is for
    problems with few unknowns.
    """
    unknowns = Unknowns(x)
    line = Problem(residuals, unknowns, options, Run("covariance", options)).linearize(unknowns.rows(None))
    n, m = line.gradient.shape[1], line.residual.shape[1]
    if m <= n:
        raise ValueError(f"{m} residuals do not determine the scatter of {n} unknowns: more residuals are needed")
    J = torch.stack([line.times(e[None])[0] for e in torch.eye(n, dtype=line.loss.dtype)], 1)
    return 2 * line.loss / (m - n) * torch.linalg.inv(J.T @ J)


def _flat(line: Linearization, options: GaussNewtonOptions) -> Tensor:
    if options.gradient_tolerance == 0:
        return torch.zeros_like(line.loss, dtype=torch.bool)
    return line.gradient.abs().amax(1) <= options.gradient_tolerance


def _little(step: Tensor, x: Tensor, fallen: Tensor, loss: Tensor, options: GaussNewtonOptions) -> Tensor:
    short = step.norm(dim=1) <= options.step_tolerance * (x.norm(dim=1) + options.step_tolerance)
    return short | (fallen <= options.loss_tolerance * loss)


def _check_blocks(named: Any, options: GaussNewtonOptions, problems: int | None) -> None:
    if not isinstance(named, Mapping) or not named:
        raise TypeError(
            f"residuals must be a dict of named tensors, such as {{'goal': x - goal}}, not {type(named).__name__}"
        )
    unknown = set(options.weights) - set(named)
    if unknown:
        raise ValueError(f"weights name '{sorted(unknown)[0]}', but the residual blocks are {', '.join(named)}")
    for name, r in named.items():
        if problems is not None and (r.dim() == 0 or r.shape[0] != problems):
            raise ValueError(
                f"residuals '{name}' have shape {tuple(r.shape)}; expected ({problems}, ...) with batched=True"
            )
