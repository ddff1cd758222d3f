"""Sweeps: many trainings of one task, with other options and seeds, side by side.

A training is passed on in parts: a worker is given its run folder, trains up to an iteration, and gives it back. So a machine that
is lost costs one part, the folders are as one process writes them, and all of them are in one place. `asha.py` ends those early
that do badly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from costate.core.files import checksum, folder_of, write_json
from costate.core.readers.text import read_json, shown
from costate.scale.executor import Executor, Work
from costate.scale.message import Message, files_in, write_files
from costate.sim.divergence import SimulationError
from costate.train.run import FILE, Run, own_task
from costate.train.shards.folders import DESCRIPTION

WORK = "costate.train.shards.sweep:Trainings"
"""Name of the work, for messages."""
GIVEN_BACK = ("metrics.jsonl", "policy.safetensors", "policy.json", *DESCRIPTION[::-1])
"""Files of a run folder that workers are given, and give back; in an order in which writing them may be interrupted."""
PARTS, KEPT = 10, 3
"""Parts of a training; and one of how many goes on where some are ended early."""
HIGHER = ("success", "return", "return_mean", "reward")
"""Metrics of which more is better; of all others less is."""


@dataclass(frozen=True)
class Entry:
    """One training of a sweep."""

    setting: str
    """Options that it differs in, as text; trainings that differ in their seeds alone have the same."""
    seed: int
    """Seed of weights and episodes."""
    run: Run
    """Run folder."""


class Trainings(Work):
    """Parts of trainings."""

    def __init__(self, given: Message):
        self.folder = folder_of(self)

    def shard(self, shard: Message) -> Message:
        """Train a run up to an iteration; return its files."""
        from costate.train.trainer import DivergedError, train

        folder = self.folder / shard.note["name"]
        for name in GIVEN_BACK:  # of an earlier part
            (folder / name).unlink(missing_ok=True)
        write_files(folder, shard.tensors)
        note = {}
        try:
            train(Run.open(folder, self._task(folder, shard.note["trust"])), until=shard.note["until"])
        except (DivergedError, SimulationError) as error:
            note["diverged"] = str(error)
        return Message(note, files_in(folder, GIVEN_BACK))

    def _task(self, folder: Path, trust: bool) -> Any:
        """Return the class of a user's own task, the same for all runs with the same file: its world is then built once."""
        if not (folder / FILE).is_file():
            return None
        place, note = self.folder / checksum((folder / FILE).read_bytes()), read_json(folder / "run.json")
        if not place.exists():
            write_files(place, files_in(folder, (FILE,)))
        return own_task(place / FILE, note, trust)


def settings(task: Any, training: Any, asked: Mapping[str, Sequence[str]]) -> dict[str, tuple[Any, Any]]:
    """Return all combinations of values: text -> options of task and training. Names are fields of the training's options, or
    "task.NAME"; the first letters of the words will do (lr for learning_rate)."""
    places = [(*_place(name, task, training), values) for name, values in asked.items()]
    found = {}
    for chosen in itertools.product(*(values for *_, values in places)):
        own, schedule = task, training
        for (of_task, name, _), text in zip(places, chosen, strict=True):
            changed = own if of_task else schedule
            changed = replace(changed, **{name: _value(getattr(changed, name), name, text)})
            own, schedule = (changed, schedule) if of_task else (own, changed)
        names = (f"{'task.' if t else ''}{n}={v}" for (t, n, _), v in zip(places, chosen, strict=True))
        found[", ".join(names) or "as usual"] = (own, schedule)
    return found


def _place(given: str, task: Any, training: Any) -> tuple[bool, str]:
    of_task = given.startswith("task.")
    options, name = (task, given[5:]) if of_task else (training, given)
    known = [f.name for f in fields(options) if not is_dataclass(getattr(options, f.name))]
    short = [n for n in known if "".join(word[0] for word in n.split("_")) == name]
    if name not in known and len(short) != 1:
        raise ValueError(
            f"--set {given}: no such option; there are {', '.join(known)}, and task.NAME for those of the task"
        )
    return of_task, name if name in known else short[0]


def _value(usual: Any, name: str, text: str) -> Any:
    try:
        if isinstance(usual, bool):
            return {"true": True, "false": False}[text.lower()]
        return type(usual)(text)
    except (KeyError, ValueError, TypeError):
        raise ValueError(f"--set {name}: {text!r} is not a value of type {type(usual).__name__}") from None


def create(folder: Path, kind: Any, options: Mapping[str, tuple[Any, Any]], seeds: Sequence[int]) -> list[Entry]:
    """Make the run folders of a sweep, and sweep.json, which names them."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not an empty folder; choose another one with --out")
    found = []
    for number, (setting, (task, training)) in enumerate(options.items()):
        made = kind(task)
        for seed in seeds:
            run = Run.create(folder / f"{number:03d}-seed-{seed}", made, replace(training, seed=seed))
            found.append(Entry(setting, seed, run))
    rows = [{"run": e.run.path.name, "setting": e.setting, "seed": e.seed} for e in found]
    write_json(folder / "sweep.json", {"task": kind.name, "runs": rows})
    return found


def opened(folder: Path, trust: bool = False) -> list[Entry]:
    """Return the trainings of a sweep. trust: as in `Run.open`."""
    file = folder / "sweep.json"
    if not file.is_file():
        raise ValueError(f"{folder} is not the folder of a sweep: it has no sweep.json")
    note, found = read_json(file), []
    for row in note.get("runs", ()) if isinstance(note, dict) else ():
        match row:
            case {"setting": str(setting), "seed": int(seed), "run": str(name)} if Path(name).name == name:
                found.append(Entry(setting, seed, Run.open(folder / name, trust=trust)))
            case _:
                raise ValueError(
                    f"{file} is damaged: {shown(str(row))} is no run: its setting, seed and folder in {folder}"
                )
    if not found:
        raise ValueError(f"{file} is damaged: it names no runs")
    return found


def score(run: Run, by: str, share: float = 1.0) -> float:
    """Return how good a training is after a share of its iterations, less is better: the mean of a metric over the last tenth of
    its rows so far, at least three."""
    end = round(share * run.options.iterations) + run.options.interval
    rows = [row[by] for row in run.metrics() if by in row and row["iteration"] < end]
    if not rows:
        return float("inf")
    last = rows[-max(len(rows) // 10, 3) :]
    mean = sum(last) / len(last)
    return -mean if by in HIGHER else mean if mean == mean else float("inf")


def sweep(
    entries: Sequence[Entry],
    executor: Executor,
    watch: Callable[[Entry, int, str], None] = lambda entry, left, where: None,
) -> list[Entry]:
    """Train all; return those that were trained to the end.

    watch: is given each training after a part, how many are still trained, and a line about the workers.
    """
    left = list(entries)
    for part in range(1, PARTS + 1):
        goals = [(e, round(part / PARTS * e.run.options.iterations)) for e in left]
        todo = [(e, goal) for e, goal in goals if not reached(e.run, goal)]
        for (entry, _), found in zip(todo, executor.map([given(*each) for each in todo]), strict=True):
            taken(entry, found)
            watch(entry, len(left), executor.status())
        left = [e for e in left if e.run.found("diverged") is None]
    return left


def given(entry: Entry, goal: int) -> Message:
    """Return the part of a training up to an iteration, for `Trainings`."""
    return Message(
        {"name": entry.run.path.name, "until": goal, "trust": entry.run.trust}, files_in(entry.run.path, GIVEN_BACK)
    )


def taken(entry: Entry, found: Message) -> None:
    """Write what a part has given into the run folder."""
    write_files(entry.run.path, {name: found.tensors[name] for name in GIVEN_BACK if name in found.tensors})
    if "diverged" in found.note:
        write_json(entry.run.path / "diverged.json", found.note)


def reached(run: Run, goal: int) -> bool:
    """Tell whether there is nothing to do for a run before an iteration."""
    ended = run.finished or run.found("diverged") is not None
    return ended or (goal < run.options.iterations and run.checkpoint().iteration >= goal)
