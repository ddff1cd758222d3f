"""The benchmark of the published printing case runs, with a few steps."""

from __future__ import annotations

import pytest
import torch

from benchmarks.bench_printed_part import COLUMNS, one


@pytest.mark.parametrize("treatment", [False, True])
def test_a_few_steps(treatment: bool) -> None:
    threads = torch.get_num_threads()
    try:
        row = one("float32", 1, 40, treatment)
    finally:
        torch.set_num_threads(threads)
    assert len(row) == len(COLUMNS) and row[:3] == ["float32", "1", "40"]
    assert all(float(x) >= 0 for x in row[3:])
