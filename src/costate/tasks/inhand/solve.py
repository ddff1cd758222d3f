"""`costate solve inhand`: trials in the judge, what to say of them, and a page with replays, failures first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from costate.draw.recording import Recording, record
from costate.report import Report
from costate.report.table import Beyond
from costate.robot import Robot
from costate.sim import Body, Static, World
from costate.sim.scene.shapes import box
from costate.tasks.inhand.hand import Hand
from costate.tasks.inhand.mujoco import FILMED, TIMESTEP
from costate.tasks.inhand.planner import planner_for
from costate.tasks.inhand.trial import Protocol, Trial, run_trial

INHAND_TASKS = {"inhand": "allegro", "inhand_shadow": "shadow"}
"""Name of a task -> name of its hand."""
ORANGE, MARK, GHOST = (0.95, 0.55, 0.2, 1.0), (0.1, 0.3, 0.7, 1.0), (0.3, 0.8, 0.4, 0.35)


@dataclass(frozen=True)
class Summary:
    """Results of several trials."""

    trials: int
    succeeded: int
    error: float
    """Mean angle to the goal of those that succeeded [degrees]."""
    distance: float
    """Mean distance from the goal of those that succeeded [m]."""
    steps: float
    """Median number of steps of those that succeeded."""
    plan: float
    """Processor time of a plan, mean [s]."""

    @staticmethod
    def of(trials: Sequence[Trial]) -> Summary:
        """Sum up trials."""
        good = [t for t in trials if t.success] or [None]
        error, distance = (float(np.mean([getattr(t, k, np.nan) for t in good])) for k in ("error", "distance"))
        steps = float(np.median([getattr(t, "steps", np.nan) for t in good]))
        plan = float(np.average([t.seconds for t in trials], weights=[t.steps for t in trials]))
        return Summary(len(trials), sum(t.success for t in trials), error, distance, steps, plan)

    @property
    def facts(self) -> dict[str, str | float]:
        """Names and values for people."""
        return {
            "succeeded": f"{self.succeeded} of {self.trials}",
            "mean error [degrees]": round(self.error, 1),
            "mean distance [mm]": round(1e3 * self.distance, 1),
            "median time [s]": round(0.1 * self.steps, 1),
            "processor time of a plan [ms]": round(1e3 * self.plan, 2),
        }


def solve_inhand(
    name: str, numbers: Sequence[int], tell: Callable[[str], None], show: int = 3, iterations: int | None = None
) -> tuple[Report, str]:
    """Run the trials of these numbers; return the page, and what to say of them.

    Args:
        name: Task, a key of INHAND_TASKS.
        tell: Is called with how far it is, in words.
        show: Number of trials that the page replays.
        iterations: Gauss-Newton steps of a plan; None: as `PlannerOptions` says.
    """
    planner = planner_for(INHAND_TASKS[name], **({} if iterations is None else {"iterations": iterations}))
    protocol, trials = Protocol(), []
    for k in numbers:
        done = f"{sum(t.success for t in trials)} of {len(trials)} succeeded; " if trials else ""

        def progress(step: int, error: float, k: int = k, done: str = done) -> None:
            tell(f"{done}trial {k}: step {step}, {error:.0f} degrees to go")

        trials.append(run_trial(planner, protocol, k, tell=progress))
    tell("writing the report")
    text = f"{name}: " + ", ".join(f"{what} {value}" for what, value in Summary.of(trials).facts.items())
    return report(name, planner.prediction.hand, protocol, trials, show), text


def report(name: str, hand: Hand, protocol: Protocol, trials: Sequence[Trial], show: int = 3) -> Report:
    """Return a page with numbers, replays of some trials (failures first), and a table of all."""
    slope = f", which slopes by {hand.slope:.0f} degrees down to the fingers" if hand.slope else ""
    page = Report(
        f"costate solve {name}",
        f"The {hand.model.name.replace('_', ' ')} turns a cube of {1e3 * protocol.size:.0f} mm and {1e3 * protocol.mass:.0f} g by "
        f"{protocol.turn:.0f} degrees on its palm{slope}, replanned every 0.1 s, simulated by MuJoCo",
    )
    page.facts(Summary.of(trials).facts)
    for trial in sorted(trials, key=lambda t: (t.success, t.number))[:show]:
        verdict = "succeeded" if trial.success else "failed"
        caption = f"Trial {trial.number}: {verdict} after {trial.steps} steps, {trial.error:.1f} degrees from the goal (green)"
        page.recording(replay(hand, protocol, trial), caption, play=True)
    longest = max(t.steps for t in trials)  # a line ends with its trial
    shown = {f"trial {t.number}": np.pad(t.errors, (0, longest - t.steps), constant_values=np.nan) for t in trials[:10]}
    page.plot(shown, title="Angle to the goal [degrees]", x_label="step of 0.1 s")
    page.table([_row(t) for t in trials], caption="All trials")
    return page


def replay(hand: Hand, protocol: Protocol, trial: Trial) -> Recording:
    """Return what the judge saw, to be drawn: hand, cube with one side marked, and the goal beside the hand."""
    s, above = protocol.size, trial.goal[:3] + np.array([0.0, 0.0, 2 * protocol.size])
    mark = box((s / 5, s / 2, s / 2), position=(s / 2 - s / 11, 0.0, 0.0), color=MARK)
    goal = [Static("goal", box((s, s, s), color=GHOST), position=above, quaternion=trial.goal[3:])]
    goal.append(Static("goal side", mark, position=above, quaternion=trial.goal[3:]))
    world = World(
        robots={"hand": Robot(hand.model).double()},
        bodies=[Body("cube", [box((s, s, s), color=ORANGE), mark], protocol.mass)],
        scenery=goal,
        contact=None,
        poses={"hand": hand.base},
        dt=FILMED * TIMESTEP,
    )
    x = np.concatenate([trial.film[:, 7:], trial.film[:, :7], np.zeros((len(trial.film), world.nv))], 1)
    return record(world, torch.tensor(x))


def _row(trial: Trial) -> dict[str, object]:
    error = round(trial.error, 1)
    return {
        "trial": trial.number,
        "succeeded": "yes" if trial.success else "no",
        "steps": trial.steps,
        "error [degrees]": error if trial.success else Beyond(error),
        "distance [mm]": round(1e3 * trial.distance, 1),
        "plan [ms]": round(1e3 * trial.seconds, 2),
    }
