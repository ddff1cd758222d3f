"""sinh, cosh, tanh and their inverses.

With |x| = n ln 2 + r the addition theorems need no exponential and no division:
    sinh |x| = A cosh r + B sinh r,   cosh |x| = B cosh r + A sinh r,   A, B = (2^n -+ 2^-n) / 2.
The inverses are logarithms of sums, arranged for log(1 + w).
"""

from __future__ import annotations

from dataclasses import dataclass

from costate.kernel.vecmath.explog import log_of_sum, power_of_two, reduce_ln2
from costate.kernel.vecmath.vectors import INF, NAN, Emitter, Vec


@dataclass(frozen=True)
class Parts:
    """Addition theorem of a = n ln 2 + r at half scale: 2^n itself may overflow when the result does not."""

    n: Vec
    """Exponent n as a real number."""
    shrunk: Vec
    """2^-n / 4, zero for large n."""
    A: Vec
    """sinh(n ln 2) / 2."""
    B: Vec
    """cosh(n ln 2) / 2."""
    r: Vec
    s: Vec
    """sinh r - r."""
    c: Vec
    """cosh r - 1."""

    def half_sinh(self, e: Emitter) -> Vec:
        """Return A + (B r + (B s + A c)): small terms first, each rounded once."""
        return self.A + e.fma(self.B, self.r, e.fma(self.B, self.s, self.A * self.c))

    def half_cosh(self, e: Emitter) -> Vec:
        """Return B + (A r + (A s + B c))."""
        return self.B + e.fma(self.A, self.r, e.fma(self.A, self.s, self.B * self.c))


def parts(e: Emitter, a: Vec) -> Parts:
    """Return the pieces for 0 <= a <= 710.6."""
    n_real, n, r = reduce_ln2(e, a)
    grown = power_of_two(e, n - 2)
    shrunk = e.select(n_real < 100.0, power_of_two(e, -2 - n), 0.0)
    z = r * r
    s, c = (r * z) * e.polynomial("sinh", z), z * e.polynomial("cosh", z)
    return Parts(n_real, shrunk, grown - shrunk, grown + shrunk, r, s, c)


def sinh(e: Emitter, x: Vec) -> Vec:
    """Return the hyperbolic sine."""
    a = e.abs(x)
    half = parts(e, e.at_most(a, 710.6)).half_sinh(e)
    return e.flip(e.select(a < 2.0**-28, a, half * 2.0), e.sign(x))


def cosh(e: Emitter, x: Vec) -> Vec:
    """Return the hyperbolic cosine."""
    return parts(e, e.at_most(e.abs(x), 710.6)).half_cosh(e) * 2.0


def tanh(e: Emitter, x: Vec) -> Vec:
    """Return sinh/cosh; from about 1 on 1 - e^-a / cosh a, where the quotient's error weighs less; from 20 on it is 1."""
    a = e.abs(x)
    p = parts(e, e.at_most(a, 20.0))
    large = p.n >= 2.0
    half_decay = p.shrunk * 2.0 * (p.c - p.s - p.r + 1.0)
    quotient = e.select(large, half_decay, p.half_sinh(e)) / p.half_cosh(e)
    result = e.select(large, 1.0 - quotient, quotient)
    return e.flip(e.select(a < 2.0**-28, a, result), e.sign(x))


LARGE = 2.0**30
"""Argument from which on asinh x and acosh x are log(2 x) to rounding."""


def log1p_or_log2x(e: Emitter, w: Vec, x: Vec) -> Vec:
    """Return log(1 + w) for w >= 0, but log(2 x) where x is large; infinity and NaN of x stay."""
    large = x > LARGE
    u = w + 1.0
    rounded_w = u - 1.0
    low = (w - rounded_w) + (1.0 - (u - rounded_w))
    zero = e.constant(0.0)
    result = log_of_sum(e, e.select(large, x, u), e.select(large, 0.0, low), e.select(large, 1.0, zero))
    return e.select(x < INF, result, x)


def asinh(e: Emitter, x: Vec) -> Vec:
    """Return log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|."""
    a = e.abs(x)
    square = a * a
    result = log1p_or_log2x(e, a + square / (e.sqrt(square + 1.0) + 1.0), a)
    return e.flip(e.select(a < 2.0**-28, a, result), e.sign(x))


def acosh(e: Emitter, x: Vec) -> Vec:
    """Return log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t^2 + 2 t)), t = x - 1; NaN below 1."""
    t = x - 1.0
    result = log1p_or_log2x(e, t + e.sqrt(e.fma(t, t, t * 2.0)), x)
    return e.select(x < 1.0, NAN, result)


def atanh(e: Emitter, x: Vec) -> Vec:
    """Return log((1 + a) / (1 - a)) / 2 = log1p(2 a + 2 a^2 / (1 - a)) / 2, a = |x|; infinite at 1, NaN beyond."""
    a = e.abs(x)
    twice = a * 2.0
    w = twice + twice * a / (1.0 - a)
    inside = e.select(a < 2.0**-28, a, log1p_or_log2x(e, w, e.constant(0.0)) * 0.5)
    return e.flip(e.select(a < 1.0, inside, e.select(a.equals(1.0), INF, NAN)), e.sign(x))
