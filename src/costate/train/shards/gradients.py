"""Gradients of the loss over shards of an iteration's episodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from costate.scale.executor import Work
from costate.scale.message import Message
from costate.train.episode import Trajectory, rollout
from costate.train.plan import Iteration
from costate.train.policy import acting, align_weights
from costate.train.shards.folders import Copy
from costate.train.streams import generator

WORK = "costate.train.shards.gradients:Gradients"
"""Name of the work, for messages."""


def shards_of(plan: Iteration, measured: bool) -> list[Message]:
    """Return the shards of an iteration. measured: the task's measures are wanted, too."""
    size = plan.options.shard
    starts = range(0, plan.batch, size)
    return [
        Message({"iteration": plan.number, "start": s, "size": min(size, plan.batch - s), "measured": measured})
        for s in starts
    ]


def summed(found: Iterable[Message], batch: int) -> tuple[Tensor, dict[str, Any]]:
    """Return the gradient of a batch, and its note: means over the shards, weighted by their sizes, in their order."""
    gradient, notes = None, []
    for part in found:
        share = part.note["size"] / batch
        term = share * part.tensors["gradient"]
        gradient = term if gradient is None else gradient + term
        notes.append((share, part.note))
    assert gradient is not None
    note: dict[str, Any] = {
        "steps": sum(n["steps"] for _, n in notes),
        "diverged": next((n["diverged"] for _, n in notes if n["diverged"]), ""),
        "processor_seconds": sum(n.get("processor_seconds", 0.0) for _, n in notes),
    }
    for kind in () if note["diverged"] else ("terms", "measures"):
        note[kind] = {name: sum(share * n[kind][name] for share, n in notes) for name in notes[0][1][kind]}
    return gradient, note


class Gradients(Work):
    """The gradients of a run's loss."""

    def __init__(self, given: Message):
        self.copy = Copy(given)
        run = self.copy.run
        self._hold(run.task, run.options, run.policy)

    @classmethod
    def of(cls, task: Any, options: Any, policy: nn.Module) -> Gradients:
        """Return the work of a process that has task and policy already."""
        work = cls.__new__(cls)
        work._hold(task, options, policy)
        return work

    def _hold(self, task: Any, options: Any, policy: nn.Module) -> None:
        torch.set_num_threads(options.threads)
        align_weights(policy)
        self.task, self.options, self.policy = task, options, policy

    def begin(self, shared: Message) -> None:
        """Take weights."""
        self.policy.load_state_dict(dict(shared.tensors))

    def shard(self, shard: Message) -> Message:
        """Return the gradient of the loss over a shard, all parameters one after the other, and what is to be told."""
        o, task, start, size = self.options, self.task, shard.note["start"], shard.note["size"]
        plan = replace(task.plan(o, shard.note["iteration"]), batch=size)
        episodes = task.practice(plan, generator("episodes", o.seed, plan.number, start // o.shard))
        self.policy.zero_grad()
        trajectory = rollout(task, acting(self.policy, training=True), episodes, task.practised(plan))
        terms = task.loss(trajectory, plan)
        total = task.total(terms, o)
        total.backward()
        gradient = torch.cat([_flat(p) for p in self.policy.parameters()])
        terms = {name: term.detach() for name, term in terms.items()}
        trajectory = replace(trajectory, states=trajectory.states.detach(), actions=trajectory.actions.detach())
        means = {"loss": float(total.detach())} | {name: float(term.mean()) for name, term in terms.items()}
        diverged = "" if bool(gradient.isfinite().all()) else where(start, terms, trajectory)
        note = {
            "size": size,
            "steps": trajectory.actions.shape[0] * size,
            "terms": means,
            "measures": task.measures(trajectory) if shard.note["measured"] and not diverged else {},
            "diverged": diverged,
        }
        return Message(note, {"gradient": gradient})


def _flat(parameter: nn.Parameter) -> Tensor:
    return (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).reshape(-1)


def where(start: int, terms: dict[str, Tensor], trajectory: Trajectory) -> str:
    """Say what is not finite, and where it began. start: number of the first episode."""
    finite = trajectory.states.isfinite().all(-1)
    bad = [name for name, term in terms.items() if not bool(term.isfinite().all())]
    if not bool(finite.all()):
        step, episode = (int(k) for k in (~finite).nonzero()[0])
        return f"the state of episode {start + episode} after control step {step}"
    if bad:
        episode = int((~terms[bad[0]].isfinite()).nonzero()[0])
        return f"the term {bad[0]!r} of the loss, in episode {start + episode}"
    return "the gradient"
