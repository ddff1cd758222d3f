"""`costate transfer RUN`: a trained policy in MuJoCo, an independent engine, beside our own world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Options:
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder that `costate train` wrote."""
    episodes: int = 200
    """Held-out episodes, the same in every engine."""
    seed: int = 0
    """Of the episodes."""
    mjcf: bool = False
    """Write the scene as scene.xml too, which MuJoCo's own viewer opens."""


def run(options: Options) -> None:
    from costate.tasks.insertion.mujoco_scene import mjcf
    from costate.train.run import Run
    from costate.train.transfer import transfer

    folder = Run.open(options.run)
    found = transfer(folder, options.episodes, options.seed)
    rows = {
        "costate": found.ours,
        "MuJoCo": found.mujoco,
        "costate, steps a quarter as long": found.ours_fine,
        "MuJoCo, steps a quarter as long": found.mujoco_fine,
    }
    print(f"{'engine':<32}  {'success':>9}  {'mean error':>11}  {'95 %':>11}  {'worst overlap':>14}")
    for name, m in rows.items():
        error = f"{m.error_mean:8.3f} mm  {m.error_95:8.3f} mm  {m.penetration_worst:11.3f} mm"
        print(f"{name:<32}  {100 * m.success:7.1f} %  {error}")
    print(f"\n{options.episodes} episodes; the same verdict in {100 * found.agree:.1f} % of them")
    print(f"bottle apart by at most {found.apart:.1e} mm until it reaches the mouth")
    written = [options.run / "transfer.json"]
    if options.mjcf:
        written.append(options.run / "scene.xml")
        written[-1].write_text(mjcf(folder.task))
    print("\nwrote", *written, sep="\n  ")
