"""Worker processes of this machine."""

from __future__ import annotations

import os

import pytest
from tests.scale.threads import NUMBERS, SQUARES

from costate.scale.choose import Cluster, executor
from costate.scale.message import Message


def test_a_killed_process_is_replaced_and_named(capfd: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.parametrize("where", [Cluster(workers=-1), Cluster(workers=10**6, cluster="local")])
def test_impossible_numbers_of_workers_are_refused(where: Cluster) -> None:
    with pytest.raises(ValueError, match="workers is"):
        executor(SQUARES, where)


def test_this_process_alone_needs_no_workers() -> None:
    with executor(SQUARES, Cluster()) as alone:
        assert [m.note["process"] for m in alone.map(NUMBERS)] == [os.getpid()] * 12
