"""Number types: one rule for the arguments of every function (docs/conventions.md).

Arguments of different number types are promoted as torch promotes: float32 with float64 is float64, integers with floats are
floats. Python numbers, lists of them and tensors without dimensions take the type of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

KINDS = (torch.float32, torch.float64)
"""Number types that kernels compute in."""


def promoted(values: Sequence[Any], default: torch.dtype | None = None) -> list[Any]:
    """Return tensors, arrays, lists and numbers as tensors of one floating-point type. What is none of these, or complex, stays.

    default: type where no value has one; None: torch's default.
    """
    if alike(values):
        return list(values)
    tensors = [as_tensor(x) for x in values]
    kind = number_type(values, default)
    return [x.to(kind) if isinstance(x, Tensor) and not x.is_complex() else x for x in tensors]


def alike(values: Sequence[Any]) -> bool:
    """Return whether values are tensors of one floating-point type: whether nothing is to be promoted."""
    kind = None
    for x in values:
        if not isinstance(x, Tensor) or (kind is not None and x.dtype is not kind):
            return False
        kind = x.dtype
    return kind is None or kind.is_floating_point


def number_type(values: Sequence[Any], default: torch.dtype | None = None) -> torch.dtype:
    """Return the floating-point type that values are promoted to."""
    wide, weak = [], []
    for x in values:
        kind = getattr(x, "dtype", None)
        if kind is not None and not isinstance(kind, torch.dtype):
            kind = getattr(as_tensor(x), "dtype", None)
        if isinstance(kind, torch.dtype) and not kind.is_complex:
            (wide if x.ndim else weak).append(kind)
    for kinds in (wide, weak):
        found = reduce(torch.promote_types, kinds) if kinds else torch.bool
        if found.is_floating_point:
            return found
    return torch.get_default_dtype() if default is None else default


def as_tensor(value: Any) -> Any:
    """Return a tensor of an array, a number or lists of them (float64); other things as they are.

    Arrays are copied, and the tensors inside of a list keep their gradients.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, list | tuple) and any(isinstance(x, Tensor) for x in value):
        parts = [as_tensor(x) for x in value]
        fits = all(isinstance(x, Tensor) and x.shape == parts[0].shape for x in parts)
        return torch.stack(promoted(parts)) if fits else value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # lists of different lengths, tensors deeper inside
        return value
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        return value
    kind = array.dtype.newbyteorder("=") if hasattr(value, "dtype") else np.float64
    return torch.from_numpy(np.array(array, kind, order="C", copy=True))


def checked_dtype(kind: Any) -> torch.dtype:
    """Return a number type that kernels compute in; raise an error for any other."""
    if kind not in KINDS:
        raise TypeError(f"{kind} is no number type of Costate; expected torch.float32 or torch.float64")
    return kind


class Typed:
    """Something that makes tensors, and can be moved to a number type as an nn.Module can."""

    _moved: torch.dtype | None = None
    """Number type that it was moved to."""

    def _modules_inside(self) -> Iterable[nn.Module]:
        """Return the modules that are moved with it; they may have been moved themselves (`_moved`)."""
        return ()

    @property
    def dtype(self) -> torch.dtype:
        """Number type of the tensors that it makes: the one that it, or what is inside, was moved to; else torch's default."""
        inside: list[torch.dtype] = [kind for m in self._modules_inside() if (kind := getattr(m, "_moved", None))]
        return self._moved or (reduce(torch.promote_types, inside) if inside else torch.get_default_dtype())

    def to(self, dtype: torch.dtype) -> Self:
        """Move it, and the learnable parameters inside, to a number type: torch.float32 or torch.float64."""
        self._moved = checked_dtype(dtype)
        for module in self._modules_inside():
            module.to(dtype)
        return self

    def float(self) -> Self:
        """Move it to float32."""
        return self.to(torch.float32)

    def double(self) -> Self:
        """Move it to float64."""
        return self.to(torch.float64)
