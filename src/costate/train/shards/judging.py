"""Verdicts on chunks of held-out episodes, and on cases of robustness."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from typing import Any

import torch
from torch import nn

from costate.core.files import from_json
from costate.scale.executor import Work
from costate.scale.message import Message
from costate.train.episode import Episodes, Trajectory, Verdict, rollout
from costate.train.policy import acting
from costate.train.shards.folders import Copy, described
from costate.train.streams import CHUNK, generator
from costate.train.trainable import Trainable, Variant

WORK = "costate.train.shards.judging:Judging"
"""Name of the work, for messages."""


def judged_by(run: Any, variant: str = "", disturbances: dict[str, Any] | None = None) -> Message:
    """Return what workers are given to judge a run's policy."""
    return described(WORK, run, variant=variant, disturbances=disturbances)


def chunks(episodes: int, stream: str, seed: int) -> Iterator[Message]:
    """Yield the shards of an evaluation."""
    for start in range(0, episodes, CHUNK):
        yield Message({"size": min(CHUNK, episodes - start), "stream": stream, "seed": seed, "number": start // CHUNK})


def cases(task: Trainable, episodes: int, seed: int) -> dict[str, Message]:
    """Return the shards of a look at robustness, by name."""
    about = {"size": episodes, "stream": "held out", "seed": seed, "number": 0}
    given = {name: Message({"case": name, **about}) for name in task.cases()}
    return given | {name: Message({"world": name, **about}) for name in task.worlds()}


class Judging(Work):
    """The judgement of a policy in one of the task's worlds."""

    def __init__(self, given: Message):
        self.copy = Copy(given)
        run, note = self.copy.run, given.note
        disturbances = note["disturbances"]
        if disturbances is not None:
            disturbances = from_json(type(run.task.disturbances), disturbances, run.path)
        self._hold(varied(run.task, note["variant"]), run.policy, disturbances)
        torch.set_num_threads(run.options.threads)

    @classmethod
    def of(cls, task: Trainable, policy: nn.Module, disturbances: Any = None) -> Judging:
        """Return the work of a process that has task and policy already."""
        work = cls.__new__(cls)
        work._hold(task, policy, disturbances)
        return work

    def _hold(self, task: Trainable, policy: nn.Module, disturbances: Any) -> None:
        self.task, self.policy = task, policy
        self.given = {} if disturbances is None else {"disturbances": disturbances}

    def shard(self, shard: Message) -> Message:
        return packed(self.judged(shard)[0])

    def judged(self, shard: Message) -> tuple[Verdict, Trajectory]:
        """Return the verdict on a shard, and what happened."""
        task, note = self.task, shard.note
        random = generator(note["stream"], note["seed"], note["number"])
        if "case" in note:
            drawn = task.cases()[note["case"]](note["size"], random)
        else:
            drawn = task.draw(note["size"], random, torch.float64, **self.given)
        world = task.worlds()[note["world"]]() if "world" in note else None
        trajectory = tried(task, self.policy, drawn, world)
        return task.judge(trajectory), trajectory


def tried(task: Trainable, policy: nn.Module, episodes: Episodes, world: Any = None) -> Trajectory:
    """Return what a policy does in episodes, in float64 and without gradients."""
    with torch.no_grad():
        return rollout(task, acting(copy.deepcopy(policy).double()), episodes, world)


def varied(task: Trainable, variant: str) -> Trainable:
    """Return a task, or one of its variants."""
    return type(task)(_variant(task, variant).change(task.options)) if variant else task


def _variant(task: Trainable, name: str) -> Variant:
    if name not in task.variants:
        raise ValueError(f"task '{task.name}' has no variant {name!r}; it has {', '.join(task.variants) or 'none'}")
    return task.variants[name]


def packed(verdict: Verdict) -> Message:
    """Return a verdict as a message."""
    kind = type(verdict)
    tensors = {f.name: getattr(verdict, f.name) for f in fields(verdict) if f.name != "columns"}
    columns = {f"columns/{name}": column for name, column in verdict.columns.items()}
    return Message({"module": kind.__module__, "class": kind.__name__}, tensors | columns)


def unpacked(task: Trainable, message: Message) -> Verdict:
    """Return the verdict that a worker found. A class in a user's file is taken from the task's own file."""
    module = message.note["module"]
    place = import_module(module) if module.startswith("costate.") else sys.modules[type(task).__module__]
    columns = {name[8:]: t for name, t in message.tensors.items() if name.startswith("columns/")}
    rest = {name: t for name, t in message.tensors.items() if not name.startswith("columns/")}
    return getattr(place, message.note["class"])(**rest, columns=columns)
