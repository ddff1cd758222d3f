"""erf and its inverse.

erf:    x + x P(x^2) up to 1; above, 1 - exp(Q(x)) with Q a polynomial of log erfc, which is smooth (as in Juffa's erf).
erfinv: x times a polynomial in w = -log(1 - x^2), or in sqrt(w) near +-1 (Giles, "Approximating the erfinv function",
        GPU Computing Gems, 2011), with coefficients of our own.
"""

from __future__ import annotations

from costate.kernel.vecmath.explog import exp_within, log_normal
from costate.kernel.vecmath.polynomials import POLYNOMIALS
from costate.kernel.vecmath.vectors import INF, NAN, Emitter, Vec


def erf(e: Emitter, x: Vec) -> Vec:
    """Return the error function; 1 to rounding from 6 on."""
    a = e.abs(x)
    centre = e.fma(x, e.polynomial("erf", x * x), x)

    def tail() -> tuple[Vec]:
        log_erfc = e.horner(POLYNOMIALS["log_erfc"][e.dtype], e.at_most(a, 6.0) - 1.0)
        return (e.flip(1.0 - exp_within(e, log_erfc), e.sign(x)),)

    (result,) = e.repair(~(a <= 1.0), (centre,), tail)
    return e.select(x.equals(x), result, x)


def erfinv(e: Emitter, x: Vec) -> Vec:
    """Return the inverse error function; infinite at +-1, NaN beyond."""
    a = e.abs(x)
    w = -log_normal(e, (1.0 - a) * (a + 1.0))
    centre = e.horner(POLYNOMIALS["erfinv_centre"][e.dtype], w - 2.5)

    def tail() -> tuple[Vec]:
        r = e.sqrt(w)
        far = r > 4.0
        rows = (POLYNOMIALS[name][e.dtype] for name in ("erfinv_far", "erfinv_near"))
        coefficients = [e.select(far, e.constant(f), n) for f, n in zip(*rows, strict=True)]
        ratio = e.horner(coefficients, r - e.select(far, 5.0, e.constant(3.125)))
        at_one = e.select(a.equals(1.0), INF, NAN)
        return (e.select(a < 1.0, ratio, at_one),)

    (ratio,) = e.repair(~(a < 1.0) | ~(w <= 5.0), (centre,), tail)
    return ratio * x
