"""A small language for loops over arrays: Python's operators write LLVM's instructions.

A loop of a picture is a Python function that is run once, with a `Code` and its arguments, and writes what is to be done. Numbers
are `Number`s, arrays `Buffer`s: `with code.loop(a, b) as i: out[i] = x[i] * 2`. What changes in a loop is a `Variable`. There are
no fast-math flags: every machine computes the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

F32, F64, I8, I32, I64 = ir.FloatType(), ir.DoubleType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)


class Number:
    """A value that the machine computes."""

    def __init__(self, code: Code, value: Any):
        self.code, self.value = code, value

    @property
    def type(self) -> Any:
        return self.value.type

    @property
    def is_float(self) -> bool:
        return self.type in (F32, F64)

    def _pair(self, other: Any) -> Any:
        return other.value if isinstance(other, Number) else ir.Constant(self.type, other)

    def _with(self, name: str, other: Any, swapped: bool = False) -> Number:
        a, b = self.value, self._pair(other)
        make = getattr(self.code.builder, ("f" if self.is_float else "") + name)
        return Number(self.code, make(b, a) if swapped else make(a, b))

    def __add__(self, other: Any) -> Number:
        return self._with("add", other)

    def __sub__(self, other: Any) -> Number:
        return self._with("sub", other)

    def __rsub__(self, other: Any) -> Number:
        return self._with("sub", other, swapped=True)

    def __mul__(self, other: Any) -> Number:
        return self._with("mul", other)

    def __truediv__(self, other: Any) -> Number:
        return self._with("div", other)

    def __rtruediv__(self, other: Any) -> Number:
        return self._with("div", other, swapped=True)

    def __neg__(self) -> Number:
        return 0.0 - self if self.is_float else 0 - self

    def __and__(self, other: Any) -> Number:
        return Number(self.code, self.code.builder.and_(self.value, self._pair(other)))

    __radd__, __rmul__ = __add__, __mul__

    def _compare(self, sign: str, other: Any) -> Number:
        make = self.code.builder.fcmp_ordered if self.is_float else self.code.builder.icmp_signed
        return Number(self.code, make(sign, self.value, self._pair(other)))

    def __lt__(self, other: Any) -> Number:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Number:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Number:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Number:
        return self._compare(">=", other)

    def to(self, kind: Any) -> Number:
        """Convert, towards zero where digits are lost."""
        b = self.code.builder
        if self.type == kind:
            return self
        if self.is_float and kind in (F32, F64):
            make = b.fpext if kind == F64 else b.fptrunc
        elif self.is_float:
            make = b.fptosi
        elif kind in (F32, F64):
            make = b.sitofp
        else:
            make = b.sext if kind.width > self.type.width else b.trunc
        return Number(self.code, make(self.value, kind))


class Buffer:
    """An array of the caller's."""

    def __init__(self, code: Code, pointer: Any):
        self.code, self.pointer = code, pointer

    def _at(self, index: Number | int) -> Any:
        at: Any = index.to(I64).value if isinstance(index, Number) else ir.Constant(I64, index)
        return self.code.builder.gep(self.pointer, [at])

    def __getitem__(self, index: Number | int) -> Number:
        return Number(self.code, self.code.builder.load(self._at(index)))

    def __setitem__(self, index: Number | int, value: Any) -> None:
        kind = self.pointer.type.pointee
        value = value.value if isinstance(value, Number) else ir.Constant(kind, value)
        self.code.builder.store(value, self._at(index))

    def three(self, index: Number) -> Vector:
        """Return row number `index` of an array (n, 3)."""
        at = index.to(I64) * 3
        return Vector(self[at], self[at + 1], self[at + 2])


class Variable:
    """A number that changes."""

    def __init__(self, code: Code, value: Number):
        with code.builder.goto_entry_block():
            self._at = code.builder.alloca(value.type)
        self.code = code
        self.set(value)

    def get(self) -> Number:
        return Number(self.code, self.code.builder.load(self._at))

    def set(self, value: Number) -> None:
        self.code.builder.store(value.value, self._at)


class Vector:
    """Three numbers."""

    def __init__(self, x: Any, y: Any, z: Any):
        self.x, self.y, self.z = x, y, z

    def _each(self, do: Any, other: Any) -> Vector:
        o = other if isinstance(other, Vector) else Vector(other, other, other)
        return Vector(do(self.x, o.x), do(self.y, o.y), do(self.z, o.z))

    def __add__(self, other: Any) -> Vector:
        return self._each(operator.add, other)

    def __sub__(self, other: Any) -> Vector:
        return self._each(operator.sub, other)

    def __mul__(self, other: Any) -> Vector:
        return self._each(operator.mul, other)

    def dot(self, other: Vector) -> Number:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def wide(self) -> Vector:
        """Return the same in double precision."""
        return Vector(self.x.to(F64), self.y.to(F64), self.z.to(F64))

    def unit(self, code: Code) -> Vector:
        """Return the direction; a vector of nothing stays one."""
        return self * (1.0 / code.largest(code.sqrt(self.dot(self)), 1e-9))


class Code:
    """A function in the making."""

    def __init__(self, builder: ir.IRBuilder):
        self.builder = builder

    def number(self, value: float, kind: Any) -> Number:
        return Number(self, ir.Constant(kind, value))

    def variable(self, value: Number) -> Variable:
        return Variable(self, value)

    def select(self, condition: Number, yes: Any, no: Any) -> Number:
        kind = next(v.type for v in (yes, no) if isinstance(v, Number))
        a, b = (v.value if isinstance(v, Number) else ir.Constant(kind, v) for v in (yes, no))
        return Number(self, self.builder.select(condition.value, a, b))

    def smallest(self, first: Number, *others: Any) -> Number:
        for other in others:
            first = self.select(first < other, first, other)
        return first

    def largest(self, first: Number, *others: Any) -> Number:
        for other in others:
            first = self.select(first > other, first, other)
        return first

    def sqrt(self, x: Number) -> Number:
        return self._intrinsic("llvm.sqrt", x)

    def floor(self, x: Number) -> Number:
        return self._intrinsic("llvm.floor", x)

    def _intrinsic(self, name: str, x: Number) -> Number:
        function = self.builder.module.declare_intrinsic(name, [x.type])
        return Number(self, self.builder.call(function, [x.value]))

    @contextmanager
    def loop(self, first: Number, end: Number) -> Iterator[Number]:
        """Write a loop over i in range(first, end); yields i."""
        b = self.builder
        at = self.variable(first)
        head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
        b.branch(head)
        b.position_at_end(head)
        i = at.get()
        b.cbranch((i < end).value, body, done)
        b.position_at_end(body)
        yield i
        at.set(i + 1)
        b.branch(head)
        b.position_at_end(done)

    @contextmanager
    def when(self, condition: Number) -> Iterator[None]:
        """Write what is done only if a condition holds."""
        with self.builder.if_then(condition.value):
            yield
