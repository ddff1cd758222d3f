"""One MJCF file in both engines, from random states: `python -m benchmarks.mjcf.compare FILE` prints the result as JSON."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np
import torch

from benchmarks.mjcf.twin import DivergenceError, Twin

STATES, STEPS = 20, 10
AGREES = 1e-10
"""Largest relative error of a file that agrees; measured errors are either far below or far above."""
TOUCHING = 1e-13
"""Distance from its margin [m] at which rounding decides whether a contact acts."""


@dataclass(frozen=True)
class Result:
    """The result of one file."""

    verdict: str
    """Verdict: agrees | apart | lacks | differs | undecided | static | refused | diverges | failed."""
    nv: int = 0
    error: float | None = None
    """Largest relative error over all states and steps."""
    constrained: int = 0
    """States in which a contact, a limit, joint friction or an equality acted."""
    said: tuple[str, ...] = ()
    """Words that were said before the motion, or the reason why there was none."""


def compare(path: Path, states: int = STATES, steps: int = STEPS) -> Result:
    """Move a file from random states in both engines."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        return Result("refused", said=(" ".join(str(error).split())[:120],))
    if not model.nv:
        return Result("static")
    try:
        return _moved(Twin.of(path), states, steps)
    except DivergenceError as error:
        return Result("diverges", model.nv, said=(str(error),))
    except (ValueError, RuntimeError) as error:
        return Result("failed", model.nv, said=(str(error)[:200],))


def _moved(twin: Twin, states: int, steps: int) -> Result:
    starts, random = twin.starts(states), np.random.default_rng(1)
    controls = np.array([[twin.controls(random) for _ in range(states)] for _ in range(steps)])
    found = [twin.theirs(x, controls[:, k]) for k, x in enumerate(starts)]
    theirs = np.array([x for x, _, _ in found]).swapaxes(0, 1)
    errors = np.nan_to_num(twin.errors(twin.ours(starts, controls), theirs), nan=np.inf)
    worst = float(errors.max())
    near = min(near for *_, near in found)
    agrees = "agrees" if twin.touches else "apart"
    verdict = agrees if worst <= AGREES else "lacks" if twin.lacks else "undecided" if near < TOUCHING else "differs"
    return Result(verdict, twin.model.nv, worst, sum(rows > 0 for _, rows, _ in found), twin.lacks)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(asdict(compare(Path(sys.argv[1])))))
