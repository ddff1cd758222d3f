"""Mass distribution of a rigid body: ten numbers, in which everything below is linear."""

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
    """[kg], shape ()."""
    first: SX
    """h = mass * com [kg m], shape (3,)."""
    second: SX
    """J [kg m^2], symmetric, shape (3, 3)."""

    @staticmethod
    def zero() -> Inertia:
        return Inertia(SX(1, 1), zeros(), SX(3, 3))

    @staticmethod
    def of(mass: SX, com: SX, matrix: SX) -> Inertia:
        """From mass [kg], centre of mass [m] and rotational inertia about it [kg m^2], in the axes of the frame."""
        matrix = (matrix + matrix.T) / 2
        second = ca.trace(matrix) / 2 * SX.eye(3) - matrix + mass * (com @ com.T)
        return Inertia(ca.sparsify(mass), ca.sparsify(mass * com), symmetric(ca.sparsify(second)))

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(self.mass + other.mass, self.first + other.first, self.second + other.second)

    def rotated(self, R: SX) -> Inertia:
        """In the axes of frame A, given R_AB and this inertia in B; the origin stays."""
        return Inertia(self.mass, R @ self.first, rotate_matrix(R, self.second, is_symmetric=True))

    def shifted(self, p: SX) -> Inertia:
        """About the origin of frame A, given the position p_AB of B and this inertia about the origin of B."""
        half = self.first + self.mass * p / 2
        second = symmetric(self.second + p @ half.T + half @ p.T)
        return Inertia(self.mass, self.first + self.mass * p, second)

    def rotational(self) -> SX:
        """Rotational inertia about the origin, I = trace(J) 1 - J [kg m^2], shape (3, 3)."""
        return ca.trace(self.second) * SX.eye(3) - self.second

    def wrench(self, acceleration: SX, U: SX) -> tuple[SX, SX]:
        """Newton-Euler: the force [N] and the moment about the origin [N m] that move the body.

        acceleration: of the origin (d^2 p/dt^2, body axes) [m/s^2]; U = [alpha]x + [omega]x^2: the acceleration of the
        point r of the body is acceleration + U r. So f = m a + U h, n = h x a + sum of r x (U r).
        """
        force = self.mass * acceleration + U @ self.first
        moment = cross(self.first, acceleration) + axial(U @ self.second)
        return force, moment

    def momentum(self, velocity: SX, omega: SX) -> tuple[SX, SX]:
        """Linear [kg m/s] and angular momentum about the origin [kg m^2/s] for the velocity of the origin and omega."""
        linear = self.mass * velocity + cross(omega, self.first)
        angular = cross(self.first, velocity) + self.rotational() @ omega
        return linear, angular

    def is_constant(self) -> bool:
        return all(x.is_constant() for x in (self.mass, self.first, self.second))
