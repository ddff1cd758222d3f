"""Training a policy: what all algorithms share, and back-propagation through whole episodes, with Adam."""

from __future__ import annotations

import errno
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from io import FileIO
from typing import Any

import torch
from torch import Tensor, nn

from costate.core.files import locked
from costate.scale.executor import Executor, InProcess
from costate.scale.message import Message
from costate.train.controller import save_policy
from costate.train.evaluate import evaluate_policy
from costate.train.plan import Iteration
from costate.train.registry import loaded
from costate.train.run import TOLD, Checkpoint, Run
from costate.train.shards.folders import described
from costate.train.shards.gradients import WORK, Gradients, shards_of, summed

Watch = Callable[[dict[str, Any]], None]
"""Function that is given each row of metrics as it is written."""
Watching = Callable[[Run], AbstractContextManager[Watch]]
"""Function that makes what watches the training of a run."""


LAST = "last.safetensors"
"""File of the weights that a training ended with, beside those that its looks have chosen."""


class DivergedError(ValueError):
    """A loss or gradient that is not finite."""


def train(
    folder: Run, watch: Watch = lambda row: None, executor: Executor | None = None, until: int | None = None
) -> None:
    """Train to the end, from the latest checkpoint on; then write the controller: the best policy that a look has found.

    executor: who computes the shards of an iteration, made of `shared(folder)`; None: this process. The weights have the same bits.
    until: iteration after which to stop before the end, at the next checkpoint.

    A row of metrics has: iteration (how many are done), loss and its terms, the task's measures (means over the batch),
    gradient_norm (longest of the interval), clipped (fraction of the interval's gradients that were), learning_rate, the factors
    of the task's plan, control_steps, seconds and processor_seconds (of training, in total), steps_per_second; and every
    `watch_interval` success and success_error, of a few new episodes in the task's world.
    """
    with locked(folder.path), _open_metrics(folder) as metrics:
        kind = loaded(folder.options.trainer)
        trainer = kind(folder) if executor is None else kind(folder, executor)
        end = folder.options.iterations if until is None else min(until, folder.options.iterations)
        while trainer.done < end:
            row = trainer.interval()
            _append(metrics, row, folder)
            trainer.metrics_bytes = metrics.tell()
            trainer.save()
            watch(row)
        if trainer.done < folder.options.iterations:
            return
        save_policy(folder)
        if not folder.finished:
            folder.finish(
                seconds=trainer.seconds,
                control_steps=trainer.control_steps,
                best_iteration=trainer.best.iteration or None,
            )


def check_shared(options: Any) -> None:
    """Refuse options of a training that cannot share its work."""
    kind = loaded(options.trainer)
    if not issubclass(kind, Trainer):
        raise ValueError(
            f"a training by {kind.__name__} is not computed in shards: its robots are in the middle of their episodes. Train "
            "without --cluster and --workers, or share whole trainings with `costate sweep`"
        )


def shared(folder: Run) -> Message:
    """Return what workers of a training are given, for `costate.scale.choose.executor`."""
    check_shared(folder.options)
    return described(WORK, folder)


def _open_metrics(folder: Run) -> FileIO:
    """Open metrics.jsonl, without rows later than the checkpoint: those come again. Remove what a killed process left behind."""
    for name in (".checkpoint.*", ".policy.*", ".run.*"):
        for remains in folder.path.glob(name):
            remains.unlink()
    metrics = open(folder.path / "metrics.jsonl", "ab", buffering=0)  # noqa: SIM115  (the caller closes it)
    length = folder.checkpoint().metrics_bytes
    if metrics.tell() < length:
        metrics.close()
        raise ValueError(f"{folder.path}/metrics.jsonl is damaged: it is shorter than when the checkpoint was written")
    metrics.truncate(length)
    metrics.seek(length)
    return metrics


def _append(metrics: FileIO, row: dict[str, Any], folder: Run) -> None:
    data = (json.dumps(row) + "\n").encode()
    try:
        if metrics.write(data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(metrics.fileno())
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot write {folder.path}/metrics.jsonl: {error.strerror}; the last checkpoint is unharmed: "
            f"make room, then go on with --resume {folder.path}",
        ) from error


@dataclass(frozen=True)
class Iterated:
    """The findings of an iteration."""

    terms: dict[str, float]
    """Loss, and its terms."""
    norm: float
    """Length of the gradient before clipping."""
    measures: Callable[[], dict[str, float]]
    """Function that returns the task's measures; called for the last iteration of an interval."""


class Best:
    """The weights of the policy with the highest score so far, that score, and the iteration after which it had it.

    A policy that succeeds can be lost again within a hundred iterations, so looks at it decide which one a training ends with.
    """

    def __init__(self, name: str, more: Mapping[str, Tensor]):
        """Take up what a checkpoint has kept under a name; nothing at the start."""
        self.prefix = f"{name}."
        kept = {key.removeprefix(self.prefix): t.clone() for key, t in more.items() if key.startswith(self.prefix)}
        self.score: tuple[float, ...] = tuple(kept.pop("score").tolist()) if kept else ()
        self.iteration = int(kept.pop("iteration")) if kept else 0
        self.weights = kept

    def offer(self, policy: nn.Module, iteration: int, *score: float) -> None:
        """Keep a policy if its score is higher than all before; later numbers of a score count where earlier ones are equal."""
        comparable = tuple(s if s == s else -torch.inf for s in map(float, score))
        if comparable > self.score:
            self.score, self.iteration = comparable, iteration
            self.weights = {name: t.detach().clone() for name, t in policy.state_dict().items()}

    def give(self, policy: nn.Module) -> None:
        """Put the best weights into a policy."""
        policy.load_state_dict(self.weights)

    def kept(self) -> dict[str, Tensor]:
        """Return what a checkpoint keeps; nothing, if nothing was offered yet."""
        told = {
            "score": torch.tensor(self.score, dtype=torch.float64),
            "iteration": torch.tensor(self.iteration, dtype=torch.int64),
        }
        return {f"{self.prefix}{name}": t for name, t in (self.weights | told).items()} if self.weights else {}


class Training(ABC):
    """A training, between two iterations."""

    def __init__(self, folder: Run):
        o, point = folder.options, folder.checkpoint()
        torch.set_num_threads(o.threads)
        self.folder, self.options, self.task = folder, o, folder.task
        self.done, self.metrics_bytes = point.iteration, point.metrics_bytes
        self.seconds, self.control_steps = point.seconds, point.control_steps
        self.processor_seconds = point.processor_seconds
        self.begun = time.perf_counter(), time.process_time()
        self.policy = folder.policy
        self.measured = False  # True in an iteration whose measures are asked for
        self.best = Best("best", point.more)
        self.set_up(point)

    @abstractmethod
    def set_up(self, point: Checkpoint) -> None:
        """Make optimisers and whatever else is trained, as they were at a checkpoint."""

    @abstractmethod
    def iterate(self, plan: Iteration) -> Iterated:
        """Do one iteration; count its control steps."""

    @abstractmethod
    def kept(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside the policy: `moments`, `more`."""

    def save(self) -> None:
        """Write a checkpoint. That of the end has the best policy; the last one is beside it."""
        if self.done == self.options.iterations and self.best.weights:
            self.folder.keep(LAST, self.policy.state_dict())
            self.best.give(self.policy)
        told = {name: getattr(self, name) for name in TOLD}
        point = Checkpoint(self.done, self.policy.state_dict(), **self.kept(), **told)
        self.folder.save(replace(point, more=point.more | self.best.kept()))

    def interval(self) -> dict[str, Any]:
        """Do the iterations up to the next row of metrics, and return that row."""
        o, first, steps, begun = self.options, self.done, self.control_steps, time.perf_counter()
        norms = []
        last = min(first + o.interval, o.iterations) - 1
        for number in range(first, last + 1):
            plan, self.measured = self.task.plan(o, number), number == last
            found = self.iterate(plan)
            self.done = number + 1
            norms.append(found.norm)
        speed = (self.control_steps - steps) / (time.perf_counter() - begun)
        row = {"iteration": self.done} | found.terms | found.measures()
        row |= {
            "gradient_norm": max(norms),
            "clipped": sum(n > o.clip for n in norms) / len(norms),
            "learning_rate": plan.learning_rate,
            **plan.factors,
            "control_steps": self.control_steps,
            "steps_per_second": speed,
        }
        if self._comes(o.watch_interval, first):
            row |= self.look()
            if o.patience and self.done >= self.best.iteration + o.patience * o.watch_interval:
                self.done = o.iterations
        if self._comes(o.keep_every, first):
            self.folder.keep(f"checkpoints/{row['iteration']:06d}.safetensors", self.policy.state_dict())
        now = time.perf_counter(), time.process_time()
        self.seconds += now[0] - self.begun[0]
        self.processor_seconds += now[1] - self.begun[1]
        self.begun = now
        return row | {"seconds": self.seconds, "processor_seconds": self.processor_seconds}

    def _comes(self, every: int, first: int) -> bool:
        """Return whether what is done every so many iterations comes now, in an interval that began after `first` iterations."""
        return every > 0 and (self.done // every > first // every or self.done == self.options.iterations)

    def look(self) -> dict[str, float]:
        """Judge the policy in new episodes, the same for every look; keep it if it is the best so far. Return rows of metrics."""
        o = self.options
        found = evaluate_policy(self.task, self.policy, o.watch_episodes, stream="watch", seed=o.seed).metrics
        if (score := self.score(found)) is not None:
            self.best.offer(self.policy, self.done, *score)
        return self.row(found)

    def row(self, metrics: Any) -> dict[str, float]:
        """Return what a row of metrics keeps of a look."""
        return {"success": metrics.success, "success_error": metrics.error_mean}

    def score(self, metrics: Any) -> tuple[float, ...] | None:
        """Return by what the best of several policies is told: by success, then by the smaller error; None: not by looks."""
        return metrics.success, -metrics.error_mean


class Trainer(Training):
    """Back-propagation through whole episodes, with Adam."""

    def __init__(self, folder: Run, executor: Executor | None = None):
        super().__init__(folder)
        self.executor = executor or InProcess(Gradients.of(self.task, self.options, self.policy))
        self.alone = executor is None

    def set_up(self, point: Checkpoint) -> None:
        self.adam = torch.optim.Adam(self.policy.parameters(), lr=self.options.learning_rate, fused=True)
        for name, parameter in self.policy.named_parameters():
            if name in point.moments:
                self.adam.state[parameter] = point.moments[name]

    def kept(self) -> dict[str, Any]:
        return {"moments": {name: dict(self.adam.state[p]) for name, p in self.policy.named_parameters()}}

    def iterate(self, plan: Iteration) -> Iterated:
        weights = None if self.alone else Message({}, self.policy.state_dict())
        gradient, found = summed(self.executor.map(shards_of(plan, self.measured), weights), plan.batch)
        parameters = list(self.policy.parameters())
        for p, part in zip(parameters, gradient.split([p.numel() for p in parameters]), strict=True):
            p.grad = part.view_as(p)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.options.clip))
        if found["diverged"] or norm - norm != 0:  # infinite or not a number
            raise DivergedError(_diverged(plan, found["diverged"] or "the gradient", self.folder))
        for group in self.adam.param_groups:
            group["lr"] = plan.learning_rate
        self.adam.step()
        self.control_steps += found["steps"]
        self.processor_seconds += found["processor_seconds"]
        return Iterated(found["terms"], norm, lambda: found["measures"])


def _diverged(plan: Iteration, what: str, folder: Run) -> str:
    return (
        f"training diverged in iteration {plan.number}: {what} is not finite. The last good checkpoint is in {folder.path}; "
        "train again with a lower --learning-rate, a smaller --clip or smaller ranges"
    )
