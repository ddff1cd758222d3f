"""Checks that problems of cloth share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from costate.tasks.cloth.problem import ClothProblem, ClothTask

EPS = 1e-6


def check_derivative(task: ClothTask, seed: int, size: float, tolerance: float = 1e-4, reverse: bool = False) -> None:
    """Compare the derivative of the loss along a random way with central differences; steps are solved to rounding."""
    problem = task.problem(seed)
    g = torch.Generator().manual_seed(3)
    first = torch.as_tensor(problem.first)
    way = size * torch.randn(len(first), generator=g, dtype=torch.float64)

    def loss(e: Tensor) -> Tensor:
        z = first + e * way
        return problem.residuals(z, problem.play(z)).square().mean() / 2

    zero = torch.zeros((), dtype=torch.float64)
    if reverse:
        e = zero.clone().requires_grad_()
        (exact,) = torch.autograd.grad(loss(e), e)
    else:
        exact = torch.func.jvp(loss, (zero,), (zero + 1,))[1]
    with torch.no_grad():
        differences = (loss(zero + EPS) - loss(zero - EPS)) / (2 * EPS)
    assert abs(exact) > 1e-6
    assert abs(exact - differences) < tolerance * abs(exact)


def judged(problem: ClothProblem, *frames: Tensor) -> tuple[dict[str, Any], bool]:
    """Judge a motion that ends with some frames (points, 3)."""
    assert problem.judge is not None
    return problem.judge(SimpleNamespace(x=torch.stack(frames)))
