"""Rules of a graph: which shape each kind of step gives, and which options it may have.

A graph may come from a file of unknown origin, and is then evaluated, and printed as C and ONNX. So nothing in it is taken as it
stands: every option is of the kind that its step needs and within the shapes it is about, every shape is the one that follows from
those before it, and the numbers that a sample takes, and the operations, have a limit.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.core.limits import excess
from costate.train.network.formula import LETTERS, OPERATIONS
from costate.train.network.graph import Graph, Shape, Step
from costate.train.network.primitives import REDUCTIONS

MOST_AXES = 16
"""Axes of a value."""
MOST_PARTS, DEEPEST = 1000, 50
"""Operations of one formula, and how deeply they are nested; those of our layers have ten."""
REUSED = 100
"""Operations that a network may have for each number of the limit: sums of products make few numbers of many."""


@dataclass(frozen=True)
class Operand:
    """Something that a step takes."""

    shape: Shape
    """Shape, for one sample."""
    varies: bool
    """True for a value, which each sample has its own of; False for a constant."""


def check_graph(graph: Graph) -> None:
    """Raise a ValueError that names the first step which no graph of ours has, before anything is evaluated."""
    known = {name: Operand(c.shape, False) for name, c in graph.constants.items()}
    numbers = work = 0
    for name, size in graph.inputs:
        _new(name, known)
        known[name] = Operand(_shape([size], f"input {name!r}"), True)
        numbers += size
    for s in graph.steps:
        where = f"step {s.out!r}"
        _new(s.out, known)
        given = [_present(known, name, where) for name in s.inputs]
        if s.kind not in RULES:
            raise ValueError(f"{where} is of kind {s.kind!r}, which is not known")
        try:
            shape, operations = RULES[s.kind](s, given)
        except ValueError as error:
            raise ValueError(f"{where}, {s.kind}: {error}") from None
        if _shape(s.shape, where) != shape:
            raise ValueError(f"{where} has the shape {s.shape}; its inputs give {shape}")
        known[s.out] = Operand(shape, True)
        numbers, work = numbers + math.prod(shape), work + math.prod(shape) * operations
        if over := excess("network_values", max(numbers, work / REUSED)):
            raise ValueError(f"{where}: {over}")
    for name in graph.outputs:
        if not _present(known, name, "the output").varies:
            raise ValueError(f"the output {name!r} is a constant")
    if not graph.outputs:
        raise ValueError("it has no outputs")


def _new(name: str, known: Mapping[str, Operand]) -> None:
    if name in known:
        raise ValueError(f"{name!r} is there twice")


def _present(known: Mapping[str, Operand], name: str, where: str) -> Operand:
    if name not in known:
        raise ValueError(f"{where} takes {name}, which is not there")
    return known[name]


def _shape(sizes: Sequence[Any], where: str) -> Shape:
    if len(sizes) > MOST_AXES or not all(_whole(n) and 1 <= n < 2**31 for n in sizes):
        raise ValueError(f"{where} has the shape {str(sizes)[:60]}; expected up to {MOST_AXES} whole numbers from 1 on")
    return tuple(sizes)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# --- what the rules ask for ---------------------------------------------------------------------------------------------


def _options(s: Step, *names: str) -> list[Any]:
    if set(s.options) != set(names):
        raise ValueError(f"has the options {sorted(map(str, s.options))}; expected {sorted(names)}")
    return [s.options[name] for name in names]


def _values(given: Sequence[Operand], count: int | None = 1, rank: int = 0) -> list[Shape]:
    """Return the shapes of operands that must be values: so many of them, with so many axes or more."""
    if (len(given) != count if count else not given) or not all(g.varies and len(g.shape) >= rank for g in given):
        raise ValueError(
            f"takes {len(given)} operands; expected {count or 'one or more'}, values with {rank} axes or more"
        )
    return [g.shape for g in given]


def _axis(axis: Any, shape: Shape) -> int:
    if not _whole(axis) or not -len(shape) <= axis < 0:
        raise ValueError(f"axis {str(axis)[:40]!r} of the shape {shape}; expected {-len(shape)} to -1")
    return axis


def _numbers(values: Any, low: int, high: int) -> list[int]:
    if not isinstance(values, list | tuple) or not values or not all(_whole(v) and low <= v < high for v in values):
        raise ValueError(f"{str(values)[:60]!r}; expected whole numbers from {low} to {high - 1}")
    return list(values)


def _with(shape: Shape, axis: int, *size: int) -> Shape:
    place = len(shape) + axis
    return (*shape[:place], *size, *shape[place + 1 :])


# --- the rules ----------------------------------------------------------------------------------------------------------

Found = tuple[Shape, float]
"""Shape of what a step gives, and operations for each number of it."""


def _pointwise(s: Step, given: Sequence[Operand]) -> Found:
    (formula,) = _options(s, "formula")
    parts = _parts(formula, len(given), 0)
    if parts > MOST_PARTS:
        raise ValueError(f"a formula of {parts} parts; expected {MOST_PARTS} at most")
    if unused := set(LETTERS[: len(given)]) - _letters(formula):
        raise ValueError(f"a formula without {', '.join(sorted(unused))}; expected one of all {len(given)} operands")
    shape = np.broadcast_shapes(*(g.shape for g in given))
    if not any(g.varies for g in given) or any(g.varies and len(g.shape) < len(shape) for g in given):
        raise ValueError(f"operands of the shapes {[g.shape for g in given]}; expected values with all axes")
    return shape, parts


def _parts(formula: Any, letters: int, depth: int) -> int:
    """Return the number of parts of a formula, each of which is known."""
    if isinstance(formula, str):
        if formula not in LETTERS[:letters] or len(formula) != 1:
            raise ValueError(
                f"the argument {formula[:40]!r} of a formula; expected one of {', '.join(LETTERS[:letters])}"
            )
        return 1
    if isinstance(formula, float | int) and not isinstance(formula, bool):
        if not abs(formula) <= sys.float_info.max:
            raise ValueError(f"the constant {str(formula)[:40]} of a formula; expected a finite number")
        return 1
    if not isinstance(formula, list | tuple) or not formula or not isinstance(formula[0], str) or depth > DEEPEST:
        raise ValueError(f"{str(formula)[:60]!r} is no formula, or nested more than {DEEPEST} deep")
    name, *inside = formula
    if name not in OPERATIONS or len(inside) != OPERATIONS[name][2].count("{}"):
        raise ValueError(f"the operation {name[:40]!r} with {len(inside)} arguments is not known")
    return 1 + sum(_parts(part, letters, depth + 1) for part in inside)


def _letters(formula: Any) -> set[str]:
    if isinstance(formula, list | tuple):
        return set().union(*map(_letters, formula[1:]))
    return {formula} if isinstance(formula, str) else set()


def _linear(s: Step, given: Sequence[Operand]) -> Found:
    _options(s)
    (x,), (weight, *bias) = _values(given[:1], rank=1), given[1:] or [Operand((), True)]
    rows, columns = weight.shape if len(weight.shape) == 2 and not weight.varies else (0, 0)
    if columns != x[-1] or len(bias) > 1 or any(b.varies or b.shape != (rows,) for b in bias):
        raise ValueError(
            f"x W^T + b with the shapes {[g.shape for g in given]}; expected x (..., n), constants W (m, n) and b (m)"
        )
    return (*x[:-1], rows), 2 * columns


def _matmul(s: Step, given: Sequence[Operand]) -> Found:
    _options(s)
    x, y = _values(given, 2, rank=2)
    if x[:-2] != y[:-2] or x[-1] != y[-2]:
        raise ValueError(f"a product of the shapes {x} and {y}; expected (..., n, k) and (..., k, m)")
    return (*x[:-1], y[-1]), 2 * x[-1]


def _reduce(s: Step, given: Sequence[Operand]) -> Found:
    by, axis, keep = _options(s, "by", "axis", "keep")
    (x,) = _values(given)
    if by not in tuple(REDUCTIONS) or not isinstance(keep, bool):
        raise ValueError(
            f"by {str(by)[:40]!r}, keep {keep!r}; expected one of {', '.join(REDUCTIONS)}, and true or false"
        )
    axis = _axis(axis, x)
    return _with(x, axis, *([1] if keep else [])), x[axis]


def _join(s: Step, given: Sequence[Operand]) -> Found:
    (axis,) = _options(s, "axis")
    shapes = _values(given, None)
    axis = _axis(axis, shapes[0])
    if len({len(x) for x in shapes}) > 1 or len({_with(x, axis) for x in shapes}) > 1:
        raise ValueError(f"joins the shapes {shapes} along axis {axis}; expected others to be the same")
    return _with(shapes[0], axis, sum(x[axis] for x in shapes)), 1


def _take(s: Step, given: Sequence[Operand]) -> Found:
    axis, indices = _options(s, "axis", "indices")
    (x,) = _values(given)
    axis = _axis(axis, x)
    return _with(x, axis, len(_numbers(indices, 0, x[axis]))), 1


def _reshape(s: Step, given: Sequence[Operand]) -> Found:
    _options(s)
    (x,) = _values(given)
    shape = _shape(s.shape, "it")
    if math.prod(shape) != math.prod(x):
        raise ValueError(f"makes {shape} of the shape {x}; expected as many numbers")
    return shape, 1


def _permute(s: Step, given: Sequence[Operand]) -> Found:
    (axes,) = _options(s, "axes")
    (x,) = _values(given)
    if sorted(_numbers(axes, -len(x), 0)) != list(range(-len(x), 0)):
        raise ValueError(f"has the axes {axes}; expected each from {-len(x)} to -1 once")
    return tuple(x[a] for a in axes), 1


def _expand(s: Step, given: Sequence[Operand]) -> Found:
    _options(s)
    (x,) = _values(given)
    shape = _shape(s.shape, "it")
    if len(x) != len(shape) or any(n not in (1, m) for n, m in zip(x, shape, strict=True)):
        raise ValueError(f"makes {shape} of the shape {x}; expected the same, but for axes of size 1")
    return shape, 1


def _constant(s: Step, given: Sequence[Operand]) -> Found:
    _options(s)
    _values(given[:1])
    if len(given) != 2 or given[1].varies:
        raise ValueError(f"takes {len(given)} operands; expected a value and a constant")
    return given[1].shape, 1


RULES: dict[str, Callable[[Step, Sequence[Operand]], Found]] = {
    "pointwise": _pointwise,
    "linear": _linear,
    "matmul": _matmul,
    "reduce": _reduce,
    "join": _join,
    "take": _take,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "constant": _constant,
}
"""Kind of step -> its rule."""
