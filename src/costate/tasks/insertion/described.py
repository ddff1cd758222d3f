"""The insertion in words: rows of its tables, names of measurements, the paragraph of its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from costate.core.display import number
from costate.tasks.insertion.judge import MAX_ERROR, MAX_PENETRATION, MAX_SPEED, MAX_TILT
from costate.train.trainable import percent

if TYPE_CHECKING:
    from costate.tasks.insertion.task import Insertion

DEGREE = "\N{DEGREE SIGN}"
ALLOWED = 1e3 * MAX_ERROR
"""Largest error of a success [mm]."""
_ERRORS = {"mean": "mean", "95 % below": "95", "worst": "worst"}
LIMITS = {
    "position error: worst": f"{ALLOWED:g} mm",
    "tilt: worst": f"{np.degrees(MAX_TILT):g}{DEGREE}",
    "stayed in place": f"{ALLOWED:g} mm, {np.degrees(MAX_TILT):g}{DEGREE}",
    "stayed at rest": f"{1e3 * MAX_SPEED:g} mm/s",
    "no overlap with the socket": f"{1e3 * MAX_PENETRATION:g} mm",
    "overlap: worst": f"{1e3 * MAX_PENETRATION:g} mm",
}
"""Limits of a success, by row."""
BOUNDS = {
    **{f"position error: {row}": (f"error_{key}", ALLOWED) for row, key in _ERRORS.items()},
    "tilt: mean": ("tilt_mean", float(np.degrees(MAX_TILT))),
    "tilt: worst": ("tilt_worst", float(np.degrees(MAX_TILT))),
    "overlap: worst": ("penetration_worst", 1e3 * MAX_PENETRATION),
}
"""Row -> metric, and the largest value that is allowed."""


def rows(m: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows of a table about metrics, as text."""
    return {
        "success": percent(m["success"]),
        "position error: mean": f"{number(m['error_mean'])} mm",
        "position error: 95 % below": f"{number(m['error_95'])} mm",
        "position error: worst": f"{number(m['error_worst'])} mm",
        "tilt: mean": f"{number(m['tilt_mean'], 2)}{DEGREE}",
        "tilt: worst": f"{number(m['tilt_worst'], 2)}{DEGREE}",
        "stayed in place": percent(m["kept_place"]),
        "stayed at rest": percent(m["kept_still"]),
        "no overlap with the socket": percent(m["no_penetration"]),
        "overlap: worst": f"{number(m['penetration_worst'], 2)} mm",
        "joints within their limits": percent(m["within_limits"]),
        "peak acceleration, mean": f"{m['peak_acceleration']:,.0f} rad/s\N{SUPERSCRIPT TWO}",
        "peak jerk, mean": f"{m['peak_jerk']:,.0f} rad/s\N{SUPERSCRIPT THREE}",
        "time of the motion": f"{number(m['seconds'])} s",
    }


def story(task: Insertion) -> str:
    """Return the paragraph of the report."""
    o = task.options
    return (
        f"A UR5 puts a bottle (60 mm wide) into a socket with {1e3 * o.clearance:g} mm of clearance. A controller gives a joint "
        f"command every {1e3 * o.dt:g} ms: a network that was trained by gradients through the simulator, added to a guide made "
        f"for this task if there is one; the column 'weights at zero' shows what the guide does alone. An episode succeeds if the "
        f"bottle is seated within {ALLOWED:g} mm and {np.degrees(MAX_TILT):g}{DEGREE} in time, stays there for {o.hold} more steps "
        f"slower than {1e3 * MAX_SPEED:g} mm/s, never overlaps the socket by more than {1e3 * MAX_PENETRATION:g} mm, and no joint "
        "passes a limit."
    )


def measurements(task: Insertion) -> tuple[tuple[str, str], ...]:
    """Return the name and unit of each measurement that an exported network takes, (19)."""
    return (
        *((f"position of {j}", "rad") for j in task.joints),
        *((f"velocity of {j}", "rad/s") for j in task.joints),
        *((f"socket {axis}, in the frame of the arm's base", "m") for axis in "xy"),
        ("socket z (ignored: its height is part of the task)", "m"),
        *((f"velocity of the socket, {axis}", "m/s") for axis in "xy"),
        ("velocity of the socket, z (ignored)", "m/s"),
        ("time index: control steps since the start, 0, 1, 2, ...", "steps"),
    )


def raw_observation(state: torch.Tensor, step: int) -> torch.Tensor:
    """Return what an exported network takes, (..., 19), of states (..., 18); the ignored height and its rate are zero."""
    zero = torch.zeros_like(state[..., :1])
    return torch.cat(
        [state[..., :6], state[..., 9:15], state[..., 6:8], zero, state[..., 15:17], zero, zero + step], -1
    )
