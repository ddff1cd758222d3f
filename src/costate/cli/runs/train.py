"""`costate train insertion`: train a controller; `--resume RUN` goes on with one that was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from costate.train.plan import TrainOptions

if TYPE_CHECKING:
    from costate.train.run import Run
    from costate.train.trainer import Watch


@dataclass(frozen=True, kw_only=True)
class Options(TrainOptions):
    what: Annotated[Literal["insertion"], tyro.conf.Positional]
    """The task to learn: a UR5 puts a bottle into a socket."""
    out: Path | None = None
    """The run folder to write; default: the first free one of out/insertion, out/insertion-2, ..."""
    resume: Path | None = None
    """Go on with the training in this run folder, with its options. It ends with the same weights as if it had not stopped."""
    moving: bool = False
    """The socket rides on a conveyor (--task.moving)."""
    wide: bool = False
    """Twice the ranges of start poses and targets (--task.start-range 0.1 --task.target-range 0.1)."""
    tensorboard: bool = True
    """Write TensorBoard's files, if it is installed."""
    bound_episodes: int = 8
    """After --minimum-time: episodes whose least possible time is found, to compare with; 0: none."""


def run(options: Options) -> None:
    from costate.train.minimum_time import minimum_time
    from costate.train.trainer import train

    folder = _folder(options)
    print(f"run folder {folder.path}", flush=True)
    try:
        with _watch(folder, options.tensorboard) as watch:
            train(folder, watch)
        _summary(folder)
        if folder.options.minimum_time:
            minimum_time(folder, lambda stage: _watch(stage, False), _found)
            _fastest(folder, options.bound_episodes)
    except KeyboardInterrupt:
        print(f"\nstopped; go on with: costate train insertion --resume {folder.path}")
        raise


def _folder(options: Options) -> Run:
    """The run folder, new or to go on with."""
    from costate.train.run import Run

    training = _training(options)
    if options.resume is None:
        return Run.create(options.out or _free(Path("out") / "insertion"), training)
    if options.out is not None:
        raise ValueError("--out and --resume exclude each other: a training goes on in its own folder")
    folder = Run.open(options.resume)
    if training not in (TrainOptions(), folder.options):
        raise ValueError(f"the options of {options.resume} are fixed (options.json): give none beside --resume")
    if changed := folder.differences():
        print(f"the last bits may differ from an undisturbed training: {', '.join(changed)}")
    return folder


def _training(options: Options) -> TrainOptions:
    """With the short cuts put in their place."""
    training = TrainOptions(**{f.name: getattr(options, f.name) for f in fields(TrainOptions)})
    task = training.task.wide() if options.wide else training.task
    return replace(training, task=replace(task, moving=task.moving or options.moving))


def _free(path: Path) -> Path:
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


@contextmanager
def _watch(folder: Run, tensorboard: bool) -> Iterator[Watch]:
    """Screen and TensorBoard."""
    from contextlib import ExitStack

    from costate.train.progress import Board, Screen

    with ExitStack() as stack:
        watchers: list[Watch] = [stack.enter_context(Screen(folder))]
        if tensorboard:
            watchers.append(stack.enter_context(Board(folder)))

        def watch(row: dict) -> None:
            for each in watchers:
                each(row)

        yield watch


def _summary(folder: Run) -> None:
    last, clipped = folder.metrics()[-1], [row["clipped"] for row in folder.metrics()]
    success = f", success {100 * last['success']:.1f} % of {folder.options.watch_episodes}" if "success" in last else ""
    print(
        f"trained for {last['seconds']:.1f} s, {last['control_steps']:,} control steps: error {last['error_mm']:.3f} mm, "
        f"tilt {last['tilt_deg']:.3f} deg{success}; clipped {100 * sum(clipped) / len(clipped):.0f} % of the gradients\n"
        f"judge it with: costate evaluate {folder.path}"
    )


def _found(row: dict) -> None:
    print(
        f"horizon {row['horizon']:3d} ({1e3 * row['seconds']:.0f} ms): success {100 * row['success']:6.2f} %, "
        f"error {row['error_mean']:.3f} mm, {'' if row['met'] else 'too short, '}in {row['run']}",
        flush=True,
    )


def _fastest(folder: Run, bound_episodes: int) -> None:
    from costate.train.minimum_time import compare, fastest

    row = fastest(folder.horizon_curve or [])
    wanted = f"{100 * folder.options.horizons.success:g} % success"
    if row is None:
        print(f"no horizon reached {wanted}")
    else:
        print(
            f"shortest with {wanted}: {row['horizon']} control steps, {row['seconds']:g} s, in {folder.path / row['run']}"
        )
        found = compare(folder, bound_episodes) if bound_episodes > 0 else None
        if found is not None:
            print(
                f"that is {found['ratio']:.2f} times the {1e3 * found['least']:.0f} ms that the slowest of {found['episodes']} "
                "episodes takes at least, by what servos and motors allow"
            )
