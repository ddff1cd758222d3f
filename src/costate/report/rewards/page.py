"""The report of a run that learnt by reward: returns, and how they grew, where other tasks have errors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from costate.report.report import Report
from costate.report.run_report import RunReport
from costate.report.training import duration, gradient_plot, large
from costate.train.trainable import percent

BARS = 20
"""Number of bars of a histogram."""


class RewardReport(RunReport):
    """A report about returns; where a task has errors with a unit as well, such as a distance, these come first."""

    batched = "robots"
    follow = True

    @cached_property
    def returns(self) -> np.ndarray:
        """Return of each episode, (B,)."""
        return self.found.verdict.columns["return"].double().numpy()

    def headline(self) -> dict[str, Any]:
        m, checkpoint = self.metrics, self.source.checkpoint()
        if self.task.unit:
            return super().headline()
        return {
            f"mean return, {m['episodes']:,} new episodes": f"{m['return']:,.5g}",
            "its standard deviation": f"{m['return: standard deviation']:,.4g}",
            "last their time": percent(m["success"]),
            "training time": duration(checkpoint.seconds),
            "simulated control steps": large(checkpoint.control_steps),
        }

    def outcome(self, episode: int) -> str:
        if self.task.unit:
            return super().outcome(episode)
        steps = int(self.found.verdict.columns["length [steps]"][episode])
        return f"return {self.returns[episode]:,.5g} in {steps} steps"

    def spread(self, report: Report) -> None:
        if self.task.unit:
            return super().spread(report)
        good = self.returns[np.isfinite(self.returns)]
        count, edges = np.histogram(good, BARS)
        title = f"Return, {len(good):,} episodes"
        report.plot(
            {"episodes": count},
            (edges[:-1] + edges[1:]) / 2,
            title=title,
            x_label="return",
            y_label="episodes",
            bars=True,
        )

    def training(self, report: Report) -> None:
        rows = self.source.metrics()
        if len(rows) < 2:
            return
        report.section("Training")
        time = [row["processor_seconds"] for row in rows]
        curves = {"with noise, last 100 episodes": [row["return"] for row in rows]}
        if any("played" in row for row in rows):
            curves["without noise, new episodes"] = [row.get("played", np.nan) for row in rows]
        with report.row():
            report.plot(curves, time, title="Return", x_label="processor time [s]", markers=len(curves) > 1)
            report.plot(
                {"steps": [row["length"] for row in rows]},
                time,
                title="Length of an episode",
                x_label="processor time [s]",
            )
            if "critic" in rows[0]:
                errors = {"mean square error": [row["critic"] for row in rows]}
                report.plot(errors, time, title="Critic", x_label="processor time [s]", log_y=True)
            gradient_plot(report, self.source, rows)
