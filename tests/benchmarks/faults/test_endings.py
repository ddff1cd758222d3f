"""The process ends, or forks, in the middle of a call of compiled code: nothing crashes, hangs, or is wrong."""

from __future__ import annotations

import pytest

from benchmarks.faults.endings import ENDINGS, problem

FEW = (
    "the process ends while a daemon thread calls",
    "an interrupt ends the process",
    "another thread forks during a call",
    "a hook raises in a backward pass",
)
"""Endings of `make test`; `make study-faults` has all."""


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.study) for name in ENDINGS]
)
def test_endings(name: str) -> None:
    assert problem(name) == ""
