"""Learning and identification: the four examples of differentiable-robot-model beside the original, and cs.identify.

python benchmarks/bench_identify.py [--smoke] [--epochs-of-original N] [--json FILE] [--markdown docs/benchmarks.md]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))  # so that it runs as a script

from benchmarks import identify_examples as examples
from benchmarks.harness import Options, Report, Table, machine, once, options, publish, threads

COMMAND = "python benchmarks/bench_identify.py --markdown docs/benchmarks.md"

# Example -> (run, how to make its data, samples, epochs as published).
EXAMPLES: dict[str, tuple[Callable[..., float], Callable[..., Any], int, int]] = {
    "learn_dynamics_iiwa": (examples.learn_dynamics, examples.inverse_dynamics_data, 1000, 10),
    "learn_forward_dynamics_iiwa": (examples.learn_forward_dynamics, examples.forward_dynamics_data, 10_000, 100),
    "learn_kinematics_of_iiwa": (
        examples.learn_kinematics_iiwa,
        lambda package, n: examples.kinematics_data(package, n, toy=False),
        100,
        3000,
    ),
    "learn_kinematics_of_toy": (
        examples.learn_kinematics_toy,
        lambda package, n: examples.kinematics_data(package, n, toy=True),
        100,
        3000,
    ),
}


def learning(chosen: Options, n_threads: int) -> Table:
    """Each example once through both packages, after a run of one epoch that compiles."""
    ours, original = examples.packages()
    limit = chosen.rest.epochs_of_original
    rows = []
    with threads(n_threads):
        for name, (run, make, samples, epochs) in EXAMPLES.items():
            if chosen.smoke:
                samples, epochs = min(samples, 1000), 2
            data = make(original, samples)
            run(ours, data, 1)
            theirs = epochs if limit is None else min(epochs, limit)
            seconds, error = timed(run, ours, data, epochs)
            slow, original_error = timed(run, original, data, theirs)
            slow *= epochs / theirs
            final = f"{error:.3g} against {original_error:.3g}"
            if theirs != epochs:
                same = run(ours, data, theirs)
                final = f"{error:.3g} (after {theirs} epochs {same:.3g} against {original_error:.3g})"
            rows.append((name, samples, epochs, epochs / seconds, epochs / slow, slow / seconds, final))
    note = (
        "Same data, same starting values, same script, float32. Compilation (0.1 to 2 s, once for all) is not counted. "
        "The last column is the final error of Costate against the original's."
        + ("" if limit is None else f" The original ran {limit} epochs; its time for all is extrapolated from these.")
    )
    columns = ("example", "samples", "epochs", "epochs/s", "original, epochs/s", "times faster", "final error")
    return Table(f"Learning examples, {n_threads} thread{'s' if n_threads > 1 else ''}", columns, tuple(rows), note)


def timed(run: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[float, Any]:
    """Seconds of a call, and its result."""
    results: list[Any] = []
    return once(lambda: results.append(run(*arguments, **named))), results[0]


def identification(chosen: Options) -> Table:
    """cs.identify on logs of 1,000 and 20,000 samples."""
    import costate as cs
    from costate.learn.identify import Regressor
    from costate.robot import Robot

    rows = []
    for name in ("ur5", "iiwa7"):
        robot = cs.load_robot(name)
        regressor = Regressor.of(robot.model)
        motion = cs.excite(robot, iterations=30, restarts=1)
        for n in (1000,) if chosen.smoke else (1000, 20_000):
            log = motion.sample(n / motion.period)
            rng = np.random.default_rng(0)
            tau = regressor.torques(log["q"], log["v"], log["a"], regressor.pi())
            log["tau"] = tau + 0.01 * np.sqrt((tau**2).mean(0)) * rng.normal(size=tau.shape)
            both = [timed(cs.identify, Robot(robot.model), log, physical=p)[0] for p in (False, True)]
            rows.append((name, n, regressor.size, motion.rank, *both))
    columns = ("robot", "samples", "parameters", "base parameters", "linear [s]", "physically possible [s]")
    return Table(
        "Identification", columns, tuple(rows), "From a log with positions, velocities, accelerations and torques."
    )


def main() -> None:
    chosen = options(
        __doc__ or "",
        ("one_thread", "threads", "identification"),
        lambda p: p.add_argument("--epochs-of-original", type=int, help="run the original for fewer epochs"),
    )
    tables = []
    if "one_thread" in chosen.only:
        tables.append(learning(chosen, 1))
    if "threads" in chosen.only and torch.get_num_threads() > 1:
        tables.append(learning(chosen, torch.get_num_threads()))
    if "identification" in chosen.only:
        tables.append(identification(chosen))
    from importlib.metadata import version

    facts = machine(**{"differentiable-robot-model": version("differentiable-robot-model")})
    publish(Report("Learning and identification", COMMAND, facts, tuple(tables)), chosen)


if __name__ == "__main__":
    main()
