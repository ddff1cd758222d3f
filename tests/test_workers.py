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
LIMIT, LEFT_BEHIND = 2, 300
"""Seconds after which a test is ended here, and for which its child sleeps."""

HANGS = f"""
import multiprocessing, os, time
def test_fork():
    context = multiprocessing.get_context("fork")
    context.Process(target=time.sleep, args=({LEFT_BEHIND},)).start()
    END
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("end", [f"time.sleep({LEFT_BEHIND})", "os._exit(3)"], ids=["hangs", "crashes"])
def test_a_lost_worker_fails_the_run(end: str, tmp_path: Path) -> None:
    """Once a worker is lost, the run ends with an error within seconds, although a forked child of it still sleeps."""
    shutil.copy(HERE / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_hangs.py").write_text(HANGS.replace("END", end))
    (tmp_path / "test_passes.py").write_text("def test_passes(): pass\n")
    options = ["-n", "2", "--dist", "loadfile", "--max-worker-restart", "0"]
    options += ["--timeout", str(LIMIT), "--timeout-method", "thread"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    start = time.monotonic()
    run = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        shown = run.stdout.read() if run.stdout else ""
        assert run.wait() == 1
        assert time.monotonic() - start < LEFT_BEHIND
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)  # the child that is left
    assert "crashed while running 'test_hangs.py::test_fork'" in shown and "1 passed" in shown
