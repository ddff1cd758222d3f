"""The operations of CasADi's SX that can be compiled: everything a float can do."""

from __future__ import annotations

import casadi as ca

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


def check_ops(fn: ca.Function) -> None:
    """Raise if the function uses an op that cannot be compiled: when a kernel is built, not when it is first called."""
    allowed = CASADI_OPS.keys() | IGNORED | {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST}
    for op in sorted(set(map(fn.instruction_id, range(fn.n_instructions()))) - allowed):
        name = next((n for n in dir(ca) if n.startswith("OP_") and getattr(ca, n) == op), f"op {op}")
        inlined = op == ca.OP_CALL
        hint = "mark the callee with the default inlining" if inlined else "write it with the supported operations"
        raise UnsupportedOpError(
            f"kernel function '{fn.name()}' uses {name}, which cannot be compiled; supported are "
            f"{', '.join(sorted(CASADI_OPS.values()))}; {hint}"
        )
