"""A browser for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.browser import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found
