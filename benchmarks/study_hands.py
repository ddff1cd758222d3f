"""Hands that propose contacts: Gauss-Newton beside first-order optimisers, in seconds; what a product costs.

python -m benchmarks.study_hands [--tasks grasp push turn] [--seeds 0 1 2] [--seconds 30] [--plots docs/plots] [--smoke]

For each seed, every method trains the same policy from the same weights, on draws of the same stream of episodes, until its time is
over: that of the processor, for drawing, evaluating and updating, with everything compiled before. Gauss-Newton is given a third of
the time. The curve is the loss on episodes that no method has seen; looking at it is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import cos, inf, pi
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.measure.table import Table, machine
from costate.tasks.manipulation.training import ALONE, solve_draw
from costate.tasks.manipulation.unroll import Record
from costate.train.registry import find_task
from costate.train.streams import generator

Curve = list[tuple[float, float]]
"""Processor seconds, loss on unseen episodes."""
Curves = dict[str, Curve]
"""Method -> its curve from one seed."""


class Race:
    """The same start for every method."""

    def __init__(self, task: Any, seconds: float, seed: int = 0, batch: int = 16):
        self.task, self.seconds, self.seed, self.batch, self.spent = task, seconds, seed, batch, 0.0
        self.unseen = self.task.draw(64, generator("held out", seed), torch.float64)

    def policy(self) -> Any:
        return self.task.policy(self.task.training, generator("weights", self.seed))

    def draw(self, number: int) -> Any:
        return self.task.draw(self.batch, generator("episodes", self.seed, number), torch.float64)

    def warm(self) -> None:
        """Compile what has to be, and let torch load its optimisers: each takes a step that no curve has."""
        for make in (newton, lambda race: adam(race, 1e-3), lbfgs):
            make(self)(self.policy(), 0)

    def run(self, advance: Callable[[Any, int], None], seconds: float) -> Curve:
        """Return the curve of a method, whose `advance(policy, number)` does one update, over some of the time."""
        every = self.seconds / 200
        policy, number, curve, looked = self.policy(), 0, [], -every
        self.spent = 0.0
        while True:
            if self.spent - looked >= every or self.spent >= seconds:
                with torch.no_grad():
                    curve.append((self.spent, float(self.task.misfit(policy, self.unseen))))
                looked = self.spent
            if self.spent >= seconds:
                return curve
            begun = time.process_time()
            advance(policy, number)
            self.spent, number = self.spent + time.process_time() - begun, number + 1


def newton(race: Race, **options: Any) -> Callable[[Any, int], None]:
    """Return a draw of the trainer."""
    training = replace(race.task.training, **{**SINGLE.get(race.task.name, {}), **options})
    left: dict[str, torch.Tensor] = {}

    def advance(policy: Any, number: int) -> None:
        nonlocal left
        random = generator("weights", race.seed, number + 1)
        _, left = solve_draw(race.task, policy, race.draw(number), left, training, random)

    return advance


def adam(race: Race, rate: float, falling: bool = False) -> Callable[[Any, int], None]:
    """Return a step of Adam on a new draw; its rate may fall to nothing along a cosine over the whole time."""
    made: list[torch.optim.Optimizer] = []

    def advance(policy: Any, number: int) -> None:
        optimiser = made[0] if made else torch.optim.Adam(policy.parameters(), lr=rate)
        made[:] = [optimiser]
        if falling:
            optimiser.param_groups[0]["lr"] = rate * (1 + cos(pi * min(race.spent / race.seconds, 1))) / 2
        optimiser.zero_grad()
        race.task.misfit(policy, race.draw(number)).backward()
        optimiser.step()

    return advance


def lbfgs(race: Race) -> Callable[[Any, int], None]:
    """Return 50 steps of L-BFGS with line search on a new draw."""

    def advance(policy: Any, number: int) -> None:
        drawn = race.draw(number)
        optimiser = torch.optim.LBFGS(policy.parameters(), max_iter=50, history_size=20, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            loss = race.task.misfit(policy, drawn)
            loss.backward()
            return loss

        optimiser.step(closure)

    return advance


METHODS: dict[str, Callable[[Race], Callable[[Any, int], None]]] = {
    "Gauss-Newton": newton,
    "Gauss-Newton, each draw alone": lambda race: newton(race, **ALONE, cg_iterations=8, probes=2),
    "Adam, 0.003": lambda race: adam(race, 3e-3),
    "Adam, 0.003 falling": lambda race: adam(race, 3e-3, falling=True),
    "Adam, 0.001 falling": lambda race: adam(race, 1e-3, falling=True),
    "L-BFGS": lbfgs,
}
SINGLE = {"turn": {"damping": 30.0, "most_damping": 30.0}}
"""Task -> options of Gauss-Newton in a race, which has no second try: after short first steps, fewer of them end badly."""
OURS = "Gauss-Newton"
SHARE = 1 / 3
"""Part of the time that Gauss-Newton is given: it has long been lower than the others will be."""


def reached(curve: Curve, loss: float) -> float | None:
    """Return the seconds until a curve is at or below a loss; None: never."""
    return next((t for t, value in curve if value <= loss), None)


@dataclass(frozen=True)
class Verdict:
    """Outcome of the race from one seed: the best loss of any first-order method, and how soon it was reached."""

    best: float
    method: str
    """First-order method that has it."""
    theirs: float
    """Time at which it has [s]."""
    ours: float
    """Time at which Gauss-Newton is at or below it [s]; inf: never."""

    @property
    def ratio(self) -> float:
        """Return how many times faster Gauss-Newton is; 0 if it does not reach the loss."""
        return self.theirs / max(self.ours, 1e-9)


def judge(curves: Curves) -> Verdict:
    """Compare the curves of one seed."""
    first_order = ((loss, t, label) for label, c in curves.items() if not label.startswith(OURS) for t, loss in c)
    best, theirs, method = min(first_order)
    when = reached(curves[OURS], best)
    return Verdict(best, method, theirs, inf if when is None else when)


def compare(name: str, seconds: float, seeds: list[int], methods: list[str], plot: Path | None) -> list[Table]:
    """Run the race from every seed; return the ratios, and what each method reaches."""
    task: Any = find_task(name)()
    found: dict[int, Curves] = {}
    for seed in seeds:
        race = Race(task, seconds, seed)
        race.warm()
        found[seed] = {}
        for label in methods:
            curve = race.run(METHODS[label](race), seconds * SHARE if label.startswith(OURS) else seconds)
            print(f"seed {seed}, {label}: {curve[-1][1]:.4g} after {curve[-1][0]:.1f} s", flush=True)
            found[seed][label] = curve
    if plot:
        draw(name, found, plot)
    return [ratios(name, found), results(name, found)]


def ratios(name: str, found: dict[int, Curves]) -> Table:
    """Return how much sooner Gauss-Newton reaches the best loss of any first-order method, for each seed and in the median."""
    verdicts = {seed: judge(curves) for seed, curves in found.items()}
    rows = [
        (str(seed), v.best, v.method, f"{v.theirs:.1f}", _time(v.ours), f"{v.ratio:.1f}" if v.ratio else "not reached")
        for seed, v in verdicts.items()
    ]
    middle = median(v.ratio for v in verdicts.values())
    note = f"Times are of one core. Gauss-Newton is {middle:.1f} times faster in the median (0: it does not reach the loss)."
    columns = "seed", "best loss of a first-order method", "by", "after [s]", "Gauss-Newton after [s]", "times faster"
    return Table(f"{name}: time to the best loss of any first-order method", columns, tuple(rows), note)


def results(name: str, found: dict[int, Curves]) -> Table:
    """Return the losses of each method in the end, and when it reaches the best first-order loss of the same seed."""
    goals = {seed: judge(curves).best for seed, curves in found.items()}
    rows = []
    for label in next(iter(found.values())):
        curves = {seed: of[label] for seed, of in found.items()}
        ends = [curve[-1][1] for curve in curves.values()]
        when = [reached(curve, goals[seed]) for seed, curve in curves.items()]
        times = [inf if t is None else t for t in when]
        first = median(curve[0][1] for curve in curves.values())
        spent = median(curve[-1][0] for curve in curves.values())
        every = ", ".join(f"{x:.3g}" for x in ends)
        rows.append((label, first, spent, median(ends), every, _time(median(times))))
    columns = "method", "at first", "time [s]", "loss in the end", "of each seed", "reached [s]"
    note = "Medians of the seeds. Reached: time of the best loss of any first-order method from the same seed."
    return Table(f"{name}: loss on unseen episodes", columns, tuple(rows), note)


def _time(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < inf else "-"


def draw(name: str, found: dict[int, Curves], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for curves in found.values():
        for k, (label, curve) in enumerate(curves.items()):
            shown = label if curves is next(iter(found.values())) else None
            axes.plot(*zip(*curve, strict=True), color=f"C{k}", linewidth=1.2, label=shown)
    title = f"{name}, {len(found)} seeds of initial weights" if len(found) > 1 else name
    axes.set(yscale="log", xlabel="processor time [s]", ylabel="loss on unseen episodes", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def products(name: str, batch: int, repeats: int = 20) -> Table:
    """Return what a roll-out and the products with its Jacobian cost [ms of one core]."""
    task: Any = find_task(name)()
    episodes = task.draw(batch, generator("episodes", 0), torch.float64)
    policy = task.policy(task.training, generator("weights", 0))
    weights = tuple(w.detach() for w in policy.parameters())
    record = Record(task.step, task.start(episodes), task.believed(episodes), task.steps)
    rows, states = record.forward(weights)  # type: ignore[arg-type]
    calls = {
        "roll-out": lambda: record.forward(weights),  # type: ignore[arg-type]
        "J^T u (a backward pass)": lambda: record.transposed(rows, states),
        "J v": lambda: record.times(weights),  # type: ignore[arg-type]
    }
    cost = {}
    for label, call in calls.items():
        call()
        times = []
        for _ in range(repeats):
            begun = time.process_time()
            call()
            times.append(time.process_time() - begun)
        cost[label] = 1e3 * sorted(times)[len(times) // 2]
    back = cost["J^T u (a backward pass)"]
    table = tuple((label, ms, ms / back) for label, ms in cost.items())
    count = sum(w.numel() for w in weights)
    note = f"{batch} episodes of {task.steps} steps, {count:,} weights, {rows[0, 0].numel()} residuals per step."
    return Table(f"{name}: what a product costs", ("", "ms", "by a backward pass"), table, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["grasp", "push", "turn"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="seeds of initial weights and of episodes")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="Gauss-Newton is needed")
    parser.add_argument("--seconds", type=float, default=30.0, help="processor time of each first-order method")
    parser.add_argument("--plots", type=Path, help="folder of the pictures")
    parser.add_argument("--smoke", action="store_true", help="a second each: does it run?")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(*(f"{k}: {v}" for k, v in machine().items()), "", sep="\n")
    for name in asked.tasks[: 1 if asked.smoke else None]:
        print(products(name, 16).markdown(), flush=True)
        plot = asked.plots / f"hands_{name}.png" if asked.plots else None
        seconds = 1.0 if asked.smoke else asked.seconds
        for table in compare(name, seconds, asked.seeds, asked.methods, plot):
            print(table.markdown(), flush=True)


if __name__ == "__main__":
    main()
