"""The README survives being pasted: all of its Python into one interpreter, in order, and every command into a shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.motion_log import log_of_a_motion
from tests.warm import run_warm

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
SMALLER = {
    "costate gradcheck ur5": "costate gradcheck two_link --second-order False --float32 False",
    "costate solve throw": "costate solve throw --starts 2",
    "costate solve soft_walker": "costate solve soft_walker --iterations 1",
    "costate solve smoke_target": "costate solve smoke_target --size small --iterations 2",
    "costate train hopper": "costate train hopper --iterations 2 --batch 4",
    "costate train hopper --algorithm sapo": "costate train hopper --algorithm sapo --iterations 2 --batch 4",
}
"""Command -> the same with less to do."""
SERVERS = ("costate view",)
"""Commands that serve a page until they are interrupted."""
EXPLAINED = ("costate play", "costate export", "costate transfer", "costate robustness")
"""Commands on what is trained in minutes: only their arguments are looked at; tests/tasks and tests/viewer run them."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [line.partition("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.slow
def test_python_can_be_pasted_into_one_interpreter(tmp_path: Path) -> None:
    """An interactive one, which goes on after an error and has its own idea of where a block ends."""
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        input="\n\n".join(blocks("python")) + "\n",
        cwd=tmp_path,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert "Traceback" not in done.stderr and "Error" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr
    (shown,) = blocks("text")
    rows = [line.split() for line in done.stdout.splitlines()[: len(shown.splitlines())]]
    assert [name for name, _ in rows] == [line.split()[0] for line in shown.splitlines()]
    assert [float(x) for _, x in rows] == pytest.approx(
        [float(line.split()[1]) for line in shown.splitlines()], abs=1e-4
    )
    assert (tmp_path / "run.html").is_file() and (tmp_path / "frame.png").is_file()


def test_the_first_screen_is_a_gradient() -> None:
    first = blocks("python")[0]
    assert 10 <= len(first.splitlines()) <= 16 and "backward()" in first and "print(" in first
    assert TEXT.index(first) < 300 and TEXT.index("![") < 3000


@pytest.mark.slow
@pytest.mark.parametrize("line", [c for c in commands() if c.startswith("costate ")])
def test_command_runs(line: str, tmp_path: Path) -> None:
    if line.startswith(SERVERS):
        return serves(line, tmp_path)
    if line.startswith(EXPLAINED):
        return is_explained(line, tmp_path)
    if "log.csv" in line:
        log_of_a_motion(tmp_path / "log.csv")
    done = run(SMALLER.get(line, line), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_warm(_arguments(line), folder)


def _arguments(line: str) -> list[str]:
    return ["-m", "costate.cli", *shlex.split(line)[1:]]


def serves(line: str, folder: Path) -> None:
    """Check that a command says where its page is."""
    command = [sys.executable, *_arguments(line)]
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None and running.stderr is not None
        said = ""
        for text in running.stdout:
            said += text
            if "http://" in text:
                return
        pytest.fail(said + running.stderr.read())
    finally:
        running.kill()
        running.communicate()


def is_explained(line: str, folder: Path) -> None:
    """Check that a command knows all options it is given, and asks for a run folder."""
    _, command, folder_of_run, *options = shlex.split(line)
    shown = run(f"costate {command} --help", folder)
    assert shown.returncode == 0 and not [x for x in options if x.startswith("-") and x not in shown.stdout]
    missing = run(line, folder)
    assert missing.returncode != 0 and folder_of_run in missing.stderr and "Traceback" not in missing.stderr


@pytest.mark.parametrize("line", [c for c in commands() if not c.startswith("costate ")])
def test_make_and_pip_know_what_they_are_asked_for(line: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    makefile = (ROOT / "Makefile").read_text()
    if line.startswith("make "):
        (target,) = line.split()[1:]
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        return
    arguments = shlex.split(line)
    assert arguments[:2] == ["pip", "install"]
    assert (ROOT / arguments[arguments.index("-c") + 1]).is_file()
    asked = re.findall(r"\w+", arguments[-1])
    assert set(asked) <= set(extras)
    # `make demo` makes an environment in which the commands of the README run.
    assert f"-e '.[{','.join(asked)}]'" in makefile.partition("$(READY):")[2].partition("@touch")[0]
    assert {"export", "mjcf", "view"} <= set(asked)
