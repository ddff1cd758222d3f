"""Sections that only the report of an insertion has: the shortest horizon, and the joints against their limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from costate.report.joints import joint_row
from costate.report.report import Report
from costate.tasks.insertion.scene import ARM_Q, ARM_V
from costate.tasks.insertion.task import Insertion
from costate.train.episode import Trajectory
from costate.train.run import Run


def horizon_section(report: Report, source: Run) -> None:
    """Add the curve of success against horizon, if there is one."""
    curve = source.found("horizon")
    if not curve:
        return
    report.section("How fast can it be?")
    report.text(
        "The horizon was shortened step by step, each training starting from the one before, until the bottle no longer arrived."
    )
    milliseconds = [1e3 * row["seconds"] for row in curve]
    success = {"success [%]": [100 * row["success"] for row in curve]}
    if (bound := source.found("bound")) is not None:
        if len(bound["possible"]) == len(curve):
            success["possible at most [%]"] = [100 * part for part in bound["possible"]]
        times = {
            "shortest horizon [ms]": bound["seconds"],
            "least time for such success [ms]": bound["least"],
            "by velocity limits alone [ms]": bound["arrival"],
        }
        facts = {name: "not found" if value is None else round(1e3 * value) for name, value in times.items()}
        report.facts(facts | ({"ratio": round(bound["ratio"], 2)} if bound["ratio"] else {}))
    report.plot(success, milliseconds, title="Success against horizon", x_label="time of the motion [ms]", markers=True)


def joints_section(report: Report, task: Insertion, parts: Sequence[Trajectory], median: torch.Tensor) -> None:
    """Add joint positions and velocities against their limits: of one episode, states (T + 1, 18), and over all."""
    report.section("Joints and their limits")
    states = torch.cat([part.states for part in parts], 1).double()
    q, v = states[..., ARM_Q], states[..., ARM_V]
    low, high, fastest = (x.double() for x in (task.arm.lower, task.arm.upper, task.max_velocity))
    names = [name.removesuffix("_joint").replace("_", " ") for name in task.joints]
    times = task.options.dt * np.arange(len(q))
    levels = {"upper limit": 1.0, "lower limit": -1.0}
    place = (2 * median[:, ARM_Q] - low - high) / (high - low)
    with report.row():
        for what, values in (("Position", place), ("Velocity", median[:, ARM_V] / fastest)):
            report.plot(
                dict(zip(names, values.T, strict=True)),
                times,
                title=f"{what} as a share of the limit, median episode",
                x_label="time [s]",
                levels=levels,
                follow="replay-1",
            )
    reached = (low, q.amin((0, 1)), q.amax((0, 1)), high, v.abs().amax((0, 1)), fastest)
    rows = [joint_row(name, *(float(x[k]) for x in reached)) for k, name in enumerate(names)]
    columns = (
        "joint",
        "lower limit [rad]",
        "lowest",
        "highest",
        "upper limit [rad]",
        "fastest [rad/s]",
        "limit [rad/s]",
    )
    report.table(rows, columns, f"over all {states.shape[1]:,} episodes")
