"""Pages that are scripts run; so do the snippets of other pages and of the README, from top to bottom; links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from costate.cli import commands

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SCRIPTS = sorted(DOCS.glob("*.py"))
PAGES = [
    DOCS / f"{name}.md"
    for name in ("gradients", "kernel", "optimisation", "own_task", "robot", "simulation", "viewing")
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
TEXTS = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob(".github/*.md")])
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
    environment = os.environ | {"COSTATE_QUICK": "1", "PYTHONWARNINGS": "error::DeprecationWarning"}
    done = subprocess.run([sys.executable, page], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) > 50, "a page should have something to read"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert snippets
    names: dict[str, object] = {"__name__": page.stem}
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # as for a reader; a page may set its own
    try:
        for number, snippet in enumerate(snippets, 1):
            exec(compile(snippet, f"{page.name}, snippet {number}", "exec", dont_inherit=True), names)
    finally:
        torch.set_default_dtype(dtype)


@pytest.mark.slow
def test_readme_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python of the README runs in one interpreter, in its order; commands of a shell and the viewer's page are left out."""
    monkeypatch.chdir(tmp_path)
    lines = [line[4:] for line in (DOCS.parent / "README.md").read_text().splitlines() if line.startswith("    ")]
    code = [line for line in lines if not re.match(r"(make|pip|costate) |cs\.view\(", line)]
    assert len(code) > 15
    torch.set_default_dtype(torch.float32)  # as for a reader
    exec(compile("\n".join(code), "README.md", "exec", dont_inherit=True), {})


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_that_are_quoted_exist(page: Path) -> None:
    text = page.read_text()
    found = [(pattern, name) for pattern in COMMANDS for name in re.findall(pattern, text, re.MULTILINE)]
    assert [name for pattern, name in found if not COMMANDS[pattern](name)] == []


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
