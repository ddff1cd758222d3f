"""The ten scenes. Sizes, speeds and materials are PlasticineLab's where a grid of half its fineness can show them; z points up, and
targets are made from a random number: plasticine at another place, or what a motion that is not told leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

import costate as cs
from costate.continuum.mpm import fill
from costate.continuum.mpm.walls import Obstacle
from costate.tasks.soft.plasticine.hands import Chopsticks, Fingers, Form, Hand, RollingPin

STEPS = 50
"""Control steps of an episode."""
Random = np.random.Generator


@dataclass(frozen=True, eq=False)
class Scene:
    """Plasticine, tools, and what is wanted."""

    points: np.ndarray
    """Particles (n, 3) [m]."""
    hand: Hand
    target: np.ndarray
    """Particles of the wanted shape (n, 3) [m], or the actions (steps, count) that make it."""
    strength: float = 50.0
    """Yield stress [Pa]."""
    nu: float = 0.2
    floor: float = 1.5
    """Coefficient of friction of the floor z = 0."""
    gravity: float = 1.0
    obstacles: Sequence[Obstacle] = ()

    @property
    def is_demonstrated(self) -> bool:
        """True if the target is given by actions."""
        return self.target.shape == (STEPS, self.hand.count)


def stages(*parts: tuple[int, Sequence[float]]) -> np.ndarray:
    """Return actions (STEPS, n): each for a number of steps, then none."""
    rows = np.concatenate([np.tile(np.asarray(a, float), (k, 1)) for k, a in parts])
    if len(rows) > STEPS:
        raise ValueError(f"the motion takes {len(rows)} steps; an episode has {STEPS}")
    return np.concatenate([rows, np.zeros((STEPS - len(rows), rows.shape[1]))])


def block(spacing: float, size: Sequence[float], centre: Sequence[float] = (0.5, 0.5)) -> np.ndarray:
    """Return a block on the floor."""
    low = np.array([centre[0] - size[0] / 2, centre[1] - size[1] / 2, 0.0])
    return fill.box(tuple(low), tuple(low + np.asarray(size)), spacing)


def ball(spacing: float, radius: float, centre: ArrayLike) -> np.ndarray:
    """Return a ball."""
    c = np.asarray(centre, float)
    return fill.fill(cs.shapes.sphere(radius, tuple(c)), spacing, tuple(c - radius), tuple(c + radius))


def _beside(centre: np.ndarray, way: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the places on both sides of one."""
    return [tuple(centre - np.asarray(way)), tuple(centre + np.asarray(way))]


def pressed(
    start: Sequence[float], goal: Sequence[float], scale: Sequence[float], steps: int
) -> tuple[int, list[float]]:
    """Return the stage in which a finger goes straight to a goal in some steps, in shares of its scale."""
    way = (np.asarray(goal, float) - np.asarray(start, float)) / steps
    return steps, [float(w / s) if s else 0.0 for w, s in zip(way, scale, strict=True)]


def visits(start: Sequence[float], scale: Sequence[float], *goals: tuple[int, Sequence[float]]) -> np.ndarray:
    """Return the actions of a finger that goes from goal to goal, each in a number of steps."""
    parts, here = [], start
    for steps, goal in goals:
        parts.append(pressed(here, goal, scale, steps))
        here = goal
    return stages(*parts)


def move(random: Random, spacing: float) -> Scene:
    """Move a ball that two fingers hold to another place in the air."""
    c = np.array([0.5, 0.5, 0.5])
    way = random.normal(size=3)
    way *= random.uniform(0.15, 0.22) / np.linalg.norm(way)
    points = ball(spacing, 0.1, c)
    hand = Fingers([Form(0.03)] * 2, _beside(c, (0.13, 0.0, 0.0)), (0.01,) * 3)
    return Scene(points, hand, points + way, 200.0)


def triple_move(random: Random, spacing: float) -> Scene:
    """Move three blocks, each between two fingers, to other places."""
    parts, wanted, starts = [], [], []
    for x in (0.25, 0.5, 0.75):
        points = block(spacing, (0.1, 0.1, 0.1), (x, 0.5))
        way = [random.uniform(-0.03, 0.03), random.choice([-1, 1]) * random.uniform(0.08, 0.18), random.uniform(0, 0.1)]
        parts.append(points)
        wanted.append(points + way)
        starts += [(x - 0.085, 0.5, 0.05), (x + 0.085, 0.5, 0.05)]
    hand = Fingers([Form(0.03)] * 6, starts, (0.01,) * 3)
    return Scene(np.concatenate(parts), hand, np.concatenate(wanted), 200.0)


def torus(random: Random, spacing: float) -> Scene:
    """Press a ring into a block at another place."""
    start, scale = (0.5, 0.5, 0.16), (0.004,) * 3
    x, y = 0.5 + random.uniform(-0.06, 0.06, 2)
    depth = random.uniform(0.06, 0.075)
    hand = Fingers([Form(0.03, ring=0.08)], [start], scale, low=0.05)
    actions = visits(start, scale, (20, (x, y, 0.15)), (30, (x, y, depth)))
    return Scene(block(spacing, (0.3, 0.3, 0.1)), hand, actions, floor=100.0)


def rope(random: Random, spacing: float) -> Scene:
    """Push the ends of a rope with two fingers until it lies around a pillar."""
    x = 0.5 + random.uniform(-0.06, 0.06)
    scale = (0.01,) * 3
    starts = [(0.24, 0.72, 0.03), (0.76, 0.72, 0.03)]
    hand = Fingers([Form(0.03)] * 2, starts, scale, low=0.03)
    ways = [
        visits(s, scale, (STEPS, (s[0] + side * random.uniform(0, 0.08), s[1] - random.uniform(0.2, 0.3), 0.03)))
        for s, side in zip(starts, (1, -1), strict=True)
    ]
    pillar = Obstacle(cs.shapes.cylinder(0.12, 0.2, (x, 0.46, 0.0)), 0.9)
    points = block(spacing, (0.6, 0.06, 0.06), (0.5, 0.63))
    return Scene(points, hand, np.concatenate(ways, 1), floor=0.3, obstacles=[pillar])


def writer(random: Random, spacing: float) -> Scene:
    """Write two strokes into a block with a pen."""
    start, scale = (0.5, 0.5, 0.19), (0.01,) * 3
    first, turn = random.uniform(0, 2 * np.pi), random.choice([-1, 1]) * random.uniform(1.2, 2.2)
    a = np.array([0.5, 0.5]) + random.uniform(-0.04, 0.04, 2)
    b = a + 0.08 * np.array([np.cos(first), np.sin(first)])
    c = b + 0.08 * np.array([np.cos(first + turn), np.sin(first + turn)])
    depth = 0.125
    hand = Fingers([Form(0.03, 0.06)], [start], scale, 0.0, low=0.11)
    actions = visits(start, scale, (10, (*a, depth)), (20, (*b, depth)), (20, (*c, depth)))
    return Scene(block(spacing, (0.3, 0.3, 0.1)), hand, actions, floor=100.0)


def pinch(random: Random, spacing: float) -> Scene:
    """Press two pits into a cube with one finger."""
    start, scale = (0.5, 0.5, 0.3), (0.02,) * 3
    angle = random.uniform(0, 2 * np.pi)
    side = 0.065 * np.array([np.cos(angle), np.sin(angle)])
    (x, y), (u, v) = 0.5 + side, 0.5 - side
    low = random.uniform(0.14, 0.17, 2)
    hand = Fingers([Form(0.04)], [start], scale, low=0.1)
    goals = (12, (x, y, low[0])), (10, (x, y, 0.26)), (10, (u, v, 0.26)), (10, (u, v, low[1]))
    return Scene(block(spacing, (0.2, 0.2, 0.2)), hand, visits(start, scale, *goals), floor=100.0)


def rolling_pin(random: Random, spacing: float) -> Scene:
    """Flatten a block with a rolling pin."""
    scale = (0.667, 0.0667, 0.004)
    turn = random.uniform(-0.4, 0.4) / 15 / scale[1]
    press = -random.uniform(0.045, 0.06) / 15 / scale[2]
    hand = RollingPin(0.03, 0.3, (0.5, 0.5, 0.14), scale, low=0.06)
    actions = stages((15, (0, turn, press)), (7, (0.8, 0, 0)), (14, (-0.8, 0, 0)), (14, (0.8, 0, 0)))
    return Scene(block(spacing, (0.3, 0.3, 0.1)), hand, actions)


def chopsticks(random: Random, spacing: float) -> Scene:
    """Pick up a rope, lift it and turn it."""
    scale = (0.02, 0.02, 0.02, 0.04, 0.02)
    turn = random.choice([-1, 1]) * random.uniform(0.2, 0.35) / 30 / scale[3]
    rise, x, y = random.uniform(0.08, 0.12), *random.uniform(-0.05, 0.05, 2)
    hand = Chopsticks(0.025, 0.16, (0.5, 0.5, 0.12), 0.14, scale, low=0.12)
    close = -0.045 / 10 / scale[4]
    carry = (x / 30 / scale[0], y / 30 / scale[1], rise / 30 / scale[2], turn, 0.0)
    points = block(spacing, (0.07, 0.5, 0.06))
    return Scene(points, hand, stages((10, (0, 0, 0, 0, close)), (30, carry)), 200.0, floor=0.0, gravity=5.0)


def assembly(random: Random, spacing: float) -> Scene:
    """Put a ball onto a stand."""
    stand = block(spacing, (0.16, 0.16, 0.16), (0.62, 0.5))
    centre = np.array([0.3, 0.5, 0.07])
    small = ball(spacing, 0.07, centre)
    goal = np.append(np.array([0.62, 0.5]) + random.uniform(-0.03, 0.03, 2), 0.16 + 0.07)
    hand = Fingers([Form(0.035)] * 2, _beside(centre, (0.0, 0.1, 0.0)), (0.012,) * 3, low=0.035)
    wanted = np.concatenate([stand, small + (goal - centre)])
    return Scene(np.concatenate([stand, small]), hand, wanted, 100.0, floor=100.0)


def table(random: Random, spacing: float) -> Scene:
    """Push a leg of a table outwards."""
    legs = [block(spacing, (0.06, 0.06, 0.16), (0.5 + sx * 0.1, 0.5 + sy * 0.1)) for sx in (-1, 1) for sy in (-1, 1)]
    top = fill.box((0.36, 0.36, 0.16), (0.64, 0.64, 0.22), spacing)
    start, scale = (0.5, 0.5, 0.06), (0.03, 0.03, 0.0)
    sx, sy = random.choice([-1, 1], 2)
    far = random.uniform(0.1, 0.14, 2)
    hand = Fingers([Form(0.04)], [start], scale)
    actions = visits(start, scale, (40, (0.5 + sx * far[0], 0.5 + sy * far[1], 0.06)))
    return Scene(np.concatenate([*legs, top]), hand, actions, nu=0.05, floor=0.3)


SCENES: dict[str, Callable[[Random, float], Scene]] = {
    "move": move,
    "triple_move": triple_move,
    "torus": torus,
    "rope": rope,
    "writer": writer,
    "pinch": pinch,
    "rolling_pin": rolling_pin,
    "chopsticks": chopsticks,
    "assembly": assembly,
    "table": table,
}
"""Name of a task -> function (random numbers, spacing of the particles [m]) that makes its scene."""
