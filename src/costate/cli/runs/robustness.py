"""`costate robustness RUN`: success of a trained policy when the world is not as it was in training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Options:
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder that `costate train` wrote."""
    episodes: int = 1000
    """Held-out episodes per case."""
    seed: int = 0
    """Of the episodes."""


def run(options: Options) -> None:
    from costate.tasks.insertion import Metrics
    from costate.train.robustness import CASES, robustness
    from costate.train.run import Run

    width = max(len(case.name) for case in CASES)

    def show(name: str, m: Metrics) -> None:
        row = f"{name:<{width}}  {100 * m.success:8.1f} %  {m.error_mean:8.3f} mm  {m.error_95:8.3f} mm"
        print(f"{row}  {m.tilt_mean:8.3f} deg", flush=True)

    print(f"{'case':<{width}}  {'success':>10}  {'mean error':>11}  {'95 %':>11}  {'mean tilt':>12}")
    robustness(Run.open(options.run), options.episodes, options.seed, show)
    print(f"\nwrote {options.run / 'robustness.json'}")
