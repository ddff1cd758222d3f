"""Joints beside their limits: what is beyond one is marked, and nothing else."""

from __future__ import annotations

import numpy as np
import torch
from lxml import html

import costate as cs
from costate.report import Report
from costate.report.joints import joints_table


def marked(states: torch.Tensor) -> dict[str, list[str]]:
    """Return the marked cells, by joint."""
    report = Report("Joints")
    joints_table(report, cs.load_robot("ur5"), states)
    found = {}
    for row in html.fromstring(report.html()).iter("tr"):
        cells = list(row.iter("td"))
        if cells:
            found[cells[0].text] = [c.text for c in cells if "beyond" in (c.get("class") or "")]
    return found


def test_positions_and_velocities_beyond_their_limits_are_marked() -> None:
    model = cs.load_robot("ur5").model
    inside = torch.zeros(5, 2, 12)
    assert len(marked(inside)) == 6 and not any(marked(inside).values())
    states = inside.clone()
    states[3, 1, 6] = -3.3  # the first joint is faster than 3.15 rad/s, backwards
    states[2, 0, 2] = 3.5  # the third turns beyond pi
    states[4, 0, 3] = -7.0  # the fourth below -2 pi
    assert float(model.joints[0].max_velocity[0]) == 3.15
    names = [j.name for j in model.joints if j.nv]
    assert marked(states) == {key: [] for key in names} | {names[0]: ["3.3"], names[2]: ["3.5"], names[3]: ["-7"]}


def test_a_limit_itself_is_not_beyond() -> None:
    limit = cs.load_robot("ur5").model.joints[0].max_velocity[0]
    states = torch.zeros(1, 12, dtype=torch.float64)
    states[0, 6] = float(limit)
    assert not any(marked(states).values())
    states[0, 6] = float("nan")
    assert next(iter(marked(states).values())) == ["nan"]
    assert np.isfinite(limit)
