"""Interrupted calls answer at once, and let go of no memory that is still written to: a sample of `make study-faults`."""

from __future__ import annotations

import pytest

from benchmarks.faults.interrupts import ANSWER, ATTACKS, in_process


@pytest.mark.parametrize(
    "work",
    [
        "a kernel on two threads",
        pytest.param("a roll-out on two threads", marks=pytest.mark.study),  # its threads are those of the kernel
        "a long roll-out on one thread",
    ],
)
def test_interrupted_calls(work: str) -> None:
    found = in_process(work, times=2, seed=5)
    assert isinstance(found, dict), found
    assert found.keys() == ATTACKS.keys()
    for attack, seconds in found.items():
        assert min(seconds) >= 0, f"{attack}: memory was overwritten"
        assert max(seconds) < ANSWER, f"{attack}: {seconds}"
