"""What a training shows while it runs: a live table on a terminal, else a line now and then; and TensorBoard's files."""

from __future__ import annotations

import time
from dataclasses import fields
from types import TracebackType
from typing import Any

from costate.tasks.insertion import InsertionWeights
from costate.train.run import Run

TERMS = tuple(f.name for f in fields(InsertionWeights))
"""Of the loss, as far as a row has them."""
LINE_EVERY = 2.0
"""Seconds, where there is no terminal."""

Row = dict[str, Any]


class Screen:
    """Shows rows of metrics of a training; a context manager."""

    def __init__(self, run: Run):
        from rich.console import Console

        self.console = Console()
        self.total, self.first = run.options.iterations, run.checkpoint().iteration
        self.title = f"{run.options.task.horizon} steps"
        self.success: float | None = None
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
        self.success = row.get("success", self.success)
        if self.live:
            self.live.update(self._table(row), refresh=True)
        elif "success" in row or row["iteration"] == self.total or time.monotonic() > self.said + LINE_EVERY:
            self.said = time.monotonic()
            print(self.line(row), flush=True)

    def left(self, row: Row) -> float:
        """Seconds until the end, at the pace so far."""
        done = row["iteration"] - self.first
        return (time.monotonic() - self.begun) / max(done, 1) * (self.total - row["iteration"])

    def facts(self, row: Row) -> dict[str, str]:
        """What is shown, by name."""
        success = "not yet known" if self.success is None else f"{100 * self.success:.1f} %"
        return {
            "iteration": f"{row['iteration']}/{self.total}",
            "loss": f"{row['loss']:.3f}",
            "error": f"{row['error_mm']:.3f} mm, {row['tilt_deg']:.3f} deg",
            "success": success,
            "gradient": f"{row['gradient_norm']:.2g} at most, {100 * row['clipped']:.0f} % clipped",
            "speed": f"{row['steps_per_second']:,.0f} control steps/s",
            "left": f"{self.left(row):.0f} s",
        }

    def line(self, row: Row) -> str:
        return "  ".join(f"{name} {value}" for name, value in self.facts(row).items())

    def _table(self, row: Row) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_row(self.title, ProgressBar(total=self.total, completed=row["iteration"], width=60))
        for name, value in self.facts(row).items():
            table.add_row(name, value)
        table.add_row("terms", "  ".join(f"{name} {row[name]:.3f}" for name in TERMS if name in row))
        return table


class Board:
    """Writes rows of metrics for TensorBoard, if that is installed; a context manager."""

    def __init__(self, run: Run):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            print("no TensorBoard logs: the package tensorboard is not installed")
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
            for name, value in row.items():
                if name != "iteration":
                    self.writer.add_scalar(f"loss/{name}" if name in TERMS else name, float(value), row["iteration"])
