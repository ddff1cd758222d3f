"""`costate report RECORDING`: a recording as one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Options:
    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RECORDING")]
    """The folder of a recording."""
    out: Path | None = None
    """The file to write; default: report.html in the folder."""
    title: str = ""
    """Of the page; default: the name of the folder."""


def run(options: Options) -> None:
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
    print(report.save(options.out or options.source / "report.html"))
