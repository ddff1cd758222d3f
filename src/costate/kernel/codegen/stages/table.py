"""LLVM IR of a look-up in a constant grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Slot
from costate.kernel.ops.table import Corners


def write_corners(e: Emitter, op: Corners, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Find each lane's cell, then load the grid values around it."""
    e.unit.grids[op.name] = op.data
    n = e.n
    x, values, cells = e.pointer(ins[0]), e.pointer(outs[0]), e.pointer(outs[1])
    zero = n.splat(0.0)
    below = []
    for axis, count in enumerate(op.shape):
        v = e.load(n.vec, e.element(x, str(axis)))
        ok = e.new(f"fcmp ord {n.vec} {v}, {v}")
        low = e.new(f"select {n.mask} {ok}, {n.vec} {v}, {n.vec} {zero}")
        floor = _call(e, "floor", low)
        top = n.splat(float(count - 2))
        floor = e.new(f"select {n.mask} {e.new(f'fcmp ogt {n.vec} {floor}, {zero}')}, {n.vec} {floor}, {n.vec} {zero}")
        floor = e.new(f"select {n.mask} {e.new(f'fcmp olt {n.vec} {floor}, {top}')}, {n.vec} {floor}, {n.vec} {top}")
        e.line(f"store {n.vec} {floor}, ptr {e.element(cells, str(axis))}, align {n.align}")
        below.append(e.new(f"fptosi {n.vec} {floor} to <{n.width} x i64>"))
    _fetch(e, op, below, values)


def _fetch(e: Emitter, op: Corners, below: list[str], values: str) -> None:
    """Load the values around each lane's cell, lane by lane."""
    n = e.n
    strides = np.cumprod([1, *op.grid.shape[:0:-1]])[::-1]
    wide = f"<{n.width} x i64>"
    k = 0
    for step in product(range(op.reach), repeat=len(op.shape)):
        index = ""
        for axis, count in enumerate(op.shape):
            at = e.new(f"add {wide} {below[axis]}, splat (i64 {step[axis] - op.before})")
            at = _clamp(e, wide, at, count - 1)
            at = e.new(f"mul {wide} {at}, splat (i64 {int(strides[axis])})")
            index = e.new(f"add {wide} {index}, {at}") if index else at
        for channel in range(op.grid.shape[-1]):
            vector = "poison"
            for lane in range(n.width):
                at = e.new(f"extractelement {wide} {index}, i64 {lane}")
                p = e.new(f"getelementptr double, ptr @{op.name}, i64 {e.new(f'add i64 {at}, {channel}')}")
                value = e.load("double", p)
                if n.dtype == "f32":
                    value = e.new(f"fptrunc double {value} to float")
                vector = e.new(f"insertelement {n.vec} {vector}, {n.scalar} {value}, i64 {lane}")
            e.line(f"store {n.vec} {vector}, ptr {e.element(values, str(k))}, align {n.align}")
            k += 1


def _clamp(e: Emitter, wide: str, value: str, highest: int) -> str:
    mask = f"<{e.n.width} x i1>"
    low = e.new(f"icmp sgt {wide} {value}, zeroinitializer")
    value = e.new(f"select {mask} {low}, {wide} {value}, {wide} zeroinitializer")
    high = e.new(f"icmp slt {wide} {value}, splat (i64 {highest})")
    return e.new(f"select {mask} {high}, {wide} {value}, {wide} splat (i64 {highest})")


def _call(e: Emitter, name: str, x: str) -> str:
    return e.new(f"call {e.n.vec} @llvm.{name}.{e.n.suffix}({e.n.vec} {x})")
