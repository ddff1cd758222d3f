"""LLVM IR of stages that are a call or two: straight-line code, long vectors, flags, stages with derivatives of their own."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Memory, Slot, shifted
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import Add, Join, Zeros
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.epsilon import EPSILON, Epsilon
from costate.kernel.ops.fields.krylov import ConjugateGradients
from costate.kernel.ops.fields.newton import Newton
from costate.kernel.ops.finite import Finite
from costate.kernel.passes.optimize import optimize


def write_straight(e: Emitter, op: Straight, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Call the chunks of a straight-line function, one after the other."""
    chunks, slots = e.unit.straight(op)
    pointers = [e.pointer(p) for p in (*ins, *outs)]
    for part in range(e.n.parts):
        if part:
            pointers = [e.new(f"getelementptr i8, ptr {p}, i64 {e.n.align}") for p in pointers]
        e.call_chunks(chunks, slots, pointers[: len(ins)], pointers[len(ins) :])


def write_zeros(e: Emitter, op: Zeros, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Fill a vector with zeros."""
    if isinstance(outs[0], Memory):
        e.helper("vzero", f"ptr {e.pointer(outs[0])}", f"i64 {op.size}")
        return
    with e.scratch():
        row = e.hold(outs[0].row_size)
        e.helper("vzero", f"ptr {row}", f"i64 {outs[0].row_size}")
        with e.loop(e.row_count(op.size, outs[0])) as k:
            e.write_row(outs[0], k, row)


def write_add(e: Emitter, op: Add, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Copy the first vector and add the second."""
    target = e.pointer(outs[0])
    e.copy(target, e.pointer(ins[0]), op.size)
    e.helper("vadd", f"ptr {target}", f"ptr {e.pointer(ins[1])}", f"i64 {op.size}")


def write_join(e: Emitter, op: Join, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Copy the parts that were not made in their place."""
    for source, start, n in zip(ins, op.starts(), op.sizes, strict=True):
        target = shifted(outs[0], start)
        if source != target:
            e.move(source, target, n)


def write_finite(e: Emitter, op: Finite, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Look at all vectors; a flag once cleared stays so."""
    flag = e.pointer(outs[0])
    e.copy(flag, e.pointer(ins[0]), 1)
    for slot, n in zip(ins[1:], op.sizes, strict=True):
        e.helper("vfinite", f"ptr {e.pointer(slot)}", f"ptr {flag}", f"i64 {n}")
    if e.n.fields:  # all lanes belong to one sample
        n = e.n
        least = e.new(f"call {n.scalar} @llvm.vector.reduce.fmin.{n.suffix}({n.vec} {e.load(n.vec, flag)})")
        e.spread(least, flag)


def write_epsilon(e: Emitter, op: Epsilon, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Store the constant of the number type."""
    e.spread(f"0x{struct.pack('>d', EPSILON[e.n.bytes]).hex().upper()}", e.pointer(outs[0]))


def write_custom(e: Emitter, op: Custom, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Call the body."""
    e.call(e.unit.function(op.body), [e.pointer(p) for p in ins], [e.pointer(p) for p in outs])


def write_solve(e: Emitter, op: ConjugateGradients | Newton, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Call the loop of a solve."""
    e.call(e.unit.function(optimize(op.body)), [e.pointer(p) for p in ins], [e.pointer(p) for p in outs])
