"""Swift motions: the law of least peak acceleration, the way that is chosen, and insertions near the least time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.tasks.insertion_controllers import check_exported, check_loss_gradients, seeded

from costate.tasks.insertion import Disturbances, Insertion, InsertionOptions, InsertionTraining, draw, judge, run
from costate.tasks.insertion.guidance.guide import Guide
from costate.tasks.insertion.guidance.guided import GuidedPolicy
from costate.tasks.insertion.guidance.steering import Usual, upright
from costate.tasks.insertion.guidance.swift import (
    ARRIVING,
    LATER,
    OVER,
    Swift,
    capped_peak,
    least_peak,
    swift_change,
    swift_motion,
)
from costate.tasks.insertion.scene import DEPTH
from costate.train.policy import acting

D, DT = torch.float64, 0.01


@pytest.fixture(scope="module")
def short() -> Insertion:
    return Insertion(InsertionOptions(horizon=25))


def played(a: torch.Tensor, until: torch.Tensor, since: torch.Tensor, left: float) -> tuple[torch.Tensor, torch.Tensor]:
    """How far a joint comes from rest, and how fast it is, with a until one time and -a since another."""
    rest = left - since
    v = a * (until - rest)
    return a * until**2 / 2 + a * until * (left - until) - a * rest**2 / 2, v


def test_least_peak_arrives_in_time() -> None:
    error, change = torch.randn(100, generator=seeded(1), dtype=D), 10 * torch.randn(100, generator=seeded(2), dtype=D)
    side, peak, until, since = least_peak(error, change, 0.15, DT)
    way, v = played(side * peak, until, since, 0.15)
    torch.testing.assert_close(v, change, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(way, 0.15 * change - error, rtol=1e-5, atol=1e-5)
    assert (
        bool(((since - until) <= DT + 1e-9).all()) and bool((until > -1e-6).all()) and bool((since < 0.15 + 1e-6).all())
    )


def test_no_motion_has_a_lower_peak() -> None:
    """From rest to rest, with a step without acceleration: (t^2 - dt^2) a / 4. Without, t^2 a / 4 is known to be the best."""
    _, peak, _, _ = least_peak(torch.tensor([0.2], dtype=D), torch.zeros(1, dtype=D), 0.15, DT)
    assert float(peak[0]) == pytest.approx(4 * 0.2 / (0.15**2 - DT**2), rel=1e-6)
    # A joint that has only to become faster evenly does so.
    _, peak, _, _ = least_peak(torch.tensor([0.15 * 3 / 2], dtype=D), torch.tensor([3.0], dtype=D), 0.15, DT)
    assert float(peak[0]) == pytest.approx(3 / 0.15, rel=1e-4)


def test_capped_velocities_come_up_to_the_highest() -> None:
    error, change, top = torch.tensor([-0.3], dtype=D), torch.tensor([1.0], dtype=D), torch.tensor([3.0], dtype=D)
    one, still = torch.ones(1, dtype=D), torch.zeros(1, dtype=D)
    peak, until, since = capped_peak(one, error, change, still, 0.2, top)
    assert float((peak * until)[0]) == pytest.approx(3.0, rel=1e-5)
    way, v = played(peak, until, since, 0.2)
    torch.testing.assert_close(torch.cat([way, v]), torch.cat([0.2 * change - error, change]), rtol=1e-4, atol=1e-4)


def test_the_law_arrives_step_by_step_within_limits() -> None:
    """Joints that do in each step what it says: near enough four steps before the end, with jerks as judged."""
    generator, low = seeded(3), torch.full((1,), 2.2, dtype=D)
    error, goal = 0.2 * torch.rand(500, generator=generator, dtype=D), torch.rand(500, generator=generator, dtype=D)
    v, changes = torch.zeros_like(error), []
    for k in range(16, 4, -1):
        left = torch.tensor(k * DT, dtype=D)
        changes.append(swift_change(error, goal - v, v, left, low, 0.39, DT))
        error, v = error + DT * (v - goal) + DT * changes[-1] / 2, v + changes[-1]
    peak = torch.stack(changes).abs().amax(0) / DT
    assert float(peak.max()) < 40 and float(torch.stack(changes).diff(dim=0).abs().max()) / DT < 40
    # What is left asks for hardly more than that.
    assert float((least_peak(error, goal - v, 4 * DT, DT)[1] - peak).max()) < 1.0


@pytest.mark.parametrize("inside", [4e-3, 12e-3])
def test_the_way_down_slows_evenly(inside: float) -> None:
    way = Swift(25, 16, 1.5e-4, 0.009, inside)
    at = way.heights(np.array([16.0, 17.0, 25 + LATER, 30.0]))
    assert at == pytest.approx([DEPTH - inside, DEPTH - inside - 0.009, 1.5e-4 + OVER, 1.5e-4 + OVER], abs=1e-9)
    last = way.heights(25 + LATER - np.array([3.0, 2.0, 1.0]))
    assert np.diff(last, 2)[0] == pytest.approx(0.009 / way.braking)
    assert way.gains(0.6).shape == (26, 2)


def test_it_is_chosen_where_the_usual_motion_needs_too_much(short: Insertion) -> None:
    assert Guide(short).swift and not Guide(Insertion(replace(short.options, horizon=30))).swift
    assert not Guide(Insertion(short.options.unlimited())).swift


def test_it_arrives_deeper_only_where_it_has_to(short: Insertion) -> None:
    """The shorter the time, the deeper; a joint that has longer to arrive needs less."""
    depths = []
    for horizon in (25, 24, 23):
        task = Insertion(replace(short.options, horizon=horizon))
        way = swift_motion(task, upright(task), Usual(horizon, round(0.6 * horizon), 1.5e-4))
        assert way is not None and way.braking < horizon + LATER - way.arrival - 1
        depths.append(way.inside)
    assert depths == sorted(depths) and depths[0] == ARRIVING[0][0] and depths[-1] == ARRIVING[-1][0]


def test_the_guide_alone_inserts_in_a_short_time(short: Insertion) -> None:
    policy = short.policy(InsertionTraining(hidden=8), seeded())
    assert isinstance(policy, GuidedPolicy)
    with torch.no_grad():
        policy.outer.weight.zero_()
        verdict = judge(short, run(short, short.world, acting(policy.double()), draw(short, 64, seeded(5), dtype=D)))
    assert float(verdict.success.double().mean()) > 0.95


@pytest.mark.study
def test_gradients_and_export_of_a_swift_controller(short: Insertion) -> None:
    policy = short.policy(InsertionTraining(hidden=8), seeded(7)).double()
    check_exported(short, policy, draw(short, 3, seeded(10), Disturbances(), D))
    check_loss_gradients(
        short, short.smooth, policy.requires_grad_(False), ["outer.weight"], draw(short, 2, seeded(8), dtype=D)
    )
