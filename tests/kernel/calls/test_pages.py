"""Large results are put on large pages."""

from __future__ import annotations

import pytest
import torch

from costate.kernel.calls import pages


def test_only_large_tensors_ask_for_large_pages_and_only_for_their_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int, int]] = []
    monkeypatch.setattr(pages, "_madvise", lambda *what: asked.append(what))
    small, large = (
        torch.empty(pages.LARGE // 8 - 1, dtype=torch.float64),
        torch.empty(pages.LARGE // 8 + 3, dtype=torch.float64),
    )
    assert pages.on_large_pages(small) is small
    assert not asked
    assert pages.on_large_pages(large) is large
    ((start, size, advice),) = asked
    assert advice == 14  # MADV_HUGEPAGE
    assert start % 4096 == size % 4096 == 0
    assert large.data_ptr() <= start < large.data_ptr() + 4096
    assert start + size <= large.data_ptr() + 8 * large.numel() < start + size + 4096
