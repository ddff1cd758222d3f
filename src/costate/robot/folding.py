"""Parametrisations inside kernels.

A module that can say symbolically what it computes becomes part of the kernels that use it: its raw numbers are their inputs,
and the way from these to physical parameters costs no torch operation, neither forwards nor backwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import casadi as ca
import torch
from casadi import SX
from torch import nn

from costate.physics import Parameters
from costate.physics.params import KINDS

if TYPE_CHECKING:
    from costate.robot.learnable import Learnable


@runtime_checkable
class Foldable(Protocol):
    """A module that can be folded into kernels."""

    def raws(self) -> Sequence[torch.Tensor]:
        """Return the tensors that its value is computed from."""
        ...

    def symbolic(self, *raws: SX) -> Any:
        """Return what `forward` computes, as an expression of symbols with the shapes of `raws` (vectors are columns).

        A group of parameters is a tuple of expressions. Expressions are reshaped row by row where needed.
        """
        ...


def is_foldable(module: nn.Module) -> bool:
    """Return whether the symbolic form of a module says all that a call does: no hook and no subclass changes it."""
    if not isinstance(module, Foldable) or module._forward_hooks or module._forward_pre_hooks:
        return False
    for cls in type(module).__mro__:
        if "symbolic" in vars(cls):
            return True
        if "forward" in vars(cls) or "value" in vars(cls):
            return False
    return False


def fold(params: Parameters, entries: Iterable[Learnable]) -> tuple[Parameters, dict[str, SX]]:
    """Replace every learnable parameter by an expression of its module's raw tensors or, if there is none, by a symbol.

    Returns the new parameters and the symbols by name.
    """
    symbols: dict[str, SX] = {}
    for entry in entries:
        if not is_foldable(entry.module):
            params, own = params.symbolic(entry.keys)
            symbols.update(own)
            continue
        raws = {name: SX.sym(name, *shape) for name, shape in zip(raw_names(entry), _raw_shapes(entry), strict=True)}
        value = entry.module.symbolic(*raws.values())  # type: ignore[operator]
        parts = value if isinstance(value, tuple) else (value,)
        params = params.replace({key: _rows(x, KINDS[key[0]][1]) for key, x in zip(entry.keys, parts, strict=True)})
        symbols.update(raws)
    return params, symbols


def raw_names(entry: Learnable) -> list[str]:
    """Return the names of the kernel inputs for a folded module's raw tensors."""
    count = len(entry.module.raws())  # type: ignore[operator]
    return [f"raw{k}:{entry.parameter}:{entry.owner}".rstrip(":") for k in range(count)]


def _raw_shapes(entry: Learnable) -> list[tuple[int, int]]:
    raws = entry.module.raws()  # type: ignore[operator]
    return [tuple(t.shape) if t.dim() == 2 else (t.numel(), 1) for t in raws]


def _rows(x: SX, shape: tuple[int, int]) -> SX:
    """Return x in another shape, read row by row as tensors are."""
    x = SX(x)
    return x if x.shape == shape else ca.reshape(ca.vec(x.T), shape[1], shape[0]).T
