"""Tracing: a plain Python function of vectors becomes a CasADi function.

Sizes of the arguments are known where the function is used, and names are those of its parameters; so nobody has to write
symbols only to say them again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from costate.kernel.ir.program import Program
from costate.kernel.ir.straight import as_program

Body = ca.Function | Program | Callable[..., Any]
"""The body of a stage: a CasADi function of columns, a program, or a Python function of symbols."""


@dataclass(frozen=True)
class Later:
    """A body that is made when it is first needed, if ever: a derivative that takes long to build."""

    make: Callable[[], Body]


Size = int | tuple[int, int]
"""Elements of a vector, or rows and columns of a matrix."""


def body_program(body: Body, sizes: Sequence[Size]) -> Program:
    """Return the program of a body; a Python function is traced with arguments of the given sizes."""
    if not isinstance(body, ca.Function | Program):
        body, _ = trace(body, sizes)
    return as_program(body)


def derivative_program(body: Body | Later | None, sizes: Sequence[int]) -> Program | Callable[[], Program] | None:
    """Return the program of a derivative, or of one that is made later the function that makes it."""
    if isinstance(body, Later):
        return lambda: body_program(body.make(), sizes)
    return None if body is None else body_program(body, sizes)


def trace(fn: Callable[..., Any], sizes: Sequence[Size], name: str | None = None) -> tuple[ca.Function, bool]:
    """Call fn with symbols of the given sizes. Return what it computes as a function of dense columns, and whether fn returned
    several results rather than one.

    A matrix argument is read from its elements row by row, as tensors are; a matrix that fn returns is flattened likewise.
    """
    name = _name_of(fn) if name is None else name
    inputs, arguments = [], []
    for label, size in zip(_labels(fn, len(sizes)), sizes, strict=True):
        rows, columns = (size, 1) if isinstance(size, int) else size
        inputs.append(ca.SX.sym(label, rows * columns))
        arguments.append(inputs[-1] if isinstance(size, int) else ca.reshape(inputs[-1], columns, rows).T)
    made = fn(*arguments)
    several = isinstance(made, tuple | list)
    results = made if several else (made,)
    traced = ca.Function(name, inputs, [_column(name, r) for r in results], {"allow_free": True})
    if traced.has_free():
        raise ValueError(
            f"the traced function '{name}' uses symbols that are not its arguments: {', '.join(traced.get_free())}; "
            f"pass their values as further arguments"
        )
    return traced, several


def _column(name: str, result: Any) -> ca.SX:
    try:
        expression = ca.densify(ca.SX(result))
    except (NotImplementedError, TypeError):
        raise TypeError(
            f"the traced function '{name}' returned a {type(result).__name__}, expected SX expressions or numbers: "
            f"return one, or a tuple of them"
        ) from None
    return expression if expression.shape[1] == 1 else ca.vec(expression.T)


def _labels(fn: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first arguments: those of the parameters, the rest numbered."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        names = [p.name for p in inspect.signature(fn).parameters.values() if p.kind in kinds]
    except ValueError:  # builtins need not say
        names = []
    return [*names[:count], *(f"x{k}" for k in range(len(names), count))]


def _name_of(fn: Callable[..., Any]) -> str:
    """Return the function's name as CasADi allows it: letters, digits and single underscores."""
    words = re.findall("[A-Za-z0-9]+", getattr(fn, "__name__", ""))
    name = "_".join(words)
    return name if name[:1].isalpha() and name not in ("lambda", "null", "jac", "hess") else "traced"
