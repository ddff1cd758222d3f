"""The kernel's entry: a loop over lane blocks, around the program.

Arguments come as one array of 64-bit words, so that a call from Python costs one pointer:

    begin, end, workspace, address of the stop flag, length of sequences (if dynamic), then for every tensor (inputs, then outputs):
        data, inner, outer stride, inner stride, row stride, mode

Strides are in bytes. Sample i is at (i // inner) * outer stride + (i % inner) * inner stride. Mode 1 of an output sums over
the samples: each group of GROUP samples has its own row of partial sums, inner stride apart.

The code returns soon after the stop flag (64 bits) has become nonzero: it is read before every block, and in every step of the
program's outermost scans. What the outputs hold then is undefined.
"""

from __future__ import annotations

from dataclasses import dataclass

from costate.kernel.codegen.emit import STOP_WORD, Emitter
from costate.kernel.codegen.program_code import write_program
from costate.kernel.codegen.rows import GROUP
from costate.kernel.codegen.slots import Rows, Slot
from costate.kernel.codegen.unit import Unit
from costate.kernel.ir.program import Program
from costate.kernel.ops.fields.pack import Pack

ONE_LEVEL = 1 << 62
"""`inner` of a tensor whose samples are equally spaced."""


@dataclass(frozen=True)
class Layout:
    """Rows of the kernel's tensors: (rows, numbers per row) for inputs and outputs."""

    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]


def emit_kernel(unit: Unit, program: Program, layout: Layout) -> int:
    """Write the entry function; returns the workspace in vectors."""
    n_tensors = len(layout.inputs) + len(layout.outputs)
    e = Emitter(unit)
    e.allocas.append(f"  %lanes = alloca [{n_tensors * unit.names.width} x i64], align 64")
    e.allocas.append(f"  %base = alloca [{n_tensors} x ptr]")
    for tensor in range(n_tensors):
        _locate(e, tensor, is_output=tensor >= len(layout.inputs))
    fields = {v for s in program.stages if isinstance(s.op, Pack) for v in s.inputs}
    ins = [
        _input(e, k, rows, size, v in fields)
        for k, ((rows, size), v) in enumerate(zip(layout.inputs, program.inputs, strict=True))
    ]
    outs: list[Slot] = [Rows(len(ins) + k, size) for k, (_, size) in enumerate(layout.outputs)]
    write_program(e, program, ins, outs)
    unit.functions["block"] = e.finish(
        "define internal void @block(ptr %args, i64 %first, i64 %end, i64 %count, ptr %ws) #0"
    )
    samples = 1 if unit.names.fields else unit.names.width
    unit.functions["entry"] = _ENTRY.replace("@W@", str(samples)).replace("@STOP@", str(STOP_WORD))
    return e.workspace


def _input(e: Emitter, k: int, rows: int, size: int, streamed: bool) -> Slot:
    """Pack single rows at the start, a shared one only in the first block. Longer tensors, and fields, wait until they are read."""
    if streamed or (rows != 1 and size):
        return Rows(k, size)
    region = e.reserve(size)
    varies = e.new(f"or i64 {e.tensor_word(k, 2)}, {e.tensor_word(k, 3)}")
    begin = e.load("i64", "%args")
    first = e.new(f"icmp eq i64 %first, {begin}")
    needed = e.new(f"or i1 {first}, {e.new(f'icmp ne i64 {varies}, 0')}")
    with e.when(needed):
        e.read_row(Rows(k, size), "0", e.pointer(region))
    return region


def _locate(e: Emitter, tensor: int, is_output: bool) -> None:
    """Compute the byte offsets of the block's samples in a tensor. Lanes beyond the end repeat the last sample."""
    width = e.n.width
    data, inner, outer, stride = (e.tensor_word(tensor, w) for w in range(4))
    base = e.new(f"inttoptr i64 {data} to ptr")
    if is_output:
        group = e.new(f"mul i64 {e.new(f'sdiv i64 %first, {GROUP}')}, {stride}")
        summed = e.new(f"icmp eq i64 {e.tensor_word(tensor, 5)}, 1")
        base = e.new(f"getelementptr i8, ptr {base}, i64 {e.new(f'select i1 {summed}, i64 {group}, i64 0')}")
    e.line(f"store ptr {base}, ptr {e.new(f'getelementptr ptr, ptr %base, i64 {tensor}')}")
    lanes = e.lanes(tensor)
    wide = f"<{width} x i64>"
    iota = ", ".join(f"i64 {k}" for k in range(width))
    start = _splat(e, "%first")
    last = _splat(e, e.new("sub i64 %end, 1"))
    index = e.new(f"add {wide} {start}, <{iota}>")
    index = e.new(f"select <{width} x i1> {e.new(f'icmp slt {wide} {index}, {last}')}, {wide} {index}, {wide} {last}")
    e.line(f"store {wide} {e.new(f'mul {wide} {index}, {_splat(e, stride)}')}, ptr {lanes}, align 8")
    with e.when(e.new(f"icmp ne i64 {inner}, {ONE_LEVEL}")):
        n = _splat(e, inner)
        far = e.new(f"mul {wide} {e.new(f'udiv {wide} {index}, {n}')}, {_splat(e, outer)}")
        near = e.new(f"mul {wide} {e.new(f'urem {wide} {index}, {n}')}, {_splat(e, stride)}")
        e.line(f"store {wide} {e.new(f'add {wide} {far}, {near}')}, ptr {lanes}, align 8")


def _splat(e: Emitter, scalar: str) -> str:
    wide = f"<{e.n.width} x i64>"
    one = e.new(f"insertelement {wide} poison, i64 {scalar}, i64 0")
    return e.new(f"shufflevector {wide} {one}, {wide} poison, <{e.n.width} x i32> zeroinitializer")


_ENTRY = """define void @entry(ptr %args) #0 {
entry:
  %begin = load i64, ptr %args
  %pe = getelementptr i64, ptr %args, i64 1
  %end = load i64, ptr %pe
  %pw = getelementptr i64, ptr %args, i64 2
  %ws = load ptr, ptr %pw
  %ps = getelementptr i64, ptr %args, i64 @STOP@
  %stop = load ptr, ptr %ps
  br label %head
head:
  %first = phi i64 [%begin, %entry], [%next, %body]
  %told = load atomic i64, ptr %stop monotonic, align 8
  %free = icmp eq i64 %told, 0
  %some = icmp slt i64 %first, %end
  %more = and i1 %free, %some
  br i1 %more, label %body, label %done
body:
  %left = sub i64 %end, %first
  %short = icmp slt i64 %left, @W@
  %count = select i1 %short, i64 %left, i64 @W@
  %last = add i64 %first, %count
  call void @block(ptr %args, i64 %first, i64 %last, i64 %count, ptr %ws)
  %next = add i64 %first, @W@
  br label %head
done:
  ret void
}
"""
