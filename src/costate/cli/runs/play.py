"""`costate play insertion RUN`: a trained policy at work in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Options:
    task: Annotated[Literal["insertion"], tyro.conf.Positional]
    """What was learnt."""
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder that `costate train` wrote."""
    port: int = 8080
    """The next free one is taken, and said, if it is not free."""
    dark: bool = False
    """A dark page."""
    seed: int = 0
    """Of start poses, places of the socket and noise."""


def run(options: Options) -> None:
    from costate.train.controller import load_policy
    from costate.train.run import Run
    from costate.viewer.play import play_insertion

    found = Run.open(options.run)
    controller = load_policy(options.run)
    print("compiling the world", flush=True)
    page, _ = play_insertion(found.task, controller, options.port, options.dark, options.seed)
    print(f"open {page.url}", flush=True)
    page.wait()
