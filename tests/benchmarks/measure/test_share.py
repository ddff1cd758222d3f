"""Cases of studies have the same results whoever computes them."""

from __future__ import annotations

import math

from benchmarks.measure.share import shared
from costate.scale.choose import Cluster


def test_cases_are_shared_in_their_order() -> None:
    cases = [(3, 4), (0.1, 0.2), (5, 12)]
    alone = list(shared(math.hypot, cases, Cluster()))
    assert alone == [math.hypot(*case) for case in cases]
    assert list(shared(math.hypot, cases, Cluster(workers=2))) == alone
