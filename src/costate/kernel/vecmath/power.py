"""pow and hypot.

pow(x, y) = exp(y log x). The product may reach 745, so log x is needed to some 2^-66 relative: it is carried as the
unevaluated sum of two doubles (Dekker, "A floating-point technique for extending the available precision", 1971), with
exact products from fused multiply-adds.
"""

from __future__ import annotations

from costate.kernel.vecmath.explog import LN2_HI, LN2_LO, SMALLEST_NORMAL, log_normal, reduce_ln2, scale, split
from costate.kernel.vecmath.vectors import INF, NAN, Emitter, Vec

THIRD_HI, THIRD_LO = 1 / 3, float.fromhex("0x1.5555555555555p-56")

Pair = tuple[Vec, Vec]
"""An unevaluated sum: leading part and a much smaller rest."""


def product(e: Emitter, a: Pair, b: Pair) -> Pair:
    """Return a b, without the product of the rests."""
    high = a[0] * b[0]
    return high, e.fma(a[0], b[0], -high) + e.fma(a[0], b[1], a[1] * b[0])


def ordered_sum(a: Vec | float, b: Pair, rest: Vec | float) -> Pair:
    """Return a + b + rest, where a is zero or larger than b."""
    high = b[0] + a
    return high, (b[0] - (high - a)) + (b[1] + rest)


def log_pair(e: Emitter, x: Vec, extra: float = 0.0) -> Pair:
    """Return log(2^extra x) for normal x > 0: k ln 2 + 2 s (1 + z (1/3 + z P(z))), s = f / (2 + f), z = s^2."""
    if e.dtype == "f32":  # a double is then precise enough
        return log_normal(e, x, extra), e.constant(0.0)
    k, m = split(e, x)
    if extra:
        k = k + extra
    f = m - 1.0
    total = f + 2.0
    total_low = f - (total - 2.0)
    reciprocal = 1.0 / total
    s_high = f * reciprocal
    s = (s_high, (e.fma(-s_high, total, f) - s_high * total_low) * reciprocal)
    z = product(e, s, s)
    bracket = ordered_sum(THIRD_HI, (z[0] * e.polynomial("log_dd", z[0]), e.constant(0.0)), THIRD_LO)
    tail = product(e, s, product(e, z, bracket))
    half_log = ordered_sum(s[0], tail, s[1])
    high, low = ordered_sum(k * LN2_HI, (half_log[0] * 2.0, half_log[1] * 2.0), k * LN2_LO)
    return ordered_sum(high, (low, e.constant(0.0)), 0.0)


def exp_pair(e: Emitter, p: Pair) -> tuple[Vec, Vec]:
    """Return (y, n) with exp(p) = 2^n y, |log y| <= ln(2)/2; y is little more than rounded, so exact powers stay exact."""
    n_real, n, _ = reduce_ln2(e, p[0])
    exact = e.fma(n_real, -LN2_HI, p[0])
    rest = e.fma(n_real, -LN2_LO, p[1])
    r = exact + rest
    r_low = rest - (r - exact)
    one_plus_r = r + 1.0
    low = r - (one_plus_r - 1.0)
    return one_plus_r + (low + e.fma(r * r, e.polynomial("exp", r), e.fma(r, r_low, r_low))), n


def times(e: Emitter, y: Vec, log_x: Pair) -> Pair:
    """Return y log x."""
    return product(e, (y, e.constant(0.0)), log_x)


def pow_special(e: Emitter, x: Vec, y: Vec, size: Vec) -> Vec:
    """Return C99's pow (F.9.4.4) for any x and y, given |x|^y wherever x is finite and not zero."""
    integer = e.trunc(y).equals(y)
    odd = integer & ~e.trunc(y * 0.5).equals(y * 0.5) & (e.abs(y) < 2.0**53)
    grows = (y > 0.0) ^ (e.abs(x) < 1.0)
    extreme = e.select(grows, INF, e.constant(0.0))
    a = e.abs(x)
    result = e.select(a.equals(0.0) | a.equals(INF) | e.abs(y).equals(INF), extreme, size)
    result = e.select(a.equals(1.0) & (y.equals(y)), 1.0, result)
    result = e.select((x < 0.0) & (a < INF) & ~integer, NAN, result)
    result = e.flip(result, e.sign(x) & e.select(odd, -1, e.constant(0, "i64")))
    result = e.select(x.equals(x) & y.equals(y), result, NAN)
    return e.select(y.equals(0.0) | x.equals(1.0), 1.0, result)


def pow(e: Emitter, x: Vec, y: Vec) -> Vec:
    """Return x^y. Ordinary lanes have x > 0 and a normal result; y = 2 gives x x, correctly rounded."""
    p = times(e, y, log_pair(e, x))
    value, n = exp_pair(e, p)
    fast = e.real(e.bits(value) + (n << 52))
    rare = e.outside(x, SMALLEST_NORMAL, INF) | ~(e.abs(p[0]) <= 708.0)

    def slow() -> tuple[Vec]:
        a = e.abs(x)
        subnormal = a < SMALLEST_NORMAL
        ordinary, scaled = log_pair(e, a), log_pair(e, a * 2.0**54, -54.0)
        log_a = (e.select(subnormal, scaled[0], ordinary[0]), e.select(subnormal, scaled[1], ordinary[1]))
        high, low = times(e, y, log_a)
        inside = e.abs(high) <= 750.0
        clamped = e.at_least(e.at_most(high, 750.0), -750.0)
        value, n = exp_pair(e, (clamped, e.select(inside, low, 0.0)))
        return (pow_special(e, x, y, scale(e, value, n)),)

    (result,) = e.repair(rare, (fast,), slow)
    return e.select(y.equals(2.0), x * x, result)


def hypot(e: Emitter, x: Vec, y: Vec) -> Vec:
    """Return sqrt(x^2 + y^2) without overflow or underflow on the way; an infinity wins over NaN."""
    a, b = e.abs(x), e.abs(y)
    larger = e.select(a > b, a, b)

    def slow() -> tuple[Vec]:
        huge = larger > 1.0
        down = e.select(huge, 2.0**-600, e.constant(2.0**600))
        up = e.select(huge, 2.0**600, e.constant(2.0**-600))
        u, v = a * down, b * down
        return (e.select(a.equals(INF) | b.equals(INF), INF, e.sqrt(e.fma(u, u, v * v)) * up),)

    rare = e.outside(larger, 2.0**-450, 2.0**450) | ~(a < INF)
    (result,) = e.repair(rare, (e.sqrt(e.fma(a, a, b * b)),), slow)
    return result
