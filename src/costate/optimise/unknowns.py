"""The unknowns of an optimiser: tensors, containers of tensors or the weights of a module, as rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call


class Unknowns:
    """Conversion between the user's unknowns and a matrix (problems, n), one row per problem.

    x0: A tensor, a dict, list or tuple of tensors (also nested), or a module; its weights that require gradients are the unknowns.
    """

    def __init__(self, x0: Any):
        self._like = x0
        self._names: list[str] = []
        if isinstance(x0, nn.Module):
            named = {k: p for k, p in x0.named_parameters() if p.requires_grad}
            self._names, leaves = list(named), list(named.values())
        else:
            leaves = list(_leaves(x0, "x0"))
        if not leaves:
            raise ValueError(
                "x0 has no tensors: expected a tensor, a dict or list of tensors, or a module with weights"
            )
        kinds = {t.dtype for t in leaves}
        if len(kinds) > 1 or not leaves[0].dtype.is_floating_point:
            raise TypeError(f"x0 has tensors of {', '.join(map(str, kinds))}; expected one floating-point type")
        self._start = [t.detach() for t in leaves]

    @property
    def is_module(self) -> bool:
        return isinstance(self._like, nn.Module)

    def rows(self, problems: int | None) -> Tensor:
        """Return the start as a matrix: (1, n) for one problem (None), otherwise (problems, n).

        The first dimension of every tensor then counts the problems.
        """
        if problems is None:
            return torch.cat([t.reshape(1, -1) for t in self._start], 1)
        for t in self._start:
            if self.is_module or t.dim() == 0 or t.shape[0] != problems:
                given = "a module" if self.is_module else f"a tensor of shape {tuple(t.shape)}"
                raise ValueError(
                    f"there are {problems} problems, one for each loss, but x0 holds {given}: expected tensors ({problems}, ...); "
                    "for one problem return one loss, ()"
                )
        return torch.cat([t.reshape(problems, -1) for t in self._start], 1)

    def problems(self) -> int:
        """Return the first dimension of the tensors."""
        return self._start[0].shape[0] if self._start[0].dim() else 1

    def call(self, function: Callable[[Any], Any], rows: Tensor, problems: int | None) -> Any:
        """Call function(x) with an x in the form of x0 that has the numbers in rows. Differentiable in rows."""
        leaves = self._tensors(rows, problems)
        if isinstance(self._like, nn.Module):
            weights = {f"module.{k}": t for k, t in zip(self._names, leaves, strict=True)}
            return functional_call(_Given(self._like), weights, (function,))
        return function(_rebuilt(self._like, iter(leaves)))

    def result(self, rows: Tensor, problems: int | None) -> Any:
        """Return x in the form of x0; a module gets the new weights."""
        leaves = [t.clone() for t in self._tensors(rows.detach(), problems)]
        if isinstance(self._like, nn.Module):
            own = dict(self._like.named_parameters())
            with torch.no_grad():
                for name, t in zip(self._names, leaves, strict=True):
                    own[name].copy_(t)
            return self._like
        return _rebuilt(self._like, iter(leaves))

    def _tensors(self, rows: Tensor, problems: int | None) -> list[Tensor]:
        if len(self._start) == 1 and problems is None:
            return [rows.reshape(self._start[0].shape)]
        shapes = [t.shape if problems is None else t.shape[1:] for t in self._start]
        return self._split(rows, shapes, problems)

    def _split(self, rows: Tensor, shapes: Sequence[Sequence[int]], problems: int | None) -> list[Tensor]:
        lead = () if problems is None else (rows.shape[0],)
        parts = rows.split([prod(s) for s in shapes], 1)
        return [p.reshape((*lead, *s)) for p, s in zip(parts, shapes, strict=True)]

    def stacked(self, function: Callable[[Any], Any], rows: Tensor) -> Any:
        """Call function(x) with one x per row, stacked in a new first dimension of every tensor of x0."""
        shapes = [t.shape for t in self._start]
        return function(_rebuilt(self._like, iter(self._split(rows, shapes, len(rows)))))


class _Given(nn.Module):
    """A module that calls a function with another module, so that the weights of that one can be replaced for the call."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, function: Callable[[nn.Module], Any]) -> Any:
        return function(self.module)


def _leaves(x: Any, where: str) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, dict):
        for key, value in x.items():
            yield from _leaves(value, f"{where}[{key!r}]")
    elif isinstance(x, list | tuple):
        for k, value in enumerate(x):
            yield from _leaves(value, f"{where}[{k}]")
    else:
        raise TypeError(
            f"{where} is a {type(x).__name__}; expected a tensor, a dict or list of tensors, or an nn.Module"
        )


def _rebuilt(like: Any, leaves: Iterator[Tensor]) -> Any:
    if isinstance(like, Tensor):
        return next(leaves)
    if isinstance(like, dict):
        return {key: _rebuilt(value, leaves) for key, value in like.items()}
    return type(like)(_rebuilt(value, leaves) for value in like)
