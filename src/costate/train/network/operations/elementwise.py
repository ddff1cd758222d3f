"""Operations on each number by itself: formulas, and rows that choose one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from costate.train.network.builder import Builder, Operand, UnsupportedError, Value
from costate.train.network.formula import Formula

Row = Callable[..., Any]


ABOVE, BELOW = ("max", "x", 0.0), ("min", "x", 0.0)
SIGMOID = ("div", 1.0, ("add", 1.0, ("exp", ("neg", "x"))))
SCALED = ("mul", "x", "y")
SOFTPLUS = (
    "where",
    ("gt", SCALED, "z"),
    "x",
    ("div", ("add", ("max", SCALED, 0.0), ("log", ("add", 1.0, ("exp", ("neg", ("abs", SCALED)))))), "y"),
)
GELU = ("mul", ("mul", 0.5, "x"), ("add", 1.0, ("erf", ("mul", "x", 0.5**0.5))))
CUBIC = ("add", "x", ("mul", 0.044715, ("mul", "x", ("mul", "x", "x"))))
GELU_TANH = ("mul", ("mul", 0.5, "x"), ("add", 1.0, ("tanh", ("mul", (2 / torch.pi) ** 0.5, CUBIC))))
LEAKY = ("add", ABOVE, ("mul", "y", BELOW))
HARD_SIGMOID = ("min", ("max", ("div", ("add", "x", 3.0), 6.0), 0.0), 1.0)
MISH = ("mul", "x", ("tanh", ("add", ABOVE, ("log", ("add", 1.0, ("exp", ("neg", ("abs", "x"))))))))
SIGN = ("where", ("gt", "x", 0.0), 1.0, ("where", ("lt", "x", 0.0), -1.0, "x"))


def elu(a: float, c: float = 1.0, inner: float = 1.0) -> Formula:
    """Return c (max(x, 0) + a (exp(inner min(x, 0)) - 1))."""
    return ("mul", c, ("add", ABOVE, ("mul", a, ("sub", ("exp", ("mul", inner, BELOW)), 1.0))))


def yes(condition: Formula) -> Formula:
    """Return 1 where a condition holds, else 0."""
    return ("where", condition, 1.0, 0.0)


FORMULAS: dict[str, Formula] = {
    "neg": ("neg", "x"),
    "abs": ("abs", "x"),
    "exp": ("exp", "x"),
    "expm1": ("sub", ("exp", "x"), 1.0),
    "log": ("log", "x"),
    "log1p": ("log", ("add", 1.0, "x")),
    "sqrt": ("sqrt", "x"),
    "rsqrt": ("div", 1.0, ("sqrt", "x")),
    "reciprocal": ("div", 1.0, "x"),
    "square": ("mul", "x", "x"),
    "sin": ("sin", "x"),
    "cos": ("cos", "x"),
    "tan": ("div", ("sin", "x"), ("cos", "x")),
    "tanh": ("tanh", "x"),
    "erf": ("erf", "x"),
    "floor": ("floor", "x"),
    "ceil": ("ceil", "x"),
    "sign": SIGN,
    "sigmoid": SIGMOID,
    "relu": ABOVE,
    "relu6": ("min", ABOVE, 6.0),
    "silu": ("mul", "x", SIGMOID),
    "mish": MISH,
    "hardswish": ("mul", "x", HARD_SIGMOID),
    "hardsigmoid": HARD_SIGMOID,
    "log_sigmoid": ("sub", BELOW, ("log", ("add", 1.0, ("exp", ("neg", ("abs", "x")))))),
    "logical_not": yes(("eq", "x", 0.0)),
    "bitwise_not": yes(("eq", "x", 0.0)),
    "mul": ("mul", "x", "y"),
    "pow": ("pow", "x", "y"),
    "maximum": ("max", "x", "y"),
    "minimum": ("min", "x", "y"),
    "gt": yes(("gt", "x", "y")),
    "ge": yes(("ge", "x", "y")),
    "lt": yes(("lt", "x", "y")),
    "le": yes(("le", "x", "y")),
    "eq": yes(("eq", "x", "y")),
    "ne": ("where", ("eq", "x", "y"), 0.0, 1.0),
    "logical_and": ("where", ("eq", ("mul", "x", "y"), 0.0), 0.0, 1.0),
    "bitwise_and": ("mul", "x", "y"),
    "logical_or": ("where", ("eq", ("add", ("abs", "x"), ("abs", "y")), 0.0), 0.0, 1.0),
    "bitwise_or": ("max", "x", "y"),
    "where": ("where", ("eq", "x", 0.0), "z", "y"),
    "leaky_relu": LEAKY,
    "softplus": SOFTPLUS,
    "addcmul": ("add", "x", ("mul", "w", ("mul", "y", "z"))),
    "addcdiv": ("add", "x", ("mul", "w", ("div", "y", "z"))),
    "lerp": ("add", "x", ("mul", "z", ("sub", "y", "x"))),
    "threshold": ("where", ("gt", "x", "y"), "x", "z"),
}
"""Operations whose arguments are those of a formula, in their order."""


def plus(sign: str) -> Row:
    """Return the row of x + alpha y, or of x - alpha y."""
    return lambda b, x, y, alpha=1: b.pointwise(
        (sign, "x", "y") if alpha == 1 else (sign, "x", ("mul", "y", float(alpha))), x, y
    )


def clamp(b: Builder, x: Value, low: Any = None, high: Any = None) -> Value:
    """Add max(x, low), then min of that and high."""
    for formula, bound in ((("max", "x", "y"), low), (("min", "x", "y"), high)):
        if bound is not None:
            x = b.pointwise(formula, x, bound)
    return x


def divide(b: Builder, x: Operand, y: Operand, rounding_mode: str | None = None) -> Value:
    """Add x / y, rounded down if that is wanted."""
    ratio = ("div", "x", "y")
    if rounding_mode == "trunc":
        raise UnsupportedError("division with rounding_mode='trunc'")
    return b.pointwise(("floor", ratio) if rounding_mode == "floor" else ratio, x, y)


def power(b: Builder, x: Operand, y: Operand) -> Value:
    """Add x to the power of y."""
    if isinstance(y, int | float) and y == 2:
        return b.pointwise(("mul", "x", "x"), x)
    return b.pointwise(("pow", "x", "y"), x, y)


def prelu(b: Builder, x: Value, slope: torch.Tensor) -> Value:
    """Add the row of one slope, or of a slope per channel."""
    if slope.dim() == 1 and slope.numel() > 1:
        slope = slope.reshape(-1, *(1,) * (x.rank - 1))
    return b.pointwise(LEAKY, x, slope)


def gelu(b: Builder, x: Value, approximate: str = "none") -> Value:
    """Add one of the two kinds of GELU."""
    return b.pointwise(GELU_TANH if approximate == "tanh" else GELU, x)


def like_value(value: float | None) -> Row:
    """Return the row of a constant of the shape of a value."""

    def row(b: Builder, x: Value, *arguments: Any) -> torch.Tensor:
        return torch.full(x.shape, float(arguments[0] if value is None else value), dtype=torch.float64)

    return row


def new_value(value: float | None) -> Row:
    """Return the row of a constant that only takes its type from a value."""

    def row(b: Builder, x: Value, shape: Sequence[int], *arguments: Any) -> torch.Tensor:
        return torch.full(tuple(shape), float(arguments[0] if value is None else value), dtype=torch.float64)

    return row


def same(b: Builder, x: Any, *_: Any) -> Any:
    """Return the value itself."""
    return x
