"""sin, cos, tan.

|x| = n pi/2 + r, |r| <= pi/4, then minimax polynomials of sin r and cos r, exchanged and negated by n mod 4.
Up to 2^30 the reduction is Cody and Waite's with pi/2 in three doubles: with fused multiply-adds the first subtraction
is exact and each later one rounds once. Beyond, it is Payne and Hanek's ("Radian reduction for trigonometric
functions", SIGNUM Newsletter 18, 1983), one lane at a time.
"""

from __future__ import annotations

import math

from costate.kernel.vecmath.explog import ROUND
from costate.kernel.vecmath.vectors import INF, NAN, Emitter, Vec, real_text

PI_2 = tuple(map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")))
"""pi/2 as the unevaluated sum of three doubles."""
CODY_WAITE_LIMIT = 2.0**30
LARGE_REDUCTION = "cs_payne_hanek"


def two_over_pi_words(count: int) -> list[int]:
    """Return a zero word, then the binary digits of 2/pi, 64 at a time, from Machin's formula in integers."""
    bits = 64 * count + 64
    one = 1 << bits

    def arctan_inverse(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    digits = (2 * one * one // pi) >> 64
    return [digits >> (64 * (count - i)) & (2**64 - 1) for i in range(count + 1)]


def payne_hanek_ir() -> str:
    """Write the function that returns {quadrant, r} of a finite x >= 2^30.

    x = m 2^E. Digits of 2/pi of weight 2^(2 - E) and more only add multiples of 4 quadrants. The next 192 digits w,
    times m, are the quarter turns modulo 4 in units of 2^-190; the rest is below 2^-137, while no double comes closer
    than about 2^-62 to a multiple of pi/2. P is the upper 128 bits of that product, F its signed fraction of a quarter
    turn.
    """
    words = two_over_pi_words(20)
    table = ", ".join(f"i64 {(w + 2**63) % 2**64 - 2**63}" for w in words)

    scales = [real_text(2.0**exponent) for exponent in (-43, -86, -128)]
    pi_hi, pi_lo = real_text(PI_2[0]), real_text(PI_2[1])
    return f"""
@cs_two_over_pi = internal constant [{len(words)} x i64] [{table}]

define internal {{ i64, double }} @{LARGE_REDUCTION}(double %x) nounwind noinline {{
  %bits = bitcast double %x to i64
  %field = lshr i64 %bits, 52
  %fraction = and i64 %bits, {2**52 - 1}
  %m = or i64 %fraction, {2**52}
  %m.wide = zext i64 %m to i128
  %first = add i64 %field, {64 - 2 - 1075}
  %index = lshr i64 %first, 6
  %shift = and i64 %first, 63
  %p0 = getelementptr i64, ptr @cs_two_over_pi, i64 %index
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %t0 = load i64, ptr %p0
  %t1 = load i64, ptr %p1
  %t2 = load i64, ptr %p2
  %t3 = load i64, ptr %p3
  %w0 = call i64 @llvm.fshl.i64(i64 %t0, i64 %t1, i64 %shift)
  %w1 = call i64 @llvm.fshl.i64(i64 %t1, i64 %t2, i64 %shift)
  %w2 = call i64 @llvm.fshl.i64(i64 %t2, i64 %t3, i64 %shift)
  %w0m = mul i64 %w0, %m
  %w0m.wide = zext i64 %w0m to i128
  %high = shl i128 %w0m.wide, 64
  %w1.wide = zext i64 %w1 to i128
  %middle = mul i128 %w1.wide, %m.wide
  %w2.wide = zext i64 %w2 to i128
  %w2m = mul i128 %w2.wide, %m.wide
  %low = lshr i128 %w2m, 64
  %sum = add i128 %high, %middle
  %P = add i128 %sum, %low
  %half = shl i128 1, 125
  %nearest = add i128 %P, %half
  %q.wide = lshr i128 %nearest, 126
  %q = trunc i128 %q.wide to i64
  %F = shl i128 %P, 2
  %sign = ashr i128 %F, 127
  %flipped = xor i128 %F, %sign
  %size = sub i128 %flipped, %sign
  %a = lshr i128 %size, 85
  %b.above = lshr i128 %size, 42
  %b = and i128 %b.above, {2**43 - 1}
  %c = and i128 %size, {2**42 - 1}
  %a64 = trunc i128 %a to i64
  %b64 = trunc i128 %b to i64
  %c64 = trunc i128 %c to i64
  %a.int = sitofp i64 %a64 to double
  %b.int = sitofp i64 %b64 to double
  %c.int = sitofp i64 %c64 to double
  %a.real = fmul double %a.int, {scales[0]}
  %b.real = fmul double %b.int, {scales[1]}
  %c.real = fmul double %c.int, {scales[2]}
  %bc = fadd double %b.real, %c.real
  %hi = fadd double %a.real, %bc
  %taken = fsub double %hi, %a.real
  %lo = fsub double %bc, %taken
  %lo.pi = fmul double %lo, {pi_hi}
  %rest = call double @llvm.fma.f64(double %hi, double {pi_lo}, double %lo.pi)
  %r.size = call double @llvm.fma.f64(double %hi, double {pi_hi}, double %rest)
  %r.minus = fneg double %r.size
  %negative = icmp slt i128 %F, 0
  %r = select i1 %negative, double %r.minus, double %r.size
  %pair = insertvalue {{ i64, double }} poison, i64 %q, 0
  %result = insertvalue {{ i64, double }} %pair, double %r, 1
  ret {{ i64, double }} %result
}}
"""


def reduce_large(e: Emitter, a: Vec, large: Vec) -> tuple[Vec, Vec]:
    """Apply the Payne-Hanek reduction to the lanes of `large`; NaN for infinity and NaN."""
    safe = e.select(large & (a < INF), a, CODY_WAITE_LIMIT)
    q, r = e.constant(0, "i64"), e.constant(0.0)
    for lane in range(e.width):
        x = e.op("scalar", f"extractelement {e.type('double')} {safe.text}, i64 {lane}")
        pair = e.op("scalar", f"call {{ i64, double }} @{LARGE_REDUCTION}(double {x.text})")
        q_lane = e.op("scalar", f"extractvalue {{ i64, double }} {pair.text}, 0")
        r_lane = e.op("scalar", f"extractvalue {{ i64, double }} {pair.text}, 1")
        q = e.op("i64", f"insertelement {e.type('i64')} {q.text}, i64 {q_lane.text}, i64 {lane}")
        r = e.op("double", f"insertelement {e.type('double')} {r.text}, double {r_lane.text}, i64 {lane}")
    return q, e.select(a < INF, r, NAN)


def reduce_quadrant(e: Emitter, a: Vec) -> tuple[Vec, Vec]:
    """Return (q, r) with a = (4 i + q mod 4) pi/2 + r, |r| <= pi/4, for a >= 0; q in the low bits of an integer."""
    shifted = e.fma(a, 2 / math.pi, ROUND)
    n = shifted - ROUND
    r = a
    for part in PI_2:
        r = e.fma(n, -part, r)
    large = ~(a <= CODY_WAITE_LIMIT)
    q, r = e.repair(large, (e.bits(shifted), r), lambda: reduce_large(e, a, large))
    return q, r


def kernels(e: Emitter, r: Vec) -> tuple[Vec, Vec]:
    """Return (sin r, cos r) for |r| <= pi/4."""
    z = r * r
    sine = e.fma(r * z, e.polynomial("sin", z), r)
    cosine = e.fma(z, e.fma(z, e.polynomial("cos", z), -0.5), 1.0)
    return sine, cosine


def sincos(e: Emitter, x: Vec) -> tuple[Vec, Vec]:
    """Return sin and cos with one range reduction. sin runs on |x| and takes the sign of x, so that sin(-0) = -0."""
    q, r = reduce_quadrant(e, e.abs(x))
    sine, cosine = kernels(e, r)
    odd = (q & 1).equals(1)
    sin_sign = ((q & 2) << 62) ^ e.sign(x)
    cos_sign = ((q + 1) & 2) << 62
    return e.flip(e.select(odd, cosine, sine), sin_sign), e.flip(e.select(odd, sine, cosine), cos_sign)


def sin(e: Emitter, x: Vec) -> Vec:
    """Return the sine."""
    return sincos(e, x)[0]


def cos(e: Emitter, x: Vec) -> Vec:
    """Return the cosine."""
    return sincos(e, x)[1]


def tan(e: Emitter, x: Vec) -> Vec:
    """Return sin/cos in even quadrants, -cos/sin in odd ones."""
    q, r = reduce_quadrant(e, e.abs(x))
    sine, cosine = kernels(e, r)
    odd = (q & 1).equals(1)
    ratio = e.select(odd, cosine, sine) / e.select(odd, sine, cosine)
    return e.flip(ratio, ((q & 1) << 63) ^ e.sign(x))
