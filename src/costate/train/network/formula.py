"""Activations, each written down once: as a formula that NumPy evaluates, C prints and ONNX files take as nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

Formula = Any
"""A tuple (operation, formula, ...), "x" for the argument, "a" for the layer's own number, or a constant."""

_SPLIT = (("max", "x", 0.0), ("min", "x", 0.0))
_SIGMOID = ("div", 1.0, ("add", 1.0, ("exp", ("neg", "x"))))


@dataclass(frozen=True)
class Activation:
    """A function of one number that follows a linear layer."""

    module: type[nn.Module]
    """Layer of torch."""
    formula: Formula
    """Value of the function at x."""
    number: str = ""
    """Attribute of the layer that is "a" in the formula."""
    fixed: tuple[tuple[str, Any], ...] = ()
    """Attributes of the layer that must have these values."""


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(nn.Tanh, ("tanh", "x")),
    "relu": Activation(nn.ReLU, _SPLIT[0]),
    "sigmoid": Activation(nn.Sigmoid, _SIGMOID),
    "silu": Activation(nn.SiLU, ("mul", "x", _SIGMOID)),
    "elu": Activation(nn.ELU, ("add", _SPLIT[0], ("mul", "a", ("sub", ("exp", _SPLIT[1]), 1.0))), "alpha"),
    "leaky_relu": Activation(nn.LeakyReLU, ("add", _SPLIT[0], ("mul", "a", _SPLIT[1])), "negative_slope"),
    "softplus": Activation(
        nn.Softplus,
        ("add", _SPLIT[0], ("log", ("add", 1.0, ("exp", ("neg", ("max", "x", ("neg", "x"))))))),
        fixed=(("beta", 1),),
    ),
    "softsign": Activation(nn.Softsign, ("div", "x", ("add", 1.0, ("max", "x", ("neg", "x"))))),
}

# Operation -> its function in NumPy, its operator in ONNX, its expression in C. Constants and functions in C are of type REAL.
OPERATIONS: dict[str, tuple[np.ufunc, str, str]] = {
    "add": (np.add, "Add", "({} + {})"),
    "sub": (np.subtract, "Sub", "({} - {})"),
    "mul": (np.multiply, "Mul", "({} * {})"),
    "div": (np.divide, "Div", "({} / {})"),
    "neg": (np.negative, "Neg", "(-{})"),
    "max": (np.maximum, "Max", "COSTATE_MAX({}, {})"),
    "min": (np.minimum, "Min", "COSTATE_MIN({}, {})"),
    "exp": (np.exp, "Exp", "COSTATE_EXP({})"),
    "log": (np.log, "Log", "COSTATE_LOG({})"),
    "tanh": (np.tanh, "Tanh", "COSTATE_TANH({})"),
}


def in_numpy(formula: Formula, a: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function; it may overwrite its argument."""
    if formula[1:] == ("x",):  # one operation: in place
        ufunc = OPERATIONS[formula[0]][0]
        return lambda x: ufunc(x, x)

    def value(part: Formula, x: np.ndarray) -> Any:
        if isinstance(part, tuple):
            return OPERATIONS[part[0]][0](*(value(p, x) for p in part[1:]))
        return x if part == "x" else a if part == "a" else part

    return lambda x: value(formula, x)


def in_c(formula: Formula, x: str, a: float = 0.0) -> str:
    """Return the expression in C."""
    if isinstance(formula, tuple):
        return OPERATIONS[formula[0]][2].format(*(in_c(part, x, a) for part in formula[1:]))
    return x if formula == "x" else f"(COSTATE_REAL){a if formula == 'a' else formula!r}"


Node = tuple[str, list[str], str]
"""Operator, names of its inputs, name of its output."""


def in_onnx(formula: Formula, x: str, out: str, a: float, constant: Callable[[float], str]) -> list[Node]:
    """Return the nodes whose last one gives `out`. constant: gives the name of a number in the file."""
    nodes: list[Node] = []

    def name(part: Formula, wanted: str) -> str:
        if not isinstance(part, tuple):
            return x if part == "x" else constant(a if part == "a" else part)
        inputs = [name(p, f"{wanted}.{k}") for k, p in enumerate(part[1:])]
        nodes.append((OPERATIONS[part[0]][1], inputs, wanted))
        return wanted

    name(formula, out)
    return nodes
