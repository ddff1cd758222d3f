"""Commands that read a run folder: `costate export | play | robustness | transfer RUN`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from costate.cli.runs.folder import Trust, open_run
from costate.scale.choose import Cluster


@dataclass(frozen=True)
class RunOptions(Trust):
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder that `costate train` wrote."""


@dataclass(frozen=True)
class ExportOptions(RunOptions):
    onnx: bool = True
    """Write policy.onnx, and check it with onnxruntime."""
    header: bool = True
    """Write costate_policy.h: weights and forward pass in C99, without dependencies."""
    precision: Literal["float64", "float32"] = "float64"
    """Precision of the arithmetic inside the ONNX file; what goes in and comes out is float32."""
    out: Path | None = None
    """Folder for the files; default: the run's."""


@dataclass(frozen=True)
class PlayOptions(Trust):
    run: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[TASK] RUN")]
    """Folder that `costate train` wrote; the name of its task may stand before it."""
    port: int = 8080
    """Port of the page; if it is not free, the next one that is is taken, and said."""
    dark: bool = False
    """A dark page."""
    seed: int = 0
    """Seed of the episodes, and of noise."""


@dataclass(frozen=True)
class RobustnessOptions(Cluster, RunOptions):
    episodes: int | None = None
    """Held-out episodes per case; default: a tenth of those that `costate evaluate` judges."""
    seed: int = 0
    """Seed of the episodes."""


@dataclass(frozen=True)
class TransferOptions(RunOptions):
    episodes: int | None = None
    """Held-out episodes, the same in every engine; default: as many as suit the task."""
    seed: int = 0
    """Seed of the episodes."""
    mjcf: bool = False
    """Write the scene as scene.xml too, which MuJoCo's own viewer opens."""


def export(options: ExportOptions) -> None:
    if not (options.onnx or options.header):
        raise ValueError("nothing to export: leave out --no-onnx or --no-header")
    found = open_run(options.run, options.trust)
    from costate.export import onnx_difference, write_c_header, write_onnx

    network, out = found.task.exported(found.policy), options.out or options.run
    if options.onnx:
        path = write_onnx(network, out / "policy.onnx", options.precision)
        worst = onnx_difference(network, path)
        print(f"{path}  (onnxruntime gives the policy's commands to {worst:.1e} of their range)")
    if options.header:
        print(write_c_header(network, out / "costate_policy.h"))
    for side, names in (("in", network.inputs), ("out", network.outputs)):
        print(f"{side}: {len(names)} numbers")
        for number, (name, unit) in enumerate(names):
            print(f"  {number:3d}  {name} [{unit}]")


def play(options: PlayOptions) -> None:
    if not 1 <= len(options.run) <= 2:
        raise ValueError(f"name one run folder, not {len(options.run)}")
    folder = open_run(options.run[-1], options.trust)
    from costate.train.registry import loaded
    from costate.viewer.play import open_play

    _offered(folder, folder.task.play, "no live page")
    print("compiling the world", flush=True)
    page, _ = open_play(loaded(folder.task.play), folder, options.port, options.dark, options.seed)
    page.wait(f"open {page.url}")


def robustness(options: RobustnessOptions) -> None:
    folder = open_run(options.run, options.trust)
    from costate.train.robustness import robustness

    width = max(map(len, (*folder.task.cases(), *folder.task.worlds())), default=0)
    begun = []

    def show(name: str, metrics: Any) -> None:
        brief = metrics.brief(folder.task.unit)
        if not begun:
            begun.append(print("case".ljust(width), *(title.rjust(14) for title in brief)))
        print(name.ljust(width), *(text.rjust(14) for text in brief.values()), flush=True)

    robustness(folder, options.episodes, options.seed, show, options)
    print(f"\nwrote {options.run / 'robustness.json'}")


def transfer(options: TransferOptions) -> None:
    folder = open_run(options.run, options.trust)
    from costate.train.registry import loaded

    _offered(folder, folder.task.transfer, "no other engine to try a policy in")
    loaded(folder.task.transfer)(folder, options.episodes, options.seed, options.mjcf)


def _offered(folder: Any, what: Any, lacks: str) -> None:
    if what is None:
        raise ValueError(f"task '{folder.task.name}' offers {lacks}")
