"""`costate report RUN`, `costate report RECORDING`: a training or a motion as one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from costate.cli.runs.folder import Trust, open_run

if TYPE_CHECKING:
    from costate.report import Report


@dataclass(frozen=True)
class Options(Trust):
    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|RECORDING")]
    """Folder that `costate train` wrote, or that of a recording."""
    out: Path | None = None
    """File to write; default: report.html in the folder."""
    title: str = ""
    """Title of the page; default: the name of the folder."""
    episodes: int | None = None
    """Episodes that are simulated for the page of a run; default: a fifth of those that `costate evaluate` judges."""


def run(options: Options) -> None:
    if not options.source.is_dir():
        raise ValueError(
            f"{options.source} is not a folder; expected that of a run, which `costate train TASK` writes, or of a recording"
        )
    is_run = (options.source / "run.json").is_file()
    report = _of_run(options) if is_run else _of_recording(options)
    print(report.save(options.out or options.source / "report.html"))


def _of_run(options: Options) -> Report:
    from costate.report.run_report import run_report

    return run_report(open_run(options.source, options.trust), options.episodes, options.title)


def _of_recording(options: Options) -> Report:
    from costate.draw.recording import load_recording
    from costate.report import Report

    recording = load_recording(options.source)
    motion = recording.motion
    report = Report(options.title or options.source.resolve().name, f"{motion.frames} states, {motion.times[-1]:.3g} s")
    scene = report.recording(recording)
    with report.row():
        for title, curves in recording.curves.items():
            series = dict(zip(curves.names, curves.values.T, strict=True))
            times = motion.times[: len(curves.values)]
            report.plot(series, times, title=title, x_label="time [s]", follow=scene)
    return report
