"""The operations of CasADi's SX that can be compiled: everything a float can do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import casadi as ca
from casadi import _casadi  # pyright: ignore[reportAttributeAccessIssue]

_NAMES = """
    add sub mul div neg exp log pow constpow sqrt sq twice sin cos tan asin acos atan lt le eq ne not and or
    floor ceil fmod fabs sign copysign if_else_zero erf fmin fmax inv sinh cosh tanh asinh acosh atanh atan2
    erfinv log1p expm1 hypot remainder
"""
CASADI_OPS: dict[int, str] = {getattr(ca, f"OP_{name.upper()}"): name for name in _NAMES.split()}
"""CasADi's code -> op."""
IGNORED = {ca.OP_ASSIGN, ca.OP_LIFT}
"""Codes that mean "the operand" in floating point."""


class UnsupportedOpError(ValueError):
    """The function uses an operation that has no meaning in compiled floating point code."""


def instructions_of(fn: ca.Function) -> Iterator[tuple[int, list[int], list[int]]]:
    """Iterate over the instructions of an SX function: (code, operands, results).

    Programs have millions, so CasADi's functions are called on the object itself: the methods of its wrapper take ten times longer.
    """
    ask = (getattr(_casadi, f"Function_instruction_{what}") for what in ("id", "input", "output"))
    code, operands, results = (partial(function, fn.this) for function in ask)  # pyright: ignore[reportAttributeAccessIssue]
    return ((code(k), operands(k), results(k)) for k in range(fn.n_instructions()))


def check_ops(fn: ca.Function) -> None:
    """Raise if the function uses an op that cannot be compiled: when a kernel is built, not when it is first called."""
    allowed = CASADI_OPS.keys() | IGNORED | {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST}
    for op in sorted({op for op, _, _ in instructions_of(fn)} - allowed):
        name = next((n for n in dir(ca) if n.startswith("OP_") and getattr(ca, n) == op), f"op {op}")
        inlined = op == ca.OP_CALL
        hint = "mark the callee with the default inlining" if inlined else "write it with the supported operations"
        raise UnsupportedOpError(
            f"kernel function '{fn.name()}' uses {name}, which cannot be compiled; supported are "
            f"{', '.join(sorted(CASADI_OPS.values()))}; {hint}"
        )
