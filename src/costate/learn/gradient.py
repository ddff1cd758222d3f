"""Descent along the gradient: Adam, SGD with momentum, L-BFGS; on controls, parameters or policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from costate.learn.solution import Options, Solution

Tensor = torch.Tensor


@dataclass(frozen=True, kw_only=True)
class GradientOptions(Options):
    """How to descend."""

    method: str = "adam"
    """"adam", "sgd" or "lbfgs"."""
    lr: float = 0.01
    """Length of a step; of the first step for L-BFGS."""
    momentum: float = 0.0
    """Of SGD."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Of Adam."""
    memory: int = 10
    """Pairs L-BFGS remembers."""
    clip: float | None = None
    """Largest norm of the gradient of each problem."""
    tolerance: float = 0.0
    """A problem is solved when the norm of its gradient is at most this."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest values, which broadcast with x; x is brought back after each step. Not with L-BFGS."""


def gradient(loss: Callable[[Any], Tensor], x0: Any, options: GradientOptions = GradientOptions()) -> Solution:  # noqa: B008
    """Minimise loss(x) from x0.

    Args:
        loss: x -> () for one problem, or (B,) for B independent problems, whose x are then the rows of x0 (B, ...).
        x0: A tensor, a dict or list of tensors, or an nn.Module (loss is then called with the module).
    """
    raise NotImplementedError
