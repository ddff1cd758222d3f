"""Files are whole or absent, private ones stay private, and folders can be held."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from tests.disk import files_of_at_most

from costate.core import files
from costate.core.readers.text import read_json


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    files.write_json(path, {"a": 1})
    with files_of_at_most(1000), pytest.raises(OSError, match=r"options\.json: .*; the one there is unchanged"):
        files.write_json(path, ["x" * 2000])
    assert read_json(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["options.json"]


def test_a_failed_first_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing was written"):
        files.write_text(tmp_path / "missing" / "file.txt", "text")
    assert list(tmp_path.iterdir()) == []


def test_text_keeps_its_line_ends_and_letters(tmp_path: Path) -> None:
    files.write_text(tmp_path / "a.txt", "grün\r\nπ\n")
    assert (tmp_path / "a.txt").read_bytes() == "grün\r\nπ\n".encode()


def test_damaged_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": ')
    with pytest.raises(ValueError, match=r"a\.json is damaged: it is not JSON"):
        read_json(tmp_path / "a.json")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions differ there")
def test_private_files_are_for_the_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files.write_private(tmp_path / "cache" / "entry.bin", b"data")
        files.write_text(tmp_path / "open.txt", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "cache" / "entry.bin").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "open.txt").stat().st_mode) == 0o666  # as the user's umask says


def test_a_failed_private_write_leaves_nothing(tmp_path: Path) -> None:
    with files_of_at_most(1000), pytest.raises(OSError):
        files.write_private(tmp_path / "entry.bin", b"x" * 2000)
    assert list(tmp_path.iterdir()) == []


def test_a_seal_finds_every_changed_byte() -> None:
    data = b"some content"
    sealed = files.seal(data)
    assert files.unseal(sealed) == data
    for k in range(len(sealed)):
        with pytest.raises(ValueError, match="damaged"):
            files.unseal(sealed[:k] + bytes([sealed[k] ^ 1]) + sealed[k + 1 :])
    with pytest.raises(ValueError, match="damaged"):
        files.unseal(b"")


def test_a_checksum_is_that_of_the_joined_parts() -> None:
    assert files.checksum(b"a", b"bc") == files.checksum(b"abc") != files.checksum(b"abd")


HOLD = "import sys, time; from pathlib import Path; from costate.core.files import locked\n"
HOLD += "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed differently there")
def test_a_lock_keeps_others_out_and_dies_with_its_holder(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(ValueError, match="in use"):
        with files.locked(tmp_path):
            pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with files.locked(tmp_path):
        pass


@dataclass(frozen=True)
class Inner:
    size: tuple[float, ...] = (1.0, 2.0)


@dataclass(frozen=True)
class Outer:
    inner: Inner = Inner()
    count: int = 3
    name: str = ""


def test_dataclasses_survive_json(tmp_path: Path) -> None:
    value = Outer(Inner((0.5,)), 7, "seven")
    files.write_json(tmp_path / "a.json", asdict(value))
    assert files.from_json(Outer, read_json(tmp_path / "a.json"), tmp_path) == value
    assert files.from_json(Outer, {"count": 4}, tmp_path) == Outer(count=4)


@pytest.mark.parametrize(
    "value, message",
    [
        ([], "expected the fields of Outer"),
        ({"conut": 4}, "Outer has no field 'conut'"),
        ({"count": 4.5}, r"Outer\.count is 4\.5; expected int"),
        ({"count": True}, r"Outer\.count is True; expected int"),
        ({"inner": {"sizes": []}}, "Inner has no field 'sizes'"),
    ],
)
def test_other_fields_are_refused(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        files.from_json(Outer, value, Path("a.json"))


def test_a_folder_goes_with_its_owner_without_a_warning() -> None:
    class Owner:
        pass

    owner = Owner()
    folder = files.folder_of(owner)
    (folder / "inner").mkdir()
    (folder / "inner" / "file.txt").write_text("text")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del owner
        gc.collect()
    assert not folder.exists()
