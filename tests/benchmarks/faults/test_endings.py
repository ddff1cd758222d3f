"""The process ends, or forks, in the middle of a call of compiled code: nothing crashes, hangs, or is wrong."""

from __future__ import annotations

import pytest

from benchmarks.faults.endings import ENDINGS, problem


@pytest.mark.parametrize("name", ENDINGS)
def test_endings(name: str) -> None:
    assert problem(name) == ""
