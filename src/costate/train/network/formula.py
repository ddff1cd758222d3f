"""Formulas of one number, written down once: NumPy evaluates them, C prints them, ONNX files take them as nodes.

Yes and no are the numbers 1 and 0 wherever they leave a formula, so that every value of a network is a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Formula = Any
"""A tuple (operation, formula, ...), a letter of LETTERS for an argument, or a constant."""
LETTERS = "xyzw"
"""Names of the arguments, in their order."""

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Any) -> Any:
    """Return the error function, which NumPy lacks."""
    return np.asarray(_erf(x), float)


# Operation -> its function in NumPy, its operator in ONNX, its expression in C. Constants and functions in C are of type REAL.
OPERATIONS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "add": (np.add, "Add", "({} + {})"),
    "sub": (np.subtract, "Sub", "({} - {})"),
    "mul": (np.multiply, "Mul", "({} * {})"),
    "div": (np.divide, "Div", "({} / {})"),
    "neg": (np.negative, "Neg", "(-{})"),
    "abs": (np.abs, "Abs", "COSTATE_CALL(fabs, {})"),
    "max": (np.maximum, "Max", "COSTATE_MAX({}, {})"),
    "min": (np.minimum, "Min", "COSTATE_MIN({}, {})"),
    "exp": (np.exp, "Exp", "COSTATE_CALL(exp, {})"),
    "log": (np.log, "Log", "COSTATE_CALL(log, {})"),
    "sqrt": (np.sqrt, "Sqrt", "COSTATE_CALL(sqrt, {})"),
    "tanh": (np.tanh, "Tanh", "COSTATE_CALL(tanh, {})"),
    "sin": (np.sin, "Sin", "COSTATE_CALL(sin, {})"),
    "cos": (np.cos, "Cos", "COSTATE_CALL(cos, {})"),
    "erf": (erf, "Erf", "COSTATE_CALL(erf, {})"),
    "floor": (np.floor, "Floor", "COSTATE_CALL(floor, {})"),
    "ceil": (np.ceil, "Ceil", "COSTATE_CALL(ceil, {})"),
    "pow": (np.power, "Pow", "COSTATE_CALL2(pow, {}, {})"),
    "gt": (np.greater, "Greater", "({} > {})"),
    "ge": (np.greater_equal, "GreaterOrEqual", "({} >= {})"),
    "lt": (np.less, "Less", "({} < {})"),
    "le": (np.less_equal, "LessOrEqual", "({} <= {})"),
    "eq": (np.equal, "Equal", "({} == {})"),
    "where": (np.where, "Where", "({} ? {} : {})"),
}


def in_numpy(formula: Formula) -> Callable[..., Any]:
    """Return the function of as many arrays as the formula has letters."""
    if isinstance(formula, str):
        place = LETTERS.index(formula)
        return lambda *given: given[place]
    if not _is_operation(formula):
        number = float(formula)
        return lambda *given: number
    function = OPERATIONS[formula[0]][0]
    count = len(formula) - 1
    if list(formula[1:]) == list(LETTERS[:count]):
        return lambda *given: function(*given[:count])
    parts = [in_numpy(part) for part in formula[1:]]
    return lambda *given: function(*[part(*given) for part in parts])


def in_c(formula: Formula, arguments: Mapping[str, str]) -> str:
    """Return the expression in C. arguments: letter -> its expression."""
    if isinstance(formula, str):
        return arguments[formula]
    if not _is_operation(formula):
        return f"(COSTATE_REAL){float(formula)!r}"
    return OPERATIONS[formula[0]][2].format(*(in_c(part, arguments) for part in formula[1:]))


Node = tuple[str, list[str], str]
"""Operator, names of its inputs, name of its output."""


def in_onnx(
    formula: Formula, arguments: Mapping[str, str], out: str, constant: Callable[[float], str]
) -> tuple[list[Node], str]:
    """Return nodes, and the name of the last one's output: `out`, unless there are no nodes.

    constant: gives the name of a number in the file.
    """
    nodes: list[Node] = []

    def name(part: Formula, wanted: str) -> str:
        if isinstance(part, str):
            return arguments[part]
        if not _is_operation(part):
            return constant(float(part))
        inputs = [name(p, f"{wanted}.{k}") for k, p in enumerate(part[1:])]
        nodes.append((OPERATIONS[part[0]][1], inputs, wanted))
        return wanted

    return nodes, name(formula, out)


def operations(formula: Formula) -> set[str]:
    """Return the names of the operations in a formula."""
    return {formula[0]}.union(*map(operations, formula[1:])) if _is_operation(formula) else set()


def _is_operation(formula: Formula) -> bool:
    return isinstance(formula, tuple | list)
