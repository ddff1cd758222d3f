"""Sweeps that end early what does badly: ASHA (Li et al., 2020) as Ray Tune has it, on a Ray cluster.

A trial of Tune is a training that is passed on in parts. It asks for the next part, and gives it back, at the machine of the sweep,
where the run folders are (`Folders`): they are as one process writes them, nothing needs to be shared between machines, and a
trial that is lost with its machine goes on where it was.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from costate.scale.desk import versions
from costate.scale.message import Message
from costate.train.shards.sweep import KEPT, PARTS, Entry, Trainings, given, opened, reached, score, taken

SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # the run folders have all metrics
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Control-C ends the sweep; --resume goes on
    "RAY_AIR_NEW_OUTPUT": "0",  # the other reporter keeps quiet when it is told to
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}
"""Variables of Tune."""
WORST = 1e30
"""Score of a training that diverged: Tune interpolates between scores, so it is finite."""
TRIES = 3
"""Number of times that a trial may be lost."""


class Folders:
    """The run folders of a sweep: an actor of the machine that has them."""

    def __init__(self, folder: str, by: str, trust: bool = False):
        self.entries = {e.run.path.name: e for e in opened(Path(folder), trust)}
        self.by, self.done = by, Counter[str]()  # parts by name of the run

    def part(self, name: str) -> bytes:
        """Return the next part of a training; without files if it was computed before."""
        run, part = self.entries[name].run, self.done[name] + 1
        goal = round(part / PARTS * run.options.iterations)
        return (Message() if reached(run, goal) else given(self.entries[name], goal)).packed()

    def take(self, name: str, found: bytes) -> dict[str, Any]:
        """Take what a part has given; return what Tune is told: how far the training is, and how good, less is better."""
        entry = self.entries[name]
        taken(entry, Message.unpacked(found))
        self.done[name] += 1
        share = self.done[name] / PARTS
        ended = self.done[name] == PARTS or entry.run.found("diverged") is not None
        return {"part": self.done[name], "score": min(score(entry.run, self.by, share), WORST), "done": ended}


class Trial(tune.Trainable):
    """The training of one run. config: name of its folder, the actor that has it, versions of the sweep's machine."""

    def setup(self, config: dict[str, Any]) -> None:
        """Begin a training, perhaps in a process that had another one before."""
        here, wanted = versions(), config["versions"]
        if odd := [f"{k} {v} (here {wanted.get(k)})" for k, v in here.items() if v != wanted.get(k)]:
            raise ValueError(f"{platform.node()} is refused: it has {', '.join(odd)}; results would differ")
        self.work = getattr(self, "work", None) or Trainings(Message())

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take another training."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Compute a part."""
        name, folders = self.config["name"], self.config["folders"]
        part = Message.unpacked(ray.get(folders.part.remote(name)))
        found = self.work.shard(part) if part.tensors else Message()
        return ray.get(folders.take.remote(name, found.packed()))


class Watching(tune.Callback):
    """A watch over all trials."""

    def __init__(self, entries: Sequence[Entry], watch: Callable[[Entry, int, str], None]):
        self.entries, self.watch = {e.run.path.name: e for e in entries}, watch

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Tell of a part."""
        left = len(self.entries) - sum(t.status in ("TERMINATED", "ERROR") for t in trials)
        where = f"on {result['hostname']}/{result['pid']}"
        self.watch(self.entries[trial.config["name"]], left, where)


def asha(
    entries: Sequence[Entry],
    workers: int,
    by: str = "loss",
    watch: Callable[[Entry, int, str], None] = lambda entry, left, where: None,
) -> list[Entry]:
    """Train those that do well on the Ray cluster that this process has joined; return those that were trained to the end.

    Of the runs that have reached a tenth of their iterations the best third goes on, and again at three and nine tenths. A run that
    is early goes on if it is among the best third of those that were there before it. workers: most runs at once; 0: all cores.
    """
    os.environ |= SETTINGS
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor: Any = ray.remote(Folders)
    first = entries[0].run
    folders = actor.options(num_cpus=0, scheduling_strategy=here).remote(
        str(first.path.parent.resolve()), by, first.trust
    )
    names = [e.run.path.name for e in entries]
    with tempfile.TemporaryDirectory(prefix="costate-") as storage:
        tuner = tune.Tuner(
            Trial,
            param_space={"name": tune.grid_search(names), "folders": folders, "versions": versions()},
            tune_config=tune.TuneConfig(
                metric="score",
                mode="min",
                scheduler=ASHAScheduler(time_attr="part", max_t=PARTS, grace_period=1, reduction_factor=KEPT),
                max_concurrent_trials=workers or None,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=storage,
                verbose=0,
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                failure_config=tune.FailureConfig(max_failures=TRIES),
                callbacks=[Watching(entries, watch)],
            ),
        )
        try:
            errors = tuner.fit().errors
        finally:
            ray.kill(folders)
    if errors:
        raise RuntimeError(f"{len(errors)} of {len(entries)} runs failed; the first: {errors[0]}")
    return [e for e in entries if e.run.finished and e.run.found("diverged") is None]
