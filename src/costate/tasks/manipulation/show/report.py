"""The report of a hand's run: failures first, with the proposed and the real contact forces."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch

from costate.core.display import number
from costate.draw.drawing import Drawing
from costate.draw.recording import Recording
from costate.report.report import Report
from costate.report.run_report import RunReport, Shown
from costate.report.training import training_section
from costate.tasks.manipulation.execute import OBJECT
from costate.tasks.manipulation.proposer import Proposer
from costate.tasks.manipulation.show.arrows import FOUND, PROPOSED, arrows, found, proposed
from costate.train.streams import CHUNK

FAILURES = 3
"""Number of failures that are shown, at most."""
SUCCESSES = {"best success": 0.0, "median success": 0.5, "worst success": 1.0}
"""Successes that are shown, and where they are between the best and the worst."""
TOLD = {
    "distance": "force times the distance between its two points [cm, units of force]",
    "cone": "force outside of the friction cone [units of force]",
    "slip": "force times the speed between its two points [0.1 m/s, units of force]",
    "overlap": "depth of fingers, object and floor in each other [cm]",
    "limits": "joints beyond their limits [rad]",
}
"""Residuals that make proposals true, in words."""


def notable(error: torch.Tensor, success: torch.Tensor) -> dict[str, int]:
    """Return numbers of episodes to show: the worst failures, then the best, the median and the worst success, each episode once.

    error: larger is worse, NaN worst, (episodes,); success: (episodes,).
    """
    order = torch.argsort(error.nan_to_num(1e9))
    failed, done = order[~success[order]].flip(0).tolist(), order[success[order]].tolist()
    chosen = {f"failure {k + 1}": episode for k, episode in enumerate(failed[:FAILURES])}
    for name, part in SUCCESSES.items():
        if done and (episode := done[round(part * (len(done) - 1))]) not in chosen.values():
            chosen[name] = episode
    return chosen


class HandReport(RunReport):
    """The report of a run of a hand."""

    heading = "Episodes in the full world, failures first"

    @cached_property
    def shown(self) -> dict[str, Shown]:
        """The episodes to show, by what they are."""
        chosen = notable(torch.as_tensor(self.error), self.found.verdict.success)
        return {name: self._episode(k) for name, k in chosen.items()}

    def recorded(self, each: Shown) -> Recording:
        """Return an episode with its contact forces, and the object as large as it was."""
        recording, task, policy = super().recorded(each), self.task, self.source.policy
        part, k = self.found.parts[each.number // CHUNK], each.number % CHUNK
        episode, controls = part.episodes.only(k), task.control(part.actions[:, k])
        vectors = {FOUND: found(task.world, each.states, controls, episode.params)}
        if isinstance(policy, Proposer):
            vectors |= {PROPOSED: proposed(task, policy, each.states, episode)}
        motion = recording.motion
        if (
            place := getattr(episode, "place", None)
        ) is not None:  # of an object that the drawing knows at its usual place only
            links = motion.links.copy()
            links[..., motion.drawing.links.index(f"{OBJECT}/body"), :, 3] += place[0].numpy() - np.array(task.middle)
            motion = replace(motion, links=links)
        drawing = _sized(motion.drawing, float(episode.thing[0, 0]))
        return replace(recording, motion=replace(motion, drawing=drawing), arrows=arrows(vectors))

    def replays(self, report: Report) -> None:
        """Show the episodes, and say what the arrows are."""
        super().replays(report)
        proposals = "Blue arrows are the forces that the policy proposes, drawn where the object really is; "
        told = "Red arrows are the contact forces on the object that the simulation finds"
        both = isinstance(self.source.policy, Proposer)
        report.text(f"{proposals}{told[0].lower()}{told[1:]} (each colour has its own scale)." if both else f"{told}.")

    def training(self, report: Report) -> None:
        """Show the curves of the training, which is none by gradient descent."""
        training_section(report, self.source, gradient=False)

    def more(self, report: Report) -> None:
        """Tell how true the proposals are, and how the joints moved."""
        if isinstance(self.source.policy, Proposer):
            report.section("Proposals")
            residuals, _ = self.task.proposed(self.source.policy, self.found.parts[0].episodes)
            blocks = {name: residuals[..., self.task.step.blocks[name]] for name in TOLD}
            rows = [
                [text, number(float(blocks[name].square().mean().sqrt())), number(float(blocks[name].abs().max()))]
                for name, text in TOLD.items()
            ]
            count = residuals.shape[1]
            report.table(rows, ("", "root mean square", "largest"), f"Residuals in the model, {count:,} episodes")
        super().more(report)


def _sized(drawing: Drawing, scale: float) -> Drawing:
    """Return a drawing with the object so many times as large."""
    parts = (
        replace(i, scale=scale * i.scale, pose=np.concatenate([i.pose[:, :3], scale * i.pose[:, 3:]], 1))
        if i.name == f"{OBJECT}/body"
        else i
        for i in drawing.instances
    )
    return replace(drawing, instances=tuple(parts))
