"""Exciting motions: within limits, at rest where they start, and better than motions that were not designed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.identify.motions import guessed, motion, noisy, with_friction

import costate as cs
from costate.identify import Regressor
from costate.identify.excite import _volume
from costate.robot import Robot


@pytest.mark.parametrize("name", ["ur5", "iiwa7", "pendulum2"])
def test_limits_and_identifiability(name: str) -> None:
    robot = cs.load_robot(name)
    found = cs.excite(robot, margin=0.8, iterations=60, restarts=1, max_acceleration=12.0)
    assert found.rank == found.structural_rank
    log = found.sample(rate=200, periods=2)
    lower, upper = robot.lower.numpy(), robot.upper.numpy()
    bounded = np.isfinite(lower) & np.isfinite(upper)
    middle, half = (lower + upper)[bounded] / 2, (upper - lower)[bounded] / 2
    assert (np.abs(log["q"][:, bounded] - middle) <= 0.8 * half + 1e-9).all()
    assert (np.abs(log["v"]) <= 0.8 * np.where(robot.max_velocity.isinf(), 2.5, robot.max_velocity) + 1e-3).all()
    assert np.abs(log["a"]).max() <= 12.0 + 1e-2
    regressor = Regressor.of(robot.model)
    torque = np.abs(regressor.torques(log["q"], log["v"], log["a"], regressor.pi()))
    assert (torque <= 0.8 * robot.max_effort.numpy() + 1e-3).all()


def test_it_starts_at_rest_and_repeats() -> None:
    found = cs.excite("ur5", iterations=20, restarts=1)
    q, v, a = found.at(np.array([0.0, found.period, 2 * found.period]))
    np.testing.assert_allclose(q, np.tile(found.centre, (3, 1)), atol=1e-9)
    np.testing.assert_allclose(v, 0, atol=1e-9)
    np.testing.assert_allclose(a, 0, atol=1e-8)
    h = 1e-5
    (q0, v0, _), (_, v1, a1), (q2, v2, _) = (found.at(np.array([1.0 + d])) for d in (-h, 0.0, h))
    np.testing.assert_allclose((q2 - q0) / (2 * h), v1, atol=1e-6)
    np.testing.assert_allclose((v2 - v0) / (2 * h), a1, atol=1e-5)


def test_parameters_are_surer_than_from_undesigned_motion() -> None:
    """The same length of log and the same absolute noise: the confidence region of the base parameters shrinks."""
    true = with_friction("ur5")
    prior = Robot(guessed(true))
    regressor = Regressor.of(true)
    noise = np.random.default_rng(0).normal(size=(1500, 6)) * np.array([1.0, 1.0, 0.5, 0.1, 0.1, 0.1])
    # One start and 120 iterations are a quarter of the default's work, and show the difference already.
    designed = cs.excite("ur5", period=15.0, iterations=120, restarts=1).sample(rate=100)
    designed["tau"] = regressor.torques(designed["q"], designed["v"], designed["a"], regressor.pi()) + noise
    other = motion(true)
    other["tau"] = other["tau"] + noise
    a, b = (cs.identify(prior, log, physical=False) for log in (designed, other))
    volume = [np.linalg.slogdet(r.covariance)[1] / r.base.rank for r in (a, b)]
    assert volume[0] < volume[1] - np.log(4)  # standard deviations half as large, in the geometric mean
    for r in (
        a,
        b,
    ):  # and they are true: squared errors, measured by them, are 1 in the mean, give or take three of their own
        error = r.beta - r.base.project(regressor.pi())
        assert abs(error @ np.linalg.solve(r.covariance, error) / r.base.rank - 1) < 3 * np.sqrt(2 / r.base.rank)


def test_its_log_identifies_with_fourier_derivatives(tmp_path: Path) -> None:
    true = with_friction("ur5")
    found = cs.excite("ur5", iterations=80, restarts=1)
    found.save_csv(tmp_path / "motion.csv", rate=100)
    assert (tmp_path / "motion.csv").read_text().splitlines()[0].startswith("t,q_shoulder_pan_joint,")
    log = found.sample(rate=250, periods=2)
    regressor = Regressor.of(true)
    log["tau"] = regressor.torques(log["q"], log["v"], log["a"], regressor.pi())
    rng = np.random.default_rng(0)
    measured = {
        "t": log["t"],
        "q": log["q"] + 1e-4 * rng.normal(size=log["q"].shape),
        "tau": noisy(log, 0.01, 0)["tau"],
    }
    result = cs.identify(Robot(guessed(true)), measured, period=found.period)
    assert result.test is not None
    assert (result.test.after < 1.2 * 0.01 * np.sqrt((log["tau"] ** 2).mean(0))).all()


def test_the_objective_is_log_det_and_has_its_gradient() -> None:
    W = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * torch.tensor(
        [1e-3, 1, 10, 1]
    )
    torch.testing.assert_close(_volume(W.T @ W), -torch.logdet(W.T @ W))
    check_gradients(lambda x: _volume(x.T @ x), (W,))
    W.requires_grad_()
    (found,) = torch.autograd.grad(_volume(W.T @ W), W)
    torch.testing.assert_close(found, -2 * torch.linalg.pinv(W.detach()).T)  # closed form: d log det(W'W) = 2 tr(W+ dW)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="outside of the robot's limits"):
        cs.excite("iiwa7", centre=[9.0] * 7)
    with pytest.raises(ValueError, match="quaternions"):
        cs.excite("laikago")


def test_the_next_motion_is_for_what_is_still_uncertain() -> None:
    """After a motion in which the second joint hardly moves, the next one moves it, and the region becomes smaller by it."""
    true = with_friction("pendulum2")
    first = motion(true, n=300)
    first["q"][:, 1], first["v"][:, 1], first["a"][:, 1] = (0.02 * first[name][:, 1] for name in "qva")
    regressor = Regressor.of(true)

    def found(*logs: dict[str, np.ndarray]):
        log = {name: np.concatenate([x[name] for x in logs]) for name in "qva"}
        tau = regressor.torques(log["q"], log["v"], log["a"], regressor.pi())
        tau = tau + 0.01 * np.random.default_rng(0).normal(size=tau.shape)
        options = {"check": False, "repair": False, "held_out": 0.0, "physical": False}
        return cs.identify(Robot(true), {"t": 0.01 * np.arange(len(tau)), **log, "tau": tau}, **options)

    before = found(first)
    designed = cs.excite(Robot(true), period=3.0, iterations=40, restarts=1, after=before)
    after, again = found(first, designed.sample(rate=100)), found(first, first)
    assert after.base.rank == again.base.rank
    assert np.linalg.slogdet(after.covariance)[1] < np.linalg.slogdet(again.covariance)[1] - after.base.rank
    with pytest.raises(ValueError, match="same robot and terms"):
        cs.excite("ur5", after=before, iterations=1, restarts=1)
