"""A graph in the making: the steps that rows of the table of operations (`operations.py`) are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from costate.train.network.formula import Formula
from costate.train.network.graph import Graph, Shape, Step


@dataclass(frozen=True)
class Value:
    """A value of the graph: it depends on the inputs, and there is one for each sample."""

    name: str
    """Name in the graph."""
    shape: Shape
    """Shape for one sample."""

    @property
    def rank(self) -> int:
        """Number of axes of one sample."""
        return len(self.shape)


Operand = Value | torch.Tensor | float
"""Argument of an operation: a value, or a constant."""


class UnsupportedError(ValueError):
    """Something that has no NumPy, ONNX and C form."""


class Builder:
    """Adds steps, and keeps constants. Axes are those of one sample, counted from the end."""

    def __init__(self, batch: int = 0):
        self.batch = batch
        """Size that stands for the batch in shapes of torch."""
        self.steps: list[Step] = []
        self.constants: dict[str, np.ndarray] = {}
        self._known: dict[int, tuple[str, torch.Tensor]] = {}

    def graph(self, inputs: Sequence[Value], outputs: Sequence[Operand]) -> Graph:
        """Return the graph, without steps that nothing needs."""
        names = tuple(self.everywhere(v, inputs[0]).name for v in outputs)
        needed, kept = set(names), []
        for step in reversed(self.steps):
            if step.out in needed:
                kept.append(step)
                needed.update(step.inputs)
        constants = {name: c for name, c in self.constants.items() if name in needed}
        made = Graph(tuple((v.name, prod(v.shape)) for v in inputs), tuple(kept[::-1]), names, constants)
        made.check()  # what is written can be read
        return made

    def step(self, kind: str, inputs: Sequence[str], shape: Sequence[int], **options: Any) -> Value:
        """Add a step."""
        out = f"v{len(self.steps)}"
        self.steps.append(Step(kind, tuple(inputs), out, tuple(shape), options))
        return Value(out, tuple(shape))

    def constant(self, value: torch.Tensor | float, name: str = "") -> str:
        """Keep a constant, and return its name."""
        if isinstance(value, torch.Tensor) and id(value) in self._known:
            return self._known[id(value)][0]
        tensor = torch.as_tensor(value).detach().to(torch.float64)
        name = name or f"c{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(tensor.cpu().numpy()).reshape(tuple(tensor.shape))
        if isinstance(value, torch.Tensor):
            self._known[id(value)] = name, value
        return name

    # --- elementwise ----------------------------------------------------------------------------------------------

    def pointwise(self, formula: Formula, *operands: Operand) -> Value:
        """Add a formula of operands that are broadcast."""
        rank = max(v.rank for v in operands if isinstance(v, Value))
        parts = [v if isinstance(v, Value) else self.one_sample(v, rank) for v in operands]
        shape = torch.broadcast_shapes(*(tuple(p.shape) for p in parts))
        names = [p.name if isinstance(p, Value) else self.constant(p) for p in parts]
        return self.step("pointwise", names, shape, formula=formula)

    def one_sample(self, constant: Any, rank: int) -> torch.Tensor:
        """Return a constant without the batch, which it may have repeated."""
        tensor = constant if isinstance(constant, torch.Tensor) else torch.tensor(float(constant), dtype=torch.float64)
        if tensor.dim() <= rank:
            return tensor
        if tensor.dim() == rank + 1 and bool((tensor == tensor[:1]).all()):
            return tensor[0]
        raise UnsupportedError(f"a constant of shape {tuple(tensor.shape)} that differs from sample to sample")

    def everywhere(self, operand: Operand, like: Value, rank: int | None = None) -> Value:
        """Return a value: itself, or a constant repeated for each sample of another value."""
        if isinstance(operand, Value):
            return operand
        constant = self.one_sample(operand, like.rank if rank is None else rank)
        return self.step("constant", [like.name, self.constant(constant)], constant.shape)

    # --- sums of products -----------------------------------------------------------------------------------------

    def linear(self, x: Value, weight: torch.Tensor, bias: Operand | None = None) -> Value:
        """Add x W^T + b."""
        names = [x.name, self.constant(weight)]
        if isinstance(bias, torch.Tensor) and bias.dim() == 1:
            return self.step("linear", [*names, self.constant(bias)], (*x.shape[:-1], weight.shape[0]))
        y = self.step("linear", names, (*x.shape[:-1], weight.shape[0]))
        return y if bias is None else self.pointwise(("add", "x", "y"), y, bias)

    def matmul(self, x: Value, y: Value) -> Value:
        """Add the product of matrices."""
        lead = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        x, y = (self.expand(v, (*lead, *v.shape[-2:])) for v in (x, y))
        return self.step("matmul", [x.name, y.name], (*lead, x.shape[-2], y.shape[-1]))

    # --- axes -----------------------------------------------------------------------------------------------------

    def reduce(self, x: Value, by: str, axes: Sequence[int], keep: bool = False) -> Value:
        """Add the sum, maximum or minimum over axes."""
        for axis in sorted(axes):  # from the first one, so that others keep their number from the end
            x = self.step("reduce", [x.name], _with(x.shape, axis, 1), by=by, axis=axis, keep=True)
        if keep:
            return x
        left = [n for d, n in enumerate(x.shape) if d - x.rank not in axes]
        return self.reshape(x, left)

    def take(self, x: Value, axis: int, indices: Sequence[int]) -> Value:
        """Add the entries of an axis that have these numbers."""
        if list(indices) == list(range(x.shape[axis])):
            return x
        if not indices:
            raise UnsupportedError("an empty slice")
        return self.step("take", [x.name], _with(x.shape, axis, len(indices)), axis=axis, indices=list(indices))

    def join(self, parts: Sequence[Value], axis: int) -> Value:
        """Add values one behind the other."""
        total = sum(p.shape[axis] for p in parts)
        return self.step("join", [p.name for p in parts], _with(parts[0].shape, axis, total), axis=axis)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Add another shape of the same numbers; one of its sizes may be -1."""
        if -1 in shape:
            shape = [prod(x.shape) // -prod(shape) if n == -1 else n for n in shape]
        return x if tuple(shape) == x.shape else self.step("reshape", [x.name], shape)

    def permute(self, x: Value, axes: Sequence[int]) -> Value:
        """Add the same numbers with another order of axes."""
        return self.step("permute", [x.name], [x.shape[a] for a in axes], axes=list(axes))

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """Add a value that is repeated along axes of size one, and along new axes."""
        return x if tuple(shape) == x.shape else self.step("expand", [x.name], shape)


def _with(shape: Shape, axis: int, size: int) -> Shape:
    changed = list(shape)
    changed[axis] = size
    return tuple(changed)
