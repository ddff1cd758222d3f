"""Numbers as they are read in reports and tables."""

from __future__ import annotations

import math
from typing import Any

PLAIN = range(-4, 7)
"""Powers of ten of the first digit that are written out; others are written as 1.3e-7."""


def number(value: Any, digits: int = 3) -> str:
    """Return a number with so many significant digits, without zeros at its end: 130, 0.0123, 12,300, 1.3e-7."""
    x = float(value)
    if not math.isfinite(x):
        return str(x)
    mantissa, _, power = f"{x:.{digits - 1}e}".partition("e")
    exponent = int(power)
    if x == 0 or exponent not in PLAIN:
        return "0" if x == 0 else f"{_short(mantissa)}e{exponent}"
    rounded, places = float(f"{mantissa}e{exponent}"), max(digits - 1 - exponent, 0)
    return _short(f"{rounded:,.{places}f}" if exponent > 3 else f"{rounded:.{places}f}")


def _short(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return round numbers between low and high."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * k + 0.0 for k in range(first, last + 1)]
