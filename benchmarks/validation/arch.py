"""Validation: an arch of wedge-shaped stones, dry on the ground, stands; with little friction, or without a stone, it falls.

What to expect follows from statics alone: rigid stones can stand if forces exist at the edges of their joints that push, keep to
the friction bound, and balance every stone's weight (the static theorem of limit analysis: a thrust line inside of the stones).
`can_stand` asks a linear program for them; it knows nothing of the simulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import trimesh
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

import costate as cs
from costate.model.surface import Softness
from costate.sim import World

RADIUS, THICKNESS, DEPTH = 1.0, 0.25, 0.4
"""Radius of the middle line, thickness between inner and outer side, depth along the axis [m]."""
DENSITY = 2000.0
GRAVITY = 9.81
FRICTION = 0.8
FELL = 0.1
"""A stone that has moved further has fallen [m]."""
MODELS: dict[str, tuple[cs.ContactModel, float, int]] = {
    "Hard": (cs.Hard(), 0.01, 5),
    "PGS": (cs.PGS(), 0.01, 5),
    "Newton": (cs.Newton(cone="elliptic", softness=Softness((0.004, 1.0))), 0.01, 5),
    "Newton, impratio 10": (cs.Newton(cone="elliptic", impratio=10.0, softness=Softness((0.004, 1.0))), 0.01, 5),
}
"""Contact model, control step [s], substeps."""


@dataclass(frozen=True)
class Arch:
    """Stones between equal angles, from the right foot to the left."""

    stones: int = 7
    thickness: float = THICKNESS

    @property
    def angles(self) -> np.ndarray:
        """Angles of the joints [rad], (stones + 1,)."""
        return np.linspace(0, np.pi, self.stones + 1)

    def corners(self, stone: int) -> np.ndarray:
        """Compute corners in x, z: inner and outer end of its first joint, outer and inner end of its second [m], (4, 2)."""
        first, second = (np.array([np.cos(a), np.sin(a)]) for a in self.angles[stone : stone + 2])
        inner, outer = RADIUS - self.thickness / 2, RADIUS + self.thickness / 2
        return np.array([inner * first, outer * first, outer * second, inner * second])

    def area(self, stone: int) -> float:
        """Compute the area between its straight sides [m^2]."""
        (x, z), (u, w) = self.corners(stone).T, np.roll(self.corners(stone), -1, axis=0).T
        return float(np.sum(x * w - u * z) / 2)

    def center(self, stone: int) -> np.ndarray:
        """Centre of mass in the plane [m], (2,)."""
        (x, z), (u, w) = self.corners(stone).T, np.roll(self.corners(stone), -1, axis=0).T
        cross = x * w - u * z
        return np.array([np.sum((x + u) * cross), np.sum((z + w) * cross)]) / (6 * self.area(stone))


# --- what statics says ----------------------------------------------------------------------------------------------


def can_stand(arch: Arch, friction: float, without: int | None = None) -> bool:
    """Tell whether forces exist that hold all stones: at both ends of every joint a push and a bounded friction.

    without: A stone that is missing; the joints beside it carry nothing.
    """
    n = arch.stones
    balance, weight = np.zeros((3 * n, 4 * (n + 1))), np.zeros(3 * n)
    for joint, angle in enumerate(arch.angles):
        for end, radius in enumerate((RADIUS - arch.thickness / 2, RADIUS + arch.thickness / 2)):
            at = radius * np.array([np.cos(angle), np.sin(angle)])
            push, slide = np.array([-np.sin(angle), np.cos(angle)]), np.array([np.cos(angle), np.sin(angle)])
            for stone, sign in ((joint - 1, -1.0), (joint, 1.0)):  # the joint pushes the stone after it forwards
                if 0 <= stone < n:
                    arm = at - arch.center(stone)
                    for k, force in enumerate((sign * push, sign * slide)):
                        moment = arm[0] * force[1] - arm[1] * force[0]
                        balance[3 * stone : 3 * stone + 3, 4 * joint + 2 * end + k] = [*force, moment]
    for stone in range(n):
        weight[3 * stone + 1] = DENSITY * DEPTH * arch.area(stone) * GRAVITY
    bounds: list[tuple[float | None, float | None]] = [(0.0, None), (None, None)] * (2 * (n + 1))
    if without is not None:
        bounds[4 * without : 4 * (without + 2)] = [(0.0, 0.0)] * 8
        balance[3 * without : 3 * without + 3] = 0
        weight[3 * without : 3 * without + 3] = 0
    cone = np.zeros((4 * (n + 1), 4 * (n + 1)))
    for k in range(2 * (n + 1)):
        cone[2 * k, 2 * k : 2 * k + 2] = -friction, 1.0
        cone[2 * k + 1, 2 * k : 2 * k + 2] = -friction, -1.0
    scale = weight.max()
    found = linprog(np.zeros(4 * (n + 1)), cone, np.zeros(len(cone)), balance, weight / scale, bounds)
    return found.status == 0


def critical_friction(arch: Arch) -> float:
    """The least coefficient with which it can stand, by bisection; inf if there is none."""
    low, high = 0.0, 10.0
    if not can_stand(arch, high):
        return float("inf")
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if can_stand(arch, middle) else (middle, high)
    return high


def critical_thickness(stones: int, friction: float = 10.0) -> float:
    """The least thickness by radius with which it can stand; of a continuous arch that cannot slide 0.1075 (Milankovitch, 1907)."""
    low, high = 0.01, 0.5
    for _ in range(20):
        middle = (low + high) / 2
        fits = can_stand(Arch(stones, middle * RADIUS), friction)
        low, high = (low, middle) if fits else (middle, high)
    return high


# --- the arch simulated ---------------------------------------------------------------------------------------------


def stone_mesh(arch: Arch, stone: int, folder: Path) -> Path:
    """Its hull, around its centre of mass."""
    flat = arch.corners(stone) - arch.center(stone)
    corners = [(x, side * DEPTH / 2, z) for side in (-1, 1) for x, z in flat]
    path = folder / f"stone{stone}.stl"
    trimesh.Trimesh(corners).convex_hull.export(path)
    return path


def build(
    arch: Arch, folder: Path, contact: cs.ContactModel, dt: float, substeps: int = 1
) -> tuple[World, torch.Tensor]:
    """The world and its state with all stones in place. Friction is an input. Stones touch their neighbours and the ground, which
    is enough to tell whether they fall.

    folder: For the meshes of the stones, which are read when the world is compiled.
    """
    names = [f"stone{k}" for k in range(arch.stones)]
    world = World(
        bodies=[
            cs.Body(name, [cs.shapes.mesh(stone_mesh(arch, k, folder))], mass=DENSITY * DEPTH * arch.area(k))
            for k, name in enumerate(names)
        ],
        scenery=[cs.Static("ground", cs.shapes.plane())],
        contact=contact,
        dt=dt,
        substeps=substeps,
        collide=[("ground", n) for n in names] + list(pairwise(names)),
        parameters=["friction"],
        gravity=(0.0, 0.0, -GRAVITY),
    )
    state = world.initial_state(dtype=torch.float64)
    for k, name in enumerate(names):
        q, _ = world.coordinates(name)
        state[q][0], state[q][2] = map(float, arch.center(k))
    return world, state


@dataclass(frozen=True)
class Fate:
    """The fate of the stones in each of several cases."""

    times: np.ndarray
    """Times [s], (t,)."""
    places: np.ndarray
    """x, z of the stones [m], (t, cases, stones, 2)."""
    turned: np.ndarray
    """Rotations about y [rad], (t, cases, stones)."""
    counted: np.ndarray
    """Mask of the stones that were part of the arch, (cases, stones)."""

    @property
    def moved(self) -> np.ndarray:
        """Furthest any stone is from where it was put [m], (t, cases)."""
        far = np.linalg.norm(self.places - self.places[0], axis=-1)
        return np.where(self.counted, far, 0.0).max(-1)

    @property
    def fell(self) -> np.ndarray:
        """(cases,)."""
        return self.moved[-1] > FELL


def watch(arch: Arch, world: World, state: torch.Tensor, cases: list[tuple[float, int | None]], seconds: float) -> Fate:
    """Cases: friction, and the stone that is taken out (None: none); it is put down elsewhere."""
    count = len(cases)
    start = state.expand(count, -1).clone()
    counted = np.ones((count, arch.stones), bool)
    for row, (_, missing) in enumerate(cases):
        if missing is not None:
            counted[row, missing] = False
            start[row, world.coordinates(f"stone{missing}")[0]][1] += 10.0
    mu = torch.tensor([[friction] for friction, _ in cases], dtype=torch.float64)
    every = max(1, round(0.05 / world.dt))
    steps = round(seconds / world.dt) // every * every
    zero = torch.zeros(steps, count, 0, dtype=torch.float64)
    states = world.rollout(start, zero, params={"friction": mu}, checkpoint=every).numpy()
    q = np.stack([states[..., world.coordinates(f"stone{k}")[0]] for k in range(arch.stones)], 2)
    turned = Rotation.from_quat(q[..., 3:].reshape(-1, 4)).as_rotvec()[:, 1].reshape(q.shape[:3])
    return Fate(world.dt * every * np.arange(len(states)), q[..., [0, 2]], turned, counted)
