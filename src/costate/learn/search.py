"""Search without gradients: CMA-ES and random search, the references for everything that uses gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from costate.learn.solution import Options, Solution

Tensor = torch.Tensor


@dataclass(frozen=True, kw_only=True)
class SearchOptions(Options):
    """How to search. An iteration is one population."""

    method: str = "cma"
    """"cma" or "random"."""
    sigma: float = 0.3
    """Standard deviation of the first population around x0."""
    population: int | None = None
    """Default: that of CMA-ES, 4 + 3 log n."""
    batched: bool = False
    """Whether the loss takes a population at once: x (P, ...) -> (P,). Else it is called once for each candidate."""
    bounds: tuple[float, float] | None = None
    """Lowest and highest value of every entry."""
    seed: int = 0


def search(loss: Callable[[Any], Tensor], x0: Any, options: SearchOptions = SearchOptions()) -> Solution:  # noqa: B008
    """Minimise loss(x) from x0, one problem: x -> (), or with `batched` (P, ...) -> (P,).

    x0: A tensor, a dict or list of tensors, or an nn.Module (loss is then called with the module).
    """
    raise NotImplementedError
