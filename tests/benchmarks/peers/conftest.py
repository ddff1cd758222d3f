from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.peers.peer import Peer

FAKE = Path(__file__).with_name("fake.py")


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Peer]:
    """Two peers, under names that tables know, whose worker is fake.py; who ran when is in tmp_path/log."""
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    for name in ("costate", "mujoco"):
        shutil.copy(FAKE, tmp_path / f"{name}_worker.py")
    return [Peer(name, name, (), "asleep", folder=tmp_path) for name in ("costate", "mujoco")]
