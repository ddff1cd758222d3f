"""The way from a CasADi SX function to a tape.

`tape_of` walks CasADi's instruction list and numbers the values, so that common subexpressions (commutative ones too) are computed
once. Then it folds CasADi's if_else_zero pairs into selections, forms fused multiply-adds and sine-cosine pairs, and drops what no
output needs. The result depends on nothing but the function.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from costate.kernel.codegen.tape import Tape
from costate.kernel.ir.casadi_ops import CASADI_OPS, IGNORED, check_ops, instructions_of

_COMMUTATIVE = {"add", "mul", "fmin", "fmax", "eq", "ne", "and", "or"}


def tape_of(fn: ca.Function) -> Tape:
    """Return the optimised tape of an SX function."""
    instructions, outputs = _number_values(fn)
    _fold_selects(instructions)
    _fuse_multiply_adds(instructions, outputs)
    _pair_sines(instructions)
    return _drop_unused(instructions, outputs)


def _number_values(fn: ca.Function) -> tuple[list[tuple[Any, ...]], list[tuple[int, int, int]]]:
    """Walk CasADi's instructions; equal computations get one number."""
    instructions: list[tuple[Any, ...]] = []
    numbers: dict[tuple[Any, ...], int] = {}
    work: dict[int, int] = {}
    outputs: list[tuple[int, int, int]] = []
    dense = [_dense_index(fn.sparsity_out(k)) for k in range(fn.n_out())]

    def number(key: tuple[Any, ...]) -> int:
        found = numbers.setdefault(key, len(instructions))
        if found == len(instructions):
            instructions.append(key)
        return found

    for k, (op, sources, target) in enumerate(instructions_of(fn)):
        name = CASADI_OPS.get(op)
        if op == ca.OP_OUTPUT:
            out, element = target
            outputs.append((out, dense[out][element], work[sources[0]]))
        elif op == ca.OP_INPUT:
            work[target[0]] = number(("input", *sources))
        elif op == ca.OP_CONST:
            work[target[0]] = number(_constant(fn.instruction_constant(k)))
        elif op in IGNORED:
            work[target[0]] = work[sources[0]]
        elif name is None:
            check_ops(fn)  # says which are supported
        else:
            operands = [work[i] for i in sources]
            if name in _COMMUTATIVE and operands[0] > operands[1]:
                operands.reverse()
            work[target[0]] = number(("pow" if name == "constpow" else name, *operands))
    return instructions, _fill_zeros(outputs, [fn.numel_out(k) for k in range(fn.n_out())], number)


def _constant(value: float) -> tuple[Any, ...]:
    return ("const", float(value).hex())  # hex keeps -0.0 and 0.0 apart, and NaN equal to itself


def _dense_index(sparsity: ca.Sparsity) -> list[int]:
    return [int(i) for i in sparsity.find()]


def _fill_zeros(outputs, sizes, number) -> list[tuple[int, int, int]]:
    """Add the structural zeros of sparse outputs, which are stored like any other value."""
    written = {(out, element) for out, element, _ in outputs}
    missing = [(o, e) for o, n in enumerate(sizes) for e in range(n) if (o, e) not in written]
    return outputs + [(o, e, number(_constant(0.0))) for o, e in missing]


def _fold_selects(ins: list[tuple[Any, ...]]) -> None:
    """Make one selection of if_else_zero(c, a) + if_else_zero(not c, b), which is CasADi's if_else(c, a, b)."""
    for i, t in enumerate(ins):
        if t[0] != "add":
            continue
        a, b = ins[t[1]], ins[t[2]]
        if a[0] != "if_else_zero" or b[0] != "if_else_zero":
            continue
        if ins[b[1]] == ("not", a[1]):
            ins[i] = ("select", a[1], a[2], b[2])
        elif ins[a[1]] == ("not", b[1]):
            ins[i] = ("select", b[1], b[2], a[2])


def _use_counts(ins: list[tuple[Any, ...]], outputs: list[tuple[int, int, int]]) -> list[int]:
    """Count how often each value is used by live instructions and outputs."""
    uses = [0] * len(ins)
    for _, _, v in outputs:
        uses[v] += 1
    for i in range(len(ins) - 1, -1, -1):
        t = ins[i]
        if uses[i] and t[0] not in ("input", "const"):
            for a in t[1:]:
                uses[a] += 1
    return uses


def _fuse_multiply_adds(ins: list[tuple[Any, ...]], outputs: list[tuple[int, int, int]]) -> None:
    """Compute a b + c in one rounding where the product has no other use. A square counts as a product."""
    uses = _use_counts(ins, outputs)

    def product(i: int) -> tuple[int, int] | None:
        t = ins[i]
        if uses[i] != 1:
            return None
        if t[0] == "mul":
            return t[1], t[2]
        return (t[1], t[1]) if t[0] == "sq" else None

    for i, t in enumerate(ins):
        if t[0] not in ("add", "sub") or not uses[i]:
            continue
        left, right = product(t[1]), product(t[2])
        if right and t[0] == "add":
            ins[i] = ("fma", *right, t[1])
        elif right:
            ins[i] = ("fnma", *right, t[1])
        elif left:
            ins[i] = ("fma" if t[0] == "add" else "fms", *left, t[2])


def _pair_sines(ins: list[tuple[Any, ...]]) -> None:
    """Let sin(x) and cos(x) of one x share their range reduction."""
    sines = {t[1]: i for i, t in enumerate(ins) if t[0] == "sin"}
    cosines = {t[1]: i for i, t in enumerate(ins) if t[0] == "cos"}
    for x in sines.keys() & cosines.keys():
        first, second = sorted((sines[x], cosines[x]))
        # The earlier instruction computes the pair and is its own first result; the later one takes the second.
        ins[first] = ("sincos", x) if first == sines[x] else ("cossin", x)
        ins[second] = ("second", first)


def _drop_unused(ins: list[tuple[Any, ...]], outputs: list[tuple[int, int, int]]) -> Tape:
    uses = _use_counts(ins, outputs)
    new: dict[int, int] = {}
    kept: list[tuple[Any, ...]] = []
    for i, t in enumerate(ins):
        if uses[i]:
            new[i] = len(kept)
            kept.append(t if t[0] in ("input", "const") else (t[0], *(new[a] for a in t[1:])))
    return Tape(kept, [(o, e, new[v]) for o, e, v in outputs])
