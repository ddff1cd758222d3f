"""Parts of a network's forward and backward pass for a tile of samples, each an LLVM function.

Numbers of a sample lie side by side, padded to whole vectors; weights as torch has them, (outputs, inputs), their rows padded.
All three products of a layer then have the same form, C += A B with rows of B as vectors and single numbers of A:

    forward     z = x W^T        A = x,     B = W^T
    backward    dx = dz W        A = dz,    B = W
    weights     dW = dz^T x      A = dz^T,  B = x
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from costate.train.dense.code import Code, constant

PAD = 16
"""Rows of numbers are padded to a multiple of this: whole vectors on every machine."""
ROWS = 4
"""Rows of a product that are computed together."""


def padded(n: int) -> int:
    """Return the length of a row of n numbers with its padding."""
    return -(-n // PAD) * PAD


@dataclass(frozen=True)
class Product:
    """C = start + A B; A (rows, inner) with strides, B (inner, columns), C (rows, columns)."""

    rows: int
    inner: int
    columns: int
    """Padded numbers of a row of B and of C."""
    row_stride: int
    """Distance of rows of A."""
    inner_stride: int
    """Distance of columns of A."""
    start: str
    """Value that C starts from: `zero`, `bias` (a row for all), `sum` (C itself)."""

    def text(self, name: str, width: int) -> str:
        """Return the function (A, B, C, bias)."""
        c = Code(width)
        whole, rest = divmod(self.rows, ROWS)
        if whole:
            with c.loop(whole) as block:
                self._rows(c, c.step("%a", block.index, ROWS * self.row_stride), self._row_of_c(c, block.index), ROWS)
        if rest:
            self._rows(c, c.at("%a", whole * ROWS * self.row_stride), c.at("%c", whole * ROWS * self.columns), rest)
        return c.function(name, "ptr %a, ptr %b, ptr %c, ptr %bias")

    def _row_of_c(self, c: Code, block: str) -> str:
        return c.step("%c", block, ROWS * self.columns)

    def _rows(self, c: Code, a: str, out: str, rows: int) -> None:
        """Write some rows of C, in strips of columns."""
        vectors, strip = self.columns // c.width, 4 if c.width == 16 else 2
        for first in range(0, vectors, strip):
            self._strip(c, a, out, rows, range(first, min(first + strip, vectors)))

    def _strip(self, c: Code, a: str, out: str, rows: int, strip: range) -> None:
        places = [(r, c.at(out, r * self.columns + v * c.width)) for r in range(rows) for v in strip]
        if self.start == "zero":
            start = ["zeroinitializer"] * len(places)
        elif self.start == "bias":
            bias = [c.load(c.at("%bias", v * c.width)) for v in strip]
            start = bias * rows
        else:
            start = [c.load(place) for _, place in places]
        with c.loop(self.inner, *start) as k:
            b = c.step("%b", k.index, self.columns)
            row = [c.load(c.at(b, v * c.width)) for v in strip]
            here = c.step(a, k.index, self.inner_stride)
            for r in range(rows):
                number = c.spread(c.number(c.at(here, r * self.row_stride)))
                for j, vector in enumerate(row):
                    k.then.append(c.fma(number, vector, k.values[r * len(row) + j]))
        for (_, place), value in zip(places, k.then, strict=True):
            c.store(value, place)


# --- activations ------------------------------------------------------------------------------------------------------


def _exponential(c: Code, x: str) -> tuple[str, str]:
    """Return (s, p) with exp(x) = s + s p, s a power of two, for x within +-87."""
    n = c.unary("rint", c.op("fmul", x, c.splat(1 / math.log(2))))
    r = c.fma(n, c.splat(2.12194440e-4), c.fma(n, c.splat(-0.693359375), x))
    p = c.splat(1 / 5040)
    for k in (720, 120, 24, 6, 2):
        p = c.fma(p, r, c.splat(1 / k))
    p = c.fma(c.op("fmul", r, r), p, r)
    whole = f"<{c.width} x i32>"
    bits = c.new(f"add {whole} {c.new(f'fptosi {c.vec} {n} to {whole}')}, splat (i32 127)")
    shifted = c.new(f"shl {whole} {bits}, splat (i32 23)")
    return c.new(f"bitcast {whole} {shifted} to {c.vec}"), p


def _elu(c: Code, x: str) -> tuple[str, str]:
    low = c.select("olt", x, c.splat(-87), c.splat(-87), x)
    low = c.select("ogt", low, c.splat(0), c.splat(0), low)
    s, p = _exponential(c, low)
    less = c.fma(s, p, c.op("fsub", s, c.splat(1)))
    value = c.select("ogt", x, c.splat(0), x, less)
    return value, c.select("ogt", x, c.splat(0), c.splat(1), c.op("fadd", less, c.splat(1)))


def _silu(c: Code, x: str) -> tuple[str, str]:
    near = c.select("olt", x, c.splat(-87), c.splat(-87), x)
    near = c.select("ogt", near, c.splat(87), c.splat(87), near)
    s, p = _exponential(c, c.op("fsub", c.splat(0), near))
    gate = c.op("fdiv", c.splat(1), c.op("fadd", c.splat(1), c.fma(s, p, s)))
    value = c.op("fmul", x, gate)
    return value, c.fma(value, c.op("fsub", c.splat(1), gate), gate)


ACTIVATIONS: dict[type[nn.Module], Callable[[Code, str], tuple[str, str]]] = {nn.ELU: _elu, nn.SiLU: _silu}
"""Activation -> its value and its derivative."""


# --- activation and layer norm ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Normalised:
    """Activation and layer norm of the rows of a tile."""

    tile: int
    units: int
    activation: type[nn.Module]
    epsilon: float

    def _vectors(self, c: Code) -> range:
        return range(padded(self.units) // c.width)

    def _masked(self, c: Code, v: int, value: str) -> str:
        """Return a vector with zeros where there is padding."""
        here = min(max(self.units - v * c.width, 0), c.width)
        if here == c.width:
            return value
        bits = ", ".join(f"i1 {'true' if k < here else 'false'}" for k in range(c.width))
        return c.new(f"select <{c.width} x i1> <{bits}>, {c.vec} {value}, {c.vec} zeroinitializer")

    def forward(self, name: str, width: int) -> str:
        """Return the function (z, y, normal, slope, inverse, gamma, beta).

        It writes the result y, the normalised activations, their slopes, and one over the standard deviation of each sample.
        """
        c = Code(width)
        stride, vectors = padded(self.units), self._vectors(c)
        with c.loop(self.tile) as s:
            z, y, normal, slope = (c.step(p, s.index, stride) for p in ("%z", "%y", "%normal", "%slope"))
            values = []
            for v in vectors:
                value, derivative = ACTIVATIONS[self.activation](c, c.load(c.at(z, v * width)))
                values.append(self._masked(c, v, value))
                c.store(self._masked(c, v, derivative), c.at(slope, v * width))
            mean = c.spread(c.op("fmul", c.total(values), constant(1 / self.units), "float"))
            centred = [self._masked(c, v, c.op("fsub", value, mean)) for v, value in zip(vectors, values, strict=True)]
            square = c.total([c.op("fmul", x, x) for x in centred])
            variance = c.op("fmul", square, constant(1 / self.units), "float")
            variance = c.op("fadd", variance, constant(self.epsilon), "float")
            root = c.new(f"call float @llvm.sqrt.f32(float {variance})")
            inverse = c.op("fdiv", constant(1), root, "float")
            c.line(f"store float {inverse}, ptr {c.step('%inverse', s.index, 1)}, align 4")
            factor = c.spread(inverse)
            for v, x in zip(vectors, centred, strict=True):
                x = c.op("fmul", x, factor)
                c.store(x, c.at(normal, v * width))
                gamma, beta = c.load(c.at("%gamma", v * width)), c.load(c.at("%beta", v * width))
                c.store(c.fma(x, gamma, beta), c.at(y, v * width))
        return c.function(name, "ptr %z, ptr %y, ptr %normal, ptr %slope, ptr %inverse, ptr %gamma, ptr %beta")

    def backward(self, name: str, width: int) -> str:
        """Return the function (g, normal, slope, inverse, gamma, dgamma, dbeta, dbias).

        The gradient g of the result becomes that of z, in place; those of the weights are added up.
        """
        c = Code(width)
        stride, vectors = padded(self.units), self._vectors(c)
        sums = [c.at(p, v * width) for p in ("%dgamma", "%dbeta", "%dbias") for v in vectors]
        with c.loop(self.tile) as s:
            g, normal, slope = (c.step(p, s.index, stride) for p in ("%g", "%normal", "%slope"))
            inverse = c.spread(c.number(c.step("%inverse", s.index, 1)))
            bars = [c.load(c.at(g, v * width)) for v in vectors]
            normals = [c.load(c.at(normal, v * width)) for v in vectors]
            scaled = [
                c.op("fmul", bar, c.load(c.at("%gamma", v * width))) for v, bar in zip(vectors, bars, strict=True)
            ]
            mean = c.spread(c.op("fmul", c.total(scaled), constant(-1 / self.units), "float"))
            along = c.total([c.op("fmul", a, b) for a, b in zip(scaled, normals, strict=True)])
            along = c.spread(c.op("fmul", along, constant(-1 / self.units), "float"))
            new = {}
            for v, bar in zip(vectors, bars, strict=True):
                inner = c.op("fadd", c.fma(normals[v], along, scaled[v]), mean)
                factor = c.op("fmul", inverse, c.load(c.at(slope, v * width)))
                dz = c.op("fmul", inner, factor)
                c.store(dz, c.at(g, v * width))
                new[v] = c.fma(bar, normals[v], c.load(sums[v]))
                new[v + len(vectors)] = c.op("fadd", bar, c.load(sums[v + len(vectors)]))
                new[v + 2 * len(vectors)] = c.op("fadd", dz, c.load(sums[v + 2 * len(vectors)]))
            for k, value in new.items():
                c.store(value, sums[k])
        arguments = ("g", "normal", "slope", "inverse", "gamma", "dgamma", "dbeta", "dbias")
        return c.function(name, ", ".join(f"ptr %{a}" for a in arguments))
