"""Mass distribution of a rigid body: ten numbers, in which momentum and wrench are linear."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.physics.algebra.spatial import axial, cross, rotate_matrix, symmetric, zeros


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass, first and second moment about the origin of a frame, in the axes of that frame.

    The second moment J = integral of r r^T dm is used instead of the rotational inertia I = trace(J) 1 - J: shifting it
    takes fewer operations, and so does the Newton-Euler equation (`wrench`).
    """

    mass: SX
    """Mass [kg], shape ()."""
    first: SX
    """First moment h = mass * com [kg m], shape (3,)."""
    second: SX
    """Second moment J [kg m^2], symmetric, shape (3, 3)."""

    @staticmethod
    def zero() -> Inertia:
        return Inertia(SX(1, 1), zeros(), SX(3, 3))

    @staticmethod
    def of(mass: SX, com: SX, matrix: SX) -> Inertia:
        """Build one from mass [kg], centre of mass [m] and rotational inertia about it [kg m^2], in the frame's axes."""
        matrix = (matrix + matrix.T) / 2
        second = ca.trace(matrix) / 2 * SX.eye(3) - matrix + mass * (com @ com.T)
        return Inertia(ca.sparsify(mass), ca.sparsify(mass * com), symmetric(ca.sparsify(second)))

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(self.mass + other.mass, self.first + other.first, self.second + other.second)

    def rotated(self, R: SX) -> Inertia:
        """Express this inertia, given in frame B, in the axes of frame A by R_AB; the origin stays."""
        return Inertia(self.mass, R @ self.first, rotate_matrix(R, self.second, is_symmetric=True))

    def shifted(self, p: SX) -> Inertia:
        """Express this inertia, given about the origin of frame B, about that of frame A by the position p_AB of B."""
        half = self.first + self.mass * p / 2
        second = symmetric(self.second + p @ half.T + half @ p.T)
        return Inertia(self.mass, self.first + self.mass * p, second)

    def rotational(self) -> SX:
        """Return the rotational inertia about the origin, I = trace(J) 1 - J [kg m^2], shape (3, 3)."""
        return ca.trace(self.second) * SX.eye(3) - self.second

    def wrench(self, acceleration: SX, U: SX) -> tuple[SX, SX]:
        """Return the force [N] and the moment about the origin [N m] that accelerate the body (Newton-Euler).

        acceleration: Acceleration of the origin, d^2 p/dt^2 in body axes [m/s^2].
        U: Matrix [alpha]x + [omega]x^2, with which the point r of the body has the acceleration a + U r. Hence
            f = m a + U h and n = h x a + sum of r x (U r).
        """
        force = self.mass * acceleration + U @ self.first
        moment = cross(self.first, acceleration) + axial(U @ self.second)
        return force, moment

    def momentum(self, velocity: SX, omega: SX) -> tuple[SX, SX]:
        """Return linear [kg m/s] and angular momentum about the origin [kg m^2/s], given the origin's velocity and omega."""
        linear = self.mass * velocity + cross(omega, self.first)
        angular = cross(self.first, velocity) + self.rotational() @ omega
        return linear, angular

    def is_constant(self) -> bool:
        return all(x.is_constant() for x in (self.mass, self.first, self.second))
