"""Runs the notebooks of docs/notebooks, which are Python files with cells, and writes them as pages with what they show."""

from __future__ import annotations

import hashlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from docs.site.stage import ROOT
from nbclient import NotebookClient

SOURCES = ROOT / "docs" / "notebooks"
KEPT = ROOT / "build" / "notebooks"
"""Notebooks with their results, by a digest of the notebook and of the package: what has not changed is not run again."""
FRAME = re.compile(r'<iframe srcdoc="(.*?)" title=', re.DOTALL)
"""A page inside of a result, as reports and motions show themselves."""
HEIGHT = 640
"""Height of such a page [pixels]."""


def write_notebooks(out: Path, jobs: int = 2) -> None:
    """Run all notebooks and write their pages, and the notebooks themselves, into out/notebooks."""
    folder = out / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        for source, notebook in zip(sources(), pool.map(executed, sources()), strict=True):
            (folder / f"{source.stem}.md").write_text(page(notebook, source.stem, folder))
            jupytext.write(jupytext.read(source), folder / f"{source.stem}.ipynb")  # without results: it is to be run


def write_sources(out: Path) -> None:
    """Write the pages of the notebooks without running them."""
    folder = out / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources():
        notebook = jupytext.read(source)
        (folder / f"{source.stem}.md").write_text(page(notebook, source.stem, folder))
        jupytext.write(notebook, folder / f"{source.stem}.ipynb")


def sources() -> list[Path]:
    """Return the notebooks, as Python files."""
    return sorted(SOURCES.glob("*.py"))


def executed(source: Path) -> Any:
    """Return a notebook with its results."""
    digest = hashlib.sha256(source.read_bytes())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    kept = KEPT / f"{source.stem}-{digest.hexdigest()[:16]}.ipynb"
    if kept.exists():
        return nbformat.read(kept, as_version=4)
    work = KEPT / source.stem
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    notebook = jupytext.read(source)
    place = {"metadata": {"path": str(work)}}
    quiet = ["--log-level=ERROR"]  # without warnings about the connection, which stays on this machine
    NotebookClient(notebook, timeout=None, kernel_name="python3", resources=place, extra_arguments=quiet).execute()
    nbformat.write(notebook, kept)
    return notebook


def page(notebook: Any, name: str, folder: Path) -> str:
    """Return a notebook as Markdown; pages that it shows become files beside it."""
    parts = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [shown(output, f"{name}_{index}", folder) for output in cell.outputs]
    title, *rest = parts
    return "\n\n".join([title, f"[This page as a notebook]({name}.ipynb)", *(part for part in rest if part)]) + "\n"


def shown(output: Any, name: str, folder: Path) -> str:
    """Return one result of a cell as Markdown."""
    data = output.get("data", {})
    if output.output_type == "stream":
        return "" if output.name == "stderr" else f"```text\n{output.text.rstrip()}\n```"
    if html := data.get("text/html"):
        if frame := FRAME.search(html):
            (folder / f"{name}.html").write_text(unescape(frame[1]))
            return f'<iframe class="replay" style="height: {HEIGHT}px" title="{name}" src="{name}.html"></iframe>'
        return "\n".join(line for line in html.splitlines() if line.strip())
    if picture := data.get("image/png"):
        return f'<img alt="" src="data:image/png;base64,{"".join(picture.split())}">'
    return f"```text\n{data['text/plain']}\n```" if "text/plain" in data else ""
