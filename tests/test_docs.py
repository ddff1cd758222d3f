"""Pages that are scripts run; so do the snippets of other pages, from top to bottom; links lead somewhere."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from textwrap import indent

import pytest
from tests.motion_log import log_of_a_motion
from tests.warm import run_warm

from costate.cli import commands

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SCRIPTS = sorted(DOCS.glob("*.py"))
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "\n```python\n" in page.read_text()]
FILES = {
    "coming_from/mujoco": ("hopper.xml",),
    "contact": ("ant.xml", "rock.obj", "cup.stl", "chair.obj", "bars.urdf", "arm.urdf"),
    "identification": ("log.csv",),
    "insertion": ("out/insertion",),
    "robots": ("arm.urdf", "humanoid.xml"),
    "worlds": ("hopper.xml",),
}
"""Page -> files that its snippets read; see `write_file`."""
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
TEXTS = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob(".github/*.md")])
COMMANDS = {
    r"python -m (benchmarks[\w.]*\w)": lambda name: is_module(name),
    r"python (benchmarks/\w+\.py)": lambda name: (ROOT / name).is_file(),
    r"(?:^ {4}|`)make ([a-z][a-z-]*)": lambda name: re.search(
        rf"^{name}:", (ROOT / "Makefile").read_text(), re.MULTILINE
    ),
    r"(?:^ {4}|`)costate ([a-z]+)\b": lambda name: name in commands.COMMANDS,
}
"""Pattern of a command that a page quotes -> check that there is such a thing."""


@pytest.mark.parametrize("page", SCRIPTS, ids=lambda path: path.stem)
def test_page_runs(page: Path, tmp_path: Path) -> None:
    done = run_warm([str(page)], tmp_path, {"COSTATE_QUICK": "1", "PYTHONWARNINGS": "error::DeprecationWarning"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) > 50, "a page should have something to read"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: name_of(path))
def test_snippets_run(page: Path, tmp_path: Path) -> None:
    """From top to bottom in one interpreter, beside the files that the page speaks of."""
    run(write_snippets(page, tmp_path))


def write_snippets(page: Path, folder: Path) -> Path:
    """Write the snippets of a page, and the files that they read, into a folder; return the program."""
    for name in FILES.get(name_of(page), ()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(folder / name)
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    (folder / "snippets.py").write_text("\n".join(snippets))
    return folder / "snippets.py"


def run(program: Path) -> None:
    """Run a program to its end, in its folder."""
    done = run_warm([str(program)], program.parent)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = [page.parent / link for link in LINK.findall(page.read_text())]
    missing = [link for link in links if not link.exists() and not link.with_name(f"{link.name}.xz").exists()]
    assert not missing


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_that_are_quoted_exist(page: Path) -> None:
    text = re.sub(r"^```(\w*)\n(.*?)^```", shell_indented, page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = [(pattern, name) for pattern in COMMANDS for name in re.findall(pattern, text, re.MULTILINE)]
    assert [name for pattern, name in found if not COMMANDS[pattern](name)] == []


def name_of(page: Path) -> str:
    """Return the name of a page: its path below docs, without the ending."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


def write_file(path: Path) -> None:
    """Write a small file of its kind, which a snippet reads."""
    match path.suffix:
        case ".urdf":
            path.write_text(BARS if path.stem == "bars" else ARM)
        case ".xml":
            gymnasium = pytest.importorskip("gymnasium")
            shutil.copy(Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / path.name, path)
        case ".obj" | ".stl":
            trimesh = pytest.importorskip("trimesh")
            trimesh.creation.box((0.2, 0.2, 0.2)).export(path)
        case ".csv":
            log_of_a_motion(path)
        case _:
            shutil.copytree(ROOT / "tests" / "data" / path.name, path)


def tree(name: str, *bars: tuple[str, str, str, float]) -> str:
    """Return a URDF of bars that turn about y: name of the joint, parent, child, length of the child."""
    inertia = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    links = '<link name="base"/>' + "".join(
        f'<link name="{child}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="1"/>{inertia}</inertial></link>'
        for _, _, child, length in bars
    )
    joints = "".join(
        f'<joint name="{joint}" type="continuous"><parent link="{parent}"/><child link="{child}"/><axis xyz="0 1 0"/></joint>'
        for joint, parent, child, _ in bars
    )
    return f'<robot name="{name}">{links}{joints}</robot>'


BARS = tree("bars", ("a", "base", "crank", 0.1), ("b", "crank", "coupler", 0.4), ("c", "base", "rocker", 0.3))
ARM = tree("arm", ("shoulder", "base", "upper_arm", 0.3), ("elbow", "upper_arm", "forearm", 0.3))


def shell_indented(block: re.Match[str]) -> str:
    """Return a fenced block as it is, but one of a shell indented."""
    return indent(block[2], "    ") if block[1] in ("", "sh") else block[0]


def is_module(name: str) -> bool:
    """Tell whether `python -m NAME` finds a file."""
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def test_the_layers_of_the_architecture_are_those_that_are_enforced() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    enforced = [set(row.split(" | ")) - {"learn"} for row in contracts[0]["layers"]]
    section = (DOCS / "architecture.md").read_text().partition("## Layers")[2].partition("\n\n`learn.py`")[0]
    shown = [set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in section.splitlines() if line.startswith("| `")]
    assert shown == enforced
