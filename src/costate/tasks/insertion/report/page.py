"""The report of an insertion run: that of any run, with what only the insertion has to tell."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from costate.core.display import number
from costate.report.report import Report
from costate.report.run_report import RunReport
from costate.report.training import set_fields
from costate.tasks.insertion.described import ALLOWED, BOUNDS, LIMITS
from costate.tasks.insertion.judge import MAX_TILT
from costate.tasks.insertion.report.sections import horizon_section, joints_section


class InsertionReport(RunReport):
    """The report of an insertion run; errors are in mm."""

    @cached_property
    def error(self) -> np.ndarray:
        """Error of each episode at the seat [mm], (B,)."""
        return 1e3 * super().error

    def subtitle(self) -> str:
        """Return the line under the title."""
        o = self.task.options
        belt = f"moving socket, up to {o.belt_speed:g} m/s" if o.moving else "socket at rest"
        return f"UR5, {belt}, {o.seconds:g} s per motion"

    def headline(self) -> dict[str, Any]:
        """Return the few numbers that matter."""
        usual = {("mean error at the seat" if k == "mean error" else k): v for k, v in super().headline().items()}
        return usual | {"time of the motion": f"{number(self.metrics['seconds'])} s"}

    def replays(self, report: Report) -> None:
        """Show three episodes, and errors over time."""
        super().replays(report)
        states = torch.stack([each.states for each in self.shown.values()], 1)
        position, tilt, _ = self.task.errors(states)
        curves = (
            ("Distance of the bottle from its seat", "mm", 1e3 * position.norm(dim=-1), ALLOWED),
            ("Tilt of the bottle", "degrees", torch.rad2deg(tilt), float(np.degrees(MAX_TILT))),
        )
        with report.row():
            for title, unit, values, allowed in curves:
                report.plot(
                    dict(zip(self.shown, values.T, strict=True)),
                    self.task.options.dt * np.arange(len(values)),
                    title=title,
                    x_label="time [s]",
                    y_label=unit,
                    log_y=unit == "mm",
                    levels={"allowed": allowed},
                    follow="replay-1",
                )

    def limits(self) -> dict[str, str]:
        """Return the limits of a success, by row of the table."""
        return LIMITS

    def bounds(self) -> dict[str, float]:
        """Return the largest value that is allowed, by name of a metric."""
        return dict(BOUNDS.values())

    def metric_of(self, row: str) -> str:
        """Return the name of the metric behind a row of the table."""
        return BOUNDS[row][0] if row in BOUNDS else row

    def more(self, report: Report) -> None:
        """Add the shortest horizon, and the joints."""
        horizon_section(report, self.source)
        joints_section(report, self.task, self.found.parts, self.shown["median"].states)

    def origins(self) -> list[tuple[str, str]]:
        """Return rows about the run."""
        o = self.task.options
        return [
            *super().origins(),
            (
                "ranges",
                f"start \N{PLUS-MINUS SIGN}{o.start_range:g} rad, target \N{PLUS-MINUS SIGN}{1e3 * o.target_range:g} mm",
            ),
            ("disturbances in training", set_fields(self.source.options.disturbances) or "none"),
            ("control", f"{o.horizon} steps of {1e3 * o.dt:g} ms, {o.actuation}"),
        ]
