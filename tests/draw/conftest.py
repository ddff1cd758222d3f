"""Tests of pictures, and of how long a frame takes: code of the level that users have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _code_level() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSTATE_CODE_LEVEL", "1")
        yield
