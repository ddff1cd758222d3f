"""A run folder: all there is about one training.

options.json            what was asked for
run.json                seeds, versions, machine, when
metrics.jsonl           one row per interval
checkpoint.safetensors  weights, Adam's moments, iteration: one file, so that its parts belong together
policy.safetensors/.json  the finished controller, see `costate.train.controller`
evaluation.json         see `costate.train.evaluate`
horizon.json, bound.json  see `costate.train.minimum_time`
tensorboard/            the metrics again
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from costate.core.files import from_json, read_json, write_json
from costate.core.tensors import read_tensors, write_tensors
from costate.tasks.insertion import Insertion, Policy
from costate.train.plan import TrainOptions, generator

FORMAT = 1
"""Raised when folders of before can no longer be read."""

Tensor = torch.Tensor


@dataclass(frozen=True)
class Checkpoint:
    """Where a training stands, between two iterations."""

    iteration: int
    """The next one."""
    policy: dict[str, Tensor]
    """Its parameters by name."""
    moments: dict[str, dict[str, Tensor]]
    """Adam's state of each parameter; empty at the start."""
    metrics_bytes: int = 0
    """Length of metrics.jsonl; what is behind was written after this checkpoint."""
    seconds: float = 0.0
    """Spent on training so far."""
    control_steps: int = 0
    """Simulated in training so far."""


class Run:
    """A run folder. Use `Run.open` or `Run.create`."""

    def __init__(self, path: Path, options: TrainOptions):
        self.path, self.options = path, options

    @classmethod
    def create(cls, path: str | Path, options: TrainOptions, policy: Mapping[str, Tensor] | None = None) -> Run:
        """A new folder. policy: weights to start with, instead of random ones."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(
                f"{path} exists and is not an empty folder; choose another one, or continue a training with --resume"
            )
        run = cls(path.with_name(f".{path.name}.{os.getpid()}"), options)
        run.task  # noqa: B018  (refuses an impossible task before anything is written)
        try:
            run.path.mkdir(parents=True)
            write_json(run.path / "options.json", asdict(options))
            run.save(Checkpoint(0, dict(policy or _initial(options)), {}))
            write_json(run.path / "run.json", _origin(options))
            os.replace(run.path, path)  # whole or not there, as its files are
        finally:
            shutil.rmtree(run.path, ignore_errors=True)
        run.path = path
        return run

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """An existing folder."""
        path = Path(path)
        if not path.is_dir():
            raise ValueError(f"{path} is not a folder; a run folder is what `costate train` writes")
        if not (path / "run.json").is_file():
            raise ValueError(
                f"{path} is not a run folder: it has no run.json; a run folder is what `costate train` writes"
            )
        note = read_json(path / "run.json")
        if not isinstance(note, dict) or note.get("format") != FORMAT:
            raise ValueError(f"{path}/run.json is not one of this version of costate (format {FORMAT})")
        for name in ("options.json", "checkpoint.safetensors"):
            if not (path / name).is_file():
                raise ValueError(f"{path} is damaged: it has no {name}")
        return cls(path, from_json(TrainOptions, read_json(path / "options.json"), path / "options.json"))

    @cached_property
    def task(self) -> Insertion:
        return _task(self.options.task)

    @property
    def policy(self) -> Policy:
        """With the weights of the latest checkpoint."""
        weights = self.checkpoint().policy
        if not any(self.options.hidden in t.shape for t in weights.values()):  # before memory is asked for
            raise ValueError(
                f"{self.path}: hidden={self.options.hidden} does not fit the checkpoint; was options.json changed?"
            )
        policy = Policy(self.options.hidden)
        try:
            policy.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"{self.path}: the checkpoint does not fit the options: {error}") from error
        return policy

    @property
    def note(self) -> dict[str, Any]:
        """run.json: seed, versions, machine, when it was started and finished."""
        return read_json(self.path / "run.json")

    def finish(self, **more: Any) -> None:
        """Note that the training is complete."""
        write_json(self.path / "run.json", self.note | {"finished": _now()} | more)

    def differences(self) -> list[str]:
        """What is not as it was when the run was begun, and may change the last bits."""
        then, now = self.note, _origin(self.options)
        versions = then.get("versions")
        if not isinstance(versions, dict):
            raise ValueError(f"{self.path}/run.json is damaged: it has no versions")
        before = versions | {"cpu": then.get("cpu")}
        after = now["versions"] | {"cpu": now["cpu"]}
        return [f"{name} {after[name]} (was {before.get(name)})" for name in after if after[name] != before.get(name)]

    @property
    def finished(self) -> bool:
        return self.note.get("finished") is not None

    def save(self, checkpoint: Checkpoint) -> None:
        tensors = {f"policy/{name}": t for name, t in checkpoint.policy.items()}
        tensors |= {f"{key}/{name}": t for name, s in checkpoint.moments.items() for key, t in s.items()}
        note = {k: getattr(checkpoint, k) for k in ("iteration", "metrics_bytes", "seconds", "control_steps")}
        write_tensors(self.path / "checkpoint.safetensors", tensors, note)

    def checkpoint(self) -> Checkpoint:
        """The latest."""
        tensors, note = read_tensors(self.path / "checkpoint.safetensors")
        parts: dict[str, dict[str, Tensor]] = {}
        for full, tensor in tensors.items():
            key, _, name = full.partition("/")
            parts.setdefault(name, {})[key] = tensor
        try:
            policy = {name: part.pop("policy") for name, part in parts.items()}
            return Checkpoint(policy=policy, moments={n: p for n, p in parts.items() if p}, **note)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self.path}/checkpoint.safetensors is not a checkpoint: {error}") from error

    def metrics(self) -> list[dict[str, Any]]:
        """One row per interval, see `costate.train.trainer`. A row that is just being written is left out."""
        path = self.path / "metrics.jsonl"
        try:
            lines = path.read_text().splitlines(keepends=True) if path.exists() else []
            rows = [json.loads(line) for line in lines if line.endswith("\n")]
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path} is damaged: every line must be the fields of a row")
        return rows

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """What `costate evaluate` wrote: the fields of `costate.tasks.insertion.Metrics`, and how they were found."""
        path = self.path / "evaluation.json"
        return read_json(path) if path.exists() else None

    @property
    def horizon_curve(self) -> list[dict[str, Any]] | None:
        """What `--minimum-time` found: a row per horizon, longest first."""
        path = self.path / "horizon.json"
        return read_json(path) if path.exists() else None

    @property
    def bound(self) -> dict[str, Any] | None:
        """How the shortest horizon compares with the least time possible: see `costate.train.minimum_time.compare`."""
        path = self.path / "bound.json"
        return read_json(path) if path.exists() else None


_task = lru_cache(maxsize=4)(Insertion)
"""Runs of the same task share it: its worlds take seconds to set up."""


def _initial(options: TrainOptions) -> dict[str, Tensor]:
    return Policy(options.hidden, generator("weights", options.seed)).state_dict()


def _origin(options: TrainOptions) -> dict[str, Any]:
    from costate import __version__
    from costate.kernel.machine.target import host

    return {
        "format": FORMAT,
        "task": "insertion",
        "seed": options.seed,
        "versions": {"costate": __version__, "python": platform.python_version()}
        | {name: version(name) for name in ("torch", "casadi", "llvmlite", "numpy")},
        "cpu": host().cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "started": _now(),
        "finished": None,
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
