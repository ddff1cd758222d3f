"""The wheel holds the whole package, and works outside the checkout; other packages name the same versions.

`make package` tries wheel and sdist in new environments."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.test_repository import ROOT, tracked_files

import costate as cs

LIMIT = 1200
"""Seconds after which a process counts as hanging, on a busy machine, too."""

PACKAGING = ROOT / "packaging"
CONDA = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}
"""Name on the package index -> name in conda, where they differ."""


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


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_conda_recipe_asks_for_the_same_as_the_wheel() -> None:
    recipe = (PACKAGING / "conda" / "meta.yaml").read_text()
    run = dict(
        re.findall(r"^    - ([\w-]+) (>=[\d.]+)$", recipe.partition("  run:")[2].partition("test:")[0], re.MULTILINE)
    )
    asked = dict(re.findall(r"^([\w-]+)(>=[\d.]+)$", "\n".join(project()["dependencies"]), re.MULTILINE))
    assert len(asked) == len(project()["dependencies"])
    assert run == {CONDA.get(name, name): bound for name, bound in asked.items()} | {
        "python": project()["requires-python"]
    }
    assert re.search(r'set version = "(.+)"', recipe)[1] == cs.__version__  # pyright: ignore[reportOptionalSubscript]
    assert f"name: {project()['name']}\n" in recipe
    assert f"- costate = {project()['scripts']['costate']}\n" in recipe


def test_the_image_is_built_from_what_there_is() -> None:
    recipe = (PACKAGING / "Dockerfile").read_text()
    (copied,) = re.findall(r"^COPY (.+) \./$", recipe, re.MULTILINE)
    kept = re.findall(r"^!(.+)$", (PACKAGING / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert {*copied.split(), "src"} == set(kept) and all((ROOT / name).exists() for name in kept)
    (torch,) = re.findall(r"torch==[\d.]+", recipe)
    assert torch in (ROOT / "constraints.txt").read_text().split()
    (extras,) = re.findall(r"'\.\[(.+)\]'", recipe)
    assert set(extras.split(",")) <= set(project()["optional-dependencies"])
