"""Text of LLVM functions with loops over vectors of float32."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Loop:
    """A loop that is being written: i = 0 .. count - 1, with values that go from one turn to the next."""

    index: str
    values: list[str]
    """Values at the beginning of a turn."""
    then: list[str] = field(default_factory=list)
    """Values at its end, to be set by whoever writes the body; after the loop, its results."""


class Code:
    """The body of a function."""

    def __init__(self, width: int):
        self.width = width
        """Numbers of a vector."""
        self.vec = f"<{width} x float>"
        self.lines: list[str] = []
        self.block, self.fresh = "entry", 0

    def function(self, name: str, arguments: str, linkage: str = "internal ") -> str:
        """Return the text of the whole function."""
        body = "\n".join(self.lines)
        return f"define {linkage}void @{name}({arguments}) #0 {{\nentry:\n{body}\n  ret void\n}}\n"

    def new(self, text: str) -> str:
        """Write an instruction; return the name of its result."""
        self.fresh += 1
        self.lines.append(f"  %t{self.fresh} = {text}")
        return f"%t{self.fresh}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    @contextmanager
    def loop(self, count: int | str, *start: str, kinds: Sequence[str] = ()) -> Iterator[Loop]:
        """Write a loop of at least one turn. kinds: types of the values that are carried; vectors by default."""
        self.fresh += 1
        k, before, at = self.fresh, self.block, len(self.lines)
        loop = Loop(f"%i{k}", [f"%c{k}.{j}" for j in range(len(start))])
        self.block = f"loop{k}"
        yield loop
        types = kinds or [self.vec] * len(start)
        assert len(loop.then) == len(start), "a loop must say what its values are at the end of a turn"
        head = [f"  br label %loop{k}", f"loop{k}:"]
        head.append(f"  {loop.index} = phi i64 [0, %{before}], [%n{k}, %{self.block}]")
        for name, kind, first, last in zip(loop.values, types, start, loop.then, strict=True):
            head.append(f"  {name} = phi {kind} [{first}, %{before}], [{last}, %{self.block}]")
        self.lines[at:at] = head
        self.line(f"%n{k} = add i64 {loop.index}, 1")
        self.line(f"%m{k} = icmp slt i64 %n{k}, {count}")
        self.line(f"br i1 %m{k}, label %loop{k}, label %done{k}")
        self.lines.append(f"done{k}:")
        self.block = f"done{k}"

    # --- memory ---------------------------------------------------------------------------------------------------

    def at(self, base: str, offset: int) -> str:
        """Return the address of a number."""
        return base if offset == 0 else self.new(f"getelementptr inbounds float, ptr {base}, i64 {offset}")

    def step(self, base: str, index: str, stride: int) -> str:
        """Return the address index * stride numbers further."""
        far = index if stride == 1 else self.new(f"mul nsw i64 {index}, {stride}")
        return self.new(f"getelementptr inbounds float, ptr {base}, i64 {far}")

    def load(self, pointer: str) -> str:
        """Load a vector."""
        return self.new(f"load {self.vec}, ptr {pointer}, align 4")

    def store(self, value: str, pointer: str) -> None:
        """Store a vector."""
        self.line(f"store {self.vec} {value}, ptr {pointer}, align 4")

    def number(self, pointer: str) -> str:
        """Load a number."""
        return self.new(f"load float, ptr {pointer}, align 4")

    # --- arithmetic -----------------------------------------------------------------------------------------------

    def spread(self, number: str) -> str:
        """Return a vector of one number."""
        one = self.new(f"insertelement {self.vec} poison, float {number}, i64 0")
        return self.new(f"shufflevector {self.vec} {one}, {self.vec} poison, <{self.width} x i32> zeroinitializer")

    def splat(self, value: float) -> str:
        """Return a constant vector."""
        return f"splat (float {constant(value)})"

    def op(self, name: str, a: str, b: str, kind: str = "") -> str:
        """Apply fadd, fsub, fmul or fdiv."""
        return self.new(f"{name} {kind or self.vec} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Return a b + c."""
        v = self.vec
        return self.new(f"call {v} @llvm.fma.v{self.width}f32({v} {a}, {v} {b}, {v} {c})")

    def unary(self, name: str, a: str) -> str:
        """Call one of LLVM's functions of a vector."""
        return self.new(f"call {self.vec} @llvm.{name}.v{self.width}f32({self.vec} {a})")

    def select(self, relation: str, a: str, b: str, yes: str, no: str) -> str:
        """Return yes where a and b are in a relation, else no."""
        mask = self.new(f"fcmp {relation} {self.vec} {a}, {b}")
        return self.new(f"select <{self.width} x i1> {mask}, {self.vec} {yes}, {self.vec} {no}")

    def total(self, values: Sequence[str]) -> str:
        """Return the sum of all numbers of some vectors, in a fixed order."""
        values = list(values)
        while len(values) > 1:
            pairs = [self.op("fadd", a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
            values = pairs + values[len(pairs) * 2 :]
        vector, width = values[0], self.width
        while width > 1:
            half = width // 2
            order = [k + half if k < half else k for k in range(self.width)]
            indices = ", ".join(f"i32 {k}" for k in order)
            other = self.new(f"shufflevector {self.vec} {vector}, {self.vec} poison, <{self.width} x i32> <{indices}>")
            vector, width = self.op("fadd", vector, other), half
        return self.new(f"extractelement {self.vec} {vector}, i64 0")


def constant(value: float) -> str:
    """Return a float32 as LLVM writes it, exactly."""
    single = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


def declarations(width: int) -> set[str]:
    """Return the declarations of what functions call."""
    v = f"<{width} x float>"
    found = {f"declare {v} @llvm.{name}.v{width}f32({v})" for name in ("rint", "sqrt")}
    return found | {f"declare {v} @llvm.fma.v{width}f32({v}, {v}, {v})", "declare float @llvm.sqrt.f32(float)"}
