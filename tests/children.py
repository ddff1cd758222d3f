"""Processes that tests leave behind: the death of a worker is noticed at once, and nothing waits for what it has started."""

from __future__ import annotations

import multiprocessing
import os
import stat

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Look after the pipe of a worker."""
    if hasattr(config, "workerinput"):
        _let_go_of_pipes_in_children()


def pytest_unconfigure() -> None:
    """End what tests have left running, which Python would otherwise wait for."""
    for child in multiprocessing.active_children():
        child.kill()


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
