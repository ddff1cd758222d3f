"""Exponential and logarithm: exp, expm1, log, log1p, and the pieces other functions build on.

exp:  x = n ln 2 + r with |r| <= ln(2)/2 (Cody and Waite, Software Manual for the Elementary Functions, 1980), then
      exp(x) = 2^n exp(r) with a minimax polynomial.
log:  x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f), and log(1 + f) = 2 atanh(s) arranged as
      f - s (f - R(s^2)), which keeps f exact (fdlibm's log does the same with f^2/2 split off).
"""

from __future__ import annotations

import math

from costate.kernel.vecmath.vectors import INF, NAN, Emitter, Vec, real_bits

ROUND = 1.5 * 2.0**52
"""Adding this rounds a small real to an integer, which then stands in the low bits of the sum."""
LN2_HI = float.fromhex("0x1.62e42fefa2000p-1")
"""ln 2 to 40 bits: its product with an exponent is exact."""
LN2_LO = float.fromhex("0x1.9ef35793c7673p-41")
SMALLEST_NORMAL = 2.0**-1022


# -- exp


def reduce_ln2(e: Emitter, x: Vec) -> tuple[Vec, Vec, Vec]:
    """Return (n as real, n as integer in the low bits, r) with x = n ln 2 + r, |r| <= ln(2)/2."""
    shifted = e.fma(x, 1 / math.log(2), ROUND)
    n = shifted - ROUND
    r = e.fma(n, -LN2_LO, e.fma(n, -LN2_HI, x))
    return n, e.bits(shifted), r


def expm1_reduced(e: Emitter, r: Vec) -> Vec:
    """Return exp(r) - 1 for |r| <= ln(2)/2."""
    return e.fma(r * r, e.polynomial("exp", r), r)


def power_of_two(e: Emitter, n: Vec) -> Vec:
    """Return 2^n for integers -1022 <= n <= 1023; only the low 11 bits of 1023 + n count."""
    return e.real((n + 1023) << 52)


def scale(e: Emitter, y: Vec, n: Vec) -> Vec:
    """Return y 2^n, rounded once, for integers |n| < 2000 (small ones in the low bits of n) and y near 1."""
    n = (n << 32) >> 32
    half = n >> 1
    return y * power_of_two(e, half) * power_of_two(e, n - half)


def exp_within(e: Emitter, x: Vec) -> Vec:
    """Return exp(x) for |x| <= 708, where the result is a normal number."""
    _, n, r = reduce_ln2(e, x)
    return e.real(e.bits(expm1_reduced(e, r) + 1.0) + (n << 52))


def exp(e: Emitter, x: Vec) -> Vec:
    """Return e^x. Outside |x| <= 708 it may overflow, underflow or be NaN."""

    def slow() -> tuple[Vec]:
        _, n, r = reduce_ln2(e, e.at_least(e.at_most(x, 710.0), -746.0))
        return (scale(e, expm1_reduced(e, r) + 1.0, n),)

    (result,) = e.repair(~(e.abs(x) <= 708.0), (exp_within(e, x),), slow)
    return result


def expm1(e: Emitter, x: Vec) -> Vec:
    """Return e^x - 1 = 2^n expm1(r) + (2^n - 1), computed at half scale because 2^n may overflow when the result does not."""
    _, n, r = reduce_ln2(e, e.at_least(e.at_most(x, 710.0), -40.0))
    half = power_of_two(e, n - 1)
    result = e.fma(half, expm1_reduced(e, r), half - 0.5) * 2.0
    return e.select(e.abs(x) < 2.0**-54, x, result)


# -- log


def split(e: Emitter, x: Vec) -> tuple[Vec, Vec]:
    """Return (k, m) with x = 2^k m, m in [sqrt(1/2), sqrt(2)), for normal x > 0; both as reals."""
    bits = e.bits(x)
    k = (bits - real_bits(math.sqrt(0.5))) >> 52
    m = e.real(bits - (k << 52))
    return e.real(k + real_bits(ROUND)) - ROUND, m


def log_parts(e: Emitter, f: Vec) -> tuple[Vec, Vec]:
    """Return (f, g) with log(1 + f) = f + g, 1 + f in [sqrt(1/2), sqrt(2))."""
    s = f / (f + 2.0)
    z = s * s
    return f, s * e.fma(z, e.polynomial("log", z), -f)


def log_normal(e: Emitter, x: Vec, extra: float = 0.0) -> Vec:
    """Return log(2^extra x) for normal x > 0."""
    k, m = split(e, x)
    if extra:
        k = k + extra
    f, g = log_parts(e, m - 1.0)
    return e.fma(k, LN2_HI, f + e.fma(k, LN2_LO, g))


def log(e: Emitter, x: Vec) -> Vec:
    """Return the natural logarithm; -inf at 0, NaN below."""

    def slow() -> tuple[Vec]:
        subnormal = log_normal(e, x * 2.0**54, -54.0)
        return (e.select(x > 0.0, e.select(x < SMALLEST_NORMAL, subnormal, x), e.select(x.equals(0.0), -INF, NAN)),)

    (result,) = e.repair(e.outside(x, SMALLEST_NORMAL, INF), (log_normal(e, x),), slow)
    return result


def log_of_sum(e: Emitter, u: Vec, low: Vec, extra: Vec | None = None) -> Vec:
    """Return log(2^extra (u + low)) for normal u > 0 and a correction |low| of at most about an ulp of u: log u + low / u."""
    k, m = split(e, u)
    if extra is not None:
        k = k + extra
    f, g = log_parts(e, m - 1.0)
    return e.fma(k, LN2_HI, f + (e.fma(k, LN2_LO, g) + low / u))


def log1p_within(e: Emitter, x: Vec) -> Vec:
    """Return log(1 + x) for -1 < x < inf; 1 + x is split into its rounded value and the exact rest (Knuth's two-sum)."""
    u = x + 1.0
    rounded_x = u - 1.0
    low = (x - rounded_x) + (1.0 - (u - rounded_x))
    return e.select(e.abs(x) < 2.0**-54, x, log_of_sum(e, u, low))


def log1p(e: Emitter, x: Vec) -> Vec:
    """Return log(1 + x); -inf at -1, NaN below."""
    result = e.select(x < INF, log1p_within(e, x), x)
    return e.select(x > -1.0, result, e.select(x.equals(-1.0), -INF, NAN))
