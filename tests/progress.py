"""What the tests cost, and how far they are: `pytest -p tests.progress`.

Every test is timed in processor time, with the processes that it starts. `tests/costs.json` holds the seconds per file of an
earlier run. From it come the order (files that take long begin first, so that no worker waits for another one in the end),
the estimate of what is left, and the choice of `make quick`.

    python -m pytest -p tests.progress --account FILE ...     # writes a row per test
    python -m tests.progress FILE                             # sums them by folder, file and test, and renews tests/costs.json
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

COSTS = Path(__file__).parent / "costs.json"
UNKNOWN = 1.0
"""Seconds of a file that costs.json does not name."""
SHARE, SLOWEST = 0.05, 10
"""Part of the work after which a line is printed where there is no terminal; number of tests that are named in the end."""
Row = dict[str, float]
"""What a test took [s]: `wall`, `own` (this process), `others` (its children), `compiling` (wall time); `kernels` is a count."""


def costs() -> dict[str, float]:
    """Return the processor time of each test file of an earlier run [s]."""
    return json.loads(COSTS.read_text()) if COSTS.exists() else {}


def file_of(test: str) -> str:
    return test.partition("::")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--account", metavar="FILE", help="write what each test costs, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Clock())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest."""
    known = costs()
    items.sort(key=lambda item: -known.get(file_of(item.nodeid), UNKNOWN))


class Clock:
    """Times tests where they run; what it finds travels to the controller with the reports."""

    def __init__(self) -> None:
        self.compiling = self.kernels = 0.0
        self.start: Row = {}
        self.watch_compiler()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.start = self.now()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            return (yield)
        finally:
            spent = {name: value - self.start[name] for name, value in self.now().items()}
            item.user_properties.append(("cost", spent))

    def now(self) -> Row:
        """Return the clocks of this process."""
        own = time.process_time()
        clocks = {"wall": time.perf_counter(), "own": own, "others": max(family_time(os.getpid()) - own, 0.0)}
        return clocks | {"compiling": self.compiling, "kernels": self.kernels}

    def watch_compiler(self) -> None:
        from costate.kernel import link

        compile_program = link.compile_program

        def watched(*args: Any) -> Any:
            start = time.perf_counter()
            try:
                return compile_program(*args)
            finally:
                self.compiling += time.perf_counter() - start
                self.kernels += 1

        link.compile_program = watched


def family_time(pid: int) -> float:
    """Return the processor time of a process and of its descendants, dead or alive [s] (Linux; zero elsewhere)."""
    children = [c for task in Path(f"/proc/{pid}/task").glob("*/children") for c in read(task).split()]
    ticks = sum(map(int, read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") + sum(family_time(int(c)) for c in children)


def read(path: Path) -> str:
    """Return the text of a file of /proc, or nothing where its process or thread has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


class Progress:
    """Tells how far a run is and how long it will take, in place of a dot per test; names the slowest tests in the end."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.rows: dict[str, Row] = {}
        self.weights: dict[str, float] = {}
        self.total = self.done = self.told = 0.0
        self.began = time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Leave out the dots of tests that pass."""
        return (
            ("passed", "", "") if report.passed and report.when == "call" and self.config.get_verbosity() < 1 else None
        )

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.collected(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected([item.nodeid for item in session.items])

    def collected(self, tests: Iterable[str]) -> None:
        """Share the cost of a file equally among its tests."""
        count: defaultdict[str, int] = defaultdict(int)
        for test in tests:
            count[file_of(test)] += 1
        known = costs()
        self.weights = {file: known.get(file, UNKNOWN) / n for file, n in count.items()}
        self.total = sum(self.weights[file] * n for file, n in count.items())
        self.began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            return
        self.rows[report.nodeid] = dict(report.user_properties)["cost"]  # type: ignore[assignment]
        self.done += self.weights.get(file_of(report.nodeid), UNKNOWN)
        share = self.done / max(self.total, 1e-9)
        reporter: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        if share - self.told >= (0.002 if reporter.isatty else SHARE):
            self.told = share
            spent = time.monotonic() - self.began
            left = spent / share * (1 - share)
            line = f"{100 * share:3.0f} %, {len(self.rows)} tests, {spent / 60:.1f} min, about {left / 60:.1f} min left"
            if reporter.isatty:
                reporter.rewrite(line, erase=True)
            else:
                reporter.write_line(line)
            reporter.flush()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"slowest {SLOWEST} of {len(self.rows)} tests, processor time")
        slowest = sorted(self.rows.items(), key=lambda pair: -processor_time(pair[1]))[:SLOWEST]
        for test, row in slowest:
            terminalreporter.write_line(f"{processor_time(row):7.1f} s  {test}")
        if path := self.config.getoption("--account"):
            Path(path).write_text(json.dumps(self.rows, indent=0))


def processor_time(row: Row) -> float:
    return row["own"] + row["others"]


def table(rows: dict[str, Row], title: str, count: int) -> None:
    """Print sums over folders or files, or single tests, the most expensive first."""
    names = {
        "all": lambda test: "",
        "folder": lambda test: "/".join(file_of(test).split("/")[:2]),
        "file": file_of,
        "test": lambda test: test,
    }
    sums: defaultdict[str, Row] = defaultdict(lambda: defaultdict(float))
    for test, row in rows.items():
        name = names[title](test)
        for key, value in {**row, "processor": processor_time(row), "tests": 1}.items():
            sums[name][key] += value
    print(f"\n{'processor':>10} {'others':>8} {'compiling':>10} {'kernels':>8} {'tests':>6}  {title}")
    for name, r in sorted(sums.items(), key=lambda pair: -pair[1]["processor"])[:count]:
        cells = (
            f"{r['processor']:10.1f} {r['others']:8.1f} {r['compiling']:10.1f} {r['kernels']:8.0f} {r['tests']:6.0f}"
        )
        print(f"{cells}  {name}")


def main(path: str) -> None:
    """Print what a recorded run cost, and keep the seconds of its files for the next ones."""
    rows: dict[str, Row] = json.loads(Path(path).read_text())
    for title, count in (("all", 1), ("folder", 40), ("file", 60), ("test", 60)):
        table(rows, title, count)
    sums: defaultdict[str, float] = defaultdict(float)
    for test, row in rows.items():
        sums[file_of(test)] += processor_time(row)
    COSTS.write_text(json.dumps({file: round(sums[file], 1) for file in sorted(sums)}, indent=0) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
