"""Archives that unpack to too much, and files that never end, are refused before they are read."""

from __future__ import annotations

import bz2
import gzip
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import trimesh

from costate.collision.mesh.files import load_triangles
from costate.collision.mesh.unpacked import check_mesh_file

MEMORY = """
import resource, sys
from pathlib import Path
from costate.collision.mesh.files import load_triangles
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_triangles(Path(sys.argv[1]))
except ValueError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
"""A program that prints why a file is refused, and the memory that took [MB]."""


def zipped(path: Path, name: str, mb: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open(name, "w") as file:
        for _ in range(mb):
            file.write(bytes(2**20))
    return path


@pytest.mark.parametrize(("name", "inside"), [("a.zip", "a.stl"), ("a.3mf", "3D/3dmodel.model")])
def test_bombs_take_no_memory(tmp_path: Path, name: str, inside: str) -> None:
    path = zipped(tmp_path / name, inside, 300)
    assert path.stat().st_size < 4 * 2**20
    ended = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, timeout=600)
    why, grown = ended.stdout.splitlines()
    assert f"{name}: 300 MB that a mesh file unpacks to" in why and "COSTATE_MAX_MESH_UNPACKED_MB" in why
    assert int(grown) < 150


@pytest.mark.parametrize("opened", [gzip.open, bz2.open])
def test_streams_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened) -> None:
    path = tmp_path / f"a.stl.{'gz' if opened is gzip.open else 'bz2'}"
    with opened(path, "wb") as file:
        file.write(bytes(3 * 2**20))
    check_mesh_file(path)
    monkeypatch.setenv("COSTATE_MAX_MESH_UNPACKED_MB", "2")
    with pytest.raises(ValueError, match=r"3 MB that a mesh file unpacks to exceed the limit of 2;"):
        check_mesh_file(path)


def test_archives_in_archives_are_refused(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "b.zip", "b.stl", 1)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(inner, "b.zip")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(inner, "b.zip")
    for name in ("a.zip", "a.tar.gz"):
        with pytest.raises(ValueError, match=r"the archive 'b.zip' inside of an archive is not unpacked"):
            load_triangles(tmp_path / name)


def test_an_ordinary_archive_is_read(tmp_path: Path) -> None:
    box = trimesh.creation.box()
    box.export(tmp_path / "box.stl")
    with zipfile.ZipFile(tmp_path / "box.zip", "w") as archive:
        archive.write(tmp_path / "box.stl", "box.stl")
    vertices, faces = load_triangles(tmp_path / "box.zip")
    assert len(faces) == 12 and np.allclose(np.abs(vertices), 0.5)


def test_large_files_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.stl").open("wb") as file:
        file.truncate(3 * 2**30)  # takes no space
    with pytest.raises(ValueError, match=r"3,072 MB of a mesh file exceed the limit of 2,048; .* COSTATE_MAX_MESH_MB"):
        load_triangles(tmp_path / "a.stl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this system")
def test_fifos_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.mtl")
    (tmp_path / "a.obj").write_text("mtllib fifo.mtl\nusemtl m\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "pipe.stl").symlink_to(tmp_path / "fifo.mtl")
    read = "import sys\nfrom pathlib import Path\nfrom costate.collision.mesh.files import load_triangles\n"
    read += "print(len(load_triangles(Path(sys.argv[1]))[1]))"
    ended = subprocess.run(
        [sys.executable, "-c", read, str(tmp_path / "a.obj")], capture_output=True, text=True, timeout=600
    )
    assert ended.stdout.strip() == "1", ended.stderr
    for path in (tmp_path / "pipe.stl", Path("/dev/zero")):
        with pytest.raises(FileNotFoundError, match="this is not a regular file"):
            load_triangles(path)
