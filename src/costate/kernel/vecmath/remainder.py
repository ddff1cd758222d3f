"""fmod and remainder, exact for all magnitudes."""

from __future__ import annotations

from costate.kernel.vecmath.explog import SMALLEST_NORMAL, power_of_two
from costate.kernel.vecmath.vectors import INF, NAN, Emitter, Vec


def exponent(e: Emitter, a: Vec) -> Vec:
    """Return floor(log2 a) as integer for finite a > 0."""
    subnormal = a < SMALLEST_NORMAL
    field = (e.bits(e.select(subnormal, a * 2.0**54, a)) >> 52) - 1023
    return field - (e.select(subnormal, 54, e.constant(0, "i64")))


def step(e: Emitter, a: Vec, b: Vec) -> Vec:
    """Return a mod b for 0 <= a < 2^53 b. The rounded quotient is at most one too large, and a - q b is exact either way."""
    q = e.trunc(a / b)
    r = e.fma(-q, b, a)
    r = e.select(r < 0.0, r + b, r)
    return e.select(a < b, a, r)


def modulo(e: Emitter, a: Vec, b: Vec) -> Vec:
    """Return a mod b for finite a >= 0 and b > 0 (b may be infinite).

    A huge quotient is taken off 51 bits at a time, a mod b = (a mod 2^k b) mod b; k is at most 2046, twice the largest
    exponent of a double.
    """

    def shrink(a: Vec) -> tuple[Vec, Vec]:
        k = exponent(e, a) - exponent(e, b) - 51
        more = (k > 0) & (a >= b)
        k = e.select(more, k, 0)
        half = k >> 1
        return step(e, a, b * power_of_two(e, half) * power_of_two(e, k - half)), more

    huge = a >= b * 2.0**52
    (a,) = e.repair(huge, (a,), lambda: (e.repeat(a, shrink),))
    return step(e, a, b)


def in_domain(e: Emitter, x: Vec, y: Vec) -> tuple[Vec, Vec, Vec]:
    """Return (mask, |x|, |y|): mask of lanes where x mod y exists, the others set to 0 and 1."""
    a, b = e.abs(x), e.abs(y)
    defined = (a < INF) & (b > 0.0)
    return defined, e.select(defined, a, 0.0), e.select(defined, b, 1.0)


def fmod(e: Emitter, x: Vec, y: Vec) -> Vec:
    """Return x - n y with n = trunc(x / y), exactly; it has the sign of x."""
    defined, a, b = in_domain(e, x, y)
    return e.select(defined, e.flip(modulo(e, a, b), e.sign(x)), NAN)


def remainder(e: Emitter, x: Vec, y: Vec) -> Vec:
    """Return x - n y with n = x / y rounded to the nearest integer, ties to even (IEEE 754), exactly.

    Modulo 2 |y| the parity of n is known; then at most two subtractions bring it into [-|y|/2, |y|/2].
    """
    defined, a, b = in_domain(e, x, y)
    r = modulo(e, a, b * 2.0)
    once = r - b
    twice = e.select(once >= b - once, once - b, once)
    return e.select(defined, e.flip(e.select(r > b - r, twice, r), e.sign(x)), NAN)
