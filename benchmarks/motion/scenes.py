"""Scenes of the audit against the motion: each is a Costate world and a system of the reference, made from the same numbers.

A kind of scene is built once; its random starts, restitutions, frictions and directions of gravity are inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

import costate as cs
from benchmarks.motion.bodies import Arm, Array, Ball, Floating, Free, Part
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
LEG = Arm((0.0, 0.0, 0.598), (0.3, 0.25), (0.8, 0.5), (0.006, 0.003))
"""Straight, its foot is 2 mm inside the ground."""
TIP = 0.05
CLEAR = 5e-3
"""Smallest distance between shapes at a start [m]."""
GRAVITY = np.array([0.0, 0.0, -9.81])
FLOATING = 6
"""Numbers of the base in a place of a robot."""
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
    walls: Sequence[cs.Static] = ()

    def world(self, dt: float, contact: ContactModel) -> cs.World:
        scenery = list(self.walls)
        if self.ground is not None:
            scenery.append(cs.Static("ground", cs.shapes.plane(rpy=self.ground)))
        robots, poses, first = [], {}, self.system.parts[0]
        if isinstance(first, Arm):
            robots, poses = [Robot(_arm_model(first))], {"arm": Transform(np.eye(3), np.array(first.base))}
        elif isinstance(first, Floating):
            robots = [cs.load_robot(first.robot)]
        return cs.World(
            robots, list(self.bodies), scenery, contact=contact, dt=dt, poses=poses, check=False,
            parameters=["restitution", "friction", "gravity"],
            collide=(lambda a, b: "toe" in a + b) if isinstance(first, Floating) else None,
        )  # fmt: skip

    def gap(self, places: list[Array]) -> float:
        """Return the smallest distance between shapes at a start [m]."""
        parts = self.system.parts
        if not self.system.pairs:
            return np.inf
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
    if len(place) == 4:
        return np.array([[0.1], [0.3], [1.0], [3.0]])
    size = np.array([[0.3], [2.0]]) * np.ones(place.shape)
    if place.shape[1] > FLOATING:
        size[:, :3] = [[0.1], [1.0]]
    return size


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


def _arm_model(arm: Arm) -> Model:
    """Return an arm, with a ball at its tip."""
    links, joints = [Link("base")], []
    for k, (length, mass, moment) in enumerate(zip(arm.lengths, arm.masses, arm.moments, strict=True)):
        shape = (cs.shapes.sphere(TIP, (0, 0, -length)),) if k == len(arm.lengths) - 1 else ()
        inertia = Inertia(mass, np.array([0, 0, -length / 2]), np.diag([moment, moment, moment]))
        links.append(Link(f"link{k}", inertia, shape, shape))
        at = Transform(np.eye(3), np.array([0.0, 0.0, -arm.lengths[k - 1] if k else 0.0]))
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
PEG, PEG_RADIUS, GAP = 0.3, 0.01, 0.1
"""Length and radius of a peg, and half of the distance of the walls that it jams between [m]."""
STANDS = 0.53
"""Height of a Laikago's base above which its feet are clear of the ground [m]."""
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


def _onto_straight(rng: np.random.Generator) -> list[Array]:
    """Draw a leg that swings towards its straight posture, in which its foot is in the ground."""
    side = rng.choice([-1, 1])
    hip, knee = side * rng.uniform(0.15, 0.4), rng.uniform(-0.05, 0.05)
    return [np.array([[hip, knee], [-side * rng.uniform(1, 3), rng.uniform(-0.3, 0.3)]])]


def _leaning(rng: np.random.Generator) -> list[Array]:
    """Draw a peg between two walls that are closer than it is long, a little less turned than it could be at most."""
    lean = np.arcsin((GAP - PEG_RADIUS) / (PEG / 2)) - rng.uniform(0.03, 0.1)
    v, w = rng.uniform(-1, 1, 3) * [0.3, 0.0, 1.0], np.array([0.0, rng.uniform(0, 5), 0.0])
    return [np.array([[0.0, 0.0, 0.0], [0.0, lean, 0.0], v, w])]


def _tumbling(rng: np.random.Generator) -> list[Array]:
    return [_thrown(rng, HERE, rng.uniform(-1, 1, 3))]


def _dropped(rng: np.random.Generator, height: float) -> list[Array]:
    """Draw a Laikago that falls: height of its base [m]."""
    stance = np.tile([0.0, 0.07, -0.59], 4) + 0.2 * rng.uniform(-1, 1, 12)
    place = [0.0, 0.0, height + rng.uniform(0.03, 0.1)]
    moves = [*rng.uniform(-0.5, 0.5, 2), -rng.uniform(0.5, 1.5)]
    row = np.concatenate([place, rng.uniform(-0.2, 0.2, 3), stance])
    return [np.array([row, np.concatenate([moves, rng.uniform(-1, 1, 15)])])]


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
    foot = [OnPlane(0, (0.0, 0.0, -LEG.lengths[1]), TIP, np.array([0.0, 0.0, 1.0]), 0.0, 1)]
    between = [
        OnPlane(0, (0.0, 0.0, end * PEG / 2), PEG_RADIUS, np.array([-side, 0.0, 0.0]), -GAP)
        for side in (-1, 1)
        for end in (-1, 1)
    ]
    walls = [cs.Static(f"wall{s:+d}", cs.shapes.box((0.1, 2.0, 4.0), (s * (GAP + 0.05), 0, 0))) for s in (-1, 1)]
    peg, thin = Free(0.5, (0.004, 0.004, 2e-5)), cs.shapes.capsule(PEG_RADIUS, PEG)
    dog = cast(Part, Floating("laikago", 12))
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
        Kind("straight leg on ground", System((LEG,), foot), [], (0.0, 0.0, 0.0), _onto_straight),
        Kind("peg jams between walls", System((peg,), between), [_free("peg", peg, thin)], None, _leaning, walls=walls),
        Kind("box in free flight", System((BRICK,), []), [brick], None, _tumbling),
        Kind("Laikago in free flight", System((dog,), []), [], None, lambda rng: _dropped(rng, STANDS), seconds=0.2),
        Kind("Laikago lands", System((dog,), []), [], (0.0, 0.0, 0.0), lambda rng: _dropped(rng, STANDS), seconds=0.2),
    )  # fmt: skip
    return {kind.name: kind for kind in found}
