"""LLVM IR of the way from tensors to fields and back: number by number, once per call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.rows import pack_row
from costate.kernel.codegen.slots import Memory, Rows, Slot
from costate.kernel.ops.fields.blocks import BLOCK, block_count
from costate.kernel.ops.fields.pack import Pack, Unpack


def write_pack(e: Emitter, op: Pack, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Copy rows of a tensor into blocks; places behind the last entity are 0."""
    target = e.pointer(outs[0])
    first = _pack_blocks(e, op, ins[0], target) if op.frames == 1 else 0
    blocks = block_count(op.count) * op.frames
    e.helper("vzero", f"ptr {e.element(target, str(first), op.n)}", f"i64 {(blocks - first) * op.n}")
    with _numbers(e, op, ins[0], target, first * BLOCK) as (plain, place):
        e.line(f"store {e.n.scalar} {e.load(e.n.scalar, plain)}, ptr {place}")


def _pack_blocks(e: Emitter, op: Pack, plain: Slot, target: str) -> int:
    """Copy whole blocks, vector by vector; return how many."""
    whole, n = op.count // BLOCK, op.n
    if not isinstance(plain, Rows) or not whole or (n > 1 and plain.row_size != n):
        return 0
    start = _entity_address(e, plain, "0", n)
    if n == 1 and plain.row_size > 1:  # an array is in blocks already
        with e.loop(str(whole * e.n.parts)) as k:
            offset = e.new(f"mul i64 {k}, {e.n.align}")
            x = e.new(f"load {e.n.vec}, ptr {e.new(f'getelementptr i8, ptr {start}, i64 {offset}')}, align {e.n.bytes}")
            there = e.new(f"getelementptr i8, ptr {target}, i64 {offset}")
            e.line(f"store {e.n.vec} {x}, ptr {there}, align {e.n.align}")
        return whole
    name = f"pack{n}"
    e.unit.functions.setdefault(name, pack_row(name, e.n, n))
    stride = e.tensor_word(plain.tensor, 4)
    lanes = e.variable(f"[{e.n.width} x i64]", "zeroinitializer")
    for lane in range(1, e.n.width):
        at = e.new(f"getelementptr i64, ptr {lanes}, i64 {lane}")
        e.line(f"store i64 {e.new(f'mul i64 {stride}, {lane}')}, ptr {at}")
    with e.loop(str(whole)) as block:
        for part in range(e.n.parts):
            entity = e.new(f"add i64 {e.new(f'mul i64 {block}, {BLOCK}')}, {part * e.n.width}")
            row = e.new(f"getelementptr i8, ptr {start}, i64 {e.new(f'mul i64 {entity}, {stride}')}")
            there = e.new(f"getelementptr i8, ptr {e.element(target, block, n)}, i64 {part * e.n.align}")
            e.line(f"call void @{name}(ptr {row}, ptr {lanes}, ptr {there})")
    return whole


def write_unpack(e: Emitter, op: Unpack, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Copy blocks into rows of a tensor, or add them to rows that are summed over the samples."""
    source, out = e.pointer(ins[0]), outs[0]
    summed = e.new(f"icmp eq i64 {e.tensor_word(out.tensor, 5)}, 1") if isinstance(out, Rows) else "false"
    with _numbers(e, op, out, source) as (plain, place):
        x = e.load(e.n.scalar, place)
        if isinstance(out, Memory):
            e.spread(x, plain)
        else:
            more = e.new(f"fadd {e.n.scalar} {e.load(e.n.scalar, plain)}, {x}")
            new = e.new(f"select i1 {summed}, {e.n.scalar} {more}, {e.n.scalar} {x}")
            e.line(f"store {e.n.scalar} {new}, ptr {plain}")


@contextmanager
def _numbers(e: Emitter, op: Pack, plain: Slot, blocked: str, first: int = 0) -> Iterator[tuple[str, str]]:
    """Write a loop over the numbers of all entities from the first on; yield the address in the tensor (or vector) and the one in
    the blocks."""
    n, blocks = op.n, block_count(op.count)
    with e.loop(str(op.frames)) as f, e.loop(str(op.count - first)) as i:
        k = e.new(f"add i64 {i}, {first}")
        entity = e.new(f"add i64 {e.new(f'mul i64 {f}, {op.count}')}, {k}")
        block = e.new(f"add i64 {e.new(f'mul i64 {f}, {blocks}')}, {e.new(f'udiv i64 {k}, {BLOCK}')}")
        start = e.element(blocked, block, n)
        lane = e.new(f"urem i64 {k}, {BLOCK}")
        row = _entity_address(e, plain, entity, n)
        with e.loop(str(n)) as c:
            place = e.new(f"add i64 {e.new(f'mul i64 {c}, {BLOCK}')}, {lane}")
            here = (
                e.element(row, c)
                if isinstance(plain, Memory)
                else e.new(f"getelementptr {e.n.scalar}, ptr {row}, i64 {c}")
            )
            yield here, e.new(f"getelementptr {e.n.scalar}, ptr {start}, i64 {place}")


def _entity_address(e: Emitter, plain: Slot, entity: str, n: int) -> str:
    """Return where the numbers of an entity begin."""
    if isinstance(plain, Memory):
        return e.element(e.pointer(plain), entity, n)
    each = plain.row_size // n
    row = e.row_address(plain, e.new(f"udiv i64 {entity}, {each}"))
    sample = e.load("i64", e.lanes(plain.tensor))
    summed = e.new(f"icmp eq i64 {e.tensor_word(plain.tensor, 5)}, 1")  # then all samples share the rows
    row = e.new(f"getelementptr i8, ptr {row}, i64 {e.new(f'select i1 {summed}, i64 0, i64 {sample}')}")
    inside = e.new(f"mul i64 {e.new(f'urem i64 {entity}, {each}')}, {n}")
    return e.new(f"getelementptr {e.n.scalar}, ptr {row}, i64 {inside}")
