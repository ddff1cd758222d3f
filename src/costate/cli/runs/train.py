"""`costate train TASK`: train a controller; `--resume RUN` goes on with one that was interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, make_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from costate.cli.runs.folder import Trust
from costate.scale.choose import Cluster
from costate.train.names import ALGORITHMS, TASKS

if TYPE_CHECKING:
    from torch import Tensor

    from costate.scale.executor import Executor
    from costate.train.run import Run
    from costate.train.trainable import Trainable, Variant
    from costate.train.trainer import Watch


@dataclass(frozen=True, kw_only=True)
class Options(Cluster, Trust):
    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = "list"
    """Task to learn: its name, or a file with a task of your own (my_task.py); "list" shows all names. `costate train TASK --help`
    shows the options of that task."""
    out: Path | None = None
    """Run folder to write; default: the first free one of out/TASK, out/TASK-2, ..."""
    resume: Path | None = None
    """Run folder whose training goes on, with its options. It ends with the same weights as if it had not stopped."""
    start: Path | None = None
    """Run folder whose policy it begins with, of the same task or one like it, instead of random weights; or a file of weights in
    it: last.safetensors, checkpoints/000100.safetensors."""
    tensorboard: bool = True
    """Write TensorBoard's files, if it is installed."""


def chosen(arguments: Sequence[str], base: type = Options) -> Any:
    """Return the default options of the task that the arguments name; None if they name none."""
    named = [a for a in arguments if a in TASKS or a.endswith(".py") or ".py:" in a]
    named += [a for a in arguments[:1] if not a.startswith("-") and a != "list"]
    if not named:
        return None
    if named[0] not in TASKS and ".py" not in named[0]:  # said before anything heavy is loaded
        near = get_close_matches(named[0], TASKS, n=1)
        names = f"the tasks are {', '.join(TASKS)}, or a file of your own: my_task.py"
        raise ValueError(f"unknown task {named[0]!r}; {f'did you mean {near[0]!r}?' if near else names}")
    from costate.train.registry import find_task

    kind, algorithm = find_task(named[0]), _algorithm(arguments)
    usual = options_of(kind, named[0], algorithm, base)
    variants = [n for n in kind.variants if f"--{n.replace('_', '-')}" in arguments or f"--{n}" in arguments]
    if not variants:
        return usual
    if {"-h", "--help"}.isdisjoint(arguments):  # variants may depend on other options of the task
        usual = tyro.cli(
            type(usual), default=usual, args=list(arguments), prog=f"costate {base.__module__.split('.')[-1]}"
        )
    return options_of(kind, named[0], algorithm, base, variants, getattr(usual, "task", None))


def _algorithm(arguments: Sequence[str]) -> str | None:
    """Return the algorithm that the arguments name; None if they name none."""
    for flag, value in zip(arguments, [*arguments[1:], None], strict=True):
        if flag == "--algorithm" or flag.startswith("--algorithm="):
            return flag.partition("=")[2] or value
    return None


def options_of(
    kind: type[Trainable],
    name: str,
    algorithm: str | None = None,
    base: type = Options,
    variants: Sequence[str] = (),
    given: Any = None,
) -> Any:
    """Return the default options of training a task: those of its algorithm and of the task itself, changed by some variants.

    given: options of the task that the variants change; what they set may be overridden on the command line.
    """
    task, training = kind.options if given is None else given, kind.training_by(algorithm)
    for variant in (v for n, v in kind.variants.items() if n in variants):
        task = variant.change(task)
        for field_name, value in variant.training.items():
            training = _with(training, field_name, value)
    made: list[Any] = [variant_flag(k, _about(v)) for k, v in kind.variants.items()]
    if len(kind.ways()) > 1:
        about = "Way to learn it: " + "; ".join(f"{n}: {ALGORITHMS[n].summary}" for n in kind.ways() if n in ALGORITHMS)
        made.append(("algorithm", Annotated[Literal[kind.ways()], tyro.conf.arg(help=about)], training.algorithm))
    if fields(kind.options):
        made.append(("task", type(kind.options), field(default_factory=lambda: task)))
    bases = (base, type(training))
    options = make_dataclass("Options", made, bases=bases, frozen=True, kw_only=True)
    values = {f.name: getattr(training, f.name) for f in fields(training)}
    return options(what=name, **values, **dict.fromkeys(variants, True))


def _with(options: Any, name: str, value: Any) -> Any:
    """Return options with a value at a name, which may be that of a field of a field."""
    name, _, rest = name.partition(".")
    return replace(options, **{name: _with(getattr(options, name), rest, value) if rest else value})


def variant_flag(name: str, about: str) -> tuple[str, Any, bool]:
    """Return the field of a variant's flag."""
    return name, Annotated[bool, tyro.conf.arg(help=about)], False


def _about(variant: Variant) -> str:
    """Return what the help says of a variant, with the defaults that it changes."""
    changed = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in variant.training.items())
    return variant.about + (f" Then the defaults are {changed}." if changed else "")


def run(options: Options) -> None:
    if options.what == "list" and options.resume is None:
        _list()
        return
    from costate.train.registry import find_task
    from costate.train.trainer import check_shared, train

    kind = None if options.what == "list" else find_task(options.what)
    if kind is not None and not options.alone:
        check_shared(asked(options, kind)[1])
    folder = _opened(options, kind) if options.resume else _created(options, kind)
    print(f"run folder {folder.path}", flush=True)
    try:
        with _workers(folder, options) as workers, _watch(folder, options.tensorboard, workers) as watch:
            train(folder, watch, workers)
        _summary(folder)
        folder.task.after_training(folder, lambda stage: _watch(stage, False))
    except KeyboardInterrupt:
        print(
            f"\nstopped; go on with: costate train {folder.task.name} --resume {folder.path}{' --trust' * folder.trust}"
        )
        raise


def _list() -> None:
    width = max(map(len, TASKS))
    for name, row in TASKS.items():
        print(f"{name:<{width}}  {row.summary}")
    print(f"{'FILE.py':<{width}}  a task of your own (docs/own_task.md)")


def asked(options: Any, kind: type[Trainable]) -> tuple[Any, Any]:
    """Return the options of task and training."""
    kept = kind.training_by(getattr(options, "algorithm", None))
    training = type(kept)(**{f.name: getattr(options, f.name) for f in fields(kept)})
    return getattr(options, "task", kind.options), training


def _created(options: Options, kind: Any) -> Run:
    from costate.train.run import Run

    task, training = asked(options, kind)
    learnt = kind(task)
    policy = None if options.start is None else _weights(options.start)
    if options.out is not None:
        return Run.create(options.out, learnt, training, policy)
    while True:
        path = free(Path("out") / kind.name)
        try:
            return Run.create(path, learnt, training, policy)
        except ValueError:
            if not path.exists():
                raise  # else another training, started at the same moment, has taken it


def _weights(start: Path) -> Mapping[str, Tensor]:
    """Return the weights of a run, whose task is not needed for it, or those of a file."""
    from costate.core.tensors import read_tensors
    from costate.train.run import check_folder, read_checkpoint

    if start.is_file():
        weights = {name.removeprefix("policy/"): t for name, t in read_tensors(start)[0].items()}
        return {name: t for name, t in weights.items() if "/" not in name}  # without what else a checkpoint has
    check_folder(start)
    return read_checkpoint(start).policy


def _opened(options: Options, kind: type[Trainable] | None) -> Run:
    from costate.train.run import Run

    assert options.resume is not None
    if options.out is not None or options.start is not None:
        name = "out" if options.out is not None else "start"
        raise ValueError(f"--{name} and --resume exclude each other: a training goes on in its own folder")
    folder = Run.open(options.resume, trust=options.trust)
    if kind is not None:
        if folder.task.name != kind.name:
            raise ValueError(f"{options.resume} is a training of '{folder.task.name}', not of '{kind.name}'")
        wanted = asked(options, kind)
        if wanted not in ((kind.options, kind.training), (folder.task.options, folder.options)):
            raise ValueError(f"the options of {options.resume} are fixed (options.json): give none beside --resume")
    if changed := folder.differences():
        print(f"the last bits may differ from an undisturbed training: {', '.join(changed)}")
    return folder


def free(path: Path) -> Path:
    """Return the first path of PATH, PATH-2, ... that is not taken."""
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


@contextmanager
def _workers(folder: Run, options: Options) -> Iterator[Executor | None]:
    """Start workers for a training, if they are asked for."""
    if options.alone:
        yield None
        return
    from costate.scale.choose import executor
    from costate.train.trainer import shared

    with executor(shared(folder), options) as workers:
        yield workers


@contextmanager
def _watch(folder: Run, tensorboard: bool, workers: Executor | None = None) -> Iterator[Watch]:
    """Show the training of a run on the screen, and write TensorBoard's files."""
    from contextlib import ExitStack

    from costate.train.progress import Board, Screen

    with ExitStack() as stack:
        watchers: list[Watch] = [stack.enter_context(Screen(folder, workers))]
        if tensorboard:
            watchers.append(stack.enter_context(Board(folder)))

        def watch(row: dict) -> None:
            for each in watchers:
                each(row)

        yield watch


def _summary(folder: Run) -> None:
    from costate.train.progress import said

    rows = folder.metrics()
    last = rows[-1]
    found = f", success {100 * last['success']:.1f} % of {folder.options.watch_episodes}" if "success" in last else ""
    for best in (row for row in rows if row["iteration"] == folder.note.get("best_iteration") and "success" in row):
        earned = f", which earned {best['played']:.5g} without noise" if "played" in best else ""
        found += f"\nbest {100 * best['success']:.1f} % at iteration {best['iteration']}{earned}: this policy is kept"
    measures = ", ".join(f"{name} {text}" for name, text in said(last, folder.task.measured).items())
    print(
        f"trained for {last['seconds']:.1f} s, {last['control_steps']:,} control steps: {measures}{found}\n"
        f"judge it with: costate evaluate {folder.path}{' --trust' * folder.trust}"
    )
