"""The event-driven reference: impacts against closed forms, and motions that it must refuse."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.motion.bodies import Ball
from benchmarks.motion.events import MOVES, Laws, System, UnresolvedError, move, solve_impact
from benchmarks.motion.identities import at_start, energy
from benchmarks.motion.reference import follow, truth
from benchmarks.motion.scenes import GRAVITY, Start, kinds
from benchmarks.motion.touch import OnPlane, WithBall

UP = np.array([0.0, 0.0, 1.0])
BALL = Ball(1.0, 0.1)
FLIGHT = 1e-7
"""Relative change of the energy of a turning box in flight, by Runge-Kutta steps of 2 ms."""


def bounced(spin: float, friction: float, e: float = 0.7) -> np.ndarray:
    """Velocity and spin after a ball at (3, 0, -2) m/s has met the ground."""
    ground = System((BALL,), [OnPlane(0, (0, 0, 0), 0.1, UP, 0.0)])
    start = np.array([0, 0, 0.3, 3, 0, -2, 0, spin, 0])
    return move(ground, [start], Laws(e, friction, np.zeros(3)), 0.2).states[0][3:].real


def test_a_ball_that_slides_through_its_impact() -> None:
    after = bounced(spin=0.0, friction=0.1)
    push = 1.7 * 2
    np.testing.assert_allclose(after[[0, 2, 4]], [3 - 0.1 * push, 1.4, 0.1 * push / 0.04], rtol=1e-12)


def test_a_ball_that_sticks_rolls_afterwards() -> None:
    """Friction that stops the sliding of a ball takes 2/7 of it from the velocity, and the rest becomes spin."""
    after = bounced(spin=0.0, friction=1.0)
    np.testing.assert_allclose(after[[0, 2]], [3 * 5 / 7, 1.4], rtol=1e-12)
    assert after[0] - 0.1 * after[4] == pytest.approx(0, abs=1e-12)


def test_an_impact_off_the_centre_with_friction_is_within_its_cone() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        G = rng.normal(size=(3, 6))
        A, before = (G @ G.T).astype(complex), rng.normal(size=3).astype(complex)
        before[0] = -abs(before[0])
        try:
            x = solve_impact(A, before, Laws(0.5, 0.4, np.zeros(3))).real
        except UnresolvedError:
            continue
        after = (A @ x + before).real
        size = float(np.linalg.norm(x[1:]))
        assert after[0] == pytest.approx(-0.5 * before[0].real) and size <= 0.4 * x[0] * (1 + 1e-9)
        if size < 0.4 * x[0] * (1 - 1e-9):
            assert np.abs(after[1:]).max() < 1e-9
        else:  # at its bound it points against the sliding that is left
            assert x[1:] @ after[1:] == pytest.approx(-size * np.linalg.norm(after[1:]), rel=1e-6)


def test_no_impact_gains_energy() -> None:
    """Nor does its derivative: where the bound is active, energy is kept exactly, and so it is at disturbed starts."""
    kind, bound = kinds()["box on ground"], 0
    for seed in range(60):
        start, by = kind.start(seed)
        start = Start(start.places, 0.99, 0.6, np.zeros(3))
        by = Start(by.places, 0.0, 0.0, np.zeros(3))
        try:
            end, motion = follow(kind, start, by, 1j * MOVES)
        except UnresolvedError:
            continue
        first, last = (energy(kind, at, start.gravity) for at in (at_start(kind, start, by), end))
        assert last.real <= first.real * (1 + FLIGHT)
        if len(motion.times) == 1 and last.real > first.real * (1 - FLIGHT):
            bound += 1
            assert last.imag == pytest.approx(first.imag, rel=1e-6)
    assert bound


def test_a_ball_that_comes_to_rest_is_refused() -> None:
    ground = System((BALL,), [OnPlane(0, (0, 0, 0), 0.1, UP, 0.0)])
    start = np.array([0, 0, 0.3, 0, 0, 0, 0, 0, 0.0])
    with pytest.raises(UnresolvedError, match="rests"):
        move(ground, [start], Laws(0.2, 0.0, GRAVITY), 1.0)


def test_a_grazing_impact_is_recognised() -> None:
    """Balls that overlap by 1e-9 m in passing: disturbances of 1e-5 m decide whether they meet."""
    kind = kinds()["two balls"]
    assert isinstance(kind.system.pairs[0], WithBall)
    off = 0.17 - 1e-9
    places = [np.array([[-0.4, off, 0], [0, 0, 0], [2, 0, 0], [0, 0, 0.0]]), np.zeros((4, 3))]
    by = Start([np.array([[0, 0.1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0.0]]), np.zeros((4, 3))], 0.0, 0.0, np.zeros(3))
    with pytest.raises(UnresolvedError, match=r"settle|grazes"):
        truth(kind, Start(places, 1.0, 0.0, np.zeros(3)), by)
