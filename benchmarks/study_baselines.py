"""Baselines: PPO and SAC of stable-baselines3, on Costate's environments and on gymnasium's own, at equal minutes and equal steps.

    python -m benchmarks.study_baselines --minutes 30 --tasks hopper_v5 half_cheetah_v5 walker2d_v5 ant_v5 --seeds 3
    python -m benchmarks.study_baselines --minutes 5 --tasks ant hopper --methods ppo

Minutes are processor minutes of one thread, without the looks at the policy. A look is 20 episodes without exploration; policies of
v5 tasks are judged in gymnasium's own environment, wherever they were trained. Settings are those of stable-baselines3, but for 16
environments of 128 steps each where PPO has one of 2,048. Results: --folder/baselines.json, written at every look; trainings that
are complete there are not repeated, and those that were stopped count up to their last look.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.measure.harness import Table
from costate.core.files import write_json
from costate.envs.stable_baselines import StableBaselinesEnvironment
from costate.train.registry import find_task

EPISODES = 20
"""Episodes of a look."""
LOOKS = 6
"""Looks at a policy, equally spaced in time."""
METHODS: dict[str, tuple[type[BaseAlgorithm], int, dict[str, Any]]] = {
    "ppo": (PPO, 16, {"n_steps": 128}),
    "sac": (SAC, 1, {}),
}
"""Name -> algorithm, number of environments, settings that differ from its own."""


@dataclass
class Curve:
    """The progress of a training."""

    task: str
    source: str
    """Simulator: `costate` or `gymnasium`."""
    method: str
    seed: int
    minutes: float
    """Budget [processor minutes]."""
    points: list[dict[str, float]] = field(default_factory=list)
    """minutes, steps, mean return, its standard deviation, mean length of an episode."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Names and numbers that tell this training from others."""
        return self.task, self.source, self.method, self.seed, self.minutes

    def at(self, steps: float) -> float | None:
        """Return the mean return at a number of steps: that of the last look before."""
        before = [p["return"] for p in self.points if p["steps"] <= steps]
        return before[-1] if before else None


def environments(task: type, source: str, count: int, seed: int) -> VecEnv:
    """Return environments of a task: Costate's, or gymnasium's own with the same observations."""
    if source == "costate":
        return StableBaselinesEnvironment(task, count, seed)
    return make_vec_env(lambda: gymnasium.make(task.gym, **task.gym_options), count, seed)  # type: ignore[attr-defined]


def judge_of(task: type, source: str) -> str:
    """Return where a policy is judged: in gymnasium's own environment where there is one with actions in [-1, 1]."""
    if not hasattr(task, "gym"):
        return "costate"
    space = gymnasium.make(task.gym).action_space
    same = isinstance(space, gymnasium.spaces.Box) and float(space.high.max()) == 1.0
    return "gymnasium" if same else source


class Budget(BaseCallback):
    """Looks at a policy at equal intervals of processor time, and ends the training after the last."""

    def __init__(self, curve: Curve, look: Callable[[BaseAlgorithm], dict[str, float]], say: Callable[[str], None]):
        super().__init__()
        self.curve, self.look, self.say = curve, look, say
        self.begun, self.aside = time.process_time(), 0.0

    def _on_step(self) -> bool:
        spent = (time.process_time() - self.begun - self.aside) / 60
        if spent < self.curve.minutes * (len(self.curve.points) + 1) / LOOKS:
            return True
        start = time.process_time()
        found = {"minutes": spent, "steps": self.num_timesteps} | self.look(self.model)
        self.aside += time.process_time() - start
        self.curve.points.append(found)
        c = self.curve
        self.say(
            f"{c.task}, {c.source}, {c.method}, seed {c.seed}: {spent:.1f} min, {self.num_timesteps:,} steps, "
            f"return {found['return']:.0f} +- {found['deviation']:.0f}"
        )
        return len(c.points) < LOOKS


def run(curve: Curve, say: Callable[[str], None]) -> None:
    """Train for the minutes of a curve."""
    task = find_task(curve.task)
    algorithm, count, settings = METHODS[curve.method]
    judge = environments(
        task, judge_of(task, curve.source), EPISODES if judge_of(task, curve.source) == "costate" else 1, 999
    )

    def look(model: BaseAlgorithm) -> dict[str, float]:
        returns, lengths = evaluate_policy(model, judge, EPISODES, return_episode_rewards=True, warn=False)
        assert isinstance(returns, list) and isinstance(lengths, list)
        told = {"return": statistics.fmean(returns), "deviation": statistics.pstdev(returns)}
        return told | {"length": statistics.fmean(lengths)}

    model = algorithm(
        "MlpPolicy", environments(task, curve.source, count, curve.seed), seed=curve.seed, device="cpu", **settings
    )
    model.learn(1 << 40, callback=Budget(curve, look, say), log_interval=None)  # type: ignore[call-arg]


def table(curves: list[Curve]) -> Table:
    """Return the returns at equal minutes, and at as many steps as the slowest of a task has made."""
    rows = []
    groups = dict.fromkeys((c.task, c.minutes) for c in curves if c.points)
    for task, minutes in groups:
        of_task = [c for c in curves if (c.task, c.minutes) == (task, minutes) and c.points]
        steps = min(c.points[-1]["steps"] for c in of_task)
        for source, method in dict.fromkeys((c.source, c.method) for c in of_task):
            same = [c for c in of_task if (c.source, c.method) == (source, method)]
            ends = [c.points[-1] for c in same]
            early = [x for c in same if (x := c.at(steps)) is not None]
            spent = statistics.fmean(p["minutes"] for p in ends)
            made = statistics.fmean(p["steps"] for p in ends)
            final = statistics.fmean(p["return"] for p in ends)
            equal = f"{statistics.fmean(early):.0f}" if early else "-"
            rows.append(
                (
                    task,
                    source,
                    method.upper(),
                    len(same),
                    f"{spent:.0f}",
                    f"{made:,.0f}",
                    f"{final:.0f}",
                    f"{steps:,.0f}",
                    equal,
                )
            )
    columns = ("task", "trained in", "method", "seeds", "minutes", "steps", "return", "equal steps", "return then")
    return Table("Baselines of stable-baselines3", columns, tuple(rows), "Means over seeds of 20 episodes each.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="processor minutes of each training")
    parser.add_argument("--tasks", nargs="+", default=["hopper_v5", "half_cheetah_v5", "walker2d_v5", "ant_v5"])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--sources", nargs="+", choices=["costate", "gymnasium"], default=["costate", "gymnasium"])
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--folder", type=Path, default=Path("out/baselines"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.folder.mkdir(parents=True, exist_ok=True)
    file = given.folder / "baselines.json"
    curves = [Curve(**c) for c in json.loads(file.read_text())] if file.exists() else []
    known = {c.key for c in curves if len(c.points) == LOOKS}

    def told(line: str) -> None:
        print(line, flush=True)
        write_json(file, [asdict(c) for c in curves])

    for task in given.tasks:
        sources = given.sources if hasattr(find_task(task), "gym") else ["costate"]
        for method in given.methods:
            for source in sources:
                for seed in range(given.seeds):
                    curve = Curve(task, source, method, seed, given.minutes)
                    if curve.key not in known:
                        curves[:] = [*(c for c in curves if c.key != curve.key), curve]
                        run(curve, told)
    print(table(curves).markdown())


if __name__ == "__main__":
    main()
