"""Checkpoints: scans inside of scans, so that the gradient of a long one fits into memory.

The backward pass of a scan keeps the state of every step. Cut into n scans of n steps, it keeps n states of the outer scan and n of
the inner one that it is working on, and runs forward once more; with k levels it keeps k times the k-th root of the steps, and runs
forward k - 1 times more. Results, and gradients with respect to states and sequences, have the same bits; the gradient of what all
steps share is summed level by level, and may differ in the last ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from costate.kernel.ir.program import Builder, Program, Var
from costate.kernel.ir.vector_ops import Slice, concat
from costate.kernel.ops.scan import Scan

UNITS = {"": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
Repeat = Callable[[Builder, Program, int, Sequence[Var], Sequence[Var], Sequence[Var]], tuple[list[Var], list[Var]]]
"""Function (builder, body, steps, carries, sequences, shared) -> final carries, stacked results: a scan."""


def bytes_of(memory: str | int | float) -> float:
    """Return a size given as a number of bytes, or as text such as "2 GB"."""
    if not isinstance(memory, str):
        return float(memory)
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", memory)
    if found is None or found[2].lower() not in UNITS:
        raise ValueError(f"memory is {memory!r}; expected a number of bytes, or text such as '500 MB' or '2 GB'")
    return float(found[1]) * UNITS[found[2].lower()]


def level_lengths(steps: int, state: float, more: float, memory: str | int | float) -> tuple[int, ...]:
    """Return how many steps each level has, from the outermost: as few levels as fit.

    state: Bytes of a state. more: Further bytes that the innermost level keeps in each step. memory: Bytes a gradient may take.
    """
    allowed, least = bytes_of(memory), math.inf
    for levels in range(1, max(2, steps.bit_length() + 1)):
        n = _root(steps, levels)
        takes = (levels * (n + 1)) * state + n * more
        if takes <= allowed:
            return (n,) * levels
        least = min(least, takes)
    raise ValueError(
        f"memory is {memory!r}, but the gradient of {steps} steps with {state / 1e6:.3g} MB of state takes {least / 1e6:.3g} MB at "
        "least: allow more"
    )


def _root(steps: int, levels: int) -> int:
    """Return the least n with n ** levels >= steps."""
    n = max(1, round(steps ** (1 / levels)) - 1)
    while n**levels < steps:
        n += 1
    return n


def nested_scan(
    b: Builder,
    repeat: Repeat,
    body: Program,
    lengths: Sequence[int],
    steps: int,
    carries: Sequence[Var],
    sequences: Sequence[Var],
    shared: Sequence[Var],
) -> tuple[list[Var], list[Var]]:
    """Repeat a step like `repeat`, with a scan for each level; return final carries and stacked results."""
    inner = math.prod(lengths[1:])
    whole, rest = divmod(steps, inner)
    if len(lengths) == 1:
        return repeat(b, body, steps, carries, sequences, shared)
    if whole <= 1:
        return nested_scan(b, repeat, body, lengths[1:], steps, carries, sequences, shared)
    rows = [s.size // steps for s in sequences]
    segment = _segment(repeat, body, lengths[1:], inner, [c.size for c in carries], rows)
    cut = [_part(b, s, 0, whole * inner * n) for s, n in zip(sequences, rows, strict=True)]
    op = Scan(segment, whole, len(carries), len(sequences), (False,) * len(carries))
    finals, results, _ = op.split_out(b.stage(op, *carries, *cut, *shared))
    if rest:
        tail = [_part(b, s, whole * inner * n, rest * n) for s, n in zip(sequences, rows, strict=True)]
        finals, last = nested_scan(b, repeat, body, lengths[1:], rest, finals, tail, shared)
        results = [concat(b, y, z) for y, z in zip(results, last, strict=True)]
    return finals, results


def _segment(
    repeat: Repeat, body: Program, lengths: Sequence[int], steps: int, carries: Sequence[int], rows: Sequence[int]
) -> Program:
    """Return the program of one step of the outer level: `steps` steps of the body."""
    b = Builder()
    ins = [b.input(n) for n in (*carries, *(steps * n for n in rows), *body.in_sizes[len(carries) + len(rows) :])]
    i, j = len(carries), len(carries) + len(rows)
    finals, results = nested_scan(b, repeat, body, lengths, steps, ins[:i], ins[i:j], ins[j:])
    return b.finish(*finals, *results)


def _part(b: Builder, value: Var, start: int, size: int) -> Var:
    return value if size == value.size else b.stage(Slice(value.size, start, size), value)[0]
