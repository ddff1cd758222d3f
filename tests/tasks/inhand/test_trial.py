"""In-hand manipulation: the planner in the judge, starts of trials, hands, and the page."""

import numpy as np
import pytest

from costate.tasks.inhand.hand import allegro, hand_named, shadow
from costate.tasks.inhand.mujoco import Judge
from costate.tasks.inhand.planner import Planner
from costate.tasks.inhand.predict import Prediction
from costate.tasks.inhand.solve import Summary, report
from costate.tasks.inhand.trial import Protocol, Trial, about_z, run_trial, start_and_goal


def test_planner_turns_a_cube_a_little() -> None:
    """A turn of 40 degrees in the judge."""
    planner = Planner(Prediction(allegro()))
    trial = run_trial(planner, Protocol(turn=40.0, steps=100), number=1)
    assert trial.success and trial.error < 23 and trial.errors[0] > 30
    assert np.abs(trial.states[:, 7:] - np.clip(trial.states[:, 7:], planner._lower, planner._upper)).max() < 0.1


def test_starts_are_drawn_alike_and_do_not_overlap():
    planner, protocol = Planner(Prediction(allegro())), Protocol()
    one, again = (start_and_goal(planner, protocol, 5, seed=2) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert not (one[0] == start_and_goal(planner, protocol, 6, seed=2)[0]).all()
    judge = Judge(planner.prediction.hand, protocol.thing)
    for k in range(20):
        start, goal = start_and_goal(planner, protocol, k)
        assert 2 * np.degrees(np.arccos(abs(start[3:7] @ goal[3:7]))) == pytest.approx(90)
        judge.reset(start)
        assert all(c.dist > -0.003 for c in judge.data.contact)


def test_shadow_hand_has_balls_on_five_fingertips():
    hand = shadow()
    assert sum(ball.tip for ball in hand.balls) == 5
    assert len(hand.joints) == 22  # the wrist is stiff
    with pytest.raises(ValueError, match="allegro"):
        hand_named("alegro")


def test_page_shows_failures_first(tmp_path):
    hand = allegro()
    start = np.concatenate([[*hand.place, 0.04], about_z(0.0), hand.home])
    goal = np.concatenate([[*hand.place, 0.04], about_z(1.0)])
    states = np.tile(start, (3, 1))
    trials = [Trial(k, k == 0, states, states, goal, np.array([57.0, 57.0]), 0.005) for k in range(2)]
    summary = Summary.of(trials)
    assert (summary.succeeded, summary.trials, summary.error) == (1, 2, 57.0)
    page = report("inhand", hand, Protocol(), trials, show=2).html()
    assert page.index("Trial 1: failed") < page.index("Trial 0: succeeded")
