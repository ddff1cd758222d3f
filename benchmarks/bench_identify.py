"""Learning and identification: the four examples of differentiable-robot-model beside the original, and cs.identify.

python -m benchmarks.bench_identify [--smoke] [--full] [--json FILE] [--markdown docs/benchmarks.md]
python -m benchmarks.bench_identify --only robots|records|tosses [--runs 10] [--markdown docs/lab/identification.md]

The examples run at their published sizes, through both packages in turns: 5 minutes, nearly all of it the original's. --full does
it again with all threads. Each of robots, records and tosses, alone, counts how often intervals
hold the truth under correlated noise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import chi2

from benchmarks.identify import coverage, examples
from benchmarks.measure.harness import Options, Report, Table, machine, once, options, publish, threads

COMMAND = "python -m benchmarks.bench_identify --markdown docs/benchmarks.md"
ENCODER_NOISE = (1e-6, 1e-5, 1e-4)
"""Standard deviations [rad]; an encoder of 20 bits has 2e-6."""
PARTS = 10
"""Turns the packages take in every example."""

# Example -> (its script, how to make its data, samples and epochs as published).
EXAMPLES: dict[str, tuple[Callable[..., examples.Epochs], Callable[..., Any], int, int]] = {
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

NOTE = (
    "At the published numbers of samples and epochs. Same script, data, starting values and settings for both packages, float32; "
    "they take turns, a tenth of the epochs each. *Set-up*: the robot and a first gradient, with our kernels from disk. *Script "
    "alone*: the same script with a robot that returns a constant at once, so that only torch's optimiser, data loader, loss and "
    "backward pass are left: about the best that any library could do here. The errors are those of the last epoch."
)


def learning(chosen: Options, n_threads: int) -> Table:
    """Each example through both packages and through none, in turns."""
    ours, original = examples.packages()
    packages = ours, original, examples.without_robot(ours)
    rows = []
    with threads(n_threads):
        for name, (run, make, samples, epochs) in EXAMPLES.items():
            if chosen.smoke:
                samples, epochs = min(samples, 1000), 2
            data = make(original, samples)
            next(run(ours, data))  # compiles
            mine, theirs, bare = turns([run(package, data) for package in packages], epochs)
            rates = [epochs / result.training for result in (mine, theirs, bare)]
            speed = rates[0], rates[1], rates[0] / rates[1], rates[2], rates[2] / rates[1]
            rows.append((name, samples, epochs, mine.set_up, theirs.set_up, *speed, mine.error, theirs.error))
    columns = (
        *("example", "samples", "epochs", "set-up [s]", "original", "epochs/s", "original", "times faster"),
        *("script alone, epochs/s", "times faster at most", "final error", "original"),
    )
    return Table(f"Learning examples, {n_threads} thread{'s' if n_threads > 1 else ''}", columns, tuple(rows), NOTE)


@dataclass
class Training:
    set_up: float
    """Seconds."""
    training: float = 0.0
    """Seconds."""
    error: float = float("nan")
    """Error after the last epoch."""


def turns(runs: list[examples.Epochs], epochs: int) -> list[Training]:
    """Train all, taking turns."""
    found = [Training(once(lambda run=run: next(run))) for run in runs]
    edges = [epochs * k // PARTS for k in range(PARTS + 1)]
    for count in np.diff(edges).tolist():
        for run, result in zip(runs, found, strict=True):
            seconds, errors = timed(lambda run=run, count=count: [next(run) for _ in range(count)])
            result.training += seconds
            result.error = float(errors[-1]) if errors else result.error
    return found


def timed(run: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[float, Any]:
    """Seconds of a call, and its result."""
    results: list[Any] = []
    return once(lambda: results.append(run(*arguments, **named))), results[0]


def identification(chosen: Options) -> Table:
    """cs.identify on logs of 1,000 and 20,000 samples."""
    import costate as cs
    from costate.identify import Regressor
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


def intervals(chosen: Options) -> Table:
    """Count how often the true parameters are within their confidence intervals, with the noise of the theory and with other."""
    import costate as cs
    from costate.identify import Regressor
    from costate.robot import Robot

    runs, rows = 3 if chosen.smoke else 100, []
    for name in ("ur5", "iiwa7"):
        robot = cs.load_robot(name)
        regressor = Regressor.of(robot.model)
        clean = cs.excite(robot, iterations=30, restarts=1).sample(150)
        clean["tau"] = regressor.torques(clean["q"], clean["v"], clean["a"], regressor.pi())
        level = 0.01 * np.sqrt((clean["tau"] ** 2).mean(0))
        for encoder in (0.0, *ENCODER_NOISE):
            each, together = [], []
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                tau = clean["tau"] + level * rng.normal(size=clean["tau"].shape)
                log = {**clean, "tau": tau}
                if encoder:
                    log = {"t": clean["t"], "q": clean["q"] + encoder * rng.normal(size=tau.shape), "tau": tau}
                result = cs.identify(Robot(robot.model), log, physical=False)
                truth = result.base.project(regressor.pi())
                lower, upper = result.interval
                each.append(((lower < truth) & (truth < upper)).mean())
                together.append(result.distance(truth) < chi2.ppf(0.95, result.base.rank))
            kind = f"positions only, {encoder:g} rad" if encoder else "none: q, v, a are known"
            rows.append((name, kind, runs, 100 * float(np.mean(each)), 100 * float(np.mean(together))))
    columns = (
        "robot",
        "noise in positions",
        "runs",
        "parameters in their 95 % interval [%]",
        "all together in region [%]",
    )
    note = "1 % noise in torques. Where only positions are logged, velocities and accelerations come from differentiating them."
    return Table("Confidence intervals", columns, tuple(rows), note)


TABLES = ("learning", "identification", "intervals", *coverage.STUDIES)


def main() -> None:
    chosen = options(
        __doc__ or "",
        TABLES,
        lambda p: (
            p.add_argument("--full", action="store_true", help="the examples with all threads, too"),
            p.add_argument("--runs", type=int, default=10, help="runs of each row of the coverage"),
        ),
    )
    tables = []
    for name, (section, study) in coverage.STUDIES.items():
        if chosen.only == [name]:
            runs = 2 if chosen.smoke else chosen.rest.runs
            command = (
                f"python -m benchmarks.bench_identify --only {name} --runs {runs} --markdown docs/lab/identification.md"
            )
            return publish(Report(section, command, machine(), (study(runs),)), chosen)
    if "learning" in chosen.only:
        counts = {1, torch.get_num_threads()} if chosen.rest.full else {1}
        tables += [learning(chosen, n) for n in sorted(counts)]
    if "identification" in chosen.only:
        tables.append(identification(chosen))
    if "intervals" in chosen.only:
        tables.append(intervals(chosen))
    from importlib.metadata import version

    load = f"{os.getloadavg()[0]:.1f}"
    facts = machine(**{"differentiable-robot-model": version("differentiable-robot-model")}, load=load)
    publish(Report("Identification and learning", COMMAND, facts, tuple(tables)), chosen)


if __name__ == "__main__":
    main()
