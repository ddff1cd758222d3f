"""Worker processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.endings import is_running
from tests.scale.threads import NUMBERS, SQUARES

from costate.scale.choose import Cluster, executor
from costate.scale.message import Message


def test_a_killed_process_is_replaced_and_named(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("costate.scale.pool.ALONE", 600.0)  # workers may start slowly on a busy machine
    with executor(SQUARES, Cluster(workers=2)) as pool:
        assert float(next(pool.map([Message({"number": "print"})])).tensors["square"]) == 1.0
        first = list(pool.map(NUMBERS))
        processes = {m.note["process"] for m in first}
        assert os.getpid() not in processes
        assert [float(m.tensors["square"]) for m in first] == [float(k) ** 2 for k in range(12)]
        os.kill(processes.pop(), 9)
        again = list(pool.map(NUMBERS))
        assert [float(m.tensors["square"]) for m in again] == [float(k) ** 2 for k in range(12)]
    assert "was ended by SIGKILL, as the system does when memory runs out" in capfd.readouterr().err


PROGRAM = """
import sys
from costate.scale.choose import Cluster, executor
from costate.scale.message import Message
with executor(Message({"work": "tests.scale.threads:Sleeps"}), Cluster(workers=1)) as pool:
    list(pool.map([Message({"file": sys.argv[1]})]))
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_program_in_the_middle_of_a_shard(end: signal.Signals, tmp_path: Path) -> None:
    note = tmp_path / "process"
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(note)], env=surroundings) as program:
        while not (note.is_file() and note.read_text()) and program.poll() is None:
            time.sleep(0.05)
        worker = int(note.read_text())
        assert is_running(worker)
        program.send_signal(end)
    assert not is_running(worker, 20.0)


@pytest.mark.parametrize("where", [Cluster(workers=-1), Cluster(workers=10**6, cluster="local")])
def test_impossible_numbers_of_workers_are_refused(where: Cluster) -> None:
    with pytest.raises(ValueError, match="workers is"):
        executor(SQUARES, where)


def test_this_process_alone_needs_no_workers() -> None:
    with executor(SQUARES, Cluster()) as alone:
        assert [m.note["process"] for m in alone.map(NUMBERS)] == [os.getpid()] * 12
