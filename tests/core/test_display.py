"""Numbers as they are read."""

from __future__ import annotations

import math

import numpy as np
import pytest

from costate.core.display import number


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (130.0, 2, "130"),
        (134.0, 2, "130"),
        (0.34, 3, "0.34"),
        (99.96, 3, "100"),
        (9999.6, 4, "10,000"),
        (12345.0, 3, "12,300"),
        (1234.5, 3, "1230"),
        (1234567.0, 4, "1,235,000"),
        (3.2e9, 3, "3.2e9"),
        (0.000123, 3, "0.000123"),
        (1.3e-7, 2, "1.3e-7"),
        (-45.06, 4, "-45.06"),
        (0, 3, "0"),
        (2, 3, "2"),
        (math.inf, 3, "inf"),
        (math.nan, 3, "nan"),
        (np.float32(0.5), 3, "0.5"),
    ],
)
def test_number(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_a_number_keeps_its_digits() -> None:
    for x in np.random.default_rng(0).lognormal(0, 8, 500):
        assert float(number(x, 4).replace(",", "")) == float(f"{x:.3e}")
