"""Hostile files end in an answer or a clear error, in bounded time and memory: a sample of `make study-faults`."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from benchmarks.faults import hostile
from benchmarks.faults.hostile import KINDS, Ending, read_case

QUICK = [kind for kind in KINDS if kind not in ("slow", "archives")]


@pytest.mark.parametrize("kind", QUICK)
def test_hostile_files_end(kind: str) -> None:
    ending = read_case(kind, 1_000_000)
    assert ending.sound, ending


def test_paths_lead_nowhere() -> None:
    endings = [read_case("paths", 2_000_000 + k) for k in range(15)]
    assert [e for e in endings if not e.sound or e.result == "answer"] == []


@pytest.mark.parametrize("ending", ["obj", "xml"])
def test_the_study_notices_what_must_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """With the whole machine allowed, the number in a private file comes back."""
    path = hostile._path(random.Random(1), tmp_path)
    private = tmp_path / "private" / {"obj": "m.obj", "xml": "part.xml"}[ending]
    if ending == "obj":
        shape = f'<geometry><mesh filename="{private}"/></geometry>'
        path = path.with_name("robot.urdf")
        path.write_text(f'<robot name="r"><link name="a"><visual>{shape}</visual></link></robot>')
    else:
        path = path.with_name("robot.xml")
        path.write_text(
            f'<mujoco><include file="{private}"/><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'
        )
    assert hostile._answer(path)[0] == "error"
    monkeypatch.setenv("COSTATE_ROBOT_DIRS", str(tmp_path))
    assert hostile._answer(path)[0] == "reached a secret"


def test_the_study_notices_hangs_and_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "STUCK", 1.0)
    monkeypatch.setattr(hostile, "_answer", lambda path: time.sleep(1000))
    assert read_case("digits", 0).result == "hang"
    monkeypatch.setattr(hostile, "STUCK", 600.0)
    monkeypatch.setattr(hostile, "_answer", lambda path: os.kill(os.getpid(), signal.SIGKILL))
    assert read_case("digits", 0).result == "crash"
    assert not Ending("answer", "", 1000.0, 0.0).sound and not Ending("answer", "", 0.0, 1e5).sound
