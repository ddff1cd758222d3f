"""`costate sweep TASK --set lr=1e-3,3e-3 --seeds 5`: train with several options and seeds, and compare the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from costate.cli.runs.folder import Trust
from costate.cli.runs.train import asked, free
from costate.cli.runs.train import chosen as chosen_for
from costate.scale.choose import Cluster

if TYPE_CHECKING:
    from costate.train.shards.sweep import Entry


@dataclass(frozen=True, kw_only=True)
class Options(Cluster, Trust):
    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = ""
    """Task to learn: its name, or a file with a task of your own. `costate sweep TASK --help` shows the options of its training,
    which hold for all runs."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE,...")] = ()
    """Option of training, or task.NAME of the task, and its values; all combinations are tried. May be given several times."""
    seeds: int = 1
    """Number of seeds of each combination, from --seed on."""
    asha: bool = False
    """End runs early that do badly, by Ray Tune's ASHA: of those that have come to a tenth of their iterations the best third goes
    on, and again at three and at nine tenths. Needs the extra `scale`; without --cluster, Ray is started on this machine."""
    by: str = "loss"
    """Metric that says which run is better: success and return are best high, all others low."""
    out: Path | None = None
    """Folder of the sweep, with a run folder for each run; default: the first free one of out/TASK-sweep, ..."""
    resume: Path | None = None
    """Folder of a sweep that goes on; give the same --asha and --by as before."""


def chosen(arguments: Sequence[str]) -> Any:
    """Return the default options of the task that the arguments name; None if they name none."""
    return chosen_for(arguments, Options)


def run(options: Options) -> None:
    if options.seeds < 1:
        raise ValueError(f"seeds is {options.seeds}; it must be at least 1")
    if not options.what and options.resume is None:
        raise ValueError("name a task: costate sweep reach --set lr=1e-3,3e-3 --seeds 3")
    from costate.cli.runs.sweep_page import sweep_page
    from costate.train.shards.sweep import opened

    entries = opened(options.resume, options.trust) if options.resume else _created(options)
    folder = entries[0].run.path.parent
    print(f"sweep {folder}: {len(entries)} runs", flush=True)
    try:
        _train(entries, options)
    except KeyboardInterrupt:
        print(f"\nstopped; go on with: costate sweep --resume {folder}{' --trust' * entries[0].run.trust}")
        raise
    print(sweep_page(entries, options.by).save(folder / "report.html"))


def _train(entries: Sequence[Entry], options: Options) -> None:
    def watch(entry: Entry, left: int, where: str) -> None:
        print(_line(entry, options.by, left), where, sep="  ", flush=True)

    if options.asha:
        from costate.scale.ray_workers import connect

        connect(options.cluster or "local", options.workers, tune=True)
        from costate.train.shards.asha import asha

        asha(entries, options.workers, options.by, watch)
        return
    from costate.scale.choose import executor
    from costate.scale.message import Message
    from costate.train.shards.sweep import WORK, sweep

    with executor(Message({"work": WORK}), options) as workers:
        sweep(entries, workers, watch)


def _created(options: Any) -> list[Entry]:
    from costate.train.registry import find_task
    from costate.train.shards.sweep import create, settings

    kind = find_task(options.what)
    given: dict[str, list[str]] = {}
    for text in options.set:
        name, equals, values = text.partition("=")
        if not equals or not all(values.split(",")) or name in given:
            raise ValueError(f"--set {text}: expected NAME=VALUE,VALUE, each name once")
        given[name] = values.split(",")
    seeds = range(options.seed, options.seed + options.seeds)
    folder = options.out or free(Path("out") / f"{kind.name}-sweep")
    return create(folder, kind, settings(*asked(options, kind), given), seeds)


def _line(entry: Entry, by: str, left: int) -> str:
    row, end = (entry.run.metrics() or [{}])[-1], entry.run.options.iterations
    state = "diverged" if entry.run.found("diverged") else f"iteration {row.get('iteration', 0)}/{end}"
    value = f", {by} {row[by]:.4g}" if by in row else ""
    return f"{entry.setting}, seed {entry.seed}: {state}{value} ({left} runs)"
