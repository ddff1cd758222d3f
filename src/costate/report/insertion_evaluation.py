"""How well an insertion run does: the table of the evaluation, and how its errors are spread."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.core.files import read_json
from costate.report.report import Report
from costate.tasks.insertion.judge import MAX_ERROR, MAX_PENETRATION, MAX_SPEED, MAX_TILT
from costate.train.run import Run

ALLOWED = 1e3 * MAX_ERROR
"""[mm]."""
WIDEST = 12 * ALLOWED
"""Larger errors share the last bar of the histogram [mm]."""


def evaluation_section(report: Report, source: Run, metrics: dict[str, Any], error: np.ndarray) -> None:
    """metrics: fields of `costate.tasks.insertion.Metrics`. error: at the seat, in some episodes [mm], (B,)."""
    report.section("Evaluation")
    wide = source.path / "evaluation_wide.json"
    columns = {"measured": metrics} | ({"wide ranges": read_json(wide)} if wide.exists() else {})
    names = _rows(metrics)
    rows = [[name, *(_rows(m)[name] for m in columns.values()), LIMITS.get(name, "")] for name in names]
    with report.row():
        told = f"{metrics['episodes']:,} episodes that training never saw"
        report.table(rows, ("", *columns, "allowed"), told)
        _histogram(report, error)


LIMITS = {
    "position error: worst": f"{ALLOWED:g} mm",
    "tilt: worst": f"{np.degrees(MAX_TILT):g}\N{DEGREE SIGN}",
    "stayed in place": f"{ALLOWED:g} mm, {np.degrees(MAX_TILT):g}\N{DEGREE SIGN}",
    "stayed at rest": f"{1e3 * MAX_SPEED:g} mm/s",
    "no overlap with the socket": f"{1e3 * MAX_PENETRATION:g} mm",
    "overlap: worst": f"{1e3 * MAX_PENETRATION:g} mm",
}


def _rows(m: dict[str, Any]) -> dict[str, str]:
    return {
        "success": percent(m["success"]),
        "position error: mean": f"{m['error_mean']:.3g} mm",
        "position error: 95 % below": f"{m['error_95']:.3g} mm",
        "position error: worst": f"{m['error_worst']:.3g} mm",
        "tilt: mean": f"{m['tilt_mean']:.2g}\N{DEGREE SIGN}",
        "tilt: worst": f"{m['tilt_worst']:.2g}\N{DEGREE SIGN}",
        "stayed in place": percent(m["kept_place"]),
        "stayed at rest": percent(m["kept_still"]),
        "no overlap with the socket": percent(m["no_penetration"]),
        "overlap: worst": f"{m['penetration_worst']:.2g} mm",
        "joints within their limits": percent(m["within_limits"]),
        "peak acceleration, mean": f"{m['peak_acceleration']:,.0f} rad/s\N{SUPERSCRIPT TWO}",
        "peak jerk, mean": f"{m['peak_jerk']:,.0f} rad/s\N{SUPERSCRIPT THREE}",
    }


def percent(share: float) -> str:
    """With as many digits as 10,000 episodes give; never rounded up to all of them."""
    return "100 %" if share == 1 else f"{np.floor(1e4 * share) / 100:.4g} %"


def _histogram(report: Report, error: np.ndarray) -> None:
    """Two colours: what is allowed, and what is not. The last bar holds everything beyond."""
    error = np.nan_to_num(error, nan=np.inf)
    top = float(np.clip(np.quantile(error, 0.99), 1.5 * ALLOWED, WIDEST))
    width = ALLOWED / (20 if top <= 2 * ALLOWED else 4)
    edges = width * np.arange(np.ceil(top / width) + 1)
    count, _ = np.histogram(np.minimum(error, edges[-2] + width / 2), edges)
    middle = edges[:-1] + width / 2
    good = middle < ALLOWED
    report.plot(
        {f"within {ALLOWED:g} mm": np.where(good, count, np.nan), "beyond": np.where(good, np.nan, count)},
        middle,
        title=f"Error at the seat, {len(error):,} episodes",
        x_label=f"mm (the last bar: {edges[-2]:.3g} and more)",
        y_label="episodes",
        bars=True,
    )
