"""The command line as a user meets it: what it prints, and how it fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import pytest
from tests.warm import run_warm

from costate import __version__
from costate.cli.commands import COMMANDS, Command
from costate.cli.main import main


@dataclass(frozen=True)
class NoOptions:
    pass


def run_costate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_warm(["-m", "costate.cli", *arguments], Path.cwd(), environment)


def add_failing_command(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Add a command "fail" that raises the given error."""

    def run(options: NoOptions) -> None:
        raise error

    monkeypatch.setattr(Command, "load", lambda self: (run, NoOptions))
    monkeypatch.setitem(COMMANDS, "fail", Command("nowhere:run", "fails"))


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(command.summary)}$", shown, re.MULTILINE)


def test_help_waits_for_no_heavy_import() -> None:
    program = (
        "import sys; from costate.cli.main import main; main(['--help'])\n"
        "print('loaded:', {'torch', 'casadi', 'llvmlite', 'numpy', 'tyro', 'rich'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("loaded: set()\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_frozen_dataclasses(name: str) -> None:
    _, options = COMMANDS[name].load()
    for kind in get_args(options) or (options,):
        assert is_dataclass(kind)
        assert kind.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_its_options(name: str) -> None:
    done = run_costate(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"usage: costate {name}" in done.stdout
    assert COMMANDS[name].summary in done.stdout
    _, options = COMMANDS[name].load()
    for kind in get_args(options):
        assert kind.__name__.lower() in done.stdout
    if is_dataclass(options):
        named = [field.name for field in fields(options) if "Positional" not in str(field.type)]
        assert all(f"--{name.replace('_', '-')}" in done.stdout for name in named)


def test_version_names_what_a_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["costate"] == __version__
    assert rows["torch"] == version("torch")
    assert rows["llvmlite"] == version("llvmlite")
    bits = re.match(r"(\d+) bits .*: (\d+) x float64, (\d+) x float32", rows["vectors"])
    assert bits is not None
    width, doubles, floats = map(int, bits.groups())
    assert width == 64 * doubles == 32 * floats


def test_version_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"costate {__version__}\n"


def test_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robts"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "costate: error: unknown command 'robts'; did you mean 'robots'?\n"


def test_wrong_option_is_refused_by_name() -> None:
    done = run_costate("robots", "--colour")
    assert done.returncode == 2
    assert "--colour" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("error", [ValueError("mass is\n-1 kg"), FileNotFoundError(2, "missing", "arm.urdf")])
def test_user_errors_are_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COSTATE_TRACEBACK", raising=False)
    add_failing_command(monkeypatch, error)
    assert main(["fail"]) == 2
    shown = capsys.readouterr().err
    assert shown == "costate: error: " + " ".join(str(error).split()) + "\n"


@pytest.mark.parametrize("ask", ["option", "environment"])
def test_traceback_on_request(ask: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    add_failing_command(monkeypatch, ValueError("bad"))
    if ask == "environment":
        monkeypatch.setenv("COSTATE_TRACEBACK", "1")
    assert main(["fail", "--traceback"] if ask == "option" else ["fail"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback") and shown.endswith("costate: error: bad\n")


def test_a_defect_is_not_dressed_up_as_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    add_failing_command(monkeypatch, AssertionError("a defect"))
    with pytest.raises(AssertionError, match="a defect"):
        main(["fail"])


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break differently there")
@pytest.mark.parametrize("arguments", [["--help"], ["version"]])
def test_a_reader_that_leaves_is_no_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "costate.cli", *arguments], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_cache_shows_the_cache_of_the_environment_and_clears_it(tmp_path: Path) -> None:
    shown = run_costate("cache", "show", COSTATE_CACHE=str(tmp_path))
    assert shown.returncode == 0, shown.stderr
    rows = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    assert Path(rows["path"]).is_relative_to(tmp_path)
    assert rows["entries"] == "0"
    cleared = run_costate("cache", "clear", COSTATE_CACHE=str(tmp_path))
    assert cleared.stdout == "removed 0 entries\n"


def test_robots_lists_every_built_in_robot() -> None:
    from costate import model

    done = run_costate("robots", "--joints", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert "mass [kg]" in done.stdout
    for name in model.builtin_names():
        assert re.search(rf"^ *{re.escape(name)} ", done.stdout, re.MULTILINE)
        for joint in model.load_model(name).joints:
            assert (joint.name in done.stdout) or not joint.nv


def test_saved_worlds_are_shown(tmp_path: Path) -> None:
    """As a file and as a folder; the folder of a recording is something else."""
    import costate as cs
    from costate.cli.sources import is_recording, load_source

    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0, position=(0, 0, 1))
    cs.World(bodies=[ball]).save(tmp_path)
    for source in (tmp_path, tmp_path / "world.json"):
        assert not is_recording(str(source))
        assert load_source(str(source), (), "refuse").links[1].name == "ball/body"
    assert load_source("two_link", (), "refuse").name == "two_link"
    (tmp_path / "recorded").mkdir()
    assert is_recording(str(tmp_path / "recorded"))
    done = run_costate("render", str(tmp_path), str(tmp_path / "ball.png"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ball.png").stat().st_size > 1000
