"""Scripts in processes of their own: what they print, and what becomes of those that exceed a limit, refuse or crash."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from costate.core.confined import RefusedError, run_confined

linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system bounds neither time nor memory")


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def test_what_it_prints_is_returned(tmp_path: Path) -> None:
    path = script(tmp_path, "import sys\nprint(sys.argv[1:], __name__, 'costate' in sys.modules)")
    assert run_confined(path, ["a", Path("b c")]) == "['a', 'b c'] __main__ False\n"


@linux
def test_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTATE_MAX_READ_SECONDS", "1")
    with pytest.raises(
        ValueError, match=r"the limit of 1 seconds of processor time .* COSTATE_MAX_READ_SECONDS to a higher"
    ):
        run_confined(script(tmp_path, "while True: pass"), [])


def test_waiting_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits takes no processor time."""
    monkeypatch.setenv("COSTATE_MAX_READ_SECONDS", "1")
    monkeypatch.setattr("costate.core.confined._WAIT", -8)  # two seconds on the clock
    begun = time.monotonic()
    with pytest.raises(ValueError, match="COSTATE_MAX_READ_SECONDS"):
        run_confined(script(tmp_path, "import time; time.sleep(1000)"), [])
    assert time.monotonic() - begun < 60


@linux
@pytest.mark.parametrize("much", ["bytes(3 * 2**30)", "[bytes(2**20) for _ in range(3000)]"])
def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, much: str) -> None:
    path = script(tmp_path, f"kept = {much}\nprint('all')")
    monkeypatch.setenv("COSTATE_MAX_READ_MEMORY_MB", "100")
    with pytest.raises(ValueError, match=r"the limit of 100 MB of memory .* COSTATE_MAX_READ_MEMORY_MB to a higher"):
        run_confined(path, [])
    monkeypatch.setenv("COSTATE_MAX_READ_MEMORY_MB", "4000")
    assert run_confined(path, []) == "all\n"


def test_refusals_and_crashes_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"^no mesh$"):
        run_confined(script(tmp_path, "print('no mesh')\nraise SystemExit(3)"), [])
    with pytest.raises(ValueError, match="ended with SIGSEGV"):
        run_confined(script(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"), [])
    with pytest.raises(ValueError, match=r"ended with exit code 1: ZeroDivisionError: division by zero"):
        run_confined(script(tmp_path, "1 / 0"), [])
