"""Progress of a training: a live table on a terminal, else a line now and then; and TensorBoard's files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import takewhile
from types import TracebackType
from typing import Any

from costate.core.extras import needs
from costate.scale.executor import Executor
from costate.train.run import Run

LINE_EVERY = 2.0
"""Time between two lines, where there is no terminal [s]."""

Row = dict[str, Any]


def terms_of(row: Row, measured: Iterable[str]) -> list[str]:
    """Return the names of the terms of the loss in a row of metrics: they stand between the loss and the measures."""
    ends = {*measured, "gradient_norm"}
    names = list(row)
    return list(takewhile(lambda name: name not in ends, names[names.index("loss") + 1 :]))


def said(row: Row, measured: Mapping[str, str]) -> dict[str, str]:
    """Return the task's measures in a row, under the name of the first: "error_mm" of unit mm is an error."""
    texts = [f"{row[name]:.3f} {unit}".strip() for name, unit in measured.items()]
    return {next(iter(measured), "").partition("_")[0]: ", ".join(texts)} if texts else {}


class Screen:
    """A screen that shows rows of metrics of a training; a context manager."""

    def __init__(self, run: Run, workers: Executor | None = None):
        from rich.console import Console

        self.console, self.workers = Console(), workers
        self.total, self.first = run.options.iterations, run.checkpoint().iteration
        self.title, self.measured = f"{run.task.name}, {run.task.steps} steps", dict(run.task.measured)
        self.success: float | None = None
        self.played: float | None = None
        self.looks = run.options.watch_interval > 0
        self.begun = self.said = time.monotonic()
        self.live = None

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            from rich.live import Live

            self.live = Live(console=self.console, auto_refresh=False, transient=True)
            self.live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, row: Row) -> None:
        self.success, self.played = row.get("success", self.success), row.get("played", self.played)
        if self.live:
            self.live.update(self._table(row), refresh=True)
        elif "success" in row or row["iteration"] == self.total or time.monotonic() > self.said + LINE_EVERY:
            self.said = time.monotonic()
            print(self.line(row), flush=True)

    def left(self, row: Row) -> float:
        """Return the time until the end at the pace so far [s]."""
        done = row["iteration"] - self.first
        return (time.monotonic() - self.begun) / max(done, 1) * (self.total - row["iteration"])

    def facts(self, row: Row) -> dict[str, str]:
        """Return what is shown, by name."""
        success = "not yet known" if self.success is None else f"{100 * self.success:.1f} %"
        return {
            "iteration": f"{row['iteration']}/{self.total}",
            "loss": f"{row['loss']:.3f}",
            **said(row, self.measured),
            **({} if self.played is None else {"without noise": f"{self.played:.4g}"}),
            **({"success": success} if self.looks else {}),
            "gradient": f"{row['gradient_norm']:.2g} at most, {100 * row['clipped']:.0f} % clipped",
            "speed": f"{row['steps_per_second']:,.0f} control steps/s",
            "left": f"{self.left(row):.0f} s",
            **({"workers": self.workers.status()} if self.workers else {}),
        }

    def line(self, row: Row) -> str:
        """Return a row as one line."""
        return "  ".join(f"{name} {value}" for name, value in self.facts(row).items())

    def _table(self, row: Row) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_row(self.title, ProgressBar(total=self.total, completed=row["iteration"], width=60))
        for name, value in self.facts(row).items():
            table.add_row(name, value)
        table.add_row("terms", "  ".join(f"{name} {row[name]:.3f}" for name in terms_of(row, self.measured)))
        return table


class Board:
    """A writer of rows of metrics for TensorBoard, if that is installed; a context manager."""

    def __init__(self, run: Run):
        self.measured = tuple(run.task.measured)
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            print(f"no logs for TensorBoard, which are optional: {needs('writing them', 'tensorboard', 'log')}")
            self.writer = None
            return
        # Rows after the checkpoint, of a training that was interrupted, are hidden: they come again.
        begun = run.checkpoint().iteration
        self.writer = SummaryWriter(str(run.path / "tensorboard"), purge_step=begun + 1 if begun else None)

    def __enter__(self) -> Board:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.writer:
            self.writer.close()

    def __call__(self, row: Row) -> None:
        if self.writer:
            terms = terms_of(row, self.measured)
            for name, value in row.items():
                if name != "iteration":
                    self.writer.add_scalar(f"loss/{name}" if name in terms else name, float(value), row["iteration"])
