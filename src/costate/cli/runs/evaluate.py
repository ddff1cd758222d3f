"""`costate evaluate RUN`: judge a trained controller on episodes it has never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from costate.cli.runs.folder import Trust, open_run
from costate.scale.choose import Cluster


@dataclass(frozen=True, kw_only=True)
class Options(Cluster, Trust):
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder that `costate train` wrote. `costate evaluate RUN --help` shows the variants and disturbances of its task."""
    episodes: int = 10_000
    """Number of episodes."""
    seed: int = 0
    """Seed of the episodes; the same for all runs, so that their results can be compared."""
    threads: int = 2
    """Threads of torch and the kernels."""


def chosen(arguments: Sequence[str]) -> Options | None:
    """Return the default options for the run that the arguments name: with the variants and disturbances of its task."""
    from costate.cli.runs.train import variant_flag

    named = [a for a in arguments if not a.startswith("-") and (Path(a) / "run.json").is_file()]
    if not named:
        return None
    task = open_run(Path(named[0]), "--trust" in arguments).kind
    made: list[Any] = [variant_flag(k, f"{v.about} Written to evaluation_{k}.json.") for k, v in task.variants.items()]
    if task.disturbances is not None:
        made.append(("disturbances", type(task.disturbances), field(default=task.disturbances)))
    kind = make_dataclass("Options", made, bases=(Options,), frozen=True, kw_only=True)
    return kind(run=Path(named[0]), episodes=task.judged)


def run(options: Options) -> None:
    folder = open_run(options.run, options.trust)
    import torch
    from rich.progress import Progress

    from costate.train.evaluate import evaluate

    torch.set_num_threads(options.threads)
    variants = [name for name in folder.kind.variants if getattr(options, name)]
    if len(variants) > 1:
        raise ValueError(f"choose one of {', '.join(f'--{name}' for name in variants)}")
    with Progress(transient=True) as bar:
        shown = bar.add_task("episodes", total=options.episodes)
        found = evaluate(
            folder,
            options.episodes,
            variant="".join(variants),
            disturbances=getattr(options, "disturbances", None),
            seed=options.seed,
            progress=lambda done: bar.update(shown, completed=done),
            where=options,
        )
    rows = folder.task.rows(found)
    for name, metrics in found["compared"].items():
        rows |= first_row(folder.task, name, metrics)
    _print(rows, found)


def first_row(task: Any, name: str, metrics: dict[str, Any]) -> dict[str, str]:
    """Return the row of a table about a policy that the trained one is compared with."""
    label, value = next(iter(task.rows(metrics).items()))
    return {f"{label}, {name}": f"{value} of {metrics['episodes']:,}"}


def _print(rows: dict[str, str], found: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    rows |= {"training": f"{found['training_seconds']:.1f} s, {found['training_control_steps']:,} control steps"}
    table = Table("", f"{found['episodes']:,} episodes", box=box.SIMPLE)
    for name, value in rows.items():
        table.add_row(escape(name), value)  # units stand in brackets
    Console().print(table)
