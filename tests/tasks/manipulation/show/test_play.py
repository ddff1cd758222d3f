"""`costate play` of a hand: cycles, and a cube that is dragged."""

import numpy as np
import pytest
import torch

from costate.tasks.manipulation.motions.flip import Flip
from costate.tasks.manipulation.show.arrows import BODY
from costate.tasks.manipulation.show.play import FRICTION, MASS, HandPlay
from costate.train.run import Run
from costate.viewer.live import Grip
from costate.viewer.play import start_play


@pytest.fixture(scope="module")
def flip(tmp_path_factory):
    return Run.create(tmp_path_factory.mktemp("flip") / "run", Flip)


@pytest.mark.study
def test_the_page_plans_anew_where_the_cube_is_dragged_to(flip):
    page, play = start_play(HandPlay, flip.task, flip.policy, 8365)
    try:
        assert {MASS, FRICTION} <= set(play.live.options)
        while play.tried == 0:
            play.live.step()
        assert play.succeeded == 1 and "1 of 1" in play.told()
        while play.phase != "act":
            play.live.step()
        link = play.live.hand.links.index(BODY)
        before = play.task.pose(play.live.state)[:2].clone()
        play.live.hand.grip = Grip(link, np.zeros(3), np.array([*(before + 0.02).tolist(), 0.03]))
        play.live.step()
        assert play.phase == "act"  # while it is held
        play.live.hand.grip = None
        play.live.step()
        assert play.phase == "go back"
        while play.phase != "wait":
            play.live.step()
        assert (play.live.state[: play.task.step.nq] - torch.tensor(play.task.step.hand.home)).abs().max() < 0.1
    finally:
        page.close()
