"""The command that a message about a missing package gives fits the way in which Costate is installed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from tests.test_repository import ROOT

import costate
from costate.core import extras
from costate.core.extras import DISTRIBUTION, install_command, needs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def install(folder: Path, origin: dict[str, object] | None) -> None:
    """Write what pip leaves of an installation: metadata, and where it came from unless that was an index."""
    info = folder / f"{DISTRIBUTION.replace('-', '_')}-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {DISTRIBUTION}\nVersion: 9.9\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(extras, "_pip", lambda: "pip")
    return tmp_path


def test_the_name_is_that_of_the_project() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    try:
        assert version(DISTRIBUTION) == costate.__version__
    except PackageNotFoundError:
        pytest.skip("Costate is on the path, not installed")


@pytest.mark.parametrize(
    "origin",
    [None, {"archive_info": {}, "url": "file:///a/costate_physics-9.9.whl"}, {"dir_info": {}, "url": "file:///a"}],
)
def test_for_a_wheel_the_command_names_the_distribution(place: Path, origin: dict[str, object] | None) -> None:
    install(place, origin)
    assert install_command("view") == "pip install 'costate-physics[view]'"


def test_for_a_checkout_the_command_names_its_folder(place: Path) -> None:
    install(place, {"dir_info": {"editable": True}, "url": "file:///some/my%20checkout"})
    assert needs("the viewer", "viser", "view") == "the viewer needs viser: pip install -e '/some/my checkout[view]'"


def test_a_checkout_that_is_only_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "DISTRIBUTION", "costate-under-no-such-name")
    assert shlex.split(install_command("view"))[-2:] == ["-e", f"{ROOT}[view]"]
    monkeypatch.setattr(extras, "__file__", os.path.join(os.sep, "site-packages", "costate", "core", "extras.py"))
    assert shlex.split(install_command("view"))[-2:] == ["install", "costate-under-no-such-name[view]"]


def test_the_pip_is_that_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: str(Path(sys.executable).parent / name))
    assert install_command("view").startswith("pip install ")
    monkeypatch.setattr(shutil, "which", lambda name: os.path.join(os.sep, "elsewhere", name))
    pip = shlex.split(install_command("view"))[:3]
    assert pip == [sys.executable, "-m", "pip"]
    assert subprocess.run([*pip, "--version"], capture_output=True).returncode == 0


def test_every_message_names_an_extra_that_there_is() -> None:
    """Nobody but `needs` writes how to install an extra, and the extras that are asked for exist."""
    sources = {p: p.read_text() for p in (ROOT / "src").rglob("*.py") if p.name != "extras.py"}
    assert [p for p, text in sources.items() if "pip install" in text] == []
    asked = {extra for text in sources.values() for extra in re.findall(r"needs\([^\n]*[\"'](\w+)[\"']\)", text)}
    assert asked >= {"view", "mesh", "decompose", "data", "export", "optimise", "xacro", "mjcf", "rl", "log"}
    assert asked <= PROJECT["optional-dependencies"].keys()
