"""Gathers the pages of the documentation site from where they live: docs, examples, and the files that pages link to."""

from __future__ import annotations

import lzma
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
"""A link of Markdown to another file: its text, the file, and the place in it."""
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".css": "css", ".js": "javascript"}
"""Ending of a source file that gets a page of its own -> language by which it is coloured."""
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples/index.md",
    "benchmarks/README.md": "benchmarks_readme.md",
    "tests/README.md": "tests_readme.md",
}
"""File of the repository outside of docs -> page of the site. README is not one: docs/index.md is in its place."""


@dataclass
class Stage:
    """Copies pages into a folder, with links that lead to other pages there."""

    out: Path
    """Folder that the site is built from."""
    missing: list[str] = field(default_factory=list)
    """Links that lead nowhere, as `page: link`."""
    _done: set[Path] = field(default_factory=set)

    def gather(self) -> None:
        """Copy all pages of docs, and whatever they link to."""
        shutil.rmtree(self.out, ignore_errors=True)
        for path in sorted(pages()):
            self.page(path)

    def page(self, path: Path) -> Path:
        """Copy one file of the repository, once, and return its place in the site, relative to it."""
        place = place_of(path)
        if path in self._done or path == ROOT / "README.md":
            return place
        self._done.add(path)
        target = self.out / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(self.relinked(path))
        elif path.suffix in LANGUAGES and place.suffix == ".md":
            target.write_text(f"# {path.relative_to(ROOT)}\n\n```{LANGUAGES[path.suffix]}\n{path.read_text()}```\n")
        elif path.suffix == ".xz":
            target.write_bytes(lzma.decompress(path.read_bytes()))
        else:
            shutil.copyfile(path, target)
        return place

    def relinked(self, path: Path) -> str:
        """Return the text of a page with the links of the site; code stays as it is."""
        text, parts, at = path.read_text(), [], 0
        for fence in FENCE.finditer(text):
            parts += [LINK.sub(lambda m: self.link(path, m), text[at : fence.start()]), fence[0]]
            at = fence.end()
        return "".join([*parts, LINK.sub(lambda m: self.link(path, m), text[at:])])

    def link(self, page: Path, match: re.Match[str]) -> str:
        """Return a link of a page for the site. Links to folders become plain text."""
        label, name, place = match[1], match[2], match[3] or ""
        target = (page.parent / name).resolve()
        if not target.exists() and target.with_name(target.name + ".xz").exists():
            target = target.with_name(target.name + ".xz")
        if not target.exists():
            self.missing.append(f"{page.relative_to(ROOT)}: {name}")
            return match[0]
        if target.is_dir():
            return label[1:-1]
        if label.endswith((".md]", ".md`]")) and not place:
            label = f"[{title_of(target)}]"
        return f"{label}({os.path.relpath(self.page(target), place_of(page).parent)}{place})"


def title_of(page: Path) -> str:
    """Return the first heading of a page."""
    return next((line[2:] for line in page.read_text().splitlines() if line.startswith("# ")), page.name)


def pages() -> Iterator[Path]:
    """Yield what the site has whether or not a page links to it."""
    yield from (ROOT / "docs").rglob("*.md")
    yield from (ROOT / "examples").glob("*.py")
    yield from (ROOT / name for name in PLACES if (ROOT / name).exists())
    for folder, pattern in (("gallery", "*.xz"), ("gallery", "*.webp"), ("pictures", "*.webp")):
        yield from (ROOT / "docs" / folder).glob(pattern)
    yield from (ROOT / "docs" / "site" / name for name in ("site.css", "iframe-worker.js"))


def place_of(path: Path) -> Path:
    """Return where a file of the repository is in the site: source files, outside of docs, as pages that show them."""
    name = path.relative_to(ROOT)
    if str(name) in PLACES:
        return Path(PLACES[str(name)])
    if name.parts[0] == "docs" and path.suffix != ".py":
        name = name.relative_to("docs")
        return name.with_suffix("") if path.suffix == ".xz" else name
    if name.parts[0] == "examples" and path.suffix == ".py":
        return Path("examples") / f"{path.stem}.md"
    if path.suffix in LANGUAGES:
        return Path("source") / name.with_suffix(path.suffix + ".md")
    return Path("files") / name
