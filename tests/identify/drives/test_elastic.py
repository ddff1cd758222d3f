"""Elastic joints: stiffness found again in closed-form motions of robots, and in a simulated pendulum with a soft gear."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.identify.motions import Array, guessed, with_friction

import costate as cs
from costate.identify import Regressor
from costate.model import Model, load_model
from costate.robot import Robot
from costate.robot.identified import with_parameters

PERIOD, ROWS = 10.0, 1000
ROTOR = ("inertial", "damping", "friction")
"""Parameters to find where the rotors' inertias are known."""


def twisted(model: Model, stiffness: Array, noise: float = 0.0, seed: int = 0) -> dict[str, Array]:
    """Return a log of motors that turn links through springs. The links' motion is chosen, the rest follows by formula."""
    rng = np.random.default_rng(seed)
    t = np.arange(ROWS) * PERIOD / ROWS
    k = np.arange(1, 6)
    w = 2 * np.pi * k / PERIOD
    A, B = rng.normal(size=(2, 5, model.nv)) * 0.5 / k[:, None]
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, v, a = s @ A + c @ B, (c * w) @ A - (s * w) @ B, -(s * w**2) @ A - (c * w**2) @ B
    whole = Regressor.of(model)
    links, drives = whole.pi(), whole.pi()
    links[10 * len(whole.links) :], drives[: 10 * len(whole.links)] = 0, 0
    tau = whole.torques(q, v, a, links)
    d = tau / stiffness
    rates = 2j * np.pi * np.fft.rfftfreq(ROWS, PERIOD / ROWS)[:, None]
    d1, d2 = (np.fft.irfft(np.fft.rfft(d, axis=0) * rates**n, ROWS, axis=0) for n in (1, 2))
    motor = q + d, v + d1, a + d2
    total = tau + whole.torques(*motor, drives)
    total = total + noise * np.sqrt((total**2).mean(0)) * rng.normal(size=total.shape)
    return {"t": t, **dict(zip("qva", motor, strict=True)), "tau": total}


def soft(model: Model) -> Array:
    """Return stiffnesses at which joints twist by about 5 mrad."""
    log = twisted(model, np.full(model.nv, 1e9))
    return np.sqrt((log["tau"] ** 2).mean(0)) / 5e-3


@pytest.mark.parametrize(("name", "joints"), [("ur5", 3), ("pendulum2", 2)])
def test_stiffness_is_found_again(name: str, joints: int) -> None:
    """Of the UR5 the three joints that carry the arm; all others are rigid."""
    true = with_friction(name)
    k = np.where(np.arange(true.nv) < joints, soft(true), 1e12)
    masses = {("mass", x.name): np.array([1.2 * x.inertia.mass]) for x in true.links}
    robot, log = Robot(with_parameters(true, masses)), twisted(true, k)
    names = tuple(j.name for j in true.joints if j.nv)[:joints]
    options = {"terms": ROTOR, "period": PERIOD, "physical": False, "repair": False}
    rigid, result = (cs.identify(robot, log, elastic=e, **options) for e in ((), names))
    assert result.elastic is not None and result.test is not None and rigid.test is not None
    assert result.elastic.stiffness == pytest.approx(k[:joints], rel=1e-3)
    assert (result.test.after < 0.01 * rigid.test.after)[:joints].all()
    assert result.beta == pytest.approx(result.base.project(result.regressor.pi(true)), rel=1e-3, abs=1e-3)
    assert "stiffness" in result.summary()


def test_intervals_hold_the_truth() -> None:
    """Squared errors by their standard deviations are 1 in the mean, over ten logs of two joints."""
    true = with_friction("pendulum2")
    k, z = soft(true), []
    for seed in range(10):
        log = twisted(true, k, noise=0.01, seed=seed)
        found = cs.identify(
            Robot(true), log, terms=ROTOR, period=PERIOD, physical=False, repair=False, elastic=("all",)
        )
        assert found.elastic is not None
        z.append((found.elastic.compliance - 1 / k) / found.elastic.std)
    assert 0.4 < np.mean(np.square(z)) < 2.0  # chi-square of 20: 95 % within 0.48 and 1.71


def test_a_rigid_robot_stays_rigid() -> None:
    true = with_friction("pendulum2")
    log = twisted(true, np.full(2, 1e12), noise=0.01)
    found = cs.identify(Robot(guessed(true)), log, period=PERIOD, repair=False, elastic=("all",), check=False)
    assert found.elastic is not None and np.isinf(found.elastic.interval[1]).all() and "at least" in found.summary()


def test_a_simulated_pendulum_with_a_soft_gear() -> None:
    """An integrator as reference: a motor turns a pendulum through a spring, and only the motor is logged."""
    k, rotor, damping = 600.0, 0.05, 0.5
    model = with_parameters(load_model("pendulum1"), {("armature", "joint_1"): np.array([rotor])})
    inertia, moment = 0.08395833 + 0.25, 1.0 * 9.81 * 0.5  # a link of 1 kg and 1 m

    def torque(t: Array) -> Array:
        return (1 - np.exp(-(t**2))) * (4.0 * np.sin(3.0 * t) + 2.0 * np.sin(7.1 * t))

    def motion(t: float, x: Array) -> Array:
        spring = k * (x[0] - x[1])
        bent = (torque(np.array(t)) - spring - damping * x[2]) / rotor, (spring - moment * np.sin(x[1])) / inertia
        return np.array([x[2], x[3], *bent])

    t = np.arange(0, 20, 1 / 200)
    x = solve_ivp(motion, (0, t[-1]), np.zeros(4), t_eval=t, rtol=1e-9, atol=1e-11, method="DOP853").y
    log = {"t": t, "q": x[:1].T, "v": x[2:3].T, "tau": torque(t)[:, None]}
    guess = with_parameters(model, {("mass", "link_1"): np.array([1.3])})
    found = cs.identify(Robot(guess), log, terms=("inertial", "damping"), elastic=("joint_1",), repair=False)
    assert found.elastic is not None
    assert found.elastic.stiffness == pytest.approx([k], rel=0.02)  # accelerations come from differences
    low, high = found.elastic.interval
    assert low < high < 2 * k
    with pytest.raises(ValueError, match="elastic joint 'elbow'"):
        cs.identify(Robot(guess), log, elastic=("elbow",))
