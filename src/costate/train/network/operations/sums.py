"""Sums, means, extremes and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from costate.train.network.builder import Builder, UnsupportedError, Value
from costate.train.network.operations.axes import axes_of, axis_of, squeeze
from costate.train.network.operations.elementwise import Row


def total(b: Builder, x: Value, dims: Any = None, keep: bool = False, dtype: Any = None) -> Value:
    """Add the sum."""
    return b.reduce(x, "sum", axes_of(x, dims), keep)


def mean(b: Builder, x: Value, dims: Any = None, keep: bool = False, dtype: Any = None) -> Value:
    """Add the mean."""
    return b.pointwise(("div", "x", "y"), b.reduce(x, "sum", axes_of(x, dims), keep), count(x, axes_of(x, dims)))


def count(x: Value, axes: Sequence[int]) -> float:
    """Return the number of entries of axes."""
    return float(prod(x.shape[a] for a in axes))


def extreme(by: str) -> Row:
    """Return the row of amax, or of amin."""
    return lambda b, x, dims=None, keep=False: b.reduce(x, by, axes_of(x, dims), keep)


def largest(by: str) -> Row:
    """Return the row of max, or of min: of two tensors, or along a dimension."""

    def row(b: Builder, x: Value, other: Any = None, keep: bool = False) -> Any:
        if isinstance(other, int | None) and not isinstance(other, bool):
            return [b.reduce(x, by, axes_of(x, other), keep), None]  # where it is, nobody may ask
        return b.pointwise((by, "x", "y"), x, other)

    return row


def variance(b: Builder, x: Value, dims: Any = None, correction: Any = None, keep: bool = False) -> Value:
    """Add the variance."""
    axes = axes_of(x, dims)
    centred = b.pointwise(("sub", "x", "y"), x, mean(b, x, axes, True))
    total = b.reduce(b.pointwise(("mul", "x", "x"), centred), "sum", axes, keep)
    return b.pointwise(("div", "x", "y"), total, count(x, axes) - (1 if correction is None else correction))


def deviation(b: Builder, *arguments: Any) -> Value:
    """Add the standard deviation."""
    return b.pointwise(("sqrt", "x"), variance(b, *arguments))


def norm(b: Builder, x: Value, order: Any = 2, dims: Any = None, keep: bool = False, dtype: Any = None) -> Value:
    """Add a norm of vectors."""
    axes, order = axes_of(x, dims), float(2 if order is None else order)
    if order == 2:
        return b.pointwise(("sqrt", "x"), b.reduce(b.pointwise(("mul", "x", "x"), x), "sum", axes, keep))
    if order in (1.0, float("inf")):
        return b.reduce(b.pointwise(("abs", "x"), x), "sum" if order == 1 else "max", axes, keep)
    raise UnsupportedError(f"a norm of order {order:g}; 1, 2 and inf are known")


def logsumexp(b: Builder, x: Value, dims: Any, keep: bool = False) -> Value:
    """Add log(sum(exp(x))), without overflow."""
    axes = axes_of(x, dims)
    top = b.reduce(x, "max", axes, True)
    total = b.reduce(b.pointwise(("exp", ("sub", "x", "y")), x, top), "sum", axes, True)
    whole = b.pointwise(("add", "x", ("log", "y")), top, total)
    return whole if keep else squeeze(b, whole, axes)


def softmax(b: Builder, x: Value, dim: int, *_: Any) -> Value:
    """Add exp(x) / sum(exp(x)), without overflow."""
    axis = axis_of(x, dim)
    raised = b.pointwise(("exp", ("sub", "x", "y")), x, b.reduce(x, "max", [axis], True))
    return b.pointwise(("div", "x", "y"), raised, b.reduce(raised, "sum", [axis], True))


def log_softmax(b: Builder, x: Value, dim: int, *_: Any) -> Value:
    """Add the logarithm of softmax."""
    return b.pointwise(("sub", "x", "y"), x, logsumexp(b, x, dim, True))
