"""The progress of a contestant, kept in a file, and looks at its success."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch

from costate.core.files import write_json
from costate.tasks.insertion import Insertion, draw, judge, run
from costate.tasks.insertion.judge import MAX_PENETRATION
from costate.train.episode import Controller, Trajectory
from costate.train.streams import generator

WATCHED, HELD_OUT = 256, 2000
"""Episodes of a look at the success rate, and of the one at the end."""
CRITERIA = ("kept_place", "kept_still", "no_penetration", "within_limits")
"""Criteria of a success: the names of the metrics."""
SETTLED = 10
"""Number of looks in a row, all at the highest level, after which a training ends."""


@dataclass
class Curve:
    """The progress of one training."""

    file: Path
    points: list[dict[str, float]] = field(default_factory=list)
    """steps, seconds, success, error [mm]; with a curriculum clearance [mm]."""
    final: dict[str, float] = field(default_factory=dict)
    """Evaluation on the held-out episodes, after the last step."""

    @classmethod
    def open(cls, file: Path) -> Curve:
        known = json.loads(file.read_text()) if file.exists() else {}
        return cls(file, known.get("points", []), known.get("final", {}))

    def save(self) -> None:
        write_json(self.file, {"points": self.points, "final": self.final})

    def add(self, **point: float) -> None:
        self.points.append(point)
        self.save()
        print(f"{self.file.stem}: " + ", ".join(f"{k} {v:.4g}" for k, v in point.items()), flush=True)

    @property
    def seconds(self) -> float:
        return self.points[-1]["seconds"] if self.points else 0.0

    def settled(self, level: float) -> bool:
        """Return whether the latest looks were all at a level."""
        return len(self.points) >= SETTLED and all(p["success"] >= level for p in self.points[-SETTLED:])

    def reached(self, success: float) -> dict[str, float] | None:
        """Return the first look from which on none was worse: early ones go up and down."""
        for k, point in enumerate(self.points):
            if all(p["success"] >= success for p in self.points[k:]):
                return point
        return None


def tried(task: Insertion, controller: Controller, episodes: int, stream: str, seed: int = 0) -> Trajectory:
    """Return episodes in the world with contact."""
    with torch.no_grad():
        return run(task, task.world, controller, draw(task, episodes, generator(stream, seed)))


def look(
    task: Insertion, controller: Controller, tolerance: float, episodes: int = WATCHED, stream: str = "watch"
) -> dict[str, float]:
    """Return the success rate, the mean error [mm], and the fraction of the episodes that meets each criterion."""
    verdict = judge(task, tried(task, controller, episodes, stream), tolerance)
    free = verdict.penetration <= tolerance * MAX_PENETRATION
    met = (verdict.success, verdict.kept_place, verdict.kept_still, free, verdict.within_limits)
    shares = (float(each.double().mean()) for each in met)
    return dict(zip(("success", *CRITERIA), shares, strict=True)) | {"error": 1e3 * float(verdict.error.mean())}
