"""Hands that propose contacts: Gauss-Newton beside first-order optimisers, in seconds; what a product costs.

python -m benchmarks.study_hands [--tasks grasp push turn] [--seconds 60] [--plots docs/plots] [--smoke]

Every method trains the same policy from the same weights, on draws of the same stream of episodes, until its time is over: that of
the processor, for drawing, evaluating and updating, with everything compiled before. The curve is the loss on episodes that no
method has seen; looking at it is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from math import cos, pi
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure.table import Table, machine
from costate.tasks.manipulation.training import PATIENT, next_damping, solve_draw
from costate.tasks.manipulation.unroll import Record
from costate.train.registry import find_task
from costate.train.streams import generator

Curve = list[tuple[float, float]]
"""Processor seconds, loss on unseen episodes."""


class Race:
    """The same start for every method."""

    def __init__(self, name: str, seconds: float, batch: int = 16):
        self.task: Any = find_task(name)()
        self.seconds, self.batch, self.spent = seconds, batch, 0.0
        self.unseen = self.task.draw(64, generator("held out", 0), torch.float64)
        self.weights = self.task.weights

    def policy(self) -> Any:
        return self.task.policy(self.task.training, generator("weights", 0))

    def draw(self, number: int) -> Any:
        return self.task.draw(self.batch, generator("episodes", 0, number), torch.float64)

    def loss(self, policy: Any, episodes: Any) -> torch.Tensor:
        blocks = self.task.residuals(policy, episodes)
        return sum(
            (self.weights[k] * b.square().sum() / 2 for k, b in blocks.items()), torch.zeros((), dtype=torch.float64)
        )

    def warm(self) -> None:
        """Compile what has to be."""
        policy = self.policy()
        newton(self)(policy, 0)
        self.loss(policy, self.draw(0)).backward()

    def run(self, advance: Callable[[Any, int], None], every: float) -> Curve:
        """Return the curve of a method, whose `advance(policy, number)` does one update."""
        policy, number, curve, looked = self.policy(), 0, [], -every
        self.spent = 0.0
        while True:
            if self.spent - looked >= every or self.spent >= self.seconds:
                with torch.no_grad():
                    curve.append((self.spent, float(self.loss(policy, self.unseen))))
                looked = self.spent
            if self.spent >= self.seconds:
                return curve
            begun = time.process_time()
            advance(policy, number)
            self.spent, number = self.spent + time.process_time() - begun, number + 1


def newton(race: Race, **options: Any) -> Callable[[Any, int], None]:
    """Return a draw of the trainer."""
    training = replace(race.task.training, **options)
    damping = [training.damping]

    def advance(policy: Any, number: int) -> None:
        random = generator("weights", 0, number + 1)
        found = solve_draw(race.task, policy, race.draw(number), damping[0], training, random)
        damping[0] = next_damping(found, training)

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
        race.loss(policy, race.draw(number)).backward()
        optimiser.step()

    return advance


def lbfgs(race: Race) -> Callable[[Any, int], None]:
    """Return 50 steps of L-BFGS with line search on a new draw."""

    def advance(policy: Any, number: int) -> None:
        drawn = race.draw(number)
        optimiser = torch.optim.LBFGS(policy.parameters(), max_iter=50, history_size=20, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            loss = race.loss(policy, drawn)
            loss.backward()
            return loss

        optimiser.step(closure)

    return advance


METHODS: dict[str, Callable[[Race], Callable[[Any, int], None]]] = {
    "Gauss-Newton": newton,
    "Gauss-Newton, plain CG": lambda race: newton(race, **PATIENT),
    "Adam, 0.003": lambda race: adam(race, 3e-3),
    "Adam, 0.01 falling": lambda race: adam(race, 1e-2, falling=True),
    "Adam, 0.003 falling": lambda race: adam(race, 3e-3, falling=True),
    "L-BFGS": lbfgs,
}
OURS = "Gauss-Newton"


def reached(curve: Curve, loss: float) -> float | None:
    """Return the seconds until a curve is at or below a loss; None: never."""
    return next((t for t, value in curve if value <= loss), None)


def compare(name: str, seconds: float, plot: Path | None) -> Table:
    race = Race(name, seconds)
    race.warm()
    curves = {label: race.run(make(race), seconds / 120) for label, make in METHODS.items()}
    best = min(value for label, curve in curves.items() if not label.startswith(OURS) for _, value in curve)
    fast = reached(curves[OURS], best)
    rows = []
    for label, curve in curves.items():
        when = reached(curve, best)
        rows.append((label, curve[0][1], curve[-1][1], "-" if when is None else f"{when:.1f}"))
    if plot:
        draw(name, curves, plot)
    note = f"After {seconds:g} s of one core. Reached: time of the best loss of a first-order method, {best:.3g}."
    when = min(
        t for label, curve in curves.items() if not label.startswith(OURS) for t, value in curve if value <= best
    )
    note += f" Gauss-Newton takes {when / fast:.1f} times less." if fast else " Gauss-Newton does not reach it."
    return Table(
        f"{name}: loss on unseen episodes", ("method", "at first", "in the end", "reached [s]"), tuple(rows), note
    )


def draw(name: str, curves: dict[str, Curve], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for label, curve in curves.items():
        axes.plot(*zip(*curve, strict=True), label=label)
    axes.set(yscale="log", xlabel="processor time [s]", ylabel="loss on unseen episodes", title=name)
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
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time of each method")
    parser.add_argument("--plots", type=Path, help="folder of the pictures")
    parser.add_argument("--smoke", action="store_true", help="a second each: does it run?")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(*(f"{k}: {v}" for k, v in machine().items()), "", sep="\n")
    for name in asked.tasks[: 1 if asked.smoke else None]:
        print(products(name, 16).markdown(), flush=True)
        plot = asked.plots / f"hands_{name}.png" if asked.plots else None
        print(compare(name, 1.0 if asked.smoke else asked.seconds, plot).markdown(), flush=True)


if __name__ == "__main__":
    main()
