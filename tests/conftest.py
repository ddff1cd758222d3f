"""Settings of the whole test suite: property tests, a kernel cache of its own, and workers whose death is noticed at once."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# Tests compute in float64, with which oracles and finite differences are compared; test_number_types.py is about the other types.
torch.set_default_dtype(torch.float64)

# No deadline: the first example may compile a kernel. In CI the examples are the same in every run.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# This level of LLVM's code generator gives the same bits (tests/kernel/test_same_bits.py) and compiles in half the time. Tests of
# the compiler use the level that users have.
os.environ.setdefault("COSTATE_CODE_LEVEL", "0")

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
    if hasattr(config, "workerinput"):
        _let_go_of_pipes_in_children()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what tests have left running, which Python would otherwise wait for, and remove the cache of this run."""
    for child in multiprocessing.active_children():
        child.kill()
    if path := config.stash.get(_own_cache, None):
        shutil.rmtree(path, ignore_errors=True)
        del os.environ["COSTATE_CACHE"]


def _let_go_of_pipes_in_children() -> None:
    """Close a worker's connection to pytest in every process that a test forks.

    pytest learns from the end of this pipe that a worker was killed. A forked child that is still alive would hold it open, and
    the run would wait for that child.
    """
    pipes = [fd for fd in range(3, 64) if _is_pipe(fd)]

    def replace() -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in pipes:
            os.dup2(nothing, fd)
        os.close(nothing)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=replace)


def _is_pipe(fd: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    except OSError:
        return False
