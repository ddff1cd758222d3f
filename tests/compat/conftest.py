"""Tests beside the original, which computes in float32: in torch's own default type, as its users have it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def number_type() -> Iterator[None]:
    """Compute in float32."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)
