"""asin, acos, atan, atan2.

asin x = x + x z P(z), z = x^2, up to 1/2; above, asin x = pi/2 - 2 asin(sqrt((1 - x)/2)) (Cody and Waite).
The angle of (x, y) is a multiple of pi/4 plus or minus atan t, |t| <= tan(pi/8), with t kept to more than a double.
"""

from __future__ import annotations

import math

from costate.kernel.vecmath.vectors import INF, Emitter, Vec

PI_4_HI = math.pi / 4
PI_4_LO = float.fromhex("0x1.1a62633145c07p-55")
"""pi/4 beyond PI_4_HI; exact multiples by powers of two give pi/2 and pi."""
TAN_PI_8 = math.sqrt(2) - 1


def asin_parts(e: Emitter, a: Vec) -> tuple[Vec, Vec, Vec]:
    """Return (small, t, u): asin a = t + u where small (a <= 1/2), else asin a = pi/2 - 2 (t + u); a >= 0, NaN above 1."""
    small = a <= 0.5
    z = e.select(small, a * a, e.fma(a, -0.5, 0.5))
    root = e.sqrt(z)
    t = e.select(small, a, root)
    u = (t * z) * e.polynomial("asin", z)
    rounding = e.fma(-root, root, z) / (root + root)
    return small, t, e.select(small | z.equals(0.0), u, u + rounding)


def asin(e: Emitter, x: Vec) -> Vec:
    """Return the arc sine in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    small, t, u = asin_parts(e, e.abs(x))
    large = 2 * PI_4_HI - (t * 2.0 + (u * 2.0 - 2 * PI_4_LO))
    return e.flip(e.select(small, t + u, large), e.sign(x))


def acos(e: Emitter, x: Vec) -> Vec:
    """Return the arc cosine in [0, pi]: pi/2 - asin x, 2 asin(sqrt((1 - x)/2)) or pi - 2 asin(sqrt((1 + x)/2))."""
    small, t, u = asin_parts(e, e.abs(x))
    negative = x < 0.0
    sign = e.sign(x)
    middle = 2 * PI_4_HI - (e.flip(t, sign) + (e.flip(u, sign) - 2 * PI_4_LO))
    twice = (t + u) * 2.0
    ends = e.select(negative, 4 * PI_4_HI - (t * 2.0 + (u * 2.0 - 4 * PI_4_LO)), twice)
    return e.select(small, middle, ends)


def angle(e: Emitter, y: Vec, x: Vec, left: Vec | None = None) -> Vec:
    """Return the angle of the point (x, y), x and y >= 0 and not both zero; of (-x, y) in the lanes of `left`.

    t = small/large where that is below tan(pi/8), else t = (small - large)/(small + large), 45 degrees further. The
    rounding of sum, difference and quotient is carried in `low`.
    """
    steep = y > x
    small, large = e.select(steep, x, y), e.select(steep, y, x)
    flat = small <= large * TAN_PI_8
    total, difference = small + large, small - large
    numerator, denominator = e.select(flat, small, difference), e.select(flat, large, total)
    numerator_low = e.select(flat, 0.0, small - (difference + large))
    denominator_low = e.select(flat, 0.0, small - (total - large))
    reciprocal = 1.0 / denominator
    t = numerator * reciprocal
    residual = e.fma(-t, denominator, numerator) + e.fma(-t, denominator_low, numerator_low)
    low = residual * reciprocal
    z = t * t
    arc = t + e.fma(t * z, e.polynomial("atan", z), low)
    eighths = e.select(flat, e.select(steep, 2.0, e.constant(0.0)), 1.0)
    mirrored = steep
    if left is not None:
        eighths = e.select(left, 4.0 - eighths, eighths)
        mirrored = steep ^ left
    arc = e.select(mirrored, -arc, arc)
    return e.fma(eighths, PI_4_HI, e.fma(eighths, PI_4_LO, arc))


def atan(e: Emitter, x: Vec) -> Vec:
    """Return the arc tangent in [-pi/2, pi/2]. From 2^100 on the result is pi/2 rounded."""
    return e.flip(angle(e, e.at_most(e.abs(x), 2.0**100), e.constant(1.0)), e.sign(x))


def atan2(e: Emitter, y: Vec, x: Vec) -> Vec:
    """Return the angle of (x, y) in [-pi, pi], with C99's values at zeros and infinities."""
    a, b = e.abs(y), e.abs(x)
    large = e.select(a > b, a, b)
    rare = e.outside(large, 2.0**-900, 2.0**900)

    def slow() -> tuple[Vec, Vec]:
        """Return the same direction in the ordinary range: scaled, or a corner of the square for zeros and infinities."""
        factor = e.select(large < 1.0, 2.0**200, e.constant(2.0**-200))
        infinite = large.equals(INF)
        rise = e.select(infinite & (a >= 0.0), e.select(a.equals(INF), 1.0, e.constant(0.0)), a * factor)
        run = e.select(infinite & (b >= 0.0), e.select(b.equals(INF), 1.0, e.constant(0.0)), b * factor)
        return rise, e.select(large.equals(0.0) & a.equals(0.0), 1.0, run)

    a, b = e.repair(rare, (a, b), slow)
    left = e.bits(x) < 0
    return e.flip(angle(e, a, b, left), e.sign(y))
