"""A run folder: all there is about one training.

options.json            options of the training, and of the task
run.json                task, seed, versions, machine, dates
metrics.jsonl           one row per interval
checkpoint.safetensors  weights, Adam's moments, iteration: one file, so that its parts belong together; at the end the best weights
first.safetensors       weights that the training began with
last.safetensors        weights that it ended with, where looks have chosen those of the checkpoint
checkpoints/            weights on the way, if they are asked for (keep_every)
policy.safetensors/.json  the finished controller, see `costate.train.controller`
evaluation.json         see `costate.train.evaluate`
task.py                 the file of a task that is not a built-in one: a program, which is run if `trust=True` says so
tensorboard/            the metrics again
"""

from __future__ import annotations

import errno
import os
import platform
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from costate.core.files import from_json, write_json
from costate.core.readers.text import parsed, read_json, read_text, shown
from costate.core.tensors import read_tensors, threads, write_tensors
from costate.train.plan import Schedule
from costate.train.registry import find_task, registered_task, source_of
from costate.train.streams import generator
from costate.train.trainable import Trainable

FORMAT = 1
"""Number that is raised when older folders can no longer be read."""

TOLD = "metrics_bytes", "seconds", "processor_seconds", "control_steps"
"""Numbers of a checkpoint that a training goes on with."""

FIRST = "first.safetensors"
"""Weights that a training began with."""

FILE = "task.py"
"""Copy of the file that a task of the user's own is in."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training between two iterations."""

    iteration: int
    """Number of the next iteration."""
    policy: dict[str, Tensor]
    """Parameters of the policy by name."""
    moments: dict[str, dict[str, Tensor]]
    """Adam's state of each parameter; empty at the start."""
    metrics_bytes: int = 0
    """Length of metrics.jsonl; everything behind it was written after this checkpoint."""
    seconds: float = 0.0
    """Time spent on training so far [s]."""
    control_steps: int = 0
    """Control steps simulated in training so far."""
    processor_seconds: float = 0.0
    """Processor time spent on training so far, of all threads [s]."""
    more: dict[str, Tensor] = field(default_factory=dict)
    """Whatever else an algorithm goes on with: critics, robots in the middle of their episodes."""


class Run:
    """A run folder. Use `Run.open` or `Run.create`."""

    def __init__(
        self, path: Path, options: Any, kind: type[Trainable], make_task: Callable[[], Trainable], trust: bool = False
    ):
        self.path, self.options, self.kind, self._make_task = path, options, kind, make_task
        self.trust = trust
        """True if the program task.py in the folder may be run: workers are told."""

    @classmethod
    def create(
        cls,
        path: str | Path,
        task: Trainable | type[Trainable],
        options: Schedule | None = None,
        policy: Mapping[str, Tensor] | None = None,
    ) -> Run:
        """Make a new folder.

        Args:
            path: The folder; it must not exist, or be empty.
            task: What is learnt; a class stands for the task with its default options.
            options: Options of the training; None: the task's own defaults.
            policy: Weights to start with, instead of random ones.
        """
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(
                f"{path} exists and is not an empty folder; choose another one, or continue a training with --resume"
            )
        made = _made(task, task.options) if isinstance(task, type) else task
        options = made.training if options is None else options
        with threads(options.threads):  # a policy may solve for numbers that it begins with
            first = made.policy(options, generator("weights", options.seed))
        if policy:
            try:
                first.load_state_dict(policy)
            except RuntimeError as error:
                raise ValueError(
                    f"the weights to start with do not fit the policy of '{made.name}': {error}"
                ) from error
        weights = first.state_dict()
        run = cls(
            path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}"),
            options,
            type(made),
            lambda: made,
            trust=source_of(type(made)) is not None,
        )
        try:
            run.path.mkdir(parents=True)
            write_json(
                run.path / "options.json",
                {"task": asdict(made.options), "algorithm": options.algorithm} | asdict(options),
            )
            run.save(Checkpoint(0, dict(weights), {}))
            run.keep(FIRST, weights)
            write_json(run.path / "run.json", _origin(options) | _told(type(made), run.path))
            _put(run.path, path)
        finally:
            shutil.rmtree(run.path, ignore_errors=True)
        run.path = path
        return run

    @classmethod
    def open(cls, path: str | Path, task: type[Trainable] | None = None, *, trust: bool = False) -> Run:
        """Open an existing folder. Nothing in it is run, unless `trust` says so.

        Args:
            path: The folder.
            task: Class of its task, if that is none of the built-in ones and its file is not to be trusted, or was never there.
            trust: True runs the program task.py, which a task of one's own leaves in its folder, with all that it imports, also
                from the folder that run.json names. Only for folders of people whose programs you would run.
        """
        path = Path(path)
        check_folder(path)
        note = read_json(path / "run.json")
        if not isinstance(note, dict) or note.get("format") != FORMAT:
            raise ValueError(f"{path}/run.json is not one of this version of costate (format {FORMAT})")
        for name in ("options.json", "checkpoint.safetensors"):
            if not (path / name).is_file():
                raise ValueError(f"{path} is damaged: it has no {name}")
        kind = task or _task_of(path, note, trust)
        given, place = read_json(path / "options.json"), path / "options.json"
        if not isinstance(given, dict):
            raise ValueError(f"{place} is damaged: it has no options")
        own = from_json(type(kind.options), given.pop("task", {}), place)
        try:
            training = kind.training_by(given.pop("algorithm", None))
        except ValueError as error:
            raise ValueError(f"{place} is damaged: {error}") from error
        return cls(path, from_json(type(training), given, place), kind, lambda: _made(kind, own), trust)

    @cached_property
    def task(self) -> Any:
        """Task that is learnt, with the run's options."""
        return self._make_task()

    @property
    def policy(self) -> nn.Module:
        """Policy with the weights of the latest checkpoint."""
        weights = self.checkpoint().policy
        hidden = getattr(self.options, "hidden", 0)
        if hidden > sum(t.numel() for t in weights.values()):  # before memory is asked for
            raise ValueError(f"{self.path}: hidden={hidden} does not fit the checkpoint; was options.json changed?")
        policy = self.task.policy(self.options)
        try:
            policy.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"{self.path}: the checkpoint does not fit the options: {error}") from error
        return policy

    @property
    def note(self) -> dict[str, Any]:
        """Content of run.json: task, seed, versions, machine, when it was started and finished."""
        return read_json(self.path / "run.json")

    def finish(self, **more: Any) -> None:
        """Write down that the training is complete."""
        write_json(self.path / "run.json", self.note | {"finished": _now()} | more)

    def differences(self) -> list[str]:
        """Return what has changed since the run was begun, and may change the last bits."""
        then, now = self.note, _origin(self.options)
        versions = then.get("versions")
        if not isinstance(versions, dict):
            raise ValueError(f"{self.path}/run.json is damaged: it has no versions")
        before = versions | {"cpu": then.get("cpu")}
        after = now["versions"] | {"cpu": now["cpu"]}
        return [f"{name} {after[name]} (was {before.get(name)})" for name in after if after[name] != before.get(name)]

    @property
    def finished(self) -> bool:
        """True if the training is complete."""
        return self.note.get("finished") is not None

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint in place of the last one."""
        tensors = {f"policy/{name}": t for name, t in checkpoint.policy.items()}
        tensors |= {f"{key}/{name}": t for name, s in checkpoint.moments.items() for key, t in s.items()}
        tensors |= {f"more/{name}": t for name, t in checkpoint.more.items()}
        note = {name: getattr(checkpoint, name) for name in ("iteration", *TOLD)}
        write_tensors(self.path / "checkpoint.safetensors", tensors, note)

    def keep(self, name: str, weights: Mapping[str, Tensor]) -> None:
        """Write the weights of a policy into a file of the folder; `costate train --start FILE` begins with them."""
        (self.path / name).parent.mkdir(exist_ok=True)
        write_tensors(self.path / name, dict(weights), {})

    def checkpoint(self) -> Checkpoint:
        """Return the latest checkpoint."""
        return read_checkpoint(self.path)

    def metrics(self) -> list[dict[str, Any]]:
        """Return one row per interval, see `costate.train.trainer`. A row that is just being written is left out."""
        path = self.path / "metrics.jsonl"
        try:
            lines = read_text(path).splitlines(keepends=True) if path.exists() else []
            rows = [parsed(line) for line in lines if line.endswith("\n")]
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path} is damaged: every line must be the fields of a row")
        return rows

    def found(self, name: str) -> Any:
        """Return the content of NAME.json, which a command has written into the folder; None if it has not."""
        path = self.path / f"{name}.json"
        return read_json(path) if path.exists() else None

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """Result of `costate evaluate`: the metrics of the task, and how they were found."""
        return self.found("evaluation")


def check_folder(path: Path) -> None:
    """Raise if a path is not a run folder."""
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; expected the folder of a run, which `costate train TASK` writes")
    if not (path / "run.json").is_file():
        raise ValueError(f"{path} is not a run folder: it has no run.json; a run folder is what `costate train` writes")


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the latest checkpoint in a run folder, whatever its task is."""
    file = path / "checkpoint.safetensors"
    tensors, note = read_tensors(file)
    parts: dict[str, dict[str, Tensor]] = {}
    more = {full[5:]: tensors.pop(full) for full in list(tensors) if full.startswith("more/")}
    for full, tensor in tensors.items():
        key, _, name = full.partition("/")
        parts.setdefault(name, {})[key] = tensor
    try:
        policy = {name: part.pop("policy") for name, part in parts.items()}
        return Checkpoint(policy=policy, moments={n: p for n, p in parts.items() if p}, more=more, **note)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file} is not a checkpoint: {error}") from error


def _put(made: Path, path: Path) -> None:
    """Give a folder its name: it is whole or not there, as its files are."""
    try:
        os.replace(made, path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise ValueError(
            f"{path} was made by somebody else at this moment, perhaps by another training that was started with it; nothing in it "
            f"was changed: choose another folder, or continue that training with --resume {path} when it has stopped"
        ) from error


@lru_cache(maxsize=4)
def _made(task: type[Trainable], options: Any) -> Trainable:
    """Return a task. Runs of the same task share it: its worlds take seconds to set up."""
    return task(options)


def _told(task: type[Trainable], path: Path) -> dict[str, Any]:
    """Return the note about a task, with which `_task_of` finds it again; copies its file if it has one of its own."""
    source = source_of(task)
    if source is None:
        return {"task": task.name}
    shutil.copyfile(source, path / FILE)
    return {"task": task.name, "class": task.__name__, "folder": str(source.resolve().parent)}


def _task_of(path: Path, note: dict[str, Any], trust: bool) -> type[Trainable]:
    """Return the class of a run's task. Its name comes from a file, so it is looked up in the register and nowhere else."""
    if (path / FILE).is_file():
        return own_task(path / FILE, note, trust)
    try:
        return registered_task(str(note.get("task", "")))
    except ValueError as error:
        raise ValueError(
            f"{path}: {error}; open it with Run.open(path, task=...) if its class is in no file"
        ) from error


def own_task(file: Path, note: dict[str, Any], trust: bool) -> type[Trainable]:
    """Return the class in the file of a task of one's own, which is a program: it is run only if it is trusted.

    note: Content of run.json: the class, and the folder from which the file could import others.
    """
    if not trust:
        raise ValueError(
            f"{file} is a program: this run is of a task of somebody's own, and to open it would run that file. Read it, then "
            "trust it with --trust (in Python: Run.open(path, trust=True))"
        )
    kind, beside = note.get("class"), note.get("folder")
    if not (isinstance(kind, str) and kind.isidentifier() and isinstance(beside, str | None)):
        raise ValueError(f"{file.parent}/run.json is damaged: its class is {shown(str(kind))}, its folder {beside!r}")
    return find_task(f"{file}:{kind}", beside)


def _origin(options: Schedule) -> dict[str, Any]:
    from costate import __version__
    from costate.kernel.machine.target import host

    return {
        "format": FORMAT,
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
