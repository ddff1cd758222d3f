"""Hands that propose contacts: how a policy does when objects or measurements are not as in its training, in both engines.

python -m benchmarks.study_hands_robust RUN [--episodes 200] [--seed 0] [--only noise mass ...]

RUN is a folder of `costate train grasp` (or push, turn), with or without `--honest`. The policy is told nothing of the changes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import radians
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure.table import Table, machine
from costate.tasks.manipulation.mujoco import MujocoHand
from costate.train import Run
from costate.train.evaluate import tried
from costate.train.streams import generator

CASES: Mapping[str, Mapping[str, Any]] = {
    "usual": {},
    "exact": {"noise": 0.0, "turn_noise": 0.0},
    "noise": {"noise": 1e-3, "turn_noise": radians(1.0)},
    "more noise": {"noise": 3e-3, "turn_noise": radians(3.0)},
    "mass": {"masses": (0.5, 2.0)},
    "friction": {"frictions": (0.75, 1.25)},
}
"""Name of a case -> options of the task that differ from those of the training."""


def robust(run: Run, only: Sequence[str], episodes: int, seed: int) -> Table:
    """Return successes in our world and in MuJoCo, which are also printed case by case."""
    rows = []
    for name in only:
        task = type(run.task)(replace(run.task.options, **CASES[name]))
        drawn = task.draw(episodes, generator("held out", seed, 0), torch.float64)
        verdicts = [task.judge(tried(task, run.policy, drawn, world)) for world in (task.world, MujocoHand(task))]
        changed = ", ".join(f"{key} {value}" for key, value in CASES[name].items()) or "as trained"
        rates = [f"{100 * float(v.success.double().mean()):.1f}" for v in verdicts]
        errors = [f"{float(v.error.nanmean()):.1f}" for v in verdicts]
        rows.append((changed, *rates, *errors))
        print(*rows[-1], sep="  ", flush=True)
    unit = run.task.unit
    columns = ("", "succeed [%]", "in MuJoCo [%]", f"mean error [{unit}]", f"in MuJoCo [{unit}]")
    return Table(f"{run.task.name}, {episodes} starts", columns, tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a training")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(*(f"{k}: {v}" for k, v in machine().items()), "", sep="\n")
    print(robust(Run.open(asked.run), asked.only, asked.episodes, asked.seed).markdown())


if __name__ == "__main__":
    main()
