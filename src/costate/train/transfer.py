"""Transfer: a trained policy, unchanged, in MuJoCo, beside the same episodes in our world."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, replace

import torch

from costate.core.files import write_json
from costate.tasks.insertion import Insertion, Metrics, Policy, draw, judge, run, summarise
from costate.tasks.insertion.mujoco_scene import MujocoScene, run_in_mujoco
from costate.tasks.insertion.scene import BOTTLE_RADIUS, DEPTH
from costate.train.plan import generator
from costate.train.run import Run


@dataclass(frozen=True)
class Transfer:
    """What was found in the same episodes."""

    ours: Metrics
    mujoco: Metrics
    ours_fine: Metrics
    """With physics steps a quarter as long: servos act nearer to continuously."""
    mujoco_fine: Metrics
    """The same there, and harder contact."""
    agree: float
    """Fraction of the episodes that succeed in both engines or in none, at the same step."""
    apart: float
    """Largest difference of the bottle's position between the engines until it reaches the socket's mouth [mm]."""

    def as_dict(self) -> dict:
        return asdict(self)


def transfer_of(task: Insertion, policy: Policy, episodes: int = 200, seed: int = 0) -> Transfer:
    """Run held-out episodes in both engines, in float64."""
    policy = copy.deepcopy(policy).double()
    drawn = draw(task, episodes, generator("held out", seed), dtype=torch.float64)
    with torch.no_grad():
        ours = run(task, task.world, policy, drawn)
        theirs = run_in_mujoco(task, MujocoScene(task), policy, drawn)
        fine = Insertion(replace(task.options, substeps=4 * task.options.substeps))
        ours_fine = run(fine, fine.world, policy, drawn)
        theirs_fine = run_in_mujoco(task, MujocoScene(task, fine.options.substeps), policy, drawn)
        verdicts = [judge(task, trajectory) for trajectory in (ours, theirs, ours_fine, theirs_fine)]
    agree = float((verdicts[0].success == verdicts[1].success).double().mean())
    a, b, c, d = (summarise(task, verdict) for verdict in verdicts)
    return Transfer(a, b, c, d, agree, apart_above(task, ours.states, theirs.states))


def apart_above(task: Insertion, a: torch.Tensor, b: torch.Tensor) -> float:
    """Largest distance between the bottle's positions in two runs of the same episodes while it is above the mouth [mm]."""
    position, tilt, _ = task.errors(a)
    above = position[..., 2] - BOTTLE_RADIUS * tilt.sin() > DEPTH
    apart = (position - task.errors(b)[0]).norm(dim=-1)
    return 1e3 * float(apart[above.long().cumprod(0).bool()].max())


def transfer(folder: Run, episodes: int = 200, seed: int = 0) -> Transfer:
    """Of a run's policy; write transfer.json."""
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be at least 1")
    found = transfer_of(folder.task, folder.policy, episodes, seed)
    write_json(folder.path / "transfer.json", found.as_dict() | {"seed": seed})
    return found
