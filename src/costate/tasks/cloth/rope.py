"""A rope is threaded through a ring by fingers that hold it behind its tip, which droops, and stay in front of the ring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.continuum.cloth.body import straight_rope
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.state import ClothHistory
from costate.continuum.cloth.step import Solver
from costate.model.shape import Shape
from costate.tasks.cloth.draws import Draws
from costate.tasks.cloth.knots import smooth
from costate.tasks.cloth.problem import ClothProblem, ClothTask, Facts

DT = 0.02
SPACING = 0.01
"""Distance of the points of the rope [m]."""
TIP = 12
"""Number of the first of two points that fingers hold; the tip is point 0."""
RING, TUBE = 0.035, 0.008
"""Radius of the ring's middle line, and of its tube [m]."""
SIDES = 12
BEYOND = 0.05
"""Distance behind the ring at which the tip should end [m]."""
FRONT = 0.02
"""Least distance of fingers from the plane of the ring [m]."""
KNOTS = 4
MOMENTS = (0.5, 0.625, 0.75, 0.875, 1.0)
"""Shares of the time at which the tip should be on the axis of the ring."""
REACH = np.array([0.1, 0.1, 0.1, 0.8])
"""Largest change of a knot: place [m], and pitch [rad]."""


def tubes() -> list[Shape]:
    """Return the straight tubes of which a ring about the x axis is made."""
    length = 2 * RING * np.tan(np.pi / SIDES)
    return [
        cs.shapes.capsule(TUBE, length, (0.0, RING * np.sin(t), RING * np.cos(t)), (np.pi / 2 - t, 0.0, 0.0))
        for t in 2 * np.pi * np.arange(SIDES) / SIDES
    ]


@lru_cache(maxsize=4)
def _model(segments: int, tolerance: float) -> ClothModel:
    rope = straight_rope((0, 0, 0), (-SPACING * segments, 0, 0), segments, parameters={"density": 0.04}, name="rope")
    hoop = Collider(cs.shapes.union(*tubes()), 0.3, moves=True, name="ring")
    return ClothModel([rope], DT, colliders=[hoop], pins=[TIP, TIP + 1], solver=Solver(tolerance))


@dataclass(frozen=True)
class ThreadTask(ClothTask):
    """Thread a rope through a ring that is somewhere."""

    summary: str = "fingers thread a rope, whose tip droops, through a ring, and stay in front of it"
    steps: int = 60
    segments: int = 40

    def problem(self, seed: int) -> ClothProblem:
        draw = Draws(seed)
        model = _model(self.segments, self.tolerance)
        middle = draw("ring [m]", [0.12, -0.06, -0.06], [0.16, 0.06, 0.06])
        turn = _turned(*draw("pitch and yaw of the ring [rad]", [-0.3, -0.3], [0.3, 0.3]))
        bending = {"bending": draw.log("bending stiffness [N m^2]", 1e-4, 4e-4)}
        pose = torch.as_tensor(np.concatenate([middle, turn.flatten()]))
        poses = pose.expand(self.steps + 1, 1, 12)
        place, axis = pose[:3], pose[3:].reshape(3, 3)[:, 0]
        state = model.start()
        held = state.x[TIP]
        share = torch.linspace(0, 1, KNOTS + 1, dtype=torch.float64)[:, None]
        over = 0.14 + BEYOND  # a straight way, as if the rope were stiff and the ring in the middle of its range
        guess = torch.cat([held + share * torch.tensor([over, 0.0, 0.0]), 0 * share], -1)
        frames = [round(s * self.steps) for s in MOMENTS]
        ahead = torch.linspace(-0.02, BEYOND, len(frames), dtype=torch.float64)[:, None]
        want = place + ahead * axis
        size = torch.as_tensor(np.tile(REACH, KNOTS))

        def play(z: Tensor) -> ClothHistory:
            path = smooth(torch.cat([guess[:1], guess[1:] + z.reshape(KNOTS, 4)]), self.steps)
            back = torch.stack([path[:, 3].cos(), 0 * path[:, 3], path[:, 3].sin()], -1)
            pins = torch.stack([path[:, :3], path[:, :3] - SPACING * back], 1)
            return model.run(self.steps, state, pins=pins, poses=poses, parameters=bending)

        def residuals(z: Tensor, motion: ClothHistory) -> Tensor:
            close = ((motion.x[:, TIP] - place) @ axis + FRONT).clamp(min=0)
            return torch.cat([((motion.x[frames, 0] - want) / 5e-3).flatten(), close / 5e-3, 0.1 * z / size])

        def judge(motion: ClothHistory) -> tuple[Facts, bool]:
            own = ((motion.x.detach() - place) @ pose[3:].reshape(3, 3)).numpy()
            off = crossing(own[-1])
            ahead, fingers = float(own[-1, 0, 0]), -float(own[:, TIP, 0].max())
            facts = {
                "from the middle [mm]": 1e3 * off,
                "tip behind the ring [mm]": 1e3 * ahead,
                "fingers in front [mm]": 1e3 * fingers,
            }
            return facts, bool(off < RING - TUBE and ahead > BEYOND / 2 and fingers > FRONT / 2)

        n = 4 * KNOTS
        box = -np.tile(REACH, KNOTS), np.tile(REACH, KNOTS)
        return ClothProblem(
            model,
            np.zeros(n),
            box,
            play,
            residuals,
            judge,
            spread=0.15,
            poses=poses,
            drawn={"ring": tubes()},
            seen=draw.seen,
        )


def crossing(own: np.ndarray) -> float:
    """Return how far from the axis x a chain of points (n, 3) passes the plane x = 0 [m]; infinite if not just once."""
    sign = own[:, 0] > 0
    (at,) = np.nonzero(sign[1:] != sign[:-1])
    if len(at) != 1:
        return float("inf")
    a, b = own[at[0]], own[at[0] + 1]
    return float(np.linalg.norm((a + (b - a) * a[0] / (a[0] - b[0]))[1:]))


def _turned(pitch: float, yaw: float) -> np.ndarray:
    c, s, e, f = np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    return np.array([[e, -f, 0], [f, e, 0], [0, 0, 1]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
