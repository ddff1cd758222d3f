"""The report of an insertion run: what was learnt, how well, and how it moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from costate.draw.recording import record
from costate.report.insertion_evaluation import ALLOWED, evaluation_section, percent
from costate.report.insertion_training import horizon_section, origin_section, training_section
from costate.report.report import Report
from costate.tasks.insertion import Insertion, Metrics, Trajectory, Verdict, draw, judge, run, summarise
from costate.tasks.insertion.judge import MAX_PENETRATION, MAX_SPEED, MAX_TILT
from costate.tasks.insertion.task import ARM_Q, ARM_V
from costate.train.evaluate import CHUNK
from costate.train.plan import generator
from costate.train.run import Run

EPISODES = 2000
"""Simulated for the histogram and the replays, out of those that training never saw."""
SLOW = 0.1
"""Speed of the replays: the motion takes a third of a second."""


@dataclass(frozen=True)
class Episodes:
    """Episodes under the run's policy, and the three that are shown."""

    trajectory: Trajectory
    verdict: Verdict
    metrics: Metrics
    shown: dict[str, int]
    """Name -> number."""

    @property
    def error(self) -> np.ndarray:
        """At the seat [mm], (B,)."""
        return 1e3 * self.verdict.error.double().numpy()


def insertion_report(source: Run, episodes: int = EPISODES, title: str = "") -> Report:
    """Write up a run. Its policy is simulated for so many episodes that training never saw."""
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be at least 1")
    task, found = source.task, _simulate(source, episodes)
    o = task.options
    belt = f"moving socket, up to {o.belt_speed:g} m/s" if o.moving else "socket at rest"
    report = Report(title or f"Insertion: {source.path.resolve().name}", f"UR5, {belt}, {o.seconds:g} s per motion")
    _headline(report, source, found)
    _replays(report, task, found)
    evaluation_section(report, source, _metrics(source, found), found.error)
    training_section(report, source)
    horizon_section(report, source)
    _joints(report, task, found)
    origin_section(report, source)
    return report


def _simulate(source: Run, count: int) -> Episodes:
    """The episodes that `costate evaluate` would judge, as many."""
    task, policy, states, actions = source.task, source.policy.double(), [], []
    for start in range(0, count, CHUNK):
        size, numbers = min(CHUNK, count - start), generator("held out", 0, start // CHUNK)
        with torch.no_grad():
            part = run(task, task.world, policy, draw(task, size, numbers, dtype=torch.float64))
        states.append(part.states)
        actions.append(part.actions)
    trajectory = Trajectory(torch.cat(states, 1), torch.cat(actions, 1))
    verdict = judge(task, trajectory)
    # Failures count as worse than any success, whatever their error.
    order = torch.argsort(verdict.error.nan_to_num(1e9) + 1e9 * (~verdict.success))
    shown = {"best": int(order[0]), "median": int(order[count // 2]), "worst": int(order[-1])}
    return Episodes(trajectory, verdict, summarise(task, verdict), shown)


def _headline(report: Report, source: Run, found: Episodes) -> None:
    m = _metrics(source, found)
    checkpoint = source.checkpoint()
    report.facts(
        {
            f"success, {m['episodes']:,} new episodes": percent(m["success"]),
            "mean error at the seat": f"{m['error_mean']:.3g} mm",
            "error of 95 % is below": f"{m['error_95']:.3g} mm",
            "training time": duration(checkpoint.seconds),
            "simulated control steps": _large(checkpoint.control_steps),
            "time of the motion": f"{m['seconds']:.3g} s",
        }
    )
    o, degrees = source.options.task, np.degrees(MAX_TILT)
    report.text(
        "A UR5 puts a bottle (60 mm wide) into a socket with 1 mm of clearance. A network with one hidden layer gives a joint "
        f"command every {1e3 * o.dt:g} ms; it was trained by gradients through the simulator. An episode succeeds if the bottle is "
        f"seated within {ALLOWED:g} mm and {degrees:g}\N{DEGREE SIGN} in time, stays there for {o.hold} more steps slower than "
        f"{1e3 * MAX_SPEED:g} mm/s, never overlaps the socket by more than {1e3 * MAX_PENETRATION:g} mm, and no joint passes a "
        "limit."
    )


def _metrics(source: Run, found: Episodes) -> dict[str, Any]:
    """Of `costate evaluate` if it was run, else of the episodes simulated for this page."""
    return source.evaluation or found.metrics.as_dict()


def _replays(report: Report, task: Insertion, found: Episodes) -> None:
    report.section("Three episodes")
    x, y = task.options.center
    box = (np.array([x - 0.26, y - 0.16, 0.0]), np.array([x + 0.16, y + 0.16, 0.46]))
    with report.row(width=300):
        for name, k in found.shown.items():
            recording = record(task.shown, found.trajectory.states[:, k], trails=["ur5/bottle"])
            outcome = "success" if found.verdict.success[k] else "failure"
            caption = f"{name.capitalize()} of {len(found.error):,} episodes: {found.error[k]:.2g} mm, {outcome}"
            report.recording(recording, caption, speed=SLOW, play=True, box=box)
    position, tilt, _ = task.errors(found.trajectory.states[:, list(found.shown.values())])
    times = task.options.dt * np.arange(len(position))
    with report.row():
        error = 1e3 * position.norm(dim=-1)
        report.plot(
            dict(zip(found.shown, error.T, strict=True)),
            times,
            title="Distance of the bottle from its seat",
            x_label="time [s]",
            y_label="mm",
            log_y=True,
            levels={"allowed": ALLOWED},
            follow="replay-1",
        )
        report.plot(
            dict(zip(found.shown, torch.rad2deg(tilt).T, strict=True)),
            times,
            title="Tilt of the bottle",
            x_label="time [s]",
            y_label="degrees",
            levels={"allowed": float(np.degrees(MAX_TILT))},
            follow="replay-1",
        )


def _joints(report: Report, task: Insertion, found: Episodes) -> None:
    report.section("Joints and their limits")
    q, v = (found.trajectory.states[..., part].double() for part in (ARM_Q, ARM_V))
    low, high, fastest = (x.double() for x in (task.arm.lower, task.arm.upper, task.max_velocity))
    names = [j.name.removesuffix("_joint").replace("_", " ") for j in task.arm.model.joints if j.nv]
    k, times = found.shown["median"], task.options.dt * np.arange(len(q))
    levels = {"upper limit": 1.0, "lower limit": -1.0}
    place = (2 * q[:, k] - low - high) / (high - low)
    with report.row():
        for what, values in (("Position", place), ("Velocity", v[:, k] / fastest)):
            report.plot(
                dict(zip(names, values.T, strict=True)),
                times,
                title=f"{what} as a share of the limit, median episode",
                x_label="time [s]",
                levels=levels,
                follow="replay-1",
            )
    rows = [
        (name, *(float(x) for x in values))
        for name, *values in zip(
            names, low, q.amin((0, 1)), q.amax((0, 1)), high, v.abs().amax((0, 1)), fastest, strict=True
        )
    ]
    columns = (
        "joint",
        "lower limit [rad]",
        "lowest",
        "highest",
        "upper limit [rad]",
        "fastest [rad/s]",
        "limit [rad/s]",
    )
    report.table(rows, columns, f"over all {len(found.error):,} episodes")


def duration(seconds: float) -> str:
    """As it is said: 48 s, 1 min 30 s, 12 min, 2 h 5 min."""
    if seconds < 59.5:
        return f"{seconds:.2g} s"
    if seconds < 600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    hours, left = divmod(round(seconds / 60), 60)
    return f"{hours} h {left} min" if hours else f"{left} min"


def _large(count: int) -> str:
    return f"{count / 1e6:.3g} M" if count >= 1e6 else f"{count:,}"
