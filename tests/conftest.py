"""Settings of the whole test suite: property tests and a kernel cache of its own."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest
from hypothesis import settings

# No deadline: the first example may compile a kernel. In CI the examples are the same in every run.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

_own_cache = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep out of the user's kernel cache: start from an empty one, which xdist's workers inherit and share."""
    if "COSTATE_CACHE" not in os.environ:
        config.stash[_own_cache] = os.environ["COSTATE_CACHE"] = tempfile.mkdtemp(prefix="costate-test-cache-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if path := config.stash.get(_own_cache, None):
        shutil.rmtree(path, ignore_errors=True)
        del os.environ["COSTATE_CACHE"]
