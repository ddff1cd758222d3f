"""The computations that networks are made of: what each is in NumPy, in C and in an ONNX file. A new one is a row and a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np

from costate.train.network.formula import LETTERS, OPERATIONS, in_c, in_numpy, in_onnx
from costate.train.network.graph import Shape, Step

Shapes = Mapping[str, Shape]


class Nodes(Protocol):
    """An ONNX graph in the making."""

    def add(self, operator: str, inputs: Sequence[str], out: str, **attributes: Any) -> str: ...
    def number(self, value: float) -> str: ...
    def integers(self, values: Sequence[int]) -> str: ...


class Names(Protocol):
    """The C expression of an element of a value or constant."""

    def __call__(self, name: str, index: str) -> str: ...


@dataclass(frozen=True)
class Primitive:
    """A kind of step."""

    numpy: Callable[[Step, Shapes], Callable[..., Any]]
    """Function (step, shapes) that returns the function of arrays with any leading dimensions."""
    c: Callable[[Step, Shapes, Names], str]
    """Function (step, shapes, names) that returns the statements, in which i, j and k are integers."""
    onnx: Callable[[Step, Shapes, Nodes], Any]
    """Function (step, shapes, nodes) that adds the nodes."""


# --- elementwise -------------------------------------------------------------------------------------------------------


def _pointwise_c(s: Step, shapes: Shapes, at: Names) -> str:
    given = {letter: at(n, _spread(shapes[n], s.shape)) for letter, n in zip(LETTERS, s.inputs, strict=False)}
    return f"for (i = 0; i < {prod(s.shape)}; ++i) {at(s.out, 'i')} = {in_c(s.options['formula'], given)};"


def _pointwise_onnx(s: Step, shapes: Shapes, g: Nodes) -> None:
    given = dict(zip(LETTERS, s.inputs, strict=False))
    nodes, _ = in_onnx(s.options["formula"], given, s.out, g.number)
    for operator, inputs, out in nodes:
        g.add(operator, inputs, out)


def _spread(shape: Shape, to: Shape, index: str = "i") -> str:
    """Return the index, in C, of an element of an array that is broadcast, from the index of the result."""
    shape, whole = (1,) * (len(to) - len(shape)) + tuple(shape), prod(to)
    while shape and shape[0] == 1:
        shape, to = shape[1:], to[1:]
    if not shape:
        return "0" if whole > 1 else index
    if shape == tuple(to):
        return index if prod(to) == whole else f"{index} % {prod(to)}"
    parts = [
        f"{index} / {prod(to[d + 1 :])} % {to[d]} * {prod(shape[d + 1 :])}" for d in range(len(to)) if shape[d] != 1
    ]
    return " + ".join(parts) or "0"


# --- sums of products --------------------------------------------------------------------------------------------------


def _linear_numpy(s: Step, shapes: Shapes) -> Callable[..., Any]:
    if len(s.inputs) == 2:
        return lambda x, weight: x @ weight.T

    def affine(x: Any, weight: Any, bias: Any) -> Any:
        y = x @ weight.T
        y += bias
        return y

    return affine


LINEAR = """\
for (j = 0; j < {count}; ++j) {{
    /* Eight sums side by side: less rounding than one long one, and they fit vector units. */
    COSTATE_REAL part[8] = {{0}};
    for (i = 0; i < {columns}; ++i) part[i & 7] += {weight} * {x};
    {out} = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])){bias};
  }}"""


def _linear_c(s: Step, shapes: Shapes, at: Names) -> str:
    rows, columns = shapes[s.inputs[1]]
    row = "j" if prod(s.shape) == rows else f"(j % {rows})"
    lead = "" if row == "j" else f"j / {rows} * {columns} + "
    return LINEAR.format(
        count=prod(s.shape),
        columns=columns,
        weight=at(s.inputs[1], f"{row} * {columns} + i"),
        x=at(s.inputs[0], f"{lead}i"),
        out=at(s.out, "j"),
        bias=f" + {at(s.inputs[2], row)}" if len(s.inputs) == 3 else "",
    )


def _linear_onnx(s: Step, shapes: Shapes, g: Nodes) -> None:
    if len(s.shape) == 1:
        g.add("Gemm", s.inputs, s.out, transB=1)
        return
    across = g.add("Transpose", [s.inputs[1]], f"{s.out}.across", perm=[1, 0])
    last = s.out if len(s.inputs) == 2 else f"{s.out}.product"
    g.add("MatMul", [s.inputs[0], across], last)
    if len(s.inputs) == 3:
        g.add("Add", [last, s.inputs[2]], s.out)


MATMUL = """\
for (j = 0; j < {count}; ++j) {{
    COSTATE_REAL sum = 0;
    for (i = 0; i < {inner}; ++i) sum += {x} * {y};
    {out} = sum;
  }}"""


def _matmul_c(s: Step, shapes: Shapes, at: Names) -> str:
    inner = shapes[s.inputs[0]][-1]
    rows, columns = s.shape[-2:]
    return MATMUL.format(
        count=prod(s.shape),
        inner=inner,
        x=at(s.inputs[0], f"j / {columns} * {inner} + i"),
        y=at(s.inputs[1], f"j / {rows * columns} * {inner * columns} + i * {columns} + j % {columns}"),
        out=at(s.out, "j"),
    )


# --- over one axis -----------------------------------------------------------------------------------------------------

REDUCTIONS = {
    "sum": ("add", np.sum, "ReduceSum"),
    "max": ("max", np.max, "ReduceMax"),
    "min": ("min", np.min, "ReduceMin"),
}
"""Reduction -> the operation it repeats, its function in NumPy, its operator in ONNX."""


def _reduce_numpy(s: Step, shapes: Shapes) -> Callable[..., Any]:
    function, axis, keep = REDUCTIONS[s.options["by"]][1], s.options["axis"], s.options["keep"]
    return lambda x: function(x, axis=axis, keepdims=keep)


def _reduce_c(s: Step, shapes: Shapes, at: Names) -> str:
    shape, axis = shapes[s.inputs[0]], s.options["axis"]
    n, inner = shape[axis], prod(shape[axis:][1:])
    first = "j" if inner == 1 and n == 1 else f"j / {inner} * {n * inner} + j % {inner}"
    step = OPERATIONS[REDUCTIONS[s.options["by"]][0]][2].format("all", at(s.inputs[0], f"{first} + i * {inner}"))
    return (
        f"for (j = 0; j < {prod(s.shape)}; ++j) {{\n    COSTATE_REAL all = {at(s.inputs[0], first)};\n"
        f"    for (i = 1; i < {n}; ++i) all = {step};\n    {at(s.out, 'j')} = all;\n  }}"
    )


def _reduce_onnx(s: Step, shapes: Shapes, g: Nodes) -> None:
    operator, axis, keep = REDUCTIONS[s.options["by"]][2], s.options["axis"], int(s.options["keep"])
    if operator == "ReduceSum":  # since opset 13 its axes are an input
        g.add(operator, [s.inputs[0], g.integers([axis])], s.out, keepdims=keep)
    else:
        g.add(operator, s.inputs, s.out, axes=[axis], keepdims=keep)


def _join_c(s: Step, shapes: Shapes, at: Names) -> str:
    axis, lines, offset = s.options["axis"], [], 0
    inner, whole = prod(s.shape[axis:][1:]), s.shape[axis]
    for name in s.inputs:
        n = shapes[name][axis]
        place = f"i / {n * inner} * {whole * inner} + {offset * inner} + i % {n * inner}"
        lines.append(f"for (i = 0; i < {prod(shapes[name])}; ++i) {at(s.out, place)} = {at(name, 'i')};")
        offset += n
    return "\n  ".join(lines)


def _take_c(s: Step, shapes: Shapes, at: Names) -> str:
    axis, indices = s.options["axis"], s.options["indices"]
    inner, n, count = prod(s.shape[axis:][1:]), shapes[s.inputs[0]][axis], len(indices)
    steps = {b - a for a, b in pairwise(indices)}
    number, table = f"i / {inner} % {count}", ""
    if len(steps) <= 1:
        chosen = f"({indices[0]} + {number} * {steps.pop() if steps else 1})"
    else:
        table, chosen = f"static const int taken[{count}] = {{{', '.join(map(str, indices))}}};\n  ", f"taken[{number}]"
    place = f"(i / {count * inner} * {n} + {chosen}) * {inner} + i % {inner}"
    return f"{table}for (i = 0; i < {prod(s.shape)}; ++i) {at(s.out, 'i')} = {at(s.inputs[0], place)};"


# --- shapes ------------------------------------------------------------------------------------------------------------


def _reshape_numpy(s: Step, shapes: Shapes) -> Callable[..., Any]:
    rank = len(shapes[s.inputs[0]])
    return lambda x: x.reshape(x.shape[: x.ndim - rank] + s.shape)


def _permute_numpy(s: Step, shapes: Shapes) -> Callable[..., Any]:
    axes = s.options["axes"]
    return lambda x: x.transpose((*range(x.ndim - len(axes)), *(x.ndim + a for a in axes)))


def _permute_c(s: Step, shapes: Shapes, at: Names) -> str:
    shape = shapes[s.inputs[0]]
    strides = [prod(shape[a:][1:]) for a in s.options["axes"]]
    parts = [f"i / {prod(s.shape[d + 1 :])} % {s.shape[d]} * {strides[d]}" for d in range(len(s.shape))]
    return f"for (i = 0; i < {prod(s.shape)}; ++i) {at(s.out, 'i')} = {at(s.inputs[0], ' + '.join(parts))};"


def _permute_onnx(s: Step, shapes: Shapes, g: Nodes) -> None:
    rank = len(s.shape)
    g.add("Transpose", s.inputs, s.out, perm=[0, *(1 + rank + a for a in s.options["axes"])])


def _expand_numpy(s: Step, shapes: Shapes) -> Callable[..., Any]:
    rank = len(shapes[s.inputs[0]])
    return lambda x: np.broadcast_to(x, x.shape[: x.ndim - rank] + s.shape)


def _expand_c(s: Step, shapes: Shapes, at: Names) -> str:
    place = _spread(shapes[s.inputs[-1]], s.shape)
    return f"for (i = 0; i < {prod(s.shape)}; ++i) {at(s.out, 'i')} = {at(s.inputs[-1], place)};"


def _constant_numpy(s: Step, shapes: Shapes) -> Callable[..., Any]:
    rank = len(shapes[s.inputs[0]])
    return lambda x, c: np.broadcast_to(c, x.shape[: x.ndim - rank] + s.shape)


def _constant_onnx(s: Step, shapes: Shapes, g: Nodes) -> None:
    """Add the nodes that repeat a constant for each sample of another value."""
    size = g.add("Shape", [s.inputs[0]], f"{s.out}.size", start=0, end=1)
    whole = g.add("Concat", [size, g.integers(s.shape)], f"{s.out}.whole", axis=0) if s.shape else size
    g.add("Expand", [s.inputs[1], whole], s.out)


PRIMITIVES: dict[str, Primitive] = {
    # A formula of up to four arrays, which are broadcast.
    "pointwise": Primitive(lambda s, shapes: in_numpy(s.options["formula"]), _pointwise_c, _pointwise_onnx),
    # x W^T + b with constant weights (rows, columns), along the last axis.
    "linear": Primitive(_linear_numpy, _linear_c, _linear_onnx),
    # Products of matrices, both of them values.
    "matmul": Primitive(lambda s, shapes: np.matmul, _matmul_c, lambda s, shapes, g: g.add("MatMul", s.inputs, s.out)),
    # Sum, maximum or minimum along an axis; axes count from the end.
    "reduce": Primitive(_reduce_numpy, _reduce_c, _reduce_onnx),
    # Values one behind the other along an axis.
    "join": Primitive(
        lambda s, shapes: lambda *x: np.concatenate(x, axis=s.options["axis"]),
        _join_c,
        lambda s, shapes, g: g.add("Concat", s.inputs, s.out, axis=s.options["axis"]),
    ),
    # Entries along an axis, by number.
    "take": Primitive(
        lambda s, shapes: lambda x: np.take(x, s.options["indices"], axis=s.options["axis"]),
        _take_c,
        lambda s, shapes, g: g.add(
            "Gather", [s.inputs[0], g.integers(s.options["indices"])], s.out, axis=s.options["axis"]
        ),
    ),
    "reshape": Primitive(
        _reshape_numpy,
        lambda s, shapes, at: "",  # the same numbers, in the same order
        lambda s, shapes, g: g.add("Reshape", [s.inputs[0], g.integers([0, *s.shape])], s.out),
    ),
    "permute": Primitive(_permute_numpy, _permute_c, _permute_onnx),
    # A value broadcast to a larger shape.
    "expand": Primitive(
        _expand_numpy,
        _expand_c,
        lambda s, shapes, g: g.add("Expand", [s.inputs[0], g.integers([1, *s.shape])], s.out),
    ),
    # A constant, once for each sample of another value.
    "constant": Primitive(_constant_numpy, _expand_c, _constant_onnx),
}
