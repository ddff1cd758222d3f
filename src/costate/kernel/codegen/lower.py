"""Lowering: chunks of straight-line code become LLVM IR text on vectors, one sample per lane.

The writer goes through a chunk once. For every value it knows one or more of three forms: a vector in a register (`numbers`), a
pair of masks (`masks`), and a place in memory (`stored`). An input is not loaded where it stands in the tape but where it is first
used. A comparison stays a pair of masks, true and unordered, until some instruction needs it as a number.

After 64 operations a new basic block begins, and what lies in memory is loaded again there: in one long block LLVM would keep
everything it has read until its last use, mostly on the stack. Masks cannot be loaded again, so blocks begin where none is alive.

Numbers are IEEE numbers; there are no fast-math flags. Comparisons with a NaN are NaN, and a NaN goes through minima, maxima, logic
and selections, so that it stays visible. What each op writes is in two tables at the end of the file, `MASK_OPS` and `VALUE_OPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costate.kernel.codegen.chunks import Chunk
from costate.kernel.codegen.names import Names
from costate.kernel.codegen.tape import NOT_COUNTED
from costate.kernel.vecmath import FUNCTIONS, symbol

BLOCK_OPS = 64
"""Operations of a basic block. In one long block LLVM keeps every element it has read until its last use, mostly on the stack."""


class ChunkWriter:
    """Writes one chunk as an LLVM function."""

    def __init__(self, chunk: Chunk, names: Names):
        self.chunk, self.n = chunk, names
        self.lines: list[str] = []
        self.masks: dict[int, tuple[str, str]] = {}  # value -> (true, unordered) masks, for comparisons and logic
        self.numbers: dict[int, str] = {}  # value -> operand text, once it exists as a vector
        self.stored: dict[int, tuple[str, int]] = {}  # value -> (pointer, element) where it lies in memory
        self.calls: set[str] = set()
        self.fresh = 0

    def text(self) -> str:
        """Return the text of the function."""
        n, chunk = self.n, self.chunk
        self.stored.update((value, ("%ws", slot)) for value, slot in chunk.loads.items())
        ends = _mask_ends(chunk)
        size = 0
        for k, (value, ins) in enumerate(chunk.body):
            if size >= BLOCK_OPS and k > ends[k]:
                self.new_block()
                size = 0
            size += ins[0] not in NOT_COUNTED or value in chunk.stores
            self.instruction(value, ins)
            self.write_out(value)
        body = "\n".join(self.lines)
        head = f"define void @{chunk.name}({n.arguments(chunk.n_inputs, chunk.n_outputs)}) #0 {{\n"
        return f"{head}{body}\n  ret void\n}}\n"

    def declarations(self) -> set[str]:
        """Return the declarations of functions that the chunk calls, once its text is written."""
        return self.calls

    def write_out(self, value: int) -> None:
        """Store a value wherever it is wanted in memory."""
        places = [(f"%o{o}", e) for o, e in self.chunk.stores.get(value, ())]
        if value in self.chunk.saves:
            places.append(("%ws", self.chunk.saves[value]))
        for k, (pointer, element) in enumerate(places):
            if k and k % BLOCK_OPS == 0 and value not in self.masks:
                self.new_block()  # a constant may have thousands of places
            address = self.address(pointer, element)
            self.lines.append(f"  store {self.n.vec} {self.number(value)}, ptr {address}, align {self.n.align}")

    def new_block(self) -> None:
        """Start a basic block. What lies in memory is read again there."""
        self.fresh += 1
        self.lines += [f"  br label %b{self.fresh}", f"b{self.fresh}:"]
        for value in self.stored:
            self.numbers.pop(value, None)

    def new(self, text: str) -> str:
        """Write an instruction; return the name of its result."""
        self.fresh += 1
        self.lines.append(f"  %t{self.fresh} = {text}")
        return f"%t{self.fresh}"

    def address(self, pointer: str, element: int) -> str:
        """Return the address of a vector behind a pointer."""
        if element == 0:
            return pointer
        step = self.n.align if pointer == "%ws" else self.n.stride
        return self.new(f"getelementptr inbounds i8, ptr {pointer}, i64 {element * step}")

    def load(self, pointer: str, element: int) -> str:
        """Load a vector."""
        return self.new(f"load {self.n.vec}, ptr {self.address(pointer, element)}, align {self.n.align}")

    def instruction(self, value: int, ins: tuple[Any, ...]) -> None:
        """Write one instruction of the tape."""
        op = ins[0]
        if op == "input":
            self.stored[value] = (f"%i{ins[1]}", ins[2])
        elif op == "const":
            self.numbers[value] = self.n.splat(float.fromhex(ins[1]))
        elif op in MASK_OPS:
            self.masks[value] = MASK_OPS[op](self, *ins[1:])
        elif op in FUNCTIONS:
            self.numbers[value] = self.call(symbol(op, self.n.width, self.n.dtype), *map(self.number, ins[1:]))
        elif op in ("sincos", "cossin"):
            self.pair(value, op, ins[1])
        elif op == "second":
            self.numbers[value] = self.numbers[-1 - ins[1]]
        else:
            self.numbers[value] = VALUE_OPS[op](self, *ins[1:])

    def number(self, value: int) -> str:
        """Return the value as a vector; a comparison becomes 1, 0 or NaN."""
        if value not in self.numbers and value in self.stored:
            self.numbers[value] = self.load(*self.stored[value])
        if value not in self.numbers:
            true, unordered = self.masks[value]
            bit = self.select(true, self.n.splat(1.0), self.n.splat(0.0))
            self.numbers[value] = self.select(unordered, self.n.splat(float("nan")), bit)
        return self.numbers[value]

    def mask(self, value: int) -> tuple[str, str]:
        """Return the value as a pair of masks: not zero, and not a number."""
        if value not in self.masks:
            x = self.number(value)
            self.masks[value] = (self.compare("one", x, self.n.splat(0.0)), self.compare("uno", x, x))
        return self.masks[value]

    def compare(self, predicate: str, a: str, b: str) -> str:
        """Compare two vectors; return a mask."""
        return self.new(f"fcmp {predicate} {self.n.vec} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        """Return a where the mask is set, else b."""
        return self.new(f"select {self.n.mask} {mask}, {self.n.vec} {a}, {self.n.vec} {b}")

    def both(self, op: str, a: str, b: str) -> str:
        """Combine two masks."""
        return self.new(f"{op} {self.n.mask} {a}, {b}")

    def arithmetic(self, op: str, a: str, b: str) -> str:
        """Apply an operation to two vectors."""
        return self.new(f"{op} {self.n.vec} {a}, {b}")

    def call(self, function: str, *operands: str, result: str = "") -> str:
        """Call a function of vectors and note its declaration."""
        result = result or self.n.vec
        self.calls.add(f"declare {result} @{function}({', '.join([self.n.vec] * len(operands))})")
        return self.new(f"call {result} @{function}({', '.join(f'{self.n.vec} {x}' for x in operands)})")

    def intrinsic(self, name: str, *operands: str) -> str:
        """Call one of LLVM's own functions."""
        return self.call(f"llvm.{name}.{self.n.suffix}", *operands)

    def pair(self, value: int, op: str, x: int) -> None:
        """Compute sine and cosine of one argument at once."""
        result = f"{{{self.n.vec}, {self.n.vec}}}"
        both = self.call(symbol("sincos", self.n.width, self.n.dtype), self.number(x), result=result)
        sine, cosine = (self.new(f"extractvalue {result} {both}, {k}") for k in (0, 1))
        first, second = (sine, cosine) if op == "sincos" else (cosine, sine)
        self.numbers[value], self.numbers[-1 - value] = first, second


def _mask_ends(chunk: Chunk) -> list[int]:
    """Find for each instruction the last use of comparisons made before it: blocks begin only where no mask is alive."""
    last: dict[int, int] = {}
    for k, (_, ins) in enumerate(chunk.body):
        if ins[0] not in ("input", "const"):
            last.update(dict.fromkeys(ins[1:], k))
    ends, end = [], -1
    for value, ins in chunk.body:
        ends.append(end)
        if ins[0] in MASK_OPS:
            end = max(end, last.get(value, -1))
    return ends


def _order(predicate: str) -> Callable[[ChunkWriter, int, int], tuple[str, str]]:
    def emit(w: ChunkWriter, a: int, b: int) -> tuple[str, str]:
        x, y = w.number(a), w.number(b)
        return w.compare(predicate, x, y), w.compare("uno", x, y)

    return emit


def _not(w: ChunkWriter, a: int) -> tuple[str, str]:
    true, unordered = w.mask(a)
    return w.both("xor", true, "splat (i1 true)"), unordered


def _logic(op: str) -> Callable[[ChunkWriter, int, int], tuple[str, str]]:
    def emit(w: ChunkWriter, a: int, b: int) -> tuple[str, str]:
        (x, ux), (y, uy) = w.mask(a), w.mask(b)
        return w.both(op, x, y), w.both("or", ux, uy)

    return emit


def _select(w: ChunkWriter, condition: int, a: int, b: int) -> str:
    true, unordered = w.mask(condition)
    return w.select(unordered, w.n.splat(float("nan")), w.select(true, w.number(a), w.number(b)))


def _if_else_zero(w: ChunkWriter, condition: int, a: int) -> str:
    true, unordered = w.mask(condition)
    return w.select(unordered, w.n.splat(float("nan")), w.select(true, w.number(a), w.n.splat(0.0)))


def _extreme(predicate: str) -> Callable[[ChunkWriter, int, int], str]:
    def emit(w: ChunkWriter, a: int, b: int) -> str:
        x, y = w.number(a), w.number(b)
        best = w.select(w.compare(predicate, x, y), x, y)  # y if unordered: a NaN in y survives
        return w.select(w.compare("uno", x, x), x, best)

    return emit


def _sign(w: ChunkWriter, a: int) -> str:
    x, zero = w.number(a), w.n.splat(0.0)
    unit = w.intrinsic("copysign", w.n.splat(1.0), x)
    return w.select(w.compare("one", x, zero), unit, x)  # zero and NaN keep themselves


def _binary(op: str) -> Callable[[ChunkWriter, int, int], str]:
    return lambda w, a, b: w.arithmetic(op, w.number(a), w.number(b))


def _negative(w: ChunkWriter, x: str) -> str:
    return w.new(f"fneg {w.n.vec} {x}")


def _fma(negate_product: bool, negate_sum: bool) -> Callable[[ChunkWriter, int, int, int], str]:
    def emit(w: ChunkWriter, a: int, b: int, c: int) -> str:
        x, y, z = w.number(a), w.number(b), w.number(c)
        return w.intrinsic("fma", _negative(w, x) if negate_product else x, y, _negative(w, z) if negate_sum else z)

    return emit


def _unary_intrinsic(name: str) -> Callable[[ChunkWriter, int], str]:
    return lambda w, a: w.intrinsic(name, w.number(a))


MASK_OPS: dict[str, Callable[..., tuple[str, str]]] = {
    "lt": _order("olt"),
    "le": _order("ole"),
    "eq": _order("oeq"),
    "ne": _order("one"),
    "not": _not,
    "and": _logic("and"),
    "or": _logic("or"),
}

VALUE_OPS: dict[str, Callable[..., str]] = {
    "add": _binary("fadd"),
    "sub": _binary("fsub"),
    "mul": _binary("fmul"),
    "div": _binary("fdiv"),
    "neg": lambda w, a: _negative(w, w.number(a)),
    "sq": lambda w, a: w.arithmetic("fmul", w.number(a), w.number(a)),
    "twice": lambda w, a: w.arithmetic("fadd", w.number(a), w.number(a)),
    "inv": lambda w, a: w.arithmetic("fdiv", w.n.splat(1.0), w.number(a)),
    "fma": _fma(False, False),
    "fms": _fma(False, True),
    "fnma": _fma(True, False),
    "sqrt": _unary_intrinsic("sqrt"),
    "fabs": _unary_intrinsic("fabs"),
    "floor": _unary_intrinsic("floor"),
    "ceil": _unary_intrinsic("ceil"),
    "copysign": lambda w, a, b: w.intrinsic("copysign", w.number(a), w.number(b)),
    "sign": _sign,
    "fmin": _extreme("olt"),
    "fmax": _extreme("ogt"),
    "select": _select,
    "if_else_zero": _if_else_zero,
}
