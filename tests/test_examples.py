"""Every example runs, in a process of its own, and passes the check it ends with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.warm import run_warm

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    """COSTATE_QUICK=1 asks examples for seconds instead of minutes; they write into ./out, at least one picture or page."""
    done = run_warm([str(example)], tmp_path, {"COSTATE_QUICK": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    shown = [path for end in (".png", ".html") if (path := tmp_path / "out" / f"{example.stem}{end}").is_file()]
    assert shown and all(path.stat().st_size > 2000 for path in shown)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 100


def test_the_index_names_every_example() -> None:
    index = (ROOT / "examples" / "README.md").read_text()
    assert [path.name for path in EXAMPLES if f"]({path.name})" not in index] == []
    pictures = [ROOT / "examples" / name for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", index)]
    assert len(pictures) >= len(EXAMPLES)
    assert [path.name for path in pictures if not path.is_file() or path.stat().st_size > 100_000] == []
