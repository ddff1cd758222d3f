"""The wheel holds the whole package, and works outside of the checkout. `make package` tries it in a new environment."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.test_repository import ROOT, tracked_files

LIMIT = 1200
"""Seconds after which a process counts as hanging, on a busy machine, too."""


def done(*command: str | Path, **options: Any) -> str:
    """Run a command to its end; return what it printed."""
    ended = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=LIMIT, **options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    expected = {p.relative_to(source).as_posix() for p in tracked_files() if source in p.parents}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert {name for name in expected if name.endswith(".urdf")}
    assert expected - held == set()


@pytest.mark.slow
def test_the_wheel_works_outside_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """With the dependencies of this environment: another folder comes before the checkout."""
    target = tmp_path / "installed"
    done(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
    environment = os.environ | {"PYTHONPATH": str(target)}
    shown = done(sys.executable, "-P", ROOT / "tests" / "wheel_smoke.py", ROOT, cwd=tmp_path, env=environment)
    assert str(target / "costate") in shown
