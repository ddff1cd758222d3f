"""Joints beside their limits: how far and how fast they moved, with what is beyond a limit marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from costate.draw.drawing import model_of
from costate.report.report import Report
from costate.report.table import Beyond, beyond

COLUMNS = ("joint", "lower limit", "lowest", "highest", "upper limit", "fastest", "limit of speed")


def joints_table(report: Report, world: Any, states: Any, caption: str = "") -> None:
    """Add a table of the joints that have limits, over states (..., nx) of a world; none if there are no such joints.

    Angles are in rad, lengths in m, and speeds per second.
    """
    model = model_of(world)
    x = torch.as_tensor(states).detach().double().reshape(-1, model.nq + model.nv).numpy()
    rows = []
    for joint, q, v in zip(model.joints, model.q_index, model.v_index, strict=True):
        if joint.nv != 1 or joint.nq != 1:
            continue
        low, high, limit = (float(a[0]) for a in (joint.lower, joint.upper, joint.max_velocity))
        if np.isfinite([low, high, limit]).any():
            place, speed = x[:, q], float(np.abs(x[:, model.nq + v]).max())
            rows.append(joint_row(joint.name, low, float(place.min()), float(place.max()), high, speed, limit))
    if rows:
        report.table(rows, COLUMNS, caption or "Joints and their limits [rad, rad/s; m, m/s]")


def joint_row(
    name: str, low: float, lowest: float, highest: float, high: float, fastest: float, limit: float
) -> tuple[Any, ...]:
    """Return how far and how fast a joint moved beside its limits; what is beyond one is marked."""
    down = Beyond(lowest) if lowest < low else lowest
    up = Beyond(highest) if highest > high else highest
    first, last, most = (None if np.isinf(x) else x for x in (low, high, limit))
    return name, first, down, up, last, beyond(fastest, limit), most
