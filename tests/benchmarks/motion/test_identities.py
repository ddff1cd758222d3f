"""The reference keeps energy and momentum, and so do its derivatives."""

from __future__ import annotations

import pytest

from benchmarks.motion.events import UnresolvedError
from benchmarks.motion.identities import errors
from benchmarks.motion.reference import truth
from benchmarks.motion.scenes import kinds

ACCURACY = {"two hinged links on ground": 2e-4, "straight leg on ground": 2e-4}
"""Error of Runge-Kutta steps of 2 ms: large for an arm whose links whirl."""


@pytest.mark.parametrize("name", [name for name, kind in kinds().items() if kind.system.pairs])
def test_derivatives_of_energy_and_momentum(name: str) -> None:
    kind, found = kinds()[name], []
    for seed in range(60):
        start, by = kind.start(seed)
        keeps = start.restitution == 1 or (kind.ground is None and not kind.walls and not start.gravity.any())
        if not keeps or len(found) > 2:
            continue
        try:
            known = truth(kind, start, by)
        except UnresolvedError:
            continue
        found += errors(kind, start, by, known.value, known.slope).values() if known.impacts else []
    assert found and max(found) < ACCURACY.get(name, 1e-7)
