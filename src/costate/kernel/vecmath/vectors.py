"""Vectors as Python values: an operator on two of them writes one LLVM instruction.

The functions of this package are written with these, so that each reads like its mathematics. A vector has one lane per
sample and is of one of three kinds: reals (<W x double>), integers (<W x i64>) or a mask (<W x i1>).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from costate.kernel.vecmath.polynomials import POLYNOMIALS

SIGN = 1 << 63
INF = float("inf")
NAN = float("nan")


def real_bits(value: float) -> int:
    """Return the 64 bits of a double."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


def real_text(value: float) -> str:
    """Return a double as LLVM writes it, exactly."""
    return f"0x{real_bits(value) & (2**64 - 1):016X}"


@dataclass(frozen=True, eq=False)
class Vec:
    """An SSA value or constant. `element` is double, i64 or i1."""

    emit: Emitter
    element: str
    text: str

    def __add__(self, other: Vec | float) -> Vec:
        return self.emit.binary("add", self, other)

    def __sub__(self, other: Vec | float) -> Vec:
        return self.emit.binary("sub", self, other)

    def __rsub__(self, other: float) -> Vec:
        return self.emit.constant(other, self.element) - self

    def __mul__(self, other: Vec | float) -> Vec:
        return self.emit.binary("mul", self, other)

    def __truediv__(self, other: Vec | float) -> Vec:
        return self.emit.binary("div", self, other)

    def __rtruediv__(self, other: float) -> Vec:
        return self.emit.constant(other, self.element) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Vec:
        return self.emit.op("double", f"fneg {self.emit.type('double')} {self.text}")

    def __and__(self, other: Vec | int) -> Vec:
        return self.emit.bitwise("and", self, other)

    def __or__(self, other: Vec | int) -> Vec:
        return self.emit.bitwise("or", self, other)

    def __xor__(self, other: Vec | int) -> Vec:
        return self.emit.bitwise("xor", self, other)

    def __invert__(self) -> Vec:
        return self.emit.bitwise("xor", self, -1)

    def __lshift__(self, count: int) -> Vec:
        return self.emit.bitwise("shl", self, count)

    def __rshift__(self, count: int) -> Vec:
        """Shift arithmetically."""
        return self.emit.bitwise("ashr", self, count)

    # Comparisons are false where a lane is NaN; write ~(a <= b) to catch NaN.
    def __lt__(self, other: Vec | float) -> Vec:
        return self.emit.compare("lt", self, other)

    def __le__(self, other: Vec | float) -> Vec:
        return self.emit.compare("le", self, other)

    def __gt__(self, other: Vec | float) -> Vec:
        return self.emit.compare("gt", self, other)

    def __ge__(self, other: Vec | float) -> Vec:
        return self.emit.compare("ge", self, other)

    def equals(self, other: Vec | float) -> Vec:
        """Mask of equal lanes (+0 equals -0)."""
        return self.emit.compare("eq", self, other)


class Emitter:
    """Writes the body of one function, instruction by instruction."""

    def __init__(self, width: int, dtype: str) -> None:
        self.width = width
        self.dtype = dtype
        """Precision of the caller's values, which selects the polynomials; arithmetic is always double."""
        self.lines: list[str] = []
        self.names = 0
        self.block = "entry"

    # -- instructions

    def type(self, element: str) -> str:
        """Return the vector type of a kind of element."""
        return f"<{self.width} x {element}>"

    def op(self, element: str, instruction: str) -> Vec:
        """Append an instruction and name its result."""
        self.names += 1
        name = f"%v{self.names}"
        self.lines.append(f"  {name} = {instruction}")
        return Vec(self, element, name)

    def constant(self, value: Vec | float, element: str = "double") -> Vec:
        """Return the same number in every lane; a vector passes through."""
        if isinstance(value, Vec):
            return value
        if element == "double":
            text = real_text(float(value))
        elif element == "i1":
            text = "true" if value else "false"
        else:
            text = str((int(value) + SIGN) % 2**64 - SIGN)
        return Vec(self, element, f"splat ({element} {text})")

    def binary(self, name: str, a: Vec, b: Vec | float) -> Vec:
        """Apply an operation to two vectors."""
        prefix = "f" if a.element == "double" else ""
        return self.op(a.element, f"{prefix}{name} {self.type(a.element)} {a.text}, {self.constant(b, a.element).text}")

    def bitwise(self, name: str, a: Vec, b: Vec | int) -> Vec:
        """Apply an operation to the bits of two vectors."""
        return self.op(a.element, f"{name} {self.type(a.element)} {a.text}, {self.constant(b, a.element).text}")

    def compare(self, relation: str, a: Vec, b: Vec | float) -> Vec:
        """Compare two vectors; return a mask."""
        if a.element == "double":
            name = f"fcmp o{relation}"
        else:
            name = f"icmp {relation}" if relation == "eq" else f"icmp s{relation}"
        return self.op("i1", f"{name} {self.type(a.element)} {a.text}, {self.constant(b, a.element).text}")

    def select(self, mask: Vec, a: Vec | float, b: Vec | float) -> Vec:
        """Return a where the mask is set, else b."""
        element = next((v.element for v in (a, b) if isinstance(v, Vec)), "double")
        kind, a, b = self.type(element), self.constant(a, element), self.constant(b, element)
        return self.op(element, f"select {self.type('i1')} {mask.text}, {kind} {a.text}, {kind} {b.text}")

    def call(self, intrinsic: str, *arguments: Vec | float) -> Vec:
        """Return a vector intrinsic of reals, such as fma, sqrt, fabs, trunc."""
        kind = self.type("double")
        texts = ", ".join(f"{kind} {self.constant(a).text}" for a in arguments)
        return self.op("double", f"call {kind} @llvm.{intrinsic}.v{self.width}f64({texts})")

    def fma(self, a: Vec | float, b: Vec | float, c: Vec | float) -> Vec:
        """Return a b + c with one rounding."""
        return self.call("fma", a, b, c)

    def sqrt(self, a: Vec) -> Vec:
        """Return the square root."""
        return self.call("sqrt", a)

    def abs(self, a: Vec) -> Vec:
        """Return the magnitude."""
        return self.call("fabs", a)

    def trunc(self, a: Vec) -> Vec:
        """Round towards zero to an integer."""
        return self.call("trunc", a)

    def at_most(self, a: Vec, limit: float) -> Vec:
        """Return min(a, limit); NaN stays."""
        limit_ = self.constant(limit)
        return self.select(limit_ < a, limit_, a)

    def at_least(self, a: Vec, limit: float) -> Vec:
        """Return max(a, limit); NaN stays."""
        limit_ = self.constant(limit)
        return self.select(limit_ > a, limit_, a)

    # -- bits

    def bits(self, a: Vec) -> Vec:
        """Return the bits of reals as integers."""
        return self.op("i64", f"bitcast {self.type('double')} {a.text} to {self.type('i64')}")

    def real(self, a: Vec) -> Vec:
        """Return integers as the reals that have these bits."""
        return self.op("double", f"bitcast {self.type('i64')} {a.text} to {self.type('double')}")

    def sign(self, a: Vec) -> Vec:
        """Return the sign bit alone, as integers."""
        return self.bits(a) & SIGN

    def flip(self, a: Vec, sign: Vec) -> Vec:
        """Return a with its sign flipped where the sign bit is set."""
        return self.real(self.bits(a) ^ sign)

    def outside(self, a: Vec, low: float, high: float) -> Vec:
        """Mask of lanes not in [low, high), 0 < low < high, NaN included: one unsigned comparison of the bits."""
        offset = self.bits(a) - real_bits(low)
        span = real_bits(high) - real_bits(low)
        return self.op("i1", f"icmp uge {self.type('i64')} {offset.text}, {self.constant(span, 'i64').text}")

    # -- polynomials

    def polynomial(self, name: str, x: Vec) -> Vec:
        """Return a row of POLYNOMIALS at x: even and odd powers apart, two chains of fused multiply-adds side by side."""
        c = POLYNOMIALS[name][self.dtype]
        x2 = x * x
        return self.fma(self.horner(c[1::2], x2), x, self.horner(c[0::2], x2))

    def horner(self, coefficients: tuple[float, ...] | list[Vec], x: Vec) -> Vec:
        """Evaluate in one chain: for badly conditioned rows, or coefficients that differ between lanes."""
        result = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, x, c)
        return result

    # -- control flow: lanes differ only in what they select

    def repair(self, rare: Vec, fast: tuple[Vec, ...], slow: Callable[[], tuple[Vec, ...]]) -> tuple[Vec, ...]:
        """Return `fast`, with the lanes of `rare` taken from slow(); slow() runs only if there is such a lane."""
        before, repair, after = self.block, self.label("rare"), self.label("join")
        self.branch_if_any(rare, repair, after)
        self.start(repair)
        mended = tuple(self.select(rare, s, f) for s, f in zip(slow(), fast, strict=True))
        repaired = self.block
        self.lines.append(f"  br label %{after}")
        self.start(after)
        return tuple(self.phi((f, before), (m, repaired)) for f, m in zip(fast, mended, strict=True))

    def repeat(self, state: Vec, body: Callable[[Vec], tuple[Vec, Vec]]) -> Vec:
        """Apply body, which returns (next state, mask of lanes that go on), until no lane goes on."""
        before, loop, after = self.block, self.label("loop"), self.label("done")
        self.lines.append(f"  br label %{loop}")
        self.start(loop)
        at = len(self.lines)
        self.names += 1
        current = Vec(self, state.element, f"%v{self.names}")
        result, more = body(current)
        ends, kind = self.block, self.type(state.element)
        self.branch_if_any(more, loop, after)
        self.lines.insert(at, f"  {current.text} = phi {kind} [ {state.text}, %{before} ], [ {result.text}, %{ends} ]")
        self.start(after)
        return result

    def branch_if_any(self, mask: Vec, some: str, none: str) -> None:
        """Jump if any lane of a mask is set."""
        self.names += 1
        flag = f"%v{self.names}"
        kind = self.type("i1")
        self.lines.append(f"  {flag} = call i1 @llvm.vector.reduce.or.v{self.width}i1({kind} {mask.text})")
        self.lines.append(f"  br i1 {flag}, label %{some}, label %{none}, !prof !0")

    def phi(self, *choices: tuple[Vec, str]) -> Vec:
        """Merge values of two blocks."""
        element = choices[0][0].element
        edges = ", ".join(f"[ {value.text}, %{block} ]" for value, block in choices)
        return self.op(element, f"phi {self.type(element)} {edges}")

    def label(self, name: str) -> str:
        """Return a new label."""
        self.names += 1
        return f"{name}{self.names}"

    def start(self, block: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{block}:")
        self.block = block
