"""Fit the minimax polynomials of costate.kernel.vecmath and print its coefficient table.

    python -m benchmarks.vecmath.fit_polynomials > src/costate/kernel/vecmath/polynomials.py

Each row of `fits` is one smooth remainder of an elementary function: what is left after the terms that must stay exact
have been taken out (sin r = r + r^3 S(r^2)). It is fitted by the Remez exchange in 50 digits under the weight that
turns an error of the polynomial into a relative error of the function. The achieved error is printed with each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
from mpmath import mpf, sqrt

Real = Callable[[Any], Any]


@dataclass(frozen=True)
class Fit:
    """One polynomial P(x - shift) of f on [low, high], minimising max |weight (f - P)|."""

    name: str
    meaning: str
    function: Real
    weight: Real
    low: Any
    high: Any
    degrees: tuple[int, int]
    """Degree for float64, degree for float32."""
    shift: float = 0.0


def remez(f: Real, weight: Real, low: Any, high: Any, degree: int, rounds: int = 25) -> tuple[list[Any], Any]:
    """Coefficients in t = (x - middle) / half-width, lowest first, and the largest weighted error on the grid."""
    size = degree + 2
    middle, half = (high + low) / 2, (high - low) / 2
    ts = [-mp.cos(mp.pi * (2 * i + 1) / (40 * size)) for i in range(20 * size)]
    fs = [f(middle + half * t) for t in ts]
    ws = [weight(middle + half * t) for t in ts]
    reference = [min(len(ts) - 1, len(ts) * k // (size - 1)) for k in range(size)]
    best: tuple[Any, list[Any]] = (mp.inf, [])
    for _ in range(rounds):
        system = mp.matrix(
            [[ws[i] * ts[i] ** j for j in range(degree + 1)] + [(-1) ** k] for k, i in enumerate(reference)]
        )
        solution = mp.lu_solve(system, mp.matrix([ws[i] * fs[i] for i in reference]))
        coefficients = [solution[j] for j in range(degree + 1)]
        errors = [w * (value - mp.polyval(coefficients[::-1], t)) for t, value, w in zip(ts, fs, ws, strict=True)]
        worst = max(abs(error) for error in errors)
        best = min(best, (worst, coefficients), key=lambda pair: pair[0])
        extrema = alternating_extrema(errors, size)
        if len(extrema) < size or worst < abs(solution[size - 1]) * mpf("1.02"):
            break
        reference = extrema
    return best[1], best[0]


def alternating_extrema(errors: list[Any], size: int) -> list[int]:
    """Indices of the largest error of each run of one sign, the smaller ends dropped until `size` are left."""
    runs: list[int] = []
    for i, error in enumerate(errors):
        if not runs or (error > 0) != (errors[runs[-1]] > 0):
            runs.append(i)
        elif abs(error) > abs(errors[runs[-1]]):
            runs[-1] = i
    while len(runs) > size:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def in_powers_of(coefficients: list[Any], offset: Any, scale: Any) -> list[Any]:
    """Coefficients in x of sum c_j (offset + scale x)^j."""
    result = [mpf(0)]
    for c in reversed(coefficients):
        shifted = [r * offset for r in result] + [mpf(0)]
        for i, r in enumerate(result):
            shifted[i + 1] += r * scale
        shifted[0] += c
        result = shifted
    return result[: len(coefficients)]


def even(g: Callable[[Any, Any], Any]) -> Real:
    """g(r, z) with z = r^2, as a function of z."""
    return lambda z: g(sqrt(z), z)


def erfinv_ratio(w: Any) -> Any:
    """erfinv(x) / x where w = -log(1 - x^2)."""
    x = sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def fits() -> list[Fit]:
    """All rows. Intervals are a little wider than what the reductions deliver."""
    wide, tiny = mpf("1.0001"), mpf("1e-8")
    quarter_pi, half_ln2 = mp.pi / 4 * wide, mp.ln2 / 2 * wide
    s_max, tan_pi_8 = (sqrt(2) - 1) / (sqrt(2) + 1) * wide, mp.tan(mp.pi / 8) * wide
    z_weight = even(lambda r, z: z)
    atanh_tail = even(lambda s, z: 2 * (mp.atanh(s) / s - 1) / z)
    sin_tail, cos_tail = even(lambda r, z: (mp.sin(r) - r) / (r * z)), even(lambda r, z: (mp.cos(r) - 1 + z / 2) / z**2)
    sin_weight, cos_weight = even(lambda r, z: r * z / mp.sin(r)), even(lambda r, z: z**2 / mp.cos(r))
    sinh_tail, cosh_tail = even(lambda r, z: (mp.sinh(r) - r) / (r * z)), even(lambda r, z: (mp.cosh(r) - 1) / z)
    ratio_of_root = lambda r: erfinv_ratio(r * r)  # noqa: E731
    return [
        Fit("sin", "sin r = r + r z P(z), z = r^2, |r| <= pi/4", sin_tail, sin_weight, tiny, quarter_pi**2, (5, 3)),
        Fit(
            "cos", "cos r = 1 - z/2 + z^2 P(z), z = r^2, |r| <= pi/4", cos_tail, cos_weight, tiny, quarter_pi**2, (5, 2)
        ),
        Fit(
            "exp",
            "exp r = 1 + r + r^2 P(r), |r| <= ln(2)/2",
            lambda r: (mp.exp(r) - 1 - r) / r**2,
            abs,
            -half_ln2,
            half_ln2,
            (10, 5),
        ),
        Fit("sinh", "sinh r = r + r z P(z), z = r^2, |r| <= ln(2)/2", sinh_tail, z_weight, tiny, half_ln2**2, (4, 2)),
        Fit("cosh", "cosh r = 1 + z P(z), z = r^2, |r| <= ln(2)/2", cosh_tail, z_weight, tiny, half_ln2**2, (4, 2)),
        Fit(
            "log",
            "log((1 + s)/(1 - s)) = 2 s + s z P(z), z = s^2, |s| <= 0.1716",
            atanh_tail,
            z_weight,
            tiny,
            s_max**2,
            (6, 3),
        ),
        Fit(
            "log_dd",
            "log((1 + s)/(1 - s)) = 2 s (1 + z (1/3 + z P(z))), z = s^2, |s| <= 0.1716",
            even(lambda s, z: ((mp.atanh(s) / s - 1) / z - mpf(1) / 3) / z),
            even(lambda s, z: z * z),
            tiny,
            s_max**2,
            (7, 7),
        ),
        Fit(
            "asin",
            "asin x = x + x z P(z), z = x^2, |x| <= 1/2",
            even(lambda x, z: (mp.asin(x) / x - 1) / z),
            z_weight,
            tiny,
            mpf("0.2501"),
            (12, 5),
        ),
        Fit(
            "atan",
            "atan t = t + t z P(z), z = t^2, |t| <= tan(pi/8)",
            even(lambda t, z: (mp.atan(t) / t - 1) / z),
            z_weight,
            tiny,
            tan_pi_8**2,
            (10, 4),
        ),
        Fit(
            "erf",
            "erf x = x + x P(z), z = x^2, |x| <= 1",
            even(lambda x, z: mp.erf(x) / x - 1),
            lambda z: mpf(1),
            tiny,
            mpf("1.001"),
            (12, 7),
        ),
        Fit(
            "log_erfc",
            "log erfc(x) = P(x - 1), 1 <= x <= 6, weighted by erfc",
            lambda x: mp.log(mp.erfc(x)),
            mp.erfc,
            mpf(1),
            mpf(6),
            (18, 8),
            1.0,
        ),
        Fit(
            "erfinv_centre",
            "erfinv(x) / x = P(w - 2.5), w = -log(1 - x^2) <= 5",
            erfinv_ratio,
            lambda w: 1 / erfinv_ratio(w),
            mpf("1e-6"),
            mpf("5.001"),
            (22, 12),
            2.5,
        ),
        Fit(
            "erfinv_near",
            "erfinv(x) / x = P(r - 3.125), r = sqrt(w), sqrt(5) <= r <= 4",
            ratio_of_root,
            lambda r: 1 / ratio_of_root(r),
            mpf("2.235"),
            mpf("4.001"),
            (22, 11),
            3.125,
        ),
        Fit(
            "erfinv_far",
            "erfinv(x) / x = P(r - 5), r = sqrt(w), 4 <= r <= 6.02",
            ratio_of_root,
            lambda r: 1 / ratio_of_root(r),
            mpf("3.999"),
            mpf("6.02"),
            (22, 11),
            5.0,
        ),
    ]


def row(fit: Fit) -> str:
    """Source text of one row of the table, with both precisions."""
    middle, half = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
    lines = [f"    # {fit.meaning}", f'    "{fit.name}": {{']
    for dtype, degree in zip(("f64", "f32"), fit.degrees, strict=True):
        coefficients, error = remez(fit.function, fit.weight, fit.low, fit.high, degree)
        values = in_powers_of(coefficients, (fit.shift - middle) / half, 1 / half)
        lines.append(f'        "{dtype}": (  # error 2^{mp.nstr(mp.log(error, 2), 3)}')
        lines += [f"            {float(value)!r}," for value in values]
        lines.append("        ),")
    return "\n".join([*lines, "    },"])


HEADER = '''"""Minimax coefficients, lowest power first; written by benchmarks/vecmath/fit_polynomials.py.

float32 functions compute in double precision with the shorter polynomials.
"""

POLYNOMIALS: dict[str, dict[str, tuple[float, ...]]] = {'''


def main() -> None:
    """Print the module."""
    mp.mp.dps = 50
    print(HEADER)
    for fit in fits():
        print(row(fit), flush=True)
    print("}")


if __name__ == "__main__":
    main()
