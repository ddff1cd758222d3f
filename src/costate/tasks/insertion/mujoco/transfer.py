"""Transfer: a trained policy, unchanged, in MuJoCo, beside the same episodes in our world."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
from torch import nn

from costate.core.files import write_json
from costate.tasks.insertion import Insertion, Metrics, draw, judge, run, summarise
from costate.tasks.insertion.guidance.calibration import calibrated, record
from costate.tasks.insertion.guidance.guided import GuidedPolicy
from costate.tasks.insertion.mujoco.scene import MujocoScene, mjcf, run_in_mujoco
from costate.tasks.insertion.scene import BOTTLE_RADIUS, DEPTH
from costate.train.evaluate import at_least_one
from costate.train.policy import acting
from costate.train.run import Run
from costate.train.streams import generator

EPISODES = 200
"""Number of episodes, if none is asked for."""


ROWS = {
    "ours": "costate",
    "mujoco": "MuJoCo",
    "ours_fine": "costate, steps a quarter as long",
    "mujoco_fine": "MuJoCo, steps a quarter as long",
    "mujoco_torques": "MuJoCo, the same, torque servos",
    "mujoco_calibrated": "MuJoCo, the same, calibrated",
}
"""Metrics of a transfer, and their rows in its table."""
CRITERIA = {
    "kept_place": "leave the seat",
    "kept_still": "do not stay at rest",
    "no_penetration": "overlap the socket",
    "within_limits": "pass a limit of a joint",
}
"""Shares of episodes that meet a criterion, and what the others do."""


@dataclass(frozen=True)
class Transfer:
    """Results of the same episodes in both engines."""

    ours: Metrics
    """Metrics in our world."""
    mujoco: Metrics
    """Metrics in MuJoCo."""
    ours_fine: Metrics
    """Metrics in our world with physics steps a quarter as long: servos act nearer to continuously."""
    mujoco_fine: Metrics
    """Metrics in MuJoCo with the same short steps, and harder contact."""
    mujoco_torques: Metrics
    """Metrics in MuJoCo with the same short steps, and servos that give torques by the velocity that they measure."""
    mujoco_calibrated: Metrics | None
    """The same, with the controller calibrated by a recording there (`calibrated`); None if it has no guide."""
    agree: float
    """Fraction of the episodes that succeed in both engines or in none, at the same step."""
    apart: float
    """Largest difference of the bottle's position between the engines until it reaches the socket's mouth [mm]."""

    def as_dict(self) -> dict:
        """Return all fields, as JSON has them."""
        values = {name: getattr(self, name) for name in ROWS}
        rows = {name: m.as_dict() for name, m in values.items() if m is not None}
        return rows | {"agree": self.agree, "apart": self.apart}


def transfer_of(task: Insertion, policy: nn.Module, episodes: int = EPISODES, seed: int = 0) -> Transfer:
    """Run held-out episodes in both engines, in float64, with the disturbances of the task."""
    policy = copy.deepcopy(policy).double()
    drawn = draw(task, episodes, generator("held out", seed), dtype=torch.float64)
    with torch.no_grad():
        ours = run(task, task.world, acting(policy), drawn)
        theirs = run_in_mujoco(task, MujocoScene(task), acting(policy), drawn)
        fine = Insertion(replace(task.options, substeps=4 * task.options.substeps))
        ours_fine = run(fine, fine.world, acting(policy), drawn)
        scenes = [MujocoScene(task, fine.options.substeps, explicit=explicit) for explicit in (False, True)]
        theirs_fine = [run_in_mujoco(task, scene, acting(policy), drawn) for scene in scenes]
        if isinstance(policy, GuidedPolicy):
            noise = task.options.disturbances
            recording = record(task, scenes[1], generator("watch", seed), noise)
            theirs_fine.append(run_in_mujoco(task, scenes[1], acting(calibrated(policy, recording)), drawn))
        verdicts = [judge(task, trajectory) for trajectory in (ours, theirs, ours_fine, *theirs_fine)]
    agree = float((verdicts[0].success == verdicts[1].success).double().mean())
    a, b, c, d, e, *more = (summarise(task, verdict) for verdict in verdicts)
    apart = apart_above(task, ours.states, theirs.states)
    return Transfer(a, b, c, d, e, more[0] if more else None, agree, apart)


def apart_above(task: Insertion, a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the largest distance between the bottle's positions in two runs of the same episodes above the mouth [mm]."""
    position, tilt, _ = task.errors(a)
    above = position[..., 2] - BOTTLE_RADIUS * tilt.sin() > DEPTH
    apart = (position - task.errors(b)[0]).norm(dim=-1)
    return 1e3 * float(apart[above.long().cumprod(0).bool()].max())


def transfer(folder: Run, episodes: int = EPISODES, seed: int = 0) -> Transfer:
    """Try a run's policy in both engines; write transfer.json."""
    at_least_one(episodes)
    found = transfer_of(folder.task, folder.policy, episodes, seed)
    write_json(folder.path / "transfer.json", found.as_dict() | {"seed": seed})
    return found


def failures(metrics: Metrics) -> str:
    """Return why episodes fail, in words."""
    missed = {text: 1 - getattr(metrics, name) for name, text in CRITERIA.items()}
    shares = [f"{100 * share:.1f} % {text}" for text, share in missed.items() if share > 0]
    return ", ".join(shares) or "episodes that fail are not seated in time"


def try_elsewhere(folder: Run, episodes: int | None, seed: int, files: bool) -> None:
    """Try a run's policy in MuJoCo, and print what is found. files: write the scene as scene.xml, too."""
    episodes = EPISODES if episodes is None else episodes
    found = transfer(folder, episodes, seed)
    rows = {text: metrics for name, text in ROWS.items() if (metrics := getattr(found, name)) is not None}
    print("engine".ljust(32), *(name.rjust(14) for name in found.ours.brief("mm")))
    for name, metrics in rows.items():
        print(name.ljust(32), *(text.rjust(14) for text in metrics.brief("mm").values()))
    for name, metrics in rows.items():
        if metrics.success < 1:
            print(f"{name}: {failures(metrics)}")
    print(f"\n{episodes} episodes; the same verdict in {100 * found.agree:.1f} % of them")
    print(f"bottle apart by at most {found.apart:.1e} mm until it reaches the mouth")
    written = [folder.path / "transfer.json"]
    if files:
        written.append(folder.path / "scene.xml")
        written[-1].write_text(mjcf(folder.task))
    print("\nwrote", *written, sep="\n  ")
