"""A gripper that closes on a cube from a random distance, and squeezes it a little more, or less, than its weight needs.

Two fingers, the right one coupled to the left, press with half of the drive's force F each: the cube stays where
2 mu F / 2 >= m g. The fingers strike it first; until `GRASP` it is carried. It is in the middle of the pads' width: beside it
friction carries a torque, too, and the pressures of several points that would bear it are not the only ones that statics allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

import costate as cs
from benchmarks.validation.gripper import EDGE, GRAVITY, MASS, fingers

FRICTION = 0.5
CRITICAL = MASS * GRAVITY / FRICTION
"""Force of the drive below which the cube is lost [N]."""
SQUEEZES = (1.01, 0.99)
GRASP, HOLD = 0.3, 1.0
"""Seconds in which the cube is carried while the fingers close, and in which it is then watched."""
OPEN, ASIDE, ROLL = 0.004, 0.01, 0.4
"""Largest opening of the fingers, the cube above or below the middle of the pads [m], and turned about the closing axis
[rad]."""
LOST = 0.02
"""Fall that counts as lost [m]: with a squeeze 1 % too small it falls 49 mm."""
DT = 0.002


@dataclass(frozen=True)
class Grasps:
    """Falls of the cubes, for each squeeze and start."""

    fallen: np.ndarray
    """Falls [m], (squeezes, starts)."""
    strikes: np.ndarray
    """Largest speed at which a finger came to the cube [m/s], (starts,)."""

    @property
    def right(self) -> np.ndarray:
        """Return whether each cube stayed, or fell, as it should: (squeezes, starts)."""
        return (self.fallen > LOST) == (np.array(SQUEEZES) < 1)[:, None]


def gripper(contact: cs.ContactModel) -> cs.World:
    """Return the fingers and the cube between them. contact: with friction FRICTION."""
    return cs.World(
        robots={"gripper": fingers()},
        bodies=[cs.Body("cube", [cs.shapes.box((EDGE,) * 3)], MASS)],
        constraints=[cs.Couple("right_joint", "left_joint")],
        actuators={"left_joint": cs.Torque()},
        contact=contact,
        dt=DT,
        collide=[("gripper/left", "cube"), ("gripper/right", "cube")],
        gravity=(0.0, 0.0, -GRAVITY),
        check=False,
    )


def grasps(world: cs.World, starts: int, hold: float = HOLD) -> Grasps:
    """Close the fingers from random starts, the same for every squeeze, and let go of the cubes."""
    random = np.random.default_rng(0)
    state = world.initial_state(starts, torch.float64).numpy()
    cube, fingers = world.coordinates("cube")[0].start, world.coordinates("gripper")
    opening = random.uniform(0.001, OPEN, starts)
    state[:, fingers[0]] = -opening[:, None]
    state[:, cube] = random.uniform(-0.9, 0.9, starts) * opening
    state[:, cube + 2] = random.uniform(-ASIDE, ASIDE, starts)
    roll = random.uniform(-ROLL, ROLL, starts) / 2
    state[:, cube + 3], state[:, cube + 6] = np.sin(roll), np.cos(roll)
    both = torch.tensor(np.tile(state, (len(SQUEEZES), 1)))
    closing, watched = round(GRASP / DT), round(hold / DT)
    force = CRITICAL * torch.tensor(SQUEEZES, dtype=torch.float64).repeat_interleave(starts)[:, None]
    carried = torch.zeros(closing + watched, len(both), 6, dtype=torch.float64)
    carried[:closing, :, 2] = MASS * GRAVITY
    with torch.no_grad():
        states = world.rollout(both, force.expand(closing + watched, -1, -1), wrenches={"cube": carried})
    fallen = (states[closing, :, cube + 2] - states[-1, :, cube + 2]).numpy().reshape(len(SQUEEZES), starts)
    speed = states[:closing, :, fingers[1]].abs().amax((0, 2)).numpy()[:starts]
    return Grasps(np.where(np.isfinite(fallen), fallen, math.inf), speed)
