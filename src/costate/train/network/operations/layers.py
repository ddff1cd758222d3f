"""Layers with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from costate.train.network.builder import Builder, Operand, UnsupportedError, Value
from costate.train.network.formula import Formula
from costate.train.network.operations.axes import chunk, squeeze
from costate.train.network.operations.elementwise import SIGMOID, Row
from costate.train.network.operations.sums import mean


def linear(b: Builder, x: Operand, weight: Operand, bias: Operand | None = None) -> Value:
    """Add x W^T + b."""
    if not isinstance(x, Value) or not isinstance(weight, torch.Tensor):
        raise UnsupportedError("a linear layer whose weights depend on the input")
    return b.linear(x, weight, bias)


def matmul(b: Builder, x: Operand, y: Operand) -> Value:
    """Add a product with a constant matrix, or of two values."""
    if isinstance(x, Value) and isinstance(y, torch.Tensor) and y.dim() == 2:
        return b.linear(x, y.T.contiguous())
    if isinstance(x, Value) and isinstance(y, torch.Tensor) and y.dim() == 1:
        return squeeze(b, b.linear(x, y[None]), -1)
    if isinstance(x, Value) and isinstance(y, Value) and x.rank >= 2 and y.rank >= 2:
        return b.matmul(x, y)
    raise UnsupportedError("a product other than of values with constant matrices, or of batches of matrices")


def addmm(b: Builder, bias: Operand, x: Operand, y: Operand, beta: float = 1, alpha: float = 1) -> Value:
    """Add beta bias + alpha x y."""
    product = b.pointwise(("mul", "x", "y"), matmul(b, x, y), alpha) if alpha != 1 else matmul(b, x, y)
    return b.pointwise(("add", "x", ("mul", "y", float(beta))), product, bias)


def layer_norm(
    b: Builder, x: Value, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
):
    """Add (x - mean) / sqrt(variance + eps) * weight + bias."""
    axes = range(-len(shape), 0)
    centred = b.pointwise(("sub", "x", "y"), x, mean(b, x, axes, True))
    variance = mean(b, b.pointwise(("mul", "x", "x"), centred), axes, True)
    return affine(b, b.pointwise(("div", "x", ("sqrt", ("add", "y", float(eps)))), centred, variance), weight, bias)


def rms_norm(b: Builder, x: Value, shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Value:
    """Add x / sqrt(mean(x^2) + eps) * weight."""
    square = mean(b, b.pointwise(("mul", "x", "x"), x), range(-len(shape), 0), True)
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    return affine(b, b.pointwise(("div", "x", ("sqrt", ("add", "y", float(eps)))), x, square), weight, None)


def affine(b: Builder, x: Value, weight: Any, bias: Any) -> Value:
    """Add x * weight + bias, where there are any."""
    for formula, constant in ((("mul", "x", "y"), weight), (("add", "x", "y"), bias)):
        x = x if constant is None else b.pointwise(formula, x, constant)
    return x


def batch_norm(b: Builder, x: Value, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> Value:
    """Add normalisation with running statistics: one factor and one offset per channel."""
    if mean is None:
        raise UnsupportedError("batch normalisation without running statistics (track_running_stats=False)")
    gain = (variance.double() + eps).rsqrt() * (1.0 if weight is None else weight.double())
    offset = (0.0 if bias is None else bias.double()) - mean.double() * gain
    shape = (-1, *(1,) * (x.rank - 1))
    return b.pointwise(("add", ("mul", "x", "y"), "z"), x, gain.reshape(shape), offset.reshape(shape))


def gru_cell(b: Builder, x: Value, h: Operand, *weights: Any) -> Value:
    """Add a step of a GRU."""
    h = b.everywhere(h, x)
    from_x, from_h = gates(b, x, h, weights, 3)
    r, z = (b.pointwise(of_sum(SIGMOID), from_x[k], from_h[k]) for k in (0, 1))
    n = b.pointwise(("tanh", ("add", "x", ("mul", "y", "z"))), from_x[2], r, from_h[2])
    return b.pointwise(("add", "x", ("mul", "y", ("sub", "z", "x"))), n, z, h)


def lstm_cell(b: Builder, x: Value, memory: Sequence[Operand], *weights: Any) -> list[Value]:
    """Add a step of an LSTM."""
    h, c = (b.everywhere(m, x) for m in memory)
    from_x, from_h = gates(b, x, h, weights, 4)
    i, f, o = (b.pointwise(of_sum(SIGMOID), from_x[k], from_h[k]) for k in (0, 1, 3))
    g = b.pointwise(("tanh", ("add", "x", "y")), from_x[2], from_h[2])
    c = b.pointwise(("add", ("mul", "x", "y"), ("mul", "z", "w")), f, c, i, g)
    return [b.pointwise(("mul", "x", ("tanh", "y")), o, c), c]


def rnn_cell(formula: Formula) -> Row:
    """Return the row of a plain recurrent cell."""

    def row(b: Builder, x: Value, h: Operand, *weights: Any) -> Value:
        from_x, from_h = gates(b, x, b.everywhere(h, x), weights, 1)
        return b.pointwise(of_sum(formula), from_x[0], from_h[0])

    return row


def gates(b: Builder, x: Value, h: Value, weights: Sequence[Any], count: int) -> tuple[list[Value], list[Value]]:
    """Add the linear parts of a recurrent cell, from the input and from its memory."""
    into, again, *biases = weights
    first, second = biases if biases else (None, None)
    return chunk(b, b.linear(x, into, first), count, -1), chunk(b, b.linear(h, again, second), count, -1)


def of_sum(formula: Formula) -> Formula:
    """Return a formula of x as one of x + y."""
    if formula == "x":
        return ("add", "x", "y")
    return tuple(of_sum(p) for p in formula) if isinstance(formula, tuple) else formula
