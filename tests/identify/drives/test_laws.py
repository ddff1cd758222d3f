"""Laws of friction: bristles against an integrator, and laws found again in simulated logs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.identify.motions import Array, guessed, motion, noisy, with_friction

import costate as cs
from costate.identify.drives.laws import KINDS, Motion, bristles
from costate.robot import Robot


def test_bristles_obey_their_equation() -> None:
    t = np.arange(0, 4, 1e-3)

    def speed(x: Array | float) -> Array:
        return np.asarray(0.3 * np.sin(3 * np.asarray(x)))

    for distance in (3e-3, 3e-2):
        z = bristles(t, speed(t)[:, None], distance)[:, 0]
        right = solve_ivp(
            lambda x, y, d=distance: (speed(x) - abs(speed(x)) * y) / d,
            (0, t[-1]),
            [0.0],
            t_eval=t,
            rtol=1e-9,
            atol=1e-11,
        )
        assert np.abs(z - right.y[0]).max() < 2e-3


def spoilt(name: str, law: str | None, size: float = 1.0) -> tuple[Robot, dict[str, Array]]:
    """A log of a robot whose joints have more friction than Coulomb's."""
    true = with_friction(name)
    log = motion(true, n=1500)
    if law is not None:
        columns = KINDS[law][1 if law != "load" else 0].columns(Motion(log["t"], log["v"], log["tau"]))
        log["tau"] = log["tau"] + size * columns[..., 1]
    return Robot(guessed(true)), noisy(log, 0.01, 0)


@pytest.mark.parametrize("name", ["ur5", "iiwa7"])
@pytest.mark.parametrize(("law", "size"), [("lugre", 3.0), ("load", 0.2)])
def test_laws_are_found_again(name: str, law: str, size: float) -> None:
    """Laws are compared on parts of the log; the one that made it is among the best, and plain friction is clearly worse."""
    robot, log = spoilt(name, law, size)
    result = cs.identify(robot, log, friction=law, physical=False)
    plain = cs.identify(robot, log, physical=False)
    assert result.drive is not None and result.test is not None and plain.test is not None
    assert result.drive.law.name.startswith(law)
    _, ratio, doubt = result.drive.errors[result.drive.law.name]
    assert ratio + 2 * doubt < 1.0
    assert np.mean(result.test.after / plain.test.after) < 0.95
    assert "friction laws" in result.summary()


def test_plain_friction_stays_plain() -> None:
    robot, log = spoilt("ur5", None)
    result = cs.identify(robot, log, friction="auto", physical=False)
    assert result.drive is not None and result.drive.law.name == "coulomb_viscous"
    with pytest.raises(ValueError, match="friction is 'stick'"):
        cs.identify(robot, log, friction="stick")


def test_physical_fit_with_a_law() -> None:
    """The robot found with a monotone law is possible, and fits as well as the free one."""
    robot, log = spoilt("ur5", "lugre", 3.0)
    free = cs.identify(robot, log, friction="lugre", physical=False)
    possible = cs.identify(robot, log, friction="lugre", validate=log)
    assert free.test is not None and possible.test is not None and possible.validation is not None
    assert (possible.test.after < 1.3 * free.test.after).all()
    assert (possible.validation.all < 0.1).all()
