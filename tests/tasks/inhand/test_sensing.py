"""What the planner is told of a state: noise, and a delay that the prediction bridges."""

import numpy as np
import pytest

from costate.tasks.inhand.hand import allegro
from costate.tasks.inhand.predict import Prediction
from costate.tasks.inhand.sensing import Sensing
from costate.tasks.inhand.trial import Protocol, about_z

CUBE = Protocol().thing


@pytest.fixture(scope="module")
def prediction() -> Prediction:
    return Prediction(allegro())


def test_a_delay_is_bridged_by_what_was_sent(prediction):
    hand, random = prediction.hand, np.random.default_rng(0)
    states = [np.concatenate([[*hand.place, hand.top + 0.025], about_z(0.3), hand.home])]
    targets = [hand.home + 0.1 * np.sin(np.arange(prediction.nu) + k) for k in range(3)]
    for target in targets:
        known = {"state": states[-1], "command": target - states[-1][7:], "object": CUBE}
        states.append(prediction.step.numpy(**known).after)
    for delay in (0, 1, 2, 9):  # there is nothing before the first state
        told = Sensing(delay=delay).present(prediction, states, targets, CUBE, random)
        assert np.allclose(told, states[-1], atol=1e-12)
    assert np.abs(states[-1] - states[-2]).max() > 0.01


def test_noise_has_the_sizes_asked_for(prediction):
    state = np.concatenate([[0.0, 0.0, 0.04], about_z(0.3), prediction.hand.home])
    sensing, random = Sensing(position=0.002, turn=3.0, joints=0.01), np.random.default_rng(0)
    told = np.array([sensing.present(prediction, [state], [], CUBE, random) for _ in range(400)])
    assert np.allclose(np.linalg.norm(told[:, 3:7], axis=1), 1.0)
    angles = np.degrees(2 * np.arccos(np.minimum(np.abs(told[:, 3:7] @ state[3:7]), 1.0)))
    sizes = np.std(told[:, :3] - state[:3]), np.sqrt(np.mean(angles**2) / 3), np.std(told[:, 7:] - state[7:])
    assert sizes == pytest.approx((0.002, 3.0, 0.01), rel=0.1)  # 1,200 draws: the sizes are known to 2 %
