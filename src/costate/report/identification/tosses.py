"""The page of an identification from tosses."""

from __future__ import annotations

import numpy as np
import torch

from costate.identify.tosses.result import TossResult
from costate.identify.tosses.thrown import FLOOR
from costate.report.report import Report
from costate.sim.scene import shapes
from costate.sim.scene.parts import Body, Static
from costate.sim.world import World


def toss_report(result: TossResult) -> Report:
    """Return the page: errors in tosses held out, numbers with intervals, errors over time, and a toss to look at."""
    report = Report("Contact from tosses", f"{result.tosses.source}, contact model {result.contact}")
    best = list(result.errors.values())[-1].row()
    report.facts(
        {
            "tosses fitted": len(result.train),
            "tosses held out": len(result.test),
            "position, mean error [% of width]": round(best["position, mean [% of width]"], 1),
            "rotation, mean error [deg]": round(best["rotation, mean [deg]"], 1),
            "processor time [s]": round(result.seconds),
        }
    )
    for note in result.tosses.notes:
        report.text(note)
    report.section("Tosses held out")
    report.table([{"prediction": name} | errors.row() for name, errors in result.errors.items()])
    steps = max(len(errors.turn) for errors in result.errors.values())
    over = {name: _padded(errors.turn.mean(1), steps) for name, errors in result.errors.items()}
    away = {name: _padded(100 * errors.shift.mean(1), steps) for name, errors in result.errors.items()}
    t = result.tosses.dt * np.arange(steps)
    with report.row():
        report.plot(over, t, title="Rotation error, mean of tosses", x_label="t [s]", y_label="deg")
        report.plot(away, t, title="Position error, mean of tosses", x_label="t [s]", y_label="% of width")
    report.section("Numbers found")
    report.table(
        result.rows(),
        caption="95 % intervals from the scatter between tosses. Mass is not found: tosses tell only ratios to it.",
    )
    with report.row():
        report.plot(
            {"loss": result.losses},
            title="Loss: mean error in widths; it rises where stretches become longer",
            x_label="iteration",
        )
    report.section("A toss of median error")
    _replay(report, result)
    return report


def _padded(line: np.ndarray, steps: int) -> np.ndarray:
    """Return a line with a gap at its beginning, where rows were seen."""
    return np.concatenate([np.full(steps - len(line), np.nan), line])


def _replay(report: Report, result: TossResult) -> None:
    """Add the toss as measured and as predicted, side by side in one scene."""
    errors = next(e for name, e in result.errors.items() if name.startswith("found"))
    order = np.argsort(errors.turn.mean(0))
    chosen = int(order[len(order) // 2])
    rows = result.tosses.windows(result.test[[chosen]], 0, len(result.predicted))[:, 0]
    shape = result.thrown.shape
    both = [Body(name, [shape], result.thrown.mass) for name in ("measured", "predicted")]
    world = World(bodies=both, scenery=[Static(FLOOR, shapes.plane())], contact=None, dt=result.tosses.dt)
    after = result.predicted[:, chosen]
    states = torch.cat([rows[:, :7], after[:, :7], rows[:, 7:], after[:, 7:]], 1)
    report.replay(
        world, states, caption="Measured and predicted from the first row, in one place.", dt=result.tosses.dt
    )
