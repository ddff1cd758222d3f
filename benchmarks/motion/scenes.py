"""Scenes of the audit against the motion: each is a Costate world and a system of the reference, made from the same numbers.

A kind of scene is built once; its random starts, restitutions, frictions and directions of gravity are inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import costate as cs
from benchmarks.motion.bodies import Arm, Array, Ball, Free, Part
from benchmarks.motion.events import System
from benchmarks.motion.places import of_start
from benchmarks.motion.touch import OnPlane, Pair, WithBall
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.model.rotation import from_rpy
from costate.robot import Robot
from costate.sim.contact.model import ContactModel

TILT = (0.15, -0.1, 0.4)
"""Roll, pitch, yaw of the ground: nothing is along an axis."""
UP = from_rpy(TILT) @ np.array([0.0, 0.0, 1.0])
BOX, ROD, ROD_RADIUS = (0.2, 0.3, 0.14), 0.25, 0.06
ARM = Arm((0.0, 0.0, 0.5), (0.3, 0.25), (0.8, 0.5), (0.006, 0.003))
TIP = 0.05
CLEAR = 5e-3
"""Smallest distance between shapes at a start [m]."""
GRAVITY = np.array([0.0, 0.0, -9.81])
SPIN = 8.0
"""Largest angular velocity about an axis [rad/s]."""


@dataclass(frozen=True)
class Start:
    """A motion to follow, and the direction of a derivative: numbers of the same kinds."""

    places: list[Array]
    """Position, rotation vector, velocity, angular velocity of each body (4, 3), or angles and rates of an arm (2, n)."""
    restitution: float
    friction: float
    gravity: Array


@dataclass(frozen=True)
class Kind:
    """A kind of scene."""

    name: str
    system: System
    bodies: Sequence[cs.Body]
    """Bodies of the world, in the order of the parts; none where there is an arm."""
    ground: tuple[float, float, float] | None
    """Roll, pitch, yaw of the ground, through the origin; None: there is none."""
    draw: Callable[[np.random.Generator], list[Array]]
    """Function that draws the places of a start."""
    seconds: float = 0.4

    def world(self, dt: float, contact: ContactModel) -> cs.World:
        scenery = [] if self.ground is None else [cs.Static("ground", cs.shapes.plane(rpy=self.ground))]
        robots, poses = [], {}
        if not self.bodies:
            robots, poses = [Robot(_arm_model())], {"arm": Transform(np.eye(3), np.array(ARM.base))}
        given = ["restitution", "friction", "gravity"]
        return cs.World(
            robots, list(self.bodies), scenery, contact=contact, dt=dt, poses=poses, parameters=given, check=False
        )

    def gap(self, places: list[Array]) -> float:
        """Return the smallest distance between shapes at a start [m]."""
        parts = self.system.parts
        states = [of_start(part, place) for part, place in zip(parts, places, strict=True)]
        return min(float(np.real(pair.touch(parts, states).gap)) for pair in self.system.pairs)

    def start(self, seed: int) -> tuple[Start, Start]:
        """Draw a start and a direction. One start in four has no friction, one in eight is elastic, too; two in five have no
        gravity."""
        rng = np.random.default_rng([seed, len(self.name), ord(self.name[0])])
        places = self.draw(rng)
        while self.gap(places) < CLEAR:
            places = self.draw(rng)
        slick, falls, elastic = (rng.uniform() < share for share in (0.25, 0.6, 0.5))
        e, mu = 1.0 if slick and elastic else rng.uniform(0, 1), 0.0 if slick else rng.uniform(0.05, 1)
        along = [_size_of(p) * rng.uniform(-1, 1, p.shape) for p in places]
        # Restitution and friction vary too, but not beyond their range.
        de, dmu = 0.0 if e == 1 else rng.uniform(-0.3, 0.3), 0.0 if slick else rng.uniform(-0.3, 0.3)
        return Start(places, e, mu, GRAVITY * falls), Start(along, de, dmu, np.zeros(3))


def _size_of(place: Array) -> Array:
    """Return how far a direction moves each number: positions by up to 0.1 m, angles and speeds by more."""
    return np.array([[0.1], [0.3], [1.0], [3.0]]) if len(place) == 4 else np.array([[0.3], [2.0]])


def _thrown(rng: np.random.Generator, at: Array, v: Array) -> Array:
    return np.array([at, rng.uniform(-1.5, 1.5, 3), v, rng.uniform(-SPIN, SPIN, 3)])


def _drop(rng: np.random.Generator, clear: float, side: float = 0.0) -> Array:
    """Draw a body that falls towards the ground."""
    at = UP * (clear + rng.uniform(0.02, 0.25)) + np.array([side, 0.0, 0.0])
    return _thrown(rng, at, rng.uniform(-1, 1, 3) - UP * rng.uniform(1.0, 3.0))


def _hit(rng: np.random.Generator, target: Array, reach: float) -> Array:
    """Draw a ball that is thrown at a point, past its middle by up to the reach."""
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    off = np.cross(way, rng.normal(size=3))
    off *= rng.uniform(0, 1) * reach / np.linalg.norm(off)
    return _thrown(rng, target - way * rng.uniform(0.35, 0.6) + off, way * rng.uniform(2.0, 4.0))


def _arm_model() -> Model:
    """Return the arm, with a ball at its tip."""
    links, joints = [Link("base")], []
    for k, (length, mass, moment) in enumerate(zip(ARM.lengths, ARM.masses, ARM.moments, strict=True)):
        shape = (cs.shapes.sphere(TIP, (0, 0, -length)),) if k == len(ARM.lengths) - 1 else ()
        inertia = Inertia(mass, np.array([0, 0, -length / 2]), np.diag([moment, moment, moment]))
        links.append(Link(f"link{k}", inertia, shape, shape))
        at = Transform(np.eye(3), np.array([0.0, 0.0, -ARM.lengths[k - 1] if k else 0.0]))
        joints.append(Joint(f"joint{k}", "revolute", links[-2].name, links[-1].name, at, np.array([0.0, 1.0, 0.0])))
    return Model("arm", tuple(links), tuple(joints))


def _ball(name: str, part: Ball) -> cs.Body:
    return cs.Body(name, [cs.shapes.sphere(part.radius)], part.mass)


def _free(name: str, part: Free, shape) -> cs.Body:
    return cs.Body(name, [shape], part.mass, inertia=np.diag(part.inertia))


def _grounded(part: int, points: Sequence[Sequence[float]], radius: float, link: int = 0) -> list[Pair]:
    return [OnPlane(part, tuple(p), radius, UP, 0.0, link) for p in points]  # type: ignore[arg-type]


BIG, SMALL = Ball(1.0, 0.1), Ball(0.5, 0.07)
BRICK = Free(1.2, (0.02, 0.011, 0.03))
STICK = Free(0.9, (0.012, 0.013, 0.004))
CORNERS = [[x, y, z] for x in (-0.1, 0.1) for y in (-0.15, 0.15) for z in (-0.07, 0.07)]
ENDS = [[0, 0, -ROD / 2], [0, 0, ROD / 2]]
HALF = (0.1, 0.15, 0.07)
HERE = np.array([0.1, -0.2, 0.3])


def _three(rng: np.random.Generator) -> list[Array]:
    first = _drop(rng, 0.35)
    return [_hit(rng, first[0], 0.15), first, _drop(rng, 0.1, side=0.7)]


def _at_rest(rng: np.random.Generator) -> Array:
    return np.array([HERE, rng.uniform(-1.5, 1.5, 3), rng.uniform(-0.3, 0.3, 3), rng.uniform(-SPIN, SPIN, 3) / 2])


def _swing(rng: np.random.Generator) -> list[Array]:
    """Draw a blow of the arm against the ground."""
    side = rng.choice([-1, 1])
    relative = side * np.array([rng.uniform(0.9, 1.3), rng.uniform(0.2, 0.8)])
    return [np.array([relative, -side * rng.uniform(1, 4, 2)])]


def _ball_ball(a: int, b: int, parts: Sequence[Part]) -> Pair:
    first, second = parts[a], parts[b]
    assert isinstance(first, Ball) and isinstance(second, Ball)
    return WithBall(a, first.radius, b, (0, 0, 0), second.radius)


def kinds() -> dict[str, Kind]:
    """Return the kinds of scenes by name."""
    brick, stick = (
        _free("brick", BRICK, cs.shapes.box(BOX)),
        _free("stick", STICK, cs.shapes.capsule(ROD_RADIUS, ROD)),
    )
    centre = [[0.0, 0.0, 0.0]]
    trio = (BIG, SMALL, BIG)
    meetings: list[Pair] = [_ball_ball(a, b, trio) for a, b in ((0, 1), (0, 2), (1, 2))]
    meetings += [*_grounded(0, centre, 0.1), *_grounded(1, centre, 0.07), *_grounded(2, centre, 0.1)]
    tip = _grounded(0, [[0, 0, -ARM.lengths[1]]], TIP, link=1)
    found = (
        Kind("ball on ground", System((BIG,), _grounded(0, centre, 0.1)), [_ball("a", BIG)], TILT,
             lambda rng: [_drop(rng, 0.1)]),
        Kind("two balls", System((BIG, SMALL), [_ball_ball(0, 1, (BIG, SMALL))]), [_ball("a", BIG), _ball("b", SMALL)], None,
             lambda rng: [_hit(rng, HERE, 0.15), _at_rest(rng)]),
        Kind("three balls and ground", System(trio, meetings), [_ball("a", BIG), _ball("b", SMALL), _ball("c", BIG)], TILT, _three),
        Kind("box on ground", System((BRICK,), _grounded(0, CORNERS, 0.0)), [brick], TILT, lambda rng: [_drop(rng, 0.2)]),
        Kind("capsule on ground", System((STICK,), _grounded(0, ENDS, ROD_RADIUS)), [stick], TILT, lambda rng: [_drop(rng, 0.2)]),
        Kind("ball and box", System((SMALL, BRICK), [WithBall(0, 0.07, 1, HALF)]), [_ball("a", SMALL), brick], None,
             lambda rng: [_hit(rng, HERE, 0.12), _at_rest(rng)]),
        Kind("ball and capsule", System((SMALL, STICK), [WithBall(0, 0.07, 1, (0, 0, ROD / 2), ROD_RADIUS)]),
             [_ball("a", SMALL), stick], None, lambda rng: [_hit(rng, HERE, 0.11), _at_rest(rng)]),
        Kind("two hinged links on ground", System((ARM,), tip), [], TILT, _swing),
    )  # fmt: skip
    return {kind.name: kind for kind in found}
