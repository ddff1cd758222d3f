"""Signatures: names and shapes of a kernel's inputs and outputs, and what is said when they don't fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from costate.core.names import did_you_mean
from costate.kernel.ir.program import DYNAMIC

DTYPE_NAMES = {torch.float64: "f64", torch.float32: "f32"}


@dataclass(frozen=True)
class Spec:
    """One named input or output, without its batch dimensions."""

    name: str
    shape: tuple[int, ...]
    """Shape (n,), or (rows, n) for a matrix or a sequence."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def is_dynamic(self) -> bool:
        """True if the number of rows is only known when the kernel is called."""
        return self.shape[0] >= DYNAMIC // 2

    def sized(self, length: int) -> Spec:
        """Return the same with a length for dynamic sequences."""
        return Spec(self.name, (self.shape[0] - DYNAMIC + length, *self.shape[1:])) if self.is_dynamic else self

    @property
    def rows(self) -> tuple[int, int]:
        """Number of rows, and of numbers per row."""
        return (1, self.shape[0]) if len(self.shape) == 1 else (self.shape[0], self.shape[1])

    def __str__(self) -> str:
        return f"{self.name} (..., {', '.join(map(str, self.shape))})"


@dataclass(frozen=True)
class Signature:
    """Names and shapes of a kernel's inputs and outputs."""

    name: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))}) -> {', '.join(map(str, self.outputs))}"

    @property
    def is_dynamic(self) -> bool:
        """True if the length of its sequences is only known when it is called."""
        return any(s.is_dynamic for s in (*self.inputs, *self.outputs))

    def sized(self, length: int) -> Signature:
        """Return the same with a length for dynamic sequences."""
        inputs, outputs = (tuple(s.sized(length) for s in specs) for specs in (self.inputs, self.outputs))
        return Signature(self.name, inputs, outputs)

    def index(self, specs: Sequence[Spec], name: str, role: str) -> int:
        """Return the position of a name; raise if there is none."""
        for k, s in enumerate(specs):
            if s.name == name:
                return k
        names = [s.name for s in specs]
        raise ValueError(f"kernel '{self.name}' has no {role} '{name}'{_close(name, names)}; it has {', '.join(names)}")

    def positions(self, specs: Sequence[Spec], names: str | Sequence[str] | None, role: str) -> tuple[int, ...]:
        """Return the indices of named inputs or outputs, in their own order; all of them for None."""
        if names is None:
            return tuple(range(len(specs)))
        chosen = [names] if isinstance(names, str) else list(names)
        return tuple(sorted(self.index(specs, n, role) for n in chosen))

    def pick(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the inputs in order, by name."""
        try:
            if len(given) == len(self.inputs):
                return [given[s.name] for s in self.inputs]
        except KeyError:
            pass
        names = [s.name for s in self.inputs]
        for name in given:
            if name not in names:
                raise TypeError(f"kernel '{self.name}' has no input '{name}'{_close(name, names)}; it takes {self}")
        missing = [n for n in names if n not in given]
        raise TypeError(f"kernel '{self.name}' needs input {', '.join(missing)} as well; it takes {self}")

    def with_numbers(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the tensors, with (1,) for a number () where that is expected."""
        return [
            t.reshape(1) if s.shape == (1,) and isinstance(t, torch.Tensor) and not t.dim() else t
            for s, t in zip(self.inputs, tensors, strict=True)
        ]

    def check_tensors(self, values: Sequence[Any]) -> None:
        """Raise if one of the values, for the first inputs, is no tensor."""
        for spec, x in zip(self.inputs, values, strict=False):
            if not isinstance(x, torch.Tensor):
                raise TypeError(
                    f"kernel '{self.name}': input '{spec.name}' is a {type(x).__name__}; expected a torch tensor, or an "
                    "array or list of numbers"
                )

    def check(self, tensors: Sequence[torch.Tensor]) -> torch.dtype:
        """Raise if a tensor does not fit; returns the number type all share."""
        self.check_tensors(tensors)
        for spec, t in zip(self.inputs, tensors, strict=True):
            if t.device.type != "cpu":
                raise ValueError(
                    f"kernel '{self.name}': input '{spec.name}' is on {t.device}; kernels run on the CPU: pass {spec.name}.cpu()"
                )
            if t.layout is not torch.strided:
                layout = str(t.layout).removeprefix("torch.")
                raise TypeError(
                    f"kernel '{self.name}': input '{spec.name}' is a {layout} tensor; expected a dense one: "
                    f"pass {spec.name}.to_dense()"
                )
            if t.dtype not in DTYPE_NAMES:
                raise TypeError(
                    f"kernel '{self.name}': input '{spec.name}' is {t.dtype}; expected torch.float64 or torch.float32: "
                    f"pass {spec.name}.double()"
                )
            n = len(spec.shape)
            if t.dim() < n or tuple(t.shape[t.dim() - n :]) != spec.shape:
                raise ValueError(
                    f"kernel '{self.name}': input '{spec.name}' has shape {tuple(t.shape)}; expected {spec}, "
                    f"with any leading batch dimensions"
                )
        dtypes = {t.dtype for t in tensors}
        if len(dtypes) > 1:
            given = ", ".join(f"{s.name} {t.dtype}" for s, t in zip(self.inputs, tensors, strict=True))
            raise TypeError(
                f"kernel '{self.name}': all inputs must share one dtype, but got {given}: convert some with .to(...)"
            )
        return tensors[0].dtype

    def batch(self, tensors: Sequence[torch.Tensor]) -> torch.Size:
        """Return the leading dimensions that all tensors broadcast to."""
        leads = [t.shape[: t.dim() - len(s.shape)] for s, t in zip(self.inputs, tensors, strict=True)]
        if all(lead == leads[0] for lead in leads[1:]):
            return leads[0] if leads else torch.Size()
        try:  # torch.broadcast_shapes would import sympy, which takes longer than the first gradient
            return torch.Size(np.broadcast_shapes(*leads))
        except ValueError:
            given = ", ".join(f"{s.name} {tuple(lead)}" for s, lead in zip(self.inputs, leads, strict=True))
            raise ValueError(
                f"kernel '{self.name}': the leading batch dimensions don't broadcast: {given}; make them equal, or 1"
            ) from None


def _close(name: str, names: Sequence[str]) -> str:
    hint = did_you_mean(name, names)
    return f" ({hint})" if hint else ""
