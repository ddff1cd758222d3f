"""Pages that are scripts run; so do the snippets of other pages and of the README, from top to bottom; links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parent.parent / "docs"
SCRIPTS = sorted(DOCS.glob("*.py"))
PAGES = [
    DOCS / f"{name}.md"
    for name in ("gradients", "kernel", "optimisation", "own_task", "robot", "simulation", "viewing")
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


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
    dtype = torch.get_default_dtype()  # a page may set its own
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
    exec(compile("\n".join(code), "README.md", "exec", dont_inherit=True), {})


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda path: path.stem)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing
