"""The report of a run of any task: what was learnt, how well, and how it moves.

A task with more to tell extends `RunReport` and names its class (`Trainable.report`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from costate.collision.mesh.triangles import UNIT
from costate.core.display import number
from costate.draw.drawing import Instance
from costate.draw.recording import Recording, record
from costate.report.errors import error_histogram
from costate.report.joints import joints_table
from costate.report.replay import SPEEDS
from costate.report.report import Report
from costate.report.table import beyond
from costate.report.training import duration, large, set_fields, training_section
from costate.train.evaluate import Evaluation, at_least_one, compared, evaluate_policy
from costate.train.registry import loaded
from costate.train.run import Run
from costate.train.streams import CHUNK
from costate.train.trainable import percent

WATCHED = 2.0
"""Least time that a replay takes [s]: short motions are shown slowly."""
MARK, MARK_COLOR = 0.02, (0.2, 0.7, 0.3, 1.0)
"""Radius [m] and colour of a marked point."""


def run_report(source: Run, episodes: int | None = None, title: str = "") -> Report:
    """Write up a run. Its policy is simulated for so many episodes that training never saw; None: a fifth of an evaluation."""
    episodes = int(source.task.judged // 5 if episodes is None else episodes)
    at_least_one(episodes)
    return loaded(source.task.report)(source, episodes).page(title)


@dataclass(frozen=True)
class Shown:
    """An episode that is shown."""

    number: int
    """Number among the episodes."""
    states: torch.Tensor
    """States, (T + 1, nx)."""
    marks: torch.Tensor
    """Marked points [m], (K, 3)."""


class RunReport:
    """A report in the making: `page` is its table of contents."""

    heading = "Three episodes"
    """Heading of the replays."""
    batched = "episodes"
    """Name of what an iteration has many of."""
    follow = False
    """Switch of a camera that goes along with robots that go far."""

    def __init__(self, source: Run, episodes: int):
        self.source, self.episodes = source, episodes
        self.task: Any = source.task

    def page(self, title: str = "") -> Report:
        """Return the page."""
        task = self.task
        name = task.name.replace("_", " ").capitalize()
        report = Report(title or f"{name}: {self.source.path.resolve().name}", self.subtitle())
        report.facts(self.headline())
        report.text(task.story())
        self.replays(report)
        self.evaluation(report)
        self.training(report)
        self.more(report)
        self.origin(report)
        return report

    # --- what was simulated ---------------------------------------------------------------------------------------

    @cached_property
    def found(self) -> Evaluation:
        """Result of the episodes that `costate evaluate` would judge, as many."""
        return evaluate_policy(self.task, self.source.policy, self.episodes, keep=True)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Metrics of `costate evaluate` if it was run, else of the episodes simulated for this page."""
        return self.source.evaluation or self.found.metrics.as_dict()

    @cached_property
    def compared(self) -> dict[str, dict[str, Any]]:
        """Metrics of the policy without what it has learnt."""
        return self.metrics.get("compared") or compared(self.source, self.task, self.episodes)

    @cached_property
    def error(self) -> np.ndarray:
        """Error of each episode, in the task's unit, (B,)."""
        return self.found.verdict.error.double().numpy()

    @cached_property
    def shown(self) -> dict[str, Shown]:
        """The best, the median and the worst episode."""
        error, success = torch.as_tensor(self.error), self.found.verdict.success
        # Failures count as worse than any success, whatever their error.
        order = torch.argsort(error.nan_to_num(1e9) + 1e9 * (~success))
        chosen = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
        return {name: self._episode(int(k)) for name, k in chosen.items()}

    def _episode(self, k: int) -> Shown:
        part = self.found.parts[k // CHUNK]
        return Shown(k, part.states[:, k % CHUNK], self.task.marks(part.episodes)[k % CHUNK])

    # --- sections -------------------------------------------------------------------------------------------------

    def subtitle(self) -> str:
        """Return the line under the title."""
        return f"{self.task.summary}, {number(self.task.steps * self.task.world.dt)} s per episode"

    def headline(self) -> dict[str, Any]:
        """Return the few numbers that matter."""
        m, checkpoint, unit = self.metrics, self.source.checkpoint(), self.task.unit
        return {
            f"success, {m['episodes']:,} new episodes": percent(m["success"]),
            "mean error": self.marked("error_mean", f"{number(m['error_mean'])} {unit}", m),
            "error of 95 % is below": self.marked("error_95", f"{number(m['error_95'])} {unit}", m),
            "training time": duration(checkpoint.seconds),
            "simulated control steps": large(checkpoint.control_steps),
        }

    def replays(self, report: Report) -> None:
        """Show some episodes."""
        report.section(self.heading)
        task, world = self.task, self.task.shown()
        seconds = task.steps * world.dt
        speed = max((s for s in SPEEDS if s <= min(1.0, seconds / WATCHED)), default=SPEEDS[0])
        with report.row(width=300):
            for name, each in self.shown.items():
                recording = with_points(self.recorded(each), each.marks)
                caption = f"{name.capitalize()} of {len(self.error):,} episodes: {self.outcome(each.number)}"
                report.recording(recording, caption, speed=speed, play=True, box=task.box(), follow=self.follow)

    def outcome(self, episode: int) -> str:
        """Return how an episode ended, in a few words."""
        outcome = "success" if self.found.verdict.success[episode] else "failure"
        return f"{number(self.error[episode])} {self.task.unit}, {outcome}"

    def recorded(self, each: Shown) -> Recording:
        """Return an episode as it is replayed."""
        world = self.task.shown()
        return record(world, each.states, trails=[link for link in self.task.trails if link in world.link_names])

    def evaluation(self, report: Report) -> None:
        """Tell how well it does: a table, and how its errors are spread."""
        report.section("Evaluation")
        task, columns = self.task, {"trained": self.metrics} | self.compared
        columns |= {name: m for name in task.variants if (m := self.source.found(f"evaluation_{name}")) is not None}
        texts = [
            {name: self.marked(self.metric_of(name), text, m) for name, text in task.rows(m).items()}
            for m in columns.values()
        ]
        limits = self.limits()
        rows = [
            [name, *(text[name] for text in texts), *([limits.get(name, "")] if limits else [])] for name in texts[0]
        ]
        with report.row():
            fewest = min(m["episodes"] for m in columns.values())
            told = f"{self.metrics['episodes']:,} episodes that training never saw, {fewest:,} of the other policies"
            report.table(rows, ("", *columns, *(["allowed"] if limits else [])), told)
            self.spread(report)

    def spread(self, report: Report) -> None:
        """Show how errors are spread."""
        error_histogram(report, self.error, self.task.unit, getattr(self.task, "tolerance", None))

    def limits(self) -> dict[str, str]:
        """Return the limits of a success, by row of the table."""
        return {}

    def bounds(self) -> dict[str, float]:
        """Return the largest value that is allowed, by name of a metric: what is above it is marked."""
        allowed = getattr(self.task, "tolerance", None)
        return {} if allowed is None else dict.fromkeys(("error_mean", "error_95", "error_worst"), allowed)

    def metric_of(self, row: str) -> str:
        """Return the name of the metric behind a row of the table."""
        return {"error: mean": "error_mean", "error: 95 % below": "error_95", "error: worst": "error_worst"}.get(
            row, row
        )

    def marked(self, metric: str, text: str, metrics: dict[str, Any]) -> Any:
        """Return the text of a metric, marked if the metric is beyond what is allowed."""
        limit = self.bounds().get(metric)
        return text if limit is None else beyond(metrics[metric], limit, text)

    def training(self, report: Report) -> None:
        """Show the curves of the training."""
        training_section(report, self.source)

    def more(self, report: Report) -> None:
        """Add what only this task has to tell; else, how the joints moved beside their limits."""
        states = torch.cat([part.states for part in self.found.parts], 1)
        told = f"Joints over all {states.shape[1]:,} episodes [rad, rad/s; m, m/s]"
        joints_table(report, self.task.world, states, told)

    def origin(self, report: Report) -> None:
        """Tell where it comes from."""
        report.section("Where it comes from")
        report.table(self.origins(), ("", ""))

    def origins(self) -> list[tuple[str, str]]:
        """Return rows about the run."""
        note, o = self.source.note, self.source.options
        weights = sum(p.numel() for p in self.source.policy.parameters())
        return [
            ("started, finished (UTC)", f"{note.get('started')}, {note.get('finished') or 'not yet'}"),
            ("machine", f"{note.get('cpu')}, {note.get('cores')} cores, {note.get('system')}"),
            ("versions", ", ".join(f"{k} {v}" for k, v in note.get("versions", {}).items())),
            ("algorithm", o.algorithm),
            ("training", f"{o.iterations} iterations of {o.batch} {self.batched}, seed {o.seed}, {weights:,} weights"),
            ("options of the task", set_fields(self.task.options) or "defaults"),
        ]


def with_points(recording: Recording, points: torch.Tensor) -> Recording:
    """Return a recording with marked points (K, 3) [m] that stand in the world."""
    if not len(points):
        return recording
    drawing = recording.motion.drawing
    poses = [np.concatenate([np.eye(3), np.reshape(p, (3, 1))], 1) for p in points.double().numpy()]
    spheres = [Instance("sphere", 0, drawing.links[0], pose, np.full(3, MARK), MARK_COLOR) for pose in poses]
    meshes = drawing.meshes if "sphere" in drawing.meshes else drawing.meshes | {"sphere": UNIT["sphere"]()}
    drawing = replace(drawing, meshes=meshes, instances=(*drawing.instances, *spheres))
    return replace(recording, motion=replace(recording.motion, drawing=drawing))
