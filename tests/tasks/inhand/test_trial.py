"""In-hand manipulation: the planner in the judge, starts of trials, hands, and the page."""

from dataclasses import replace

import numpy as np
import pytest

from costate.tasks.inhand.hand import allegro, hand_named, shadow
from costate.tasks.inhand.mujoco import Judge
from costate.tasks.inhand.planner import Planner, planner_for
from costate.tasks.inhand.predict import Prediction
from costate.tasks.inhand.solve import Summary, report
from costate.tasks.inhand.trial import Protocol, Trial, about_z, run_trial, start_and_goal


@pytest.mark.parametrize("hand", ["allegro", pytest.param("shadow", marks=pytest.mark.study)])
def test_planner_turns_a_cube_a_little(hand: str) -> None:
    """A turn of 40 degrees in the judge."""
    planner = planner_for(hand)
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
    assert len(hand.joints) == 20  # of 24, four are held
    with pytest.raises(ValueError, match="allegro"):
        hand_named("alegro")


def test_balls_of_a_finger_are_above_the_palm_when_it_is_bent():
    """The inner end of a first link is in the palm however the finger is bent, and has no ball; outer ends have one."""
    hand = shadow()
    links = {link.name: link for link in hand.model.links}
    for name in hand.touching:
        (capsule,) = links[name].collisions
        heights = [ball.center[2] for ball in hand.balls if ball.link == name]
        assert heights[-1] == pytest.approx(capsule.size[1])
        assert np.diff([0.0, *heights]).max() < 0.0235 and min(heights) > 0.01


@pytest.mark.parametrize(("slope", "slides"), [(20.0, False), (30.0, True)])
def test_a_cube_slides_down_a_steep_palm(slope, slides):
    """The judge's gravity: with a friction of 0.5 a cube slides from 26.6 degrees on."""
    hand, cube = replace(shadow(), slope=slope), Protocol().thing
    start = np.concatenate([[-0.02, 0.0, hand.top + 0.025], about_z(0.0), 0 * hand.home])  # the hand is flat
    judge = Judge(hand, cube)
    judge.reset(start)
    judge.step(start[7:], 0.2)
    x, y, z = judge.state[:3] - start[:3]
    assert (x > 0.01 if slides else abs(x) < 0.0015) and max(abs(y), abs(z)) < 0.0015


def test_the_pull_on_the_angle_grows_close_to_the_goal():
    planner = planner_for("allegro")
    goal = np.concatenate([[0.0, 0.0, 0.0], about_z(0.0)])

    def turn(degrees: float) -> float:
        planner.reset()
        return planner._weights(np.concatenate([goal[:3], about_z(np.radians(degrees))]), goal)[1].turn

    far = planner.options.final.turn
    assert [turn(a) / far for a in (90, 60, 20, 5, 0)] == pytest.approx([1, 1, 3, 12, 12])


def test_page_shows_failures_first(tmp_path):
    hand = allegro()
    start = np.concatenate([[*hand.place, 0.04], about_z(0.0), hand.home])
    goal = np.concatenate([[*hand.place, 0.04], about_z(1.0)])
    states = np.tile(start, (3, 1))
    trials = [Trial(k, k == 0, states, states, goal, np.full(2 + k, 57.0), 0.005) for k in range(2)]
    summary = Summary.of(trials)
    assert (summary.succeeded, summary.trials, summary.error) == (1, 2, 57.0)
    page = report("inhand", hand, Protocol(), trials, show=2).html()
    assert page.index("Trial 1: failed") < page.index("Trial 0: succeeded")
