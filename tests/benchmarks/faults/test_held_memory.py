"""Kernels are linked wherever the system maps their sections: a sample of `make study-faults`."""

from __future__ import annotations

import sys

import pytest

from benchmarks.faults.held_memory import problem


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_kernels_are_linked_while_gigabytes_are_held() -> None:
    """LLVM's older linker ended the process here: relocations of 32 bits between sections more than 2 GB apart."""
    assert problem(count=300, seed=2) == ""
