"""Walls at which nodes of the grid stick, slip, or slide with friction.

    sticky     the velocity is that of the wall, always
    slip       nothing moves into the wall; along it and away from it everything is free
    open       nothing happens; a particle that leaves the grid is an error
    number     as slip, with this coefficient of friction; inf stops what touches, and lets it leave

Walls are the sides of the grid, and shapes that do not move, height fields (`ground`) among them. Links that move are in
`robots.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from costate.collision.shapes import Solid
from costate.continuum.mpm.fill import distances
from costate.continuum.mpm.grid import MpmGrid
from costate.model.shape import Shape
from costate.model.transform import Transform

Contact = str | float
"""`sticky`, `slip`, `open`, or a coefficient of friction."""
MARGIN = 3
"""Nodes at the sides of the grid that are walls: the surface of the low ones is at the third node, two cells from the edge."""
TINY = 1e-10
"""Speed that is added to that of sliding [m/s]: what rests has a direction too."""


def check_contact(contact: Contact) -> Contact:
    """Return what was given, or raise if it is no kind of contact."""
    if isinstance(contact, str):
        if contact not in ("sticky", "slip", "open"):
            raise ValueError(f"contact is '{contact}'; expected 'sticky', 'slip', 'open', or a coefficient of friction")
        return contact
    if not float(contact) >= 0:
        raise ValueError(f"friction is {contact}; expected a number of 0 or more")
    return float(contact)


def touched(v: ca.SX, normal: ca.SX, contact: Contact | ca.SX) -> ca.SX:
    """Return the velocity of a node relative to a wall with a unit normal that points away from it, after it touched."""
    if isinstance(contact, str) and contact == "sticky":
        return ca.SX.zeros(v.shape[0])
    if isinstance(contact, str) and contact == "open":
        return v
    into = ca.fmin(ca.dot(v, normal), 0)
    free = v - into * normal
    if isinstance(contact, str) or (isinstance(contact, float) and contact == 0):
        return free
    if isinstance(contact, float) and np.isinf(contact):
        return ca.if_else(into < 0, 0, v)
    along = free - ca.dot(free, normal) * normal
    speed = ca.sqrt(ca.sumsqr(along) + TINY**2)
    return free - ca.fmin(-contact * into / speed, 1) * along


def ground(heights: ArrayLike, lower: Sequence[float], upper: Sequence[float]) -> Shape:
    """Return a height field: a smooth surface through heights [m], solid below.

    Args:
        heights: Heights (n) along x for a grid in 2D, (nx, ny) in 3D, evenly spread, both edges included [m].
        lower, upper: Edges of the interval (1) or rectangle (2) that it covers [m]; beyond it there is nothing.
    """
    h, low, high = np.asarray(heights, float), np.atleast_1d(lower).astype(float), np.atleast_1d(upper).astype(float)
    if h.ndim not in (1, 2) or min(h.shape) < 2 or not low.shape == high.shape == (h.ndim,) or (high <= low).any():
        raise ValueError(
            f"heights have the shape {h.shape}, from {low.tolist()} to {high.tolist()}; expected (n), from one number to a greater "
            "one, or (nx, ny), from two numbers to greater ones, at least 2 heights along each axis"
        )
    if h.ndim == 2:
        return Shape("heightfield", high - low, Transform(np.eye(3), np.append((low + high) / 2, 0.0)), heights=h)
    up = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # the height field's z is the grid's y
    return Shape(
        "heightfield",
        np.append(high - low, 1.0),
        Transform(up, np.array([(low + high)[0] / 2, 0, 0])),
        heights=h[:, None].repeat(2, 1),
    )


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A shape that does not move."""

    shape: Shape | Solid
    """Shape, with its pose (see `cs.shapes`). In 2D its section with the plane z = 0 counts."""
    contact: Contact = "sticky"

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return signed distances (n) [m] and normals (n, dim) at points (n, dim)."""
        d, n = distances(self.shape, x)
        normal = n[:, : x.shape[1]]
        return d, normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True, eq=False)
class Walls:
    """Everything that does not move and that nodes touch."""

    grid: MpmGrid
    sides: dict[str, Contact]
    obstacles: tuple[Obstacle, ...] = ()

    @cached_property
    def codes(self) -> np.ndarray:
        """Sides and obstacle of each node (count, 1): a digit of 1 for low and 2 for high for each axis, to base 3, and in front of
        them the number of the obstacle that it lies in, from 1."""
        place = np.stack(np.unravel_index(np.arange(self.grid.count), self.grid.shape), 1)
        code = np.zeros(self.grid.count)
        for k, n in enumerate(self.grid.shape):
            code += 3**k * ((place[:, k] < MARGIN) + 2 * (place[:, k] >= n - MARGIN))
        code += 3**self.grid.dim * self._inside
        return code[:, None]

    @cached_property
    def _inside(self) -> np.ndarray:
        found = np.zeros(self.grid.count)
        x = self.grid.nodes()
        for number, obstacle in enumerate(self.obstacles, 1):
            found[(obstacle.at(x)[0] <= 0) & (found == 0)] = number
        return found

    @cached_property
    def normals(self) -> np.ndarray:
        """Normals of the obstacles at nodes (count, dim), 0 where there is none."""
        x = self.grid.nodes()
        found = np.zeros((self.grid.count, self.grid.dim))
        for number, obstacle in enumerate(self.obstacles, 1):
            there = self._inside == number
            found[there] = obstacle.at(x[there])[1]
        return found

    def apply(self, v: ca.SX, code: ca.SX, normal: ca.SX | None) -> ca.SX:
        """Return the velocity of a node after it touched obstacles and sides."""
        dim = self.grid.dim
        inside = ca.floor(code / 3**dim)
        for number, obstacle in enumerate(self.obstacles, 1):
            assert normal is not None
            v = ca.if_else(inside == number, touched(v, normal, obstacle.contact), v)
        code = code - 3**dim * inside
        for k in range(dim):
            rest = ca.floor(code / 3)
            digit, code = code - 3 * rest, rest
            for value, sign in ((1, "-"), (2, "+")):
                away = ca.SX.zeros(dim)
                away[k] = 1.0 if value == 1 else -1.0
                contact = self.sides[f"{sign}{'xyz'[k]}"]
                v = ca.if_else(digit == value, touched(v, away, contact), v)
        return v


def walls_of(grid: MpmGrid, sides: dict[str, Contact], obstacles: Sequence[Obstacle]) -> Walls:
    """Return the walls, after a look at what was given."""
    for contact in (*sides.values(), *(o.contact for o in obstacles)):
        check_contact(contact)
    return Walls(grid, {k: check_contact(c) for k, c in sides.items()}, tuple(obstacles))
