"""Settings of the whole test suite: property tests, number types and a kernel cache of its own."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

pytest_plugins = ["tests.children"]

# Tests compute in float64, with which oracles and finite differences are compared; test_number_types.py is about the other types.
torch.set_default_dtype(torch.float64)

# No deadline: the first example may compile a kernel. In CI the examples are the same in every run.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# This level of LLVM's code generator gives the same bits (tests/kernel/test_same_bits.py) and compiles in half the time. Tests of
# the compiler use the level that users have.
os.environ.setdefault("COSTATE_CODE_LEVEL", "0")

# Tests run side by side on all cores: further processes that compile would only wait for each other.
os.environ.setdefault("COSTATE_COMPILERS", "0")

_own_cache = pytest.StashKey[str]()


@pytest.fixture(autouse=True, scope="module")
def number_type() -> None:
    """Compute in float64, whatever the tests before have chosen; a folder may choose another type."""
    torch.set_default_dtype(torch.float64)


@pytest.fixture(autouse=True)
def _kept_number_type(number_type: None) -> Iterator[None]:
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


def pytest_configure(config: pytest.Config) -> None:
    """Keep out of the user's kernel cache: start from an empty one, which xdist's workers inherit and share."""
    if "COSTATE_CACHE" not in os.environ:
        config.stash[_own_cache] = os.environ["COSTATE_CACHE"] = tempfile.mkdtemp(prefix="costate-test-cache-")


def pytest_collection_finish() -> None:
    """Let Python look for garbage only in what the tests make, not in all that is loaded."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache of this run."""
    if path := config.stash.get(_own_cache, None):
        shutil.rmtree(path, ignore_errors=True)
        del os.environ["COSTATE_CACHE"]
