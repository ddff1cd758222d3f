"""A worker answers, fails, hangs or dies: the other side learns why, and goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers.peer import Peer
from benchmarks.peers.process import PeerError, Process
from benchmarks.peers.subject import arm

LIMIT = 60.0


@pytest.fixture
def process(fakes: list[Peer]) -> Iterator[Process]:
    made = Process(fakes[1], Path(sys.executable))
    yield made
    made.stop()


def test_time_is_that_of_a_call(process: Process, tmp_path: Path) -> None:
    assert process.ask(LIMIT, do="hello")["precision"] == "float64"
    made = process.ask(LIMIT, do="make", job=arm(tmp_path).job("kinematics", batch=8))
    assert made["samples"] == 8 and made["values"] == [1.5, 8.0]
    found = process.ask(LIMIT, do="time", seconds=0.1)
    assert found["seconds"] >= 0.02 > 2 * found["cpu"]  # it sleeps
    calls = len((tmp_path / "log").read_text().splitlines())
    assert 2 <= calls <= 6, "one to warm up, then about 0.1 s"


def test_reasons(process: Process, tmp_path: Path) -> None:
    robot = arm(tmp_path)
    with pytest.raises(PeerError, match="ValueError: the fake cannot do this"):
        process.ask(LIMIT, do="make", job=robot.job("inverse_dynamics"))
    with pytest.raises(PeerError, match="ended with code 3: last words"):
        process.ask(LIMIT, do="make", job=robot.job("kinematics_gradient"))
    assert process.ask(LIMIT, do="hello")  # starts anew
    with pytest.raises(PeerError, match="no result within 1 s"):
        process.ask(1.0, do="make", job=robot.job("steps"))
    assert not process.running


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory(process: Process, tmp_path: Path) -> None:
    found = process.ask(LIMIT, do="peak", job=arm(tmp_path).job("rollout_gradient"))["bytes"]
    assert 1 << 26 <= found < (1 << 26) + (1 << 22)
