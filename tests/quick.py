"""`make quick`: the tests of what changed, nearest first, within a budget.

What changed is what git says since a revision (HEAD, or `make quick SINCE=main`). Who imports it, directly or through others, is
read from the source: tests are chosen by the imports and folders between them and the change, until their processor time of an
earlier run (`tests/costs.json`) fills the budget. The rest is counted, not run: `make test` runs everything.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.progress import UNKNOWN, costs

import costate

ROOT = Path(__file__).parent.parent
SOURCES = {"costate": ROOT / "src" / "costate", "tests": ROOT / "tests", "benchmarks": ROOT / "benchmarks"}
BUDGET = 160.0
"""Processor time of the chosen tests [s]: on two cores less than two minutes, start included."""
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
ALWAYS = ("tests/test_layout.py", "tests/test_language.py", "tests/test_repository.py")
"""Cheap tests of the repository as a whole."""


def changed_files(since: str) -> list[str]:
    """Return the files that differ from a revision, new ones included, by their paths below the root."""
    ask = [["git", "diff", "--name-only", since], ["git", "ls-files", "--others", "--exclude-standard"]]
    shown = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout for command in ask]
    return sorted({line for text in shown for line in text.splitlines()})


def modules() -> dict[str, Path]:
    """Return every module of the package, the tests and the benchmarks: name -> file."""
    found = {}
    for name, folder in SOURCES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((name, *(part for part in parts if part != "__init__")))] = path
    return found


@cache
def imports_of(path: Path) -> set[str]:
    """Return the modules that a file names: in imports, wherever they stand, and as attributes of `costate`."""
    found: set[str] = set()
    aliases = {"costate"}
    attributes: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            aliases |= {alias.asname for alias in node.names if alias.name == "costate" and alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes.append((node.value.id, node.attr))
    found |= {costate._LAZY.get(name, "").partition(":")[0] for owner, name in attributes if owner in aliases}
    return found - {"costate"}  # the top of the package loads nothing by itself


def distances(changed: set[str], known: dict[str, Path]) -> dict[str, int]:
    """Return how many imports lie between a module and the nearest one that changed, for all that reach one."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        for imported in imports_of(path) & known.keys():
            users[imported].add(name)
    reached, front = dict.fromkeys(changed, 0), changed
    while front:
        front = {user for name in front for user in users[name]} - reached.keys()
        reached |= dict.fromkeys(front, max(reached.values(), default=0) + 1)
    return reached


def near(path: str) -> set[str]:
    """Return the tests that stand for a file by its place: its mirror image, its example, its page."""
    file = Path(path)
    if path.startswith("src/costate/"):
        folder = ROOT / "tests" / file.parent.relative_to("src/costate")
        named = folder / f"test_{file.stem}.py"
        return {str(t.relative_to(ROOT)) for t in ([named] if named.exists() else folder.glob("test_*.py"))}
    if path.startswith("examples/") and file.suffix == ".py":
        return {f"tests/test_examples.py::test_example[{file.stem}]"}
    if file.suffix == ".md":
        return {
            "tests/test_docs.py::test_links_lead_somewhere",
            "tests/test_docs.py::test_commands_that_are_quoted_exist",
        }
    return set()


def chosen(changed: list[str], budget: float) -> tuple[list[str], list[str]]:
    """Return the tests to run and those that are affected but left out, nearest first."""
    known = modules()
    names = {str(path.relative_to(ROOT)): name for name, path in known.items()}
    reached = distances({names[file] for file in changed if file in names}, known)
    places = {tuple(names[file].split(".")[1:]) for file in changed if file in names}
    rank: dict[str, tuple[int, int, float]] = {}
    for file, name in names.items():
        if name in reached and Path(file).name.startswith("test_"):
            apart = min((reached[name] - 2 * shared(name.split(".")[1:], place) for place in places), default=0)
            rank[file] = (0, apart, cost_of(file))
    rank |= {test: (-1, 0, cost_of(test)) for file in changed for test in near(file)}
    run: list[str] = list(ALWAYS)
    left: list[str] = []
    spent = 0.0
    for test in sorted(rank, key=rank.__getitem__):
        if spent + cost_of(test) <= budget:
            run.append(test)
            spent += cost_of(test)
        else:
            left.append(test)
    return list(dict.fromkeys(run)), left


def shared(name: Sequence[str], place: Sequence[str]) -> int:
    """Return how many folders a test and a module have in common: tests mirror the package."""
    same = [a == b for a, b in zip(name[:-1], place[:-1], strict=False)]
    return [*same, False].index(False)


@cache
def known_costs() -> dict[str, float]:
    return costs()


def cost_of(test: str) -> float:
    """Return the processor time of a file of tests, or of one of them, as far as it is known [s]."""
    return known_costs().get(test, UNKNOWN)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="HEAD", help="revision that the change is compared with")
    parser.add_argument("--seconds", type=float, default=BUDGET, help="processor time of the chosen tests")
    parser.add_argument("--jobs", default="2", help="processes")
    parser.add_argument("options", nargs="*", help="options for pytest")
    parser.add_argument("--list", action="store_true", help="only print what would run")
    options = parser.parse_args()
    changed = changed_files(options.since)
    if not changed:
        print(f"nothing has changed since {options.since}; make quick SINCE=REVISION compares with another one")
        return 0
    run, left = chosen(changed, options.seconds)
    print(
        f"{len(changed)} files changed; {len(run)} files of tests are near, {len(left)} more are affected and left to make test"
    )
    if options.list:
        print(*run, sep="\n")
        return 0
    command = [sys.executable, "-m", "pytest", "-m", "not study", "-n", options.jobs, *options.options]
    return subprocess.run([*command, *run], cwd=ROOT, env=os.environ | SETTINGS).returncode


if __name__ == "__main__":
    sys.exit(main())
