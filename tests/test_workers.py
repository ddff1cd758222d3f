"""A test that hangs or crashes ends the run with an error: nothing waits for it, or for processes that it has left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIMIT, LEFT_BEHIND = 2, 1200
"""Seconds after which a test is ended here, and for which its child sleeps."""

HANGS = f"""
import multiprocessing, os, time
def test_fork():
    context = multiprocessing.get_context("fork")
    context.Process(target=time.sleep, args=({LEFT_BEHIND},)).start()
    END
"""


def run_pytest(end: str, folder: Path) -> tuple[int, str]:
    """Run two test files with two workers, one of which forks a child and comes to an end; return the exit code and the output."""
    shutil.copy(HERE / "children.py", folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_hangs.py").write_text(HANGS.replace("END", end))
    (folder / "test_passes.py").write_text("def test_passes(): pass\n")
    options = ["-p", "xdist", "-p", "pytest_timeout", "-n", "2", "--dist", "loadfile", "--max-worker-restart", "0"]
    options += ["--timeout", str(LIMIT), "--timeout-method", "thread"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to load, in three processes
    start = time.monotonic()
    run = subprocess.Popen(
        command,
        cwd=folder,
        env=alone,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        shown, _ = run.communicate()
        assert time.monotonic() - start < LEFT_BEHIND
        return run.returncode, shown
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)  # the child that is left


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("end", [f"time.sleep({LEFT_BEHIND})", "os._exit(3)"], ids=["hangs", "crashes"])
def test_a_lost_worker_fails_the_run(end: str, tmp_path: Path) -> None:
    """Once a worker is lost, the run ends with an error within seconds, although a forked child of it still sleeps."""
    code, shown = run_pytest(end, tmp_path)
    assert code == 1
    assert "crashed while running 'test_hangs.py::test_fork'" in shown and "1 passed" in shown


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_that_is_left_behind_holds_nothing_up(tmp_path: Path) -> None:
    code, shown = run_pytest("pass", tmp_path)
    assert code == 0 and "2 passed" in shown
