"""Emission: LLVM IR text of one function that runs one lane block.

Values live in memory as arrays of vectors: element j of a variable, for all lanes of the block, is vector j at its slot.
A whole program runs for one lane block before the next block starts, so its workspace stays in the cache. The kernel's own
tensors are row-major with samples apart; they are transposed into vectors on the way in and back on the way out (`driver.py`),
row by row where a scan at the top level streams through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from costate.kernel.codegen.loops import HELPERS
from costate.kernel.codegen.rows import LONG_ROW, pack_row, unpack_row
from costate.kernel.codegen.slots import Memory, Rows, Slot
from costate.kernel.ir.program import DYNAMIC

if TYPE_CHECKING:
    from costate.kernel.codegen.unit import Unit

WORDS_BEFORE = 5
"""Words of the kernel's arguments before the tensors: begin, end, workspace, address of the stop flag, length."""
STOP_WORD = 3
LENGTH_WORD = 4
WORDS_PER_TENSOR = 6


def before(e: Emitter, workspace: str) -> str:
    """Return the address of the word before a workspace."""
    return e.new(f"getelementptr inbounds i64, ptr {workspace}, i64 -1")


@dataclass(frozen=True)
class Function:
    """A callable piece of the unit: pointers to inputs, outputs and workspace."""

    name: str
    workspace: int
    """Vectors."""


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
        self.context = 0
        """Number of contexts of loops over blocks so far."""
        self._held: list[list[tuple[Memory, int]]] = []  # regions of the scratch blocks being written, innermost last
        self._exits: list[str] = []  # labels after the loops being written, innermost last

    @property
    def workspace(self) -> int:
        """Vectors this function and its callees need."""
        return self._top + self._callee + self.n.fields

    def finish(self, head: str) -> str:
        """Return the text of the whole function."""
        body = "\n".join([*self.allocas, *self.lines])
        own = self._top * self.n.stride
        return f"{head} {{\nentry:\n{body.replace('@OWN@', str(own))}\n  br label %quit\nquit:\n  ret void\n}}\n"

    # --- text -----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"  {text}")

    def new(self, text: str) -> str:
        """Write an instruction; return the name of its result."""
        self._fresh += 1
        self.line(f"%v{self._fresh} = {text}")
        return f"%v{self._fresh}"

    def label(self, hint: str) -> str:
        """Return a new label."""
        self._fresh += 1
        return f"{hint}{self._fresh}"

    def block(self, label: str) -> None:
        """End the basic block and begin another."""
        self.line(f"br label %{label}")
        self.lines.append(f"{label}:")

    def variable(self, kind: str, value: str) -> str:
        """Make a local variable in memory, set to a value here; return its address."""
        self._fresh += 1
        name = f"%m{self._fresh}"
        self.allocas.append(f"  {name} = alloca {kind}")
        self.line(f"store {kind} {value}, ptr {name}")
        return name

    def load(self, kind: str, pointer: str) -> str:
        """Load a value from an address."""
        return self.new(f"load {kind}, ptr {pointer}")

    @contextmanager
    def loop(self, count: str) -> Iterator[str]:
        """Write a loop over i in range(count); yield i."""
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

    def quit_if_stopped(self) -> None:
        """Return from the whole function if the call was told to stop. Functions of loop bodies do not know of it."""
        if self.nested:
            return
        stop = self.load("ptr", self.new(f"getelementptr i64, ptr %args, i64 {STOP_WORD}"))
        told = self.new(f"load atomic i64, ptr {stop} monotonic, align 8")
        stay = self.label("stay")
        self.line(f"br i1 {self.new(f'icmp ne i64 {told}, 0')}, label %quit, label %{stay}")
        self.lines.append(f"{stay}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Write a block that runs only if a condition (i1) holds."""
        yes, done = self.label("yes"), self.label("done")
        self.line(f"br i1 {condition}, label %{yes}, label %{done}")
        self.lines.append(f"{yes}:")
        yield
        self.block(done)

    # --- memory ---------------------------------------------------------------------------------------------------

    def reserve(self, size: int) -> Memory:
        """Take a region of `size` vectors of the workspace."""
        if size >= DYNAMIC // 2:
            raise ValueError("a sequence of dynamic length can only be an input or output of a kernel's scans")
        for k, (offset, room) in enumerate(self._regions):
            if room >= size:
                self._regions[k] = (offset + size, room - size)
                return Memory("%ws", offset)
        self._top += size
        return Memory("%ws", self._top - size)

    def release(self, slot: Memory, size: int) -> None:
        """Give a region back to the workspace."""
        self._regions.append((slot.offset, size))

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Give back what is held inside of the block."""
        self._held.append([])
        yield
        for region, size in self._held.pop():
            self.release(region, size)

    def hold(self, size: int) -> str:
        """Take a region until the end of the innermost `scratch` block; return its address."""
        region = self.reserve(size)
        self._held[-1].append((region, size))
        return self.pointer(region)

    def pointer(self, slot: Slot) -> str:
        """Return the address of a slot in memory."""
        assert isinstance(slot, Memory), "only scans stream rows"
        if slot.offset == 0:
            return slot.pointer
        return self.new(f"getelementptr inbounds i8, ptr {slot.pointer}, i64 {slot.offset * self.n.stride}")

    def element(self, pointer: str, index: str, size: int = 1) -> str:
        """Return the address of vector index * size after a pointer."""
        bytes_ = self.new(f"mul i64 {index}, {size * self.n.stride}")
        return self.new(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")

    def call(self, function: Function, ins: Sequence[str], outs: Sequence[str]) -> None:
        """Call a function of the unit; its workspace lies behind that of this function."""
        self.call_chunks([function.name], function.workspace, ins, outs)

    def call_chunks(self, names: Sequence[str], workspace: int, ins: Sequence[str], outs: Sequence[str]) -> None:
        """Call functions one after the other, all with the same arguments."""
        below = self.below(workspace)
        arguments = ", ".join(f"ptr {p}" for p in (*ins, *outs, below))
        for name in names:
            self.line(f"call void @{name}({arguments})")

    def below(self, workspace: int) -> str:
        """Return the address of a callee's workspace: behind that of this function."""
        self._callee = max(self._callee, workspace)
        below = self.new("getelementptr inbounds i8, ptr %ws, i64 @OWN@")
        if self.n.fields:  # the word before a workspace is the address of the team (see `stages/fields/team.py`)
            below = self.new(f"getelementptr inbounds i8, ptr {below}, i64 {self.n.stride}")
            self.line(f"store ptr {self.load('ptr', before(self, '%ws'))}, ptr {before(self, below)}")
        return below

    def spread(self, number: str, target: str) -> None:
        """Store a number in all lanes of an element."""
        n = self.n
        one = self.new(f"insertelement {n.vec} poison, {n.scalar} {number}, i64 0")
        every = self.new(f"shufflevector {n.vec} {one}, {n.vec} poison, <{n.width} x i32> zeroinitializer")
        for part in range(n.parts):
            at = self.new(f"getelementptr i8, ptr {target}, i64 {part * n.align}")
            self.line(f"store {n.vec} {every}, ptr {at}, align {n.align}")

    def helper(self, name: str, *arguments: str) -> None:
        """Call one of the small loops of `loops.py` (copy, zero, freeze, ...)."""
        self.unit.functions.setdefault(name, HELPERS[name](self.n))
        self.line(f"call void @{name}({', '.join(arguments)})")

    def copy(self, target: str, source: str, size: int) -> None:
        """Copy vectors."""
        self.helper("vcopy", f"ptr {target}", f"ptr {source}", f"i64 {size}")

    # --- rows of the kernel's tensors -----------------------------------------------------------------------------

    def tensor_word(self, tensor: int, word: int) -> str:
        """Load a word of the tensor's descriptor from the arguments of the kernel."""
        at = WORDS_BEFORE + WORDS_PER_TENSOR * tensor + word
        return self.load("i64", self.new(f"getelementptr i64, ptr %args, i64 {at}"))

    def length(self) -> str:
        """Load the length of dynamic sequences."""
        if self.nested:
            raise ValueError(
                "a scan of dynamic length must be at the top level of a kernel, not inside of another loop"
            )
        return self.load("i64", self.new(f"getelementptr i64, ptr %args, i64 {LENGTH_WORD}"))

    def row_address(self, rows: Rows, index: str) -> str:
        """Return the address of a row of a tensor, for the first sample."""
        base = self.load("ptr", self.new(f"getelementptr ptr, ptr %base, i64 {rows.tensor}"))
        first = str(rows.first)
        if rows.first >= DYNAMIC // 2:
            first = self.new(f"add i64 {self.length()}, {rows.first - DYNAMIC}")
        row = self.new(f"add i64 {index}, {first}")
        offset = self.new(f"mul i64 {row}, {self.tensor_word(rows.tensor, 4)}")
        return self.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def lanes(self, tensor: int) -> str:
        """Return the address of the lanes' offsets in a tensor."""
        return self.new(f"getelementptr [{self.n.width} x i64], ptr %lanes, i64 {tensor}")

    def read_row(self, rows: Rows, index: str, target: str) -> None:
        """Transpose one row of all samples into vectors."""
        lanes = self.lanes(rows.tensor)
        for size, row, vectors in self._pieces(rows.row_size, self.row_address(rows, index), target):
            name = f"pack{size}"
            self.unit.functions.setdefault(name, pack_row(name, self.n, size))
            self.line(f"call void @{name}(ptr {row}, ptr {lanes}, ptr {vectors})")

    def write_row(self, rows: Rows, index: str, source: str) -> None:
        """Transpose vectors into one row of all samples."""
        lanes, mode = self.lanes(rows.tensor), self.tensor_word(rows.tensor, 5)
        for size, row, vectors in self._pieces(rows.row_size, self.row_address(rows, index), source):
            name = f"unpack{size}"
            self.unit.functions.setdefault(name, unpack_row(name, self.n, size))
            self.line(f"call void @{name}(ptr {vectors}, ptr {row}, ptr {lanes}, i64 %count, i64 {mode})")

    def _pieces(self, size: int, row: str, vectors: str) -> Iterator[tuple[int, str, str]]:
        """Yield (numbers, address in the tensor, address of the vectors) of a row: all at once, or a long one in a loop."""
        whole = size // LONG_ROW * LONG_ROW if size > LONG_ROW else 0
        if whole:
            with self.loop(str(whole // LONG_ROW)) as k:
                start = self.new(f"mul i64 {k}, {LONG_ROW * self.n.bytes}")
                yield (
                    LONG_ROW,
                    self.new(f"getelementptr i8, ptr {row}, i64 {start}"),
                    self.element(vectors, k, LONG_ROW),
                )
        if size > whole:
            there = self.new(f"getelementptr i8, ptr {row}, i64 {whole * self.n.bytes}")
            yield size - whole, there, self.element(vectors, str(whole))

    def row_count(self, size: int, rows: Rows) -> str:
        """Return how many rows of a tensor hold `size` numbers."""
        count = size // max(rows.row_size, 1)
        return self.new(f"add i64 {self.length()}, {count - DYNAMIC}") if count >= DYNAMIC // 2 else str(count)

    def move(self, source: Slot, target: Slot, size: int) -> None:
        """Copy `size` numbers from one slot to another: row by row from and to tensors."""
        if isinstance(target, Memory):
            self.copy(self.pointer(target), self.pointer(self.materialize(source, size)), size)
            return
        if isinstance(source, Rows) and source.row_size == target.row_size and size >= DYNAMIC // 2:
            with self.scratch():
                buffer = self.hold(target.row_size)
                with self.loop(self.row_count(size, target)) as row:
                    self.read_row(source, row, buffer)
                    self.write_row(target, row, buffer)
            return
        pointer = self.pointer(self.materialize(source, size))
        with self.loop(self.row_count(size, target)) as row:
            self.write_row(target, row, self.element(pointer, row, target.row_size))

    def materialize(self, slot: Slot, size: int) -> Memory:
        """Bring rows of a tensor into the workspace."""
        if isinstance(slot, Memory):
            return slot
        region = self.reserve(size)
        pointer = self.pointer(region)
        with self.loop(str(size // max(slot.row_size, 1))) as row:
            self.read_row(slot, row, self.element(pointer, row, slot.row_size))
        return region
