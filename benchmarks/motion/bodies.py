"""Bodies of the reference: balls, free bodies and planar arms, in world axes and plain NumPy; and robots that it does not know.

All operations are analytic and choices look at real parts only, so that a state of complex numbers carries a derivative in its
imaginary part (complex step). Nothing here is shared with Costate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = Any
"""Array of NumPy, real or complex: its types have no word for that."""


class Part(Protocol):
    """A body, or a chain of them, with a state of its own."""

    @property
    def size(self) -> int: ...

    def fly(self, x: Array, gravity: Array, time: float | complex) -> Array:
        """Return the state after a flight without contact."""
        ...

    def place(self, x: Array, local: Array, link: int = 0) -> Array:
        """Return where a point of a link is, (3,)."""
        ...

    def frame(self, x: Array, link: int = 0) -> tuple[Array, Array]:
        """Return the axes (3, 3) and the origin (3,) of a link."""
        ...

    def jacobian(self, x: Array, point: Array, link: int = 0) -> Array:
        """Return the velocity of a point of a link by the velocities of the part, (3, nv)."""
        ...

    def velocity(self, x: Array) -> Array:
        """Return the velocities of the part, (nv,)."""
        ...

    def kicked(self, x: Array, impulse: Array) -> Array:
        """Return the state after a generalised impulse, (nv,)."""
        ...

    def response(self, x: Array, J: Array) -> Array:
        """Return J M^-1 J^T."""
        ...


def skew(w: Array) -> Array:
    """Return the matrix of the cross product w x."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def runge_kutta(rate: Callable[[Array], Array], x: Array, h: float | complex) -> Array:
    """Return x after one step of the classical method."""
    a = rate(x)
    b = rate(x + h / 2 * a)
    c = rate(x + h / 2 * b)
    d = rate(x + h * c)
    return x + h / 6 * (a + 2 * b + 2 * c + d)


@dataclass(frozen=True)
class Ball:
    """An even ball: position, velocity, spin. Its flight is a parabola."""

    mass: float
    radius: float
    size = 9

    def fly(self, x: Array, gravity: Array, time: float | complex) -> Array:
        p, v, w = x[:3], x[3:6], x[6:]
        return np.concatenate([p + v * time + gravity * time**2 / 2, v + gravity * time, w])

    def place(self, x: Array, local: Array, link: int = 0) -> Array:
        return x[:3]  # only its centre is ever asked for

    def frame(self, x: Array, link: int = 0) -> tuple[Array, Array]:
        return np.eye(3), x[:3]

    def velocity(self, x: Array) -> Array:
        return x[3:]

    def jacobian(self, x: Array, point: Array, link: int = 0) -> Array:
        return np.hstack([np.eye(3), -skew(point - x[:3])])

    def _inverse(self) -> Array:
        return 1 / np.repeat([self.mass, 0.4 * self.mass * self.radius**2], 3)

    def kicked(self, x: Array, impulse: Array) -> Array:
        return np.concatenate([x[:3], x[3:] + self._inverse() * impulse])

    def response(self, x: Array, J: Array) -> Array:
        return (J * self._inverse()) @ J.T


@dataclass(frozen=True)
class Free:
    """A rigid body about its centre of mass: position, axes (row by row), velocity, angular velocity."""

    mass: float
    inertia: tuple[float, float, float]
    """Principal moments, along its own axes [kg m^2]."""
    size = 18

    def _rate(self, x: Array, gravity: Array) -> Array:
        R, v, w = x[3:12].reshape(3, 3), x[12:15], x[15:]
        own = R.T @ w
        turn = R @ (-np.cross(own, self.inertia * own) / self.inertia)
        return np.concatenate([v, (skew(w) @ R).ravel(), gravity, turn])

    def fly(self, x: Array, gravity: Array, time: float | complex) -> Array:
        return runge_kutta(lambda y: self._rate(y, gravity), x, time)

    def place(self, x: Array, local: Array, link: int = 0) -> Array:
        return x[:3] + x[3:12].reshape(3, 3) @ local

    def frame(self, x: Array, link: int = 0) -> tuple[Array, Array]:
        return x[3:12].reshape(3, 3), x[:3]

    def velocity(self, x: Array) -> Array:
        return x[12:]

    def jacobian(self, x: Array, point: Array, link: int = 0) -> Array:
        return np.hstack([np.eye(3), -skew(point - x[:3])])

    def _times_inverse(self, x: Array, rows: Array) -> Array:
        """Return rows M^-1."""
        R = x[3:12].reshape(3, 3)
        return np.hstack([rows[:, :3] / self.mass, (rows[:, 3:] @ R / self.inertia) @ R.T])

    def kicked(self, x: Array, impulse: Array) -> Array:
        return np.concatenate([x[:12], x[12:] + self._times_inverse(x, impulse[None])[0]])

    def response(self, x: Array, J: Array) -> Array:
        return self._times_inverse(x, J) @ J.T


@dataclass(frozen=True)
class Arm:
    """A chain of links that turn about y, hanging along -z: absolute angles, then their rates."""

    base: tuple[float, float, float]
    lengths: tuple[float, ...]
    masses: tuple[float, ...]
    moments: tuple[float, ...]
    """Moments of the links about y through their centres, which are half-way along them [kg m^2]."""

    @property
    def size(self) -> int:
        return 2 * len(self.lengths)

    def _coefficients(self) -> tuple[Array, Array]:
        n, l, m = len(self.lengths), self.lengths, self.masses
        beyond = [sum(m[k + 1 :]) for k in range(n)]
        first = np.array([m[k] * l[k] / 2 + l[k] * beyond[k] for k in range(n)])
        A = np.array([[l[min(i, j)] * first[max(i, j)] for j in range(n)] for i in range(n)])
        for k in range(n):
            A[k, k] = self.moments[k] + m[k] * l[k] ** 2 / 4 + l[k] ** 2 * beyond[k]
        return A, first

    def _mass(self, angles: Array) -> Array:
        return self._coefficients()[0] * np.cos(angles[:, None] - angles)

    def _rate(self, x: Array, gravity: Array) -> Array:
        angles, rates = np.split(x, 2)
        A, first = self._coefficients()
        whirl = (A * np.sin(angles[:, None] - angles)) @ rates**2
        return np.concatenate([rates, np.linalg.solve(self._mass(angles), gravity[2] * first * np.sin(angles) - whirl)])

    def fly(self, x: Array, gravity: Array, time: float | complex) -> Array:
        return runge_kutta(lambda y: self._rate(y, gravity), x, time)

    def frame(self, x: Array, link: int = 0) -> tuple[Array, Array]:
        at = np.array(self.base, dtype=x.dtype)
        for k in range(link):
            at = at - self.lengths[k] * np.array([np.sin(x[k]), 0, np.cos(x[k])])
        s, c = np.sin(x[link]), np.cos(x[link])
        return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]), at

    def place(self, x: Array, local: Array, link: int = 0) -> Array:
        R, at = self.frame(x, link)
        return at + R @ local

    def velocity(self, x: Array) -> Array:
        return x[len(self.lengths) :]

    def jacobian(self, x: Array, point: Array, link: int = 0) -> Array:
        J = np.zeros((3, len(self.lengths)), dtype=x.dtype)
        for k in range(link):
            J[:, k] = self.lengths[k] * np.array([-np.cos(x[k]), 0, np.sin(x[k])])
        arm = point - self.frame(x, link)[1]
        J[:, link] = [arm[2], 0, -arm[0]]
        return J

    def kicked(self, x: Array, impulse: Array) -> Array:
        angles, rates = np.split(x, 2)
        return np.concatenate([angles, rates + np.linalg.solve(self._mass(angles), impulse)])

    def response(self, x: Array, J: Array) -> Array:
        return J @ np.linalg.solve(self._mass(np.split(x, 2)[0]), J.T)


@dataclass(frozen=True)
class Floating:
    """A robot on a floating base, as Costate has it: the reference does not know its motion. A place of it has two rows: position,
    rotation vector and joint angles; velocity, angular velocity (both in world axes) and rates."""

    robot: str
    joints: int
