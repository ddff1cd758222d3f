"""Training a controller by back-propagation through the simulation, with Adam."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from io import FileIO
from typing import Any

import torch

from costate.core.files import locked
from costate.sim import World
from costate.tasks.insertion import Episodes, Insertion, InsertionWeights, Policy, Trajectory, draw, loss, run, total
from costate.train.controller import save_policy
from costate.train.evaluate import evaluate_policy
from costate.train.plan import Iteration, generator, iteration
from costate.train.run import Checkpoint, Run

Tensor = torch.Tensor
Watch = Callable[[dict[str, Any]], None]
"""Is given each row of metrics as it is written."""


class DivergedError(ValueError):
    """A loss or gradient that is not a number."""


def train(folder: Run, watch: Watch = lambda row: None) -> None:
    """Train to the end, from the latest checkpoint on; then write the controller.

    A row of metrics has: iteration (how many are done), loss and its terms, error_mm and tilt_deg (means over the batch when the
    bottle should be seated), gradient_norm (longest of the interval), clipped (fraction of the interval's gradients that were),
    learning_rate, funnel_factor, contact, control_steps and seconds (of training, in total), steps_per_second; and every
    `watch_interval` success and success_error_mm, of a few episodes in the world with contact.
    """
    with locked(folder.path), _open_metrics(folder) as metrics:
        trainer = Trainer(folder)
        while trainer.done < folder.options.iterations:
            row = trainer.interval()
            _append(metrics, row, folder)
            trainer.metrics_bytes = metrics.tell()
            trainer.save()
            watch(row)
        save_policy(folder)
        if not folder.finished:
            folder.finish(seconds=trainer.seconds, control_steps=trainer.control_steps)


def _open_metrics(folder: Run) -> FileIO:
    """metrics.jsonl, without what is later than the checkpoint: those rows come again. Remains of a killed process are removed."""
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


class Trainer:
    """A training between two iterations."""

    def __init__(self, folder: Run):
        o, point = folder.options, folder.checkpoint()
        torch.set_num_threads(o.threads)
        self.folder, self.options, self.task = folder, o, folder.task
        self.done, self.metrics_bytes = point.iteration, point.metrics_bytes
        self.seconds, self.control_steps = point.seconds, point.control_steps
        self.begun = time.perf_counter()
        self.policy = folder.policy
        self.adam = torch.optim.Adam(self.policy.parameters(), lr=o.learning_rate, fused=True)
        for name, parameter in self.policy.named_parameters():
            if name in point.moments:
                self.adam.state[parameter] = point.moments[name]

    def save(self) -> None:
        moments = {name: dict(self.adam.state[p]) for name, p in self.policy.named_parameters()}
        weights = self.policy.state_dict()
        point = Checkpoint(self.done, weights, moments, self.metrics_bytes, self.seconds, self.control_steps)
        self.folder.save(point)

    def interval(self) -> dict[str, Any]:
        """Iterations up to the next row of metrics, and that row."""
        o, first, steps, begun = self.options, self.done, self.control_steps, time.perf_counter()
        norms = []
        for number in range(first, min(first + o.interval, o.iterations)):
            plan = iteration(o, number)
            terms, trajectory, norm = self._iterate(plan)
            norms.append(norm)
        speed = (self.control_steps - steps) / (time.perf_counter() - begun)
        row = {"iteration": self.done, "loss": float(total(terms, o.weights))}
        row |= {name: float(term.mean()) for name, term in terms.items()} | _errors(self.task, trajectory)
        row |= {
            "gradient_norm": max(norms),
            "clipped": sum(n > o.clip for n in norms) / len(norms),
            "learning_rate": plan.learning_rate,
            "funnel_factor": plan.funnel,
            "contact": plan.contact,
            "control_steps": self.control_steps,
            "steps_per_second": speed,
        }
        if o.watch_interval and (
            self.done // o.watch_interval > first // o.watch_interval or self.done == o.iterations
        ):
            row |= self._look()
        self.seconds += time.perf_counter() - self.begun
        self.begun = time.perf_counter()
        return row | {"seconds": self.seconds}

    def _iterate(self, plan: Iteration) -> tuple[dict[str, Tensor], Trajectory, float]:
        """One step of Adam. Returns the terms of the loss, the episodes, and the length of the gradient before clipping."""
        o, task = self.options, self.task
        episodes = draw(task, plan.batch, generator("episodes", o.seed, plan.number), o.disturbances, spread=o.spread)
        world = task.world if plan.contact else task.smooth_payload if o.disturbances.payload else task.smooth
        weights = replace(o.weights, rest=plan.rest * o.weights.rest)
        self.adam.zero_grad()
        terms, trajectory = _backward(task, world, self.policy, episodes, weights, plan.funnel)
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), o.clip))
        if norm - norm != 0:  # infinite or not a number
            raise DivergedError(_where(plan, terms, trajectory, self.folder))
        for group in self.adam.param_groups:
            group["lr"] = plan.learning_rate
        self.adam.step()
        self.done = plan.number + 1
        self.control_steps += trajectory.actions.shape[0] * plan.batch
        return terms, trajectory, norm

    def _look(self) -> dict[str, float]:
        """How well it does it now."""
        o = self.options
        found = evaluate_policy(self.task, self.policy, o.watch_episodes, stream="watch", seed=o.seed).metrics
        return {"success": found.success, "success_error_mm": found.error_mean}


def _backward(
    task: Insertion, world: World, policy: Policy, episodes: Episodes, weights: InsertionWeights, funnel: float
) -> tuple[dict[str, Tensor], Trajectory]:
    """Simulate episodes, and add the gradient of their loss to the policy's. Returns the terms of the loss and what happened."""
    trajectory = run(task, world, policy.unrolled(), episodes)
    terms = loss(task, trajectory, weights, funnel)
    total(terms, weights).backward()
    detached = Trajectory(trajectory.states.detach(), trajectory.actions.detach())
    return {name: term.detach() for name, term in terms.items()}, detached


def _errors(task: Insertion, trajectory: Trajectory) -> dict[str, float]:
    """Means over the batch when the bottle should be seated."""
    position, tilt, _ = task.errors(trajectory.states[task.options.horizon])
    return {"error_mm": 1e3 * float(position.norm(dim=-1).mean()), "tilt_deg": float(torch.rad2deg(tilt).mean())}


def _where(plan: Iteration, terms: dict[str, Tensor], trajectory: Trajectory, folder: Run) -> str:
    """What is not a number, and where it began."""
    finite = trajectory.states.isfinite().all(-1)
    bad = [name for name, term in terms.items() if not bool(term.isfinite().all())]
    if not bool(finite.all()):
        step, episode = (int(k) for k in (~finite).nonzero()[0])
        what = f"the state of episode {episode} after control step {step}"
    elif bad:
        episode = int((~terms[bad[0]].isfinite()).nonzero()[0])
        what = f"the term {bad[0]!r} of the loss, in episode {episode}"
    else:
        what = "the gradient"
    return (
        f"training diverged in iteration {plan.number}: {what} is not finite. The last good checkpoint is in {folder.path}; "
        "train again with a lower --learning-rate, a smaller --clip or smaller ranges"
    )
