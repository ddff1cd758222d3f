"""Motions whose derivative is known: closed forms, or the reference where a formula would be longer than it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import costate as cs
from benchmarks.motion.bodies import Array, Ball, Free
from benchmarks.motion.events import System
from benchmarks.motion.reference import LEVER, truth
from benchmarks.motion.scenes import GRAVITY, Kind, Start
from benchmarks.motion.touch import OnPlane, Pair, WithBall

G = -float(GRAVITY[2])
FLAT = (0.0, 0.0, 0.0)
UP = np.array([0.0, 0.0, 1.0])
DISC = Ball(1.0, 0.1)
CUBE = Free(1.0, (1 / 150, 1 / 150, 1 / 150))
"""A cube of 0.2 m and 1 kg."""
X, Y, Z, VZ, TURN = 0, 1, 2, 5, 13
"""Places of a body's numbers among the ends of a motion: position, vertical speed of a ball; angular velocity about y of a cube."""
CUE, RACK, GAP = 3.0, 0.03, 1e-3
"""Speed of the first ball [m/s], radius of all balls, and gap between those of the rack [m]."""

FINE = 0.01
"""Size of the direction at the break [m]: five impacts magnify it."""


@dataclass(frozen=True)
class Answer:
    """A derivative of a motion that is known."""

    scene: str
    derivative: str
    kind: Kind
    start: Start
    by: Start
    at: int
    """Index of the number that is differentiated."""
    scale: float = 1.0
    """Factor by which the audit's ends are multiplied."""
    formula: float | None = None
    """Closed form; None: the reference says."""

    @property
    def exact(self) -> float:
        if self.formula is not None:
            return self.formula
        return self.scale * float(truth(self.kind, self.start, self.by).slope[self.at])


def _still(*places: Array, e: float = 0.0, gravity: Array | None = None) -> Start:
    return Start(list(places), e, 0.0, np.zeros(3) if gravity is None else gravity)


def _place(p=(0.0, 0.0, 0.0), v=(0.0, 0.0, 0.0), w=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)) -> Array:
    return np.array([p, turn, v, w], float)


def _dropped(seconds: float) -> Kind:
    ground = OnPlane(0, (0, 0, 0), 0.1, UP, 0.0)
    return Kind(
        "drop", System((DISC,), [ground]), [cs.Body("a", [cs.shapes.sphere(0.1)], 1.0)], FLAT, _no_draw, seconds
    )


def _no_draw(rng: np.random.Generator) -> list[Array]:
    raise ValueError("this scene has one start")


def drop() -> list[Answer]:
    """A ball falls 1 m and bounces once, e = 1, for 0.8 s."""
    start = _still(_place((0, 0, 1.1)), e=1.0, gravity=GRAVITY)
    fall = np.sqrt(2 / G)
    left = 0.8 - fall
    what = "ball dropped from 1 m, e = 1, 0.8 s"
    return [
        Answer(what, "dz/dz0", _dropped(0.8), start, _still(_place((0, 0, 1))), Z, formula=2 * left / fall - 1),
        Answer(what, "dv/dv0", _dropped(0.8), start, _still(_place(v=(0, 0, 1))), VZ, formula=1.0),
    ]


def bounces() -> list[Answer]:
    """A ball falls 1 m and bounces three times, e = 0.9, within 2 s."""
    e, fall = 0.9, float(np.sqrt(2 / G))
    speed, left = G * fall, 2.0 - fall * (1 + 2 * e + 2 * e**2)
    formula = 3 * e**2 * speed * left - (e**3 * speed - G * left) * fall * (2 + 4 * e)
    start = _still(_place((0, 0, 1.1)), e=e, gravity=GRAVITY)
    return [
        Answer(
            "three bounces, e = 0.9, 2 s", "dz/de", _dropped(2.0), start, _still(_place(), e=1.0), Z, formula=formula
        )
    ]


def discs() -> list[Answer]:
    """Two discs of radius 0.1 meet off their centres; e = 1 and e = 0."""
    bodies = [cs.Body(name, [cs.shapes.sphere(0.1)], 1.0) for name in "ab"]
    kind = Kind("discs", System((DISC, DISC), [WithBall(0, 0.1, 1, (0, 0, 0), 0.1)]), bodies, None, _no_draw, 1.0)
    places = _place((-0.5, 0, 0), (1, 0.05, 0)), _place((0.1, 0.09, 0))
    by = _still(_place((1, 0, 0)), _place())
    return [
        Answer(f"two discs, oblique, e = {e:g}, 1 s", f"d{name}2/dx1", kind, _still(*places, e=e), by, 9 + k)
        for e in (1.0, 0.0)
        for k, name in enumerate("xy")
    ]  # fmt: skip


def cube() -> list[Answer]:
    """A cube of 0.2 m that spins at 2 rad/s strikes the ground with an edge's corner first, e = 1, without gravity."""
    half = 0.1
    corners = [(x, y, z) for x in (-half, half) for y in (-half, half) for z in (-half, half)]
    pairs: list[Pair] = [OnPlane(0, c, 0.0, UP, 0.0) for c in corners]
    body = cs.Body("a", [cs.shapes.box((0.2, 0.2, 0.2))], 1.0, inertia=np.diag(CUBE.inertia))
    kind = Kind("cube", System((CUBE,), pairs), [body], FLAT, _no_draw, 0.5)
    start = _still(_place((0, 0, 0.3), (0, 0, -1), (0.2, 2, 0.1), (0.3, 0.25, 0.1)), e=1.0)
    by = _still(_place((0, 0, 1)))
    what = "cube 0.2 m, spinning at 2 rad/s, corner first, 0.5 s"
    return [
        Answer(what, "d omega_y/dz0", kind, start, by, 12 + 1, 1 / LEVER),
        Answer(what, "dz/dz0", kind, start, by, Z),
    ]


def rack() -> list[Answer]:
    """A ball breaks a triangle of fifteen, with gaps of 1 mm; a ball of the last row after it was struck five times."""
    ball = Ball(0.17, RACK)
    across = 2 * RACK + GAP
    spots = [np.array([k * across * np.sqrt(0.75), (j - k / 2) * across, 0]) for k in range(5) for j in range(k + 1)]
    rng = np.random.default_rng(5)
    spots = [p + 0.2 * GAP * np.array([*rng.uniform(-1, 1, 2), 0]) for p in spots]
    parts = (ball,) * 16
    pairs: list[Pair] = [WithBall(a, RACK, b, (0, 0, 0), RACK) for a in range(16) for b in range(a + 1, 16)]
    bodies = [cs.Body(f"ball{k}", [cs.shapes.sphere(RACK)], ball.mass) for k in range(16)]
    kind = Kind("rack", System(parts, pairs), bodies, None, _no_draw, 0.25)
    start = _still(_place((-0.3, 0.004, 0), (CUE, 0, 0)), *(_place(p) for p in spots), e=0.95)
    by = _still(_place((0, FINE, 0)), *(_place() for _ in spots))
    return [
        Answer("break of 15 balls, e = 0.95, 0.25 s", f"d{name}15/dy0", kind, start, by, 9 * 15 + k, 1 / FINE)
        for k, name in enumerate("xy")
    ]


ANSWERS: tuple[Callable[[], list[Answer]], ...] = (drop, discs, cube, bounces, rack)
"""Scenes in the order of the table."""
