"""The documentation site: every page and public name is in it, it asks no other host, and can be searched from a file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.browser import Browser
from tests.test_repository import ROOT

import costate as cs
from costate.cli.commands import COMMANDS

pytest.importorskip("zensical", reason="needs the extra 'docs'")
REFERENCE = ROOT / "docs" / "reference"
REPLAYS = ("gallery/insertion", "gallery/crawler", "gallery/printed")
"""One replay of each kind: of links, of particles, of a part."""
SMALL = (320, 240)
"""Window in which replays are drawn quickly [pixels]."""
FORMER = {"learn"}
"""Public names that are former names of others; the reference says so in a sentence."""


@pytest.fixture(scope="module")
def site() -> Path:
    """Build the site, without running its notebooks, and return its folder."""
    command = [sys.executable, "-m", "docs.site", "--no-notebooks"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build" / "site"


def test_every_page_of_docs_can_be_navigated_to() -> None:
    listed = set(re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == set()


def test_every_public_name_has_an_entry_and_an_example() -> None:
    sections = [
        section
        for page in REFERENCE.glob("*.md")
        for section in re.split(r"^::: ", page.read_text(), flags=re.MULTILINE)[1:]
    ]
    entries = {section.split()[0].removeprefix("costate.").split(".")[0]: section for section in sections}
    names = set(cs.__all__) - {"__version__"} - FORMER
    assert names - set(entries) == set()
    examples = "\n".join(re.findall(r"^```python\n(.*?)^```", "\n".join(sections), re.MULTILINE | re.DOTALL))
    assert {name for name in names if not re.search(rf"\bcs\.{name}\b", examples)} == set()
    inner = {entry for section in sections if (entry := section.split()[0]).count(".") > 1}
    assert {entry for entry in inner if not re.search(rf"\b{entry.split('.')[-1]}\b", examples)} == set()


def test_the_gallery_shows_the_replays_there_are() -> None:
    cards = (ROOT / "docs" / "gallery.md").read_text().split('<div class="card" markdown>')[1:]
    shown = [re.findall(r"\]\(gallery/(\w+)\.html\)", card) for card in cards]
    assert len(cards) >= 16 and all(len(names) == 1 for names in shown)
    assert sorted(name for (name,) in shown) == sorted(
        path.name.removesuffix(".html.xz") for path in (ROOT / "docs" / "gallery").glob("*.xz")
    )
    for card in cards:  # a picture, a page to read, and the command, which exists
        assert re.search(r"\]\(gallery/\w+\.webp\)", card) and re.search(r"\[more\]\([\w/]+\.md\)", card)
        for line in re.findall(r"^(python|costate) (\S+)", card, re.MULTILINE):
            assert (ROOT / line[1]).is_file() if line[0] == "python" else line[1] in COMMANDS, line
        assert re.search(r"^```sh\n(python|costate) ", card, re.MULTILINE)


@pytest.mark.slow
def test_pages_ask_no_other_host(site: Path) -> None:
    with Browser() as browser:
        for name in ("index", "reference/robots", "gallery", *REPLAYS):  # one of each kind
            page = browser.page((site / f"{name}.html").as_uri(), SMALL)
            assert page.js("document.querySelector('h1').textContent")
            if name in REPLAYS:
                page.wait("costateReplays.length > 0 && costateReplays.every((replay) => replay && replay.gl)")
            assert [url for url in page.requests if not url.startswith("file:")] == []
            assert page.errors == []
            page.close()


@pytest.mark.slow
def test_search_works_from_files(site: Path) -> None:
    with Browser() as browser:
        page = browser.page((site / "index.html").as_uri())
        page.js("document.querySelector('.md-search__button').click()")
        root = "[...document.querySelectorAll('*')].find((e) => e.shadowRoot?.querySelector('[role=combobox]'))?.shadowRoot"
        page.wait(f"!!{root}")
        page.js(
            f"const i = {root}.querySelector('input'); i.value = 'restitution'; i.dispatchEvent(new Event('input'))"
        )
        page.wait(f"/restitution/i.test({root}.querySelector('[role=listbox]').textContent)")
