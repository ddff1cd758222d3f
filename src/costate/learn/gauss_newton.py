"""Matrix-free Gauss-Newton and Levenberg-Marquardt: least squares by products with J and J^T only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from costate.learn.solution import Options, Solution

Tensor = torch.Tensor


@dataclass(frozen=True, kw_only=True)
class GaussNewtonOptions(Options):
    """How to step."""

    weights: Mapping[str, float | Tensor] = field(default_factory=dict)
    """Name of a residual block -> weight w of its square; default 1."""
    damping: float = 1e-3
    """Of the first step (Tikhonov); 0 for pure Gauss-Newton."""
    adaptive: bool = True
    """Whether damping follows the ratio of actual to predicted decrease (Levenberg-Marquardt); else it is constant."""
    cg_iterations: int = 100
    """At most, per step."""
    cg_tolerance: float = 1e-2
    """CG ends when its residual has fallen to this part of the gradient."""
    step: float = 1.0
    """Part of the step that is taken."""
    gradient_tolerance: float = 1e-8
    """A problem is solved when the largest entry of J^T r is at most this."""
    step_tolerance: float = 1e-10
    """... or when the step is at most this part of x."""
    loss_tolerance: float = 0.0
    """... or when the loss falls by at most this part."""
    batched: bool = False
    """Whether the first dimension of every tensor of x and of every residual counts independent problems."""


def gauss_newton(
    residuals: Callable[[Any], Mapping[str, Tensor]],
    x0: Any,
    options: GaussNewtonOptions = GaussNewtonOptions(),  # noqa: B008
) -> Solution:
    """Minimise 1/2 sum_k w_k |r_k(x)|^2 from x0. extra: "blocks", name -> its share of the loss.

    Args:
        residuals: x -> name -> residuals of any shape.
        x0: A tensor, a dict or list of tensors, or an nn.Module (residuals is then called with the module).
    """
    raise NotImplementedError
