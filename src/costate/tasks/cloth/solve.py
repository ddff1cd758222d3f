"""Problems of cloth, solved one after the other or by a policy, and their report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from costate.core.display import number
from costate.draw.cloth.motion import record_cloth
from costate.draw.recording import Recording
from costate.report import Report
from costate.tasks.cloth.methods import METHODS
from costate.tasks.cloth.names import CLOTH_TASKS
from costate.tasks.cloth.problem import ClothFound, Facts


@dataclass(frozen=True, eq=False)
class Solved:
    """Problems of a task, and what was found for each."""

    name: str
    numbers: Sequence[int]
    every: Sequence[ClothFound | None]
    """Results; None where the only roll-out failed."""
    method: str
    seconds: float
    """Time of the clock that all took [s]."""

    @property
    def count(self) -> int:
        """Number of problems that are solved."""
        return sum(f is not None and f.solved for f in self.every)

    @property
    def shown(self) -> ClothFound:
        """The first result that there is."""
        found = next((f for f in self.every if f is not None), None)
        if found is None:
            raise FloatingPointError(f"every roll-out of {self.name} failed: train for longer, with --iterations")
        return found

    def medians(self) -> dict[str, float]:
        """Return the median of every number of the results."""
        facts = [f.facts for f in self.every if f is not None]
        return {name: float(np.nanmedian([f[name] for f in facts])) for name in (facts[0] if facts else ())}

    def text(self) -> str:
        """Return what was found, a line for each problem."""
        lines = [f"{self.name}: {self.count} of {len(self.every)} solved in {self.seconds:.1f} s by {self.method}"]
        for k, found in zip(self.numbers, self.every, strict=True):
            facts = {} if found is None else found.facts
            lines.append(f"  problem {k}: " + (_told(facts) or "the roll-out failed"))
        return "\n".join(lines)

    def page(self, facts: Facts, losses: dict[str, list[float]], x_label: str) -> Report:
        """Return a page with facts, the motion of the first result, losses over evaluations or iterations, and all problems."""
        page = Report(f"costate solve {self.name}", CLOTH_TASKS[self.name].summary)
        solved = f"{self.count} of {len(self.every)}"
        page.facts({"solved": solved, "method": self.method, "seconds, all": round(self.seconds, 1)} | facts)
        page.recording(recorded(self.shown), play=True, speed=0.5)
        with page.row():
            page.plot(losses, title="What is left", x_label=x_label, log_y=True)
            if self.shown.rows:
                page.table(self.shown.rows, caption="What was found")
        if len(self.every) > 1:
            rows: list[Any] = [
                {"problem": k, "solved": f is not None and f.solved} | ({} if f is None else f.facts)
                for k, f in zip(self.numbers, self.every, strict=True)
            ]
            page.table(rows, caption="All problems")
        return page


def solve_cloth(
    name: str, numbers: Sequence[int], tell: Callable[[str], None], **changes: Any
) -> tuple[Report, str, Recording]:
    """Solve some problems of a task, with other options where they are not None; return the page, what to say of it, and the motion
    that was found for the first."""
    task = replace(CLOTH_TASKS[name], **{k: v for k, v in changes.items() if v is not None})
    begun = time.perf_counter()
    every = [task.solve(k, lambda text, k=k: tell(f"problem {k}: {text}")) for k in numbers]
    method = f"{task.method} (of {', '.join(METHODS)})"
    solved = Solved(name, numbers, every, method, time.perf_counter() - begun)
    page = solved.page(every[0].facts, {"loss": every[0].losses}, "evaluation")
    return page, solved.text(), recorded(every[0])


def solve_by_policy(
    name: str, numbers: Sequence[int], tell: Callable[[str], None], folder: Path, iterations: int | None = None
) -> tuple[Report, str, Recording]:
    """Train a policy, write it into a folder, and judge it with other problems, beside the first guess; return the page, what to
    say of it, and the first motion."""
    from costate.tasks.cloth.policy import PRACTICE, Practice, first_guess, judge, numbers_of, save, train

    if max(numbers) >= PRACTICE:
        raise ValueError(f"problem {max(numbers)} may be one to practise with: judge with numbers below {PRACTICE:,}")
    task = CLOTH_TASKS[name]
    practice = Practice() if iterations is None else Practice(iterations=iterations)
    begun, used = time.perf_counter(), time.process_time()
    trained = train(task, practice, tell)
    training = time.process_time() - used
    save(trained.policy, name, task.problem(numbers[0]), folder)
    guesses = Solved(name, numbers, judge(task, numbers, first_guess, tell), "the first guess", 0.0)
    every = judge(task, numbers, lambda p: numbers_of(trained.policy, [p])[0], tell)
    solved = Solved(name, numbers, every, "a policy", time.perf_counter() - begun)
    facts = {f"{name}, median": value for name, value in solved.medians().items()} | {
        "solved by the first guess": f"{guesses.count} of {len(numbers)}",
        **{f"{name}, median of the first guess": value for name, value in guesses.medians().items()},
        "problems of the training": practice.iterations * practice.batch,
        "roll-outs dropped": trained.dropped,
        "processor time of the training [s]": round(training, 1),
        "weights": sum(p.numel() for p in trained.policy.parameters()),
    }
    page = solved.page(facts, {"median of a batch": trained.losses}, "iteration")
    return page, f"{solved.text()}\n  {_told(facts)}", recorded(solved.shown)


def _told(facts: Facts) -> str:
    return ", ".join(f"{name} {value if isinstance(value, str) else number(value, 4)}" for name, value in facts.items())


def recorded(found: ClothFound) -> Recording:
    """Return what was found as a recording."""
    return record_cloth(found.model, found.times, found.x, robot=found.robot, poses=found.poses, drawn=found.drawn)
