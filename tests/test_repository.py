"""Rules about the files of the repository that no linter checks."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAX_BYTES = 1_000_000
MAX_LINES = 500

# What must not be in a file, in pieces so that this one does not hold it either. Paths of one machine work nowhere
# else; an installation takes the package index that the user has set.
FORBIDDEN: dict[str, str] = {
    "a directory of one machine": r"(?<![\w.~-])/(work|root|home/\w+|farm|Users/\w+)/",
    "a package index": r"pypi"
    + r"\.org|pythonhosted"
    + r"\.org|download\."
    + r"pytorch|anaconda"
    + r"\.org|registry\.npm",
    "the package of somebody else, who has the bare name": r"costate" + r"\\?\[",
    "an unresolved merge": r"^(<{7}|>{7}) ",
}


@cache
def tracked_files() -> tuple[Path, ...]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def findings(text: str, pattern: str) -> list[str]:
    """The lines in which a pattern is found, with their numbers."""
    return [f"{i}: {line}" for i, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    found = {}
    for path in tracked_files():
        if lines := findings(path.read_text(errors="replace"), FORBIDDEN[what]):
            found[str(path.relative_to(ROOT))] = lines
    assert not found


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a directory of one machine", "open('" + "/ro" + "ot/robots/arm.urdf')"),
        ("a directory of one machine", "cd " + "/wo" + "rk/main"),
        ("a package index", "pip install -i https://py" + "pi.org/simple costate"),
        ("the package of somebody else, who has the bare name", "pip install 'costate" + "[view]'"),
        ("an unresolved merge", "<" * 7 + " HEAD"),
    ],
)
def test_the_patterns_find_what_they_are_for(what: str, line: str) -> None:
    assert findings("fine\n" + line, FORBIDDEN[what]) == [f"2: {line}"]


def test_files_are_small() -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked_files()}
    assert {name: size for name, size in sizes.items() if size > MAX_BYTES} == {}


def test_python_files_are_short() -> None:
    counts = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in tracked_files()
        if path.suffix == ".py"
    }
    assert {name: count for name, count in counts.items() if count >= MAX_LINES} == {}
