"""Emission: a program as LLVM IR text that runs one lane block.

Values live in memory as arrays of vectors: element j of a variable, for all lanes of the block, is vector j at its place.
A whole program runs for one lane block before the next block starts, so its workspace stays in the cache. The kernel's own
tensors are row-major with samples apart; they are transposed into vectors on the way in and back on the way out (`driver.py`),
row by row where a scan at the top level streams through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from costate.kernel.codegen.chunks import Chunk, cut
from costate.kernel.codegen.lower import Names
from costate.kernel.codegen.runtime_ir import HELPERS, pack_row, unpack_row
from costate.kernel.codegen.trace import tape_of
from costate.kernel.ir.program import DYNAMIC, Program, Stage, Var
from costate.kernel.ops.bulk import Join
from costate.kernel.ops.straight import Straight


@dataclass(frozen=True)
class Memory:
    """Vectors at a pointer."""

    pointer: str
    offset: int = 0
    """In vectors."""


@dataclass(frozen=True)
class Rows:
    """Rows of one of the kernel's tensors, read or written row by row."""

    tensor: int
    row_size: int
    first: int = 0
    """First row of this view."""


Place = Memory | Rows

WORDS_BEFORE = 4
"""Words of the kernel's arguments before the tensors: begin, end, workspace, length."""
WORDS_PER_TENSOR = 6


@dataclass(frozen=True)
class Function:
    """A callable piece of the unit: pointers to inputs, outputs and workspace."""

    name: str
    workspace: int
    """Vectors."""


@dataclass
class Unit:
    """Everything one kernel is made of: IR functions, chunks for the workers, external constants."""

    names: Names
    functions: dict[str, str] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    globals: list[str] = field(default_factory=list)
    grids: dict[str, np.ndarray] = field(default_factory=dict)
    """Constant arrays the code refers to by symbol; they stay outside of the object code."""
    n_ops: int = 0
    flops: int = 0
    ops: dict[str, int] = field(default_factory=dict)
    """Operations of each straight-line op, by key."""
    _made: dict[str, Function] = field(default_factory=dict)
    _cut: dict[str, tuple[list[str], int]] = field(default_factory=dict)
    _constants: dict[tuple[str, bytes], str] = field(default_factory=dict)

    def straight(self, op: Straight) -> tuple[list[str], int]:
        """Chunk names of a straight-line function, and the workspace they share."""
        if op.key not in self._cut:
            tape = tape_of(op.fn)
            name = f"s{len(self._cut)}"
            chunks, slots = cut(name, tape, len(op.in_sizes), len(op.out_sizes))
            self.chunks += chunks
            self.n_ops += tape.n_ops
            self.ops[op.key] = tape.n_ops
            self.flops += tape.flops
            self._cut[op.key] = [c.name for c in chunks], slots
        return self._cut[op.key]

    def function(self, program: Program) -> Function:
        """A program as a function of its own, for loop bodies."""
        if program.key not in self._made:
            self._made[program.key] = self._chunk_alone(program) or self._write(program)
        return self._made[program.key]

    def _chunk_alone(self, program: Program) -> Function | None:
        """A program that is one chunk needs no wrapper."""
        if len(program.stages) != 1:
            return None
        (stage,) = program.stages
        if not isinstance(stage.op, Straight) or (stage.inputs, stage.outputs) != (program.inputs, program.outputs):
            return None
        chunks, slots = self.straight(stage.op)
        return Function(chunks[0], slots) if len(chunks) == 1 else None

    def _write(self, program: Program) -> Function:
        name = f"p{len(self._made)}_{program.key[:8]}"
        e = Emitter(self, nested=True)
        ins: list[Place] = [Memory(f"%i{k}") for k in range(len(program.inputs))]
        outs: list[Place] = [Memory(f"%o{k}") for k in range(len(program.outputs))]
        e.program(program, ins, outs)
        arguments = self.names.arguments(len(ins), len(outs))
        self.functions[name] = e.finish(f"define internal void @{name}({arguments}) #0")
        return Function(name, e.workspace)

    def constant(self, values: np.ndarray, kind: str) -> str:
        """A constant array inside the object code: kind i32, i64."""
        key = kind, np.ascontiguousarray(values, np.int64).tobytes()
        if key not in self._constants:
            self._constants[key] = f"@table{len(self.globals)}"
            items = ", ".join(f"{kind} {int(v)}" for v in values.ravel())
            self.globals.append(f"{self._constants[key]} = internal constant [{values.size} x {kind}] [{items}]")
        return self._constants[key]


class Emitter:
    """Writes one function: stages in order, with a stack of workspace regions."""

    def __init__(self, unit: Unit, nested: bool = False):
        self.unit = unit
        self.nested = nested
        self.n = unit.names
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self._fresh = 0
        self._regions: list[tuple[int, int]] = []  # free regions (offset, size)
        self._top = 0
        self._callee = 0
        self._exits: list[str] = []  # labels after the loops being written, innermost last

    @property
    def workspace(self) -> int:
        """Vectors this function and its callees need."""
        return self._top + self._callee

    def finish(self, head: str) -> str:
        body = "\n".join([*self.allocas, *self.lines])
        own = self._top * self.n.stride
        return f"{head} {{\nentry:\n{body.replace('@OWN@', str(own))}\n  ret void\n}}\n"

    # --- text -----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def new(self, text: str) -> str:
        self._fresh += 1
        self.line(f"%v{self._fresh} = {text}")
        return f"%v{self._fresh}"

    def label(self, hint: str) -> str:
        self._fresh += 1
        return f"{hint}{self._fresh}"

    def block(self, label: str) -> None:
        self.line(f"br label %{label}")
        self.lines.append(f"{label}:")

    def variable(self, kind: str, value: str) -> str:
        """A local variable in memory, set to value here."""
        self._fresh += 1
        name = f"%m{self._fresh}"
        self.allocas.append(f"  {name} = alloca {kind}")
        self.line(f"store {kind} {value}, ptr {name}")
        return name

    def load(self, kind: str, pointer: str) -> str:
        return self.new(f"load {kind}, ptr {pointer}")

    @contextmanager
    def loop(self, count: str) -> Iterator[str]:
        """for i in range(count); yields i."""
        i = self.variable("i64", "0")
        head, body, done = self.label("head"), self.label("body"), self.label("done")
        self.block(head)
        index = self.load("i64", i)
        self.line(f"br i1 {self.new(f'icmp slt i64 {index}, {count}')}, label %{body}, label %{done}")
        self.lines.append(f"{body}:")
        self._exits.append(done)
        yield index
        self._exits.pop()
        self.line(f"store i64 {self.new(f'add i64 {index}, 1')}, ptr {i}")
        self.line(f"br label %{head}")
        self.lines.append(f"{done}:")

    def leave_if(self, condition: str) -> None:
        """Break out of the innermost loop."""
        stay = self.label("stay")
        self.line(f"br i1 {condition}, label %{self._exits[-1]}, label %{stay}")
        self.lines.append(f"{stay}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        yes, done = self.label("yes"), self.label("done")
        self.line(f"br i1 {condition}, label %{yes}, label %{done}")
        self.lines.append(f"{yes}:")
        yield
        self.block(done)

    # --- memory ---------------------------------------------------------------------------------------------------

    def reserve(self, size: int) -> Memory:
        """A workspace region of `size` vectors."""
        if size >= DYNAMIC // 2:
            raise ValueError("a sequence of dynamic length can only be an input or output of a kernel's scans")
        for k, (offset, room) in enumerate(self._regions):
            if room >= size:
                self._regions[k] = (offset + size, room - size)
                return Memory("%ws", offset)
        self._top += size
        return Memory("%ws", self._top - size)

    def release(self, place: Memory, size: int) -> None:
        self._regions.append((place.offset, size))

    def pointer(self, place: Place) -> str:
        assert isinstance(place, Memory), "only scans stream rows"
        if place.offset == 0:
            return place.pointer
        return self.new(f"getelementptr inbounds i8, ptr {place.pointer}, i64 {place.offset * self.n.stride}")

    def element(self, pointer: str, index: str, size: int = 1) -> str:
        """Address of vector index * size after a pointer."""
        bytes_ = self.new(f"mul i64 {index}, {size * self.n.stride}")
        return self.new(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")

    def call(self, function: Function, ins: Sequence[str], outs: Sequence[str]) -> None:
        self.call_chunks([function.name], function.workspace, ins, outs)

    def call_chunks(self, names: Sequence[str], workspace: int, ins: Sequence[str], outs: Sequence[str]) -> None:
        self._callee = max(self._callee, workspace)
        below = self.new("getelementptr inbounds i8, ptr %ws, i64 @OWN@")
        arguments = ", ".join(f"ptr {p}" for p in (*ins, *outs, below))
        for name in names:
            self.line(f"call void @{name}({arguments})")

    def helper(self, name: str, *arguments: str) -> None:
        """Call one of the small loops of runtime_ir (copy, zero, freeze, ...)."""
        self.unit.functions.setdefault(name, HELPERS[name](self.n))
        self.line(f"call void @{name}({', '.join(arguments)})")

    def copy(self, target: str, source: str, size: int) -> None:
        self.helper("vcopy", f"ptr {target}", f"ptr {source}", f"i64 {size}")

    # --- rows of the kernel's tensors -----------------------------------------------------------------------------

    def tensor_word(self, tensor: int, word: int) -> str:
        """A word of the tensor's descriptor in the arguments of the kernel."""
        at = WORDS_BEFORE + WORDS_PER_TENSOR * tensor + word
        return self.load("i64", self.new(f"getelementptr i64, ptr %args, i64 {at}"))

    def length(self) -> str:
        """The length of dynamic sequences."""
        if self.nested:
            raise ValueError(
                "a scan of dynamic length must be at the top level of a kernel, not inside of another loop"
            )
        return self.load("i64", self.new(f"getelementptr i64, ptr %args, i64 {WORDS_BEFORE - 1}"))

    def row_address(self, rows: Rows, index: str) -> str:
        base = self.load("ptr", self.new(f"getelementptr ptr, ptr %base, i64 {rows.tensor}"))
        first = str(rows.first)
        if rows.first >= DYNAMIC // 2:
            first = self.new(f"add i64 {self.length()}, {rows.first - DYNAMIC}")
        row = self.new(f"add i64 {index}, {first}")
        offset = self.new(f"mul i64 {row}, {self.tensor_word(rows.tensor, 4)}")
        return self.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def lanes(self, tensor: int) -> str:
        return self.new(f"getelementptr [{self.n.width} x i64], ptr %lanes, i64 {tensor}")

    def read_row(self, rows: Rows, index: str, target: str) -> None:
        name = f"pack{rows.row_size}"
        self.unit.functions.setdefault(name, pack_row(name, self.n, rows.row_size))
        self.line(
            f"call void @{name}(ptr {self.row_address(rows, index)}, ptr {self.lanes(rows.tensor)}, ptr {target})"
        )

    def write_row(self, rows: Rows, index: str, source: str) -> None:
        name = f"unpack{rows.row_size}"
        self.unit.functions.setdefault(name, unpack_row(name, self.n, rows.row_size))
        mode = self.tensor_word(rows.tensor, 5)
        address, lanes = self.row_address(rows, index), self.lanes(rows.tensor)
        self.line(f"call void @{name}(ptr {source}, ptr {address}, ptr {lanes}, i64 %count, i64 {mode})")

    def materialize(self, place: Place, size: int) -> Memory:
        """Bring rows of a tensor into the workspace."""
        if isinstance(place, Memory):
            return place
        region = self.reserve(size)
        pointer = self.pointer(region)
        with self.loop(str(size // max(place.row_size, 1))) as row:
            self.read_row(place, row, self.element(pointer, row, place.row_size))
        return region

    # --- stages ---------------------------------------------------------------------------------------------------

    def straight(self, op: Straight, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        chunks, slots = self.unit.straight(op)
        self.call_chunks(chunks, slots, [self.pointer(p) for p in ins], [self.pointer(p) for p in outs])

    def program(self, program: Program, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        """All stages, with regions reserved when a variable is made and released after its last use."""
        places: dict[Var, Place] = dict(zip(program.inputs, ins, strict=True))
        targets = _direct_targets(program, outs)
        parts = _parts(program)
        dying = _last_uses(program, parts)
        for k, s in enumerate(program.stages):
            self._stage(s, places, targets, parts)
            for v in dying.get(k, ()):
                place = places[v]
                if isinstance(place, Memory) and place.pointer == "%ws":
                    self.release(place, v.size)
        for v, out in zip(program.outputs, outs, strict=True):
            if places[v] != out:
                self._deliver(places[v], out, v.size)

    def _stage(
        self, s: Stage, places: dict[Var, Place], targets: dict[Var, Place], parts: dict[Var, tuple[Var, int]]
    ) -> None:
        ins = [self._readable(s, k, v, places) for k, v in enumerate(s.inputs)]
        if s.op.is_view:
            places[s.outputs[0]] = s.op.view(ins[0])
            return
        for k, v in enumerate(s.outputs):
            if v in places:  # a join, reserved when its first part was made
                continue
            if v in parts:
                whole, start = parts[v]
                if whole not in places:
                    target = targets.get(whole)
                    places[whole] = target if isinstance(target, Memory) else self.reserve(whole.size)
                places[v] = shifted(places[whole], start)
                continue
            target = targets.get(v)
            if target is None or (isinstance(target, Rows) and not s.op.writes_rows(k, target.row_size)):
                target = self.reserve(v.size)
            places[v] = target
        s.op.emit(self, ins, [places[v] for v in s.outputs])

    def _readable(self, s: Stage, k: int, v: Var, places: dict[Var, Place]) -> Place:
        place = places[v]
        if isinstance(place, Rows) and not s.op.reads_rows(k, place.row_size):
            places[v] = self.materialize(place, v.size)
        return places[v]

    def _deliver(self, place: Place, out: Place, size: int) -> None:
        source = self.pointer(self.materialize(place, size))
        if isinstance(out, Memory):
            self.copy(self.pointer(out), source, size)
            return
        with self.loop(str(size // max(out.row_size, 1))) as row:
            self.write_row(out, row, self.element(source, row, out.row_size))


def _direct_targets(program: Program, outs: Sequence[Place]) -> dict[Var, Place]:
    """Outputs that the producing stage may write in place: made here, wanted once, and not read by others if streamed."""
    read = {v for s in program.stages for v in s.inputs}
    targets: dict[Var, Place] = {}
    for v, out in zip(program.outputs, outs, strict=True):
        once = program.outputs.count(v) == 1 and v not in program.inputs
        if once and not (isinstance(out, Rows) and v in read):
            targets[v] = out
    return targets


def _parts(program: Program) -> dict[Var, tuple[Var, int]]:
    """Value -> the join it is a part of, and where in it: such values are made where they will be."""
    free = {v for s in program.stages if not s.op.is_view and not isinstance(s.op, Join) for v in s.outputs}
    free -= set(program.outputs)
    found: dict[Var, tuple[Var, int]] = {}
    for s in program.stages:
        if isinstance(s.op, Join):
            for v, start in zip(s.inputs, s.op.starts(), strict=True):
                if v in free:
                    found[v] = s.outputs[0], start
                    free.remove(v)
    return found


def _last_uses(program: Program, parts: dict[Var, tuple[Var, int]]) -> dict[int, list[Var]]:
    """Stage index -> variables whose region is free after it. A view, and a part, keep the region they lie in alive."""
    root: dict[Var, Var] = {v: whole for v, (whole, _) in parts.items()}
    last: dict[Var, int] = {}
    for k, s in enumerate(program.stages):
        for v in s.inputs:
            last[root.get(v, v)] = k
        for v in s.outputs:
            if s.op.is_view:
                root[v] = root.get(s.inputs[0], s.inputs[0])
            else:
                last[root.get(v, v)] = k
    kept = {root.get(v, v) for v in program.outputs} | set(program.inputs)
    dying: dict[int, list[Var]] = {}
    for v, k in last.items():
        if v not in kept:
            dying.setdefault(k, []).append(v)
    return dying


def shifted(place: Place, start: int) -> Place:
    """A view that begins `start` elements later."""
    if isinstance(place, Memory):
        return replace(place, offset=place.offset + start)
    return replace(place, first=place.first + start // place.row_size)
