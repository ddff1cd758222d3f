"""Elements of cloth and ropes: energies of a few points each, their gradients and Hessians.

    triangle   A/2 e C e, Green's strain e = (F'F - 1)/2 in the directions of warp and weft (St. Venant-Kirchhoff)
    hinge      k / (A0 + A1) |sum w_i x_i|^2 / 2, where |sum w_i x_i| is the length of the edge times its angle (Bergou et al.
               2006): quadratic for cloth that is flat at rest; with the curvature of the rest shape taken off along the normal
    segment    k/2 L (l/L - 1)^2 of a rope, or k/2 l^2 of a seam, whose length at rest is 0
    bend       B/2 |x0 - 2 x1 + x2|^2 / L^3 of a rope

The factor of a hinge is that of a lattice: sheets of equilateral triangles, bent in any direction, have the energy k/2 curvature^2
of a plate (Seung and Nelson 1988: an angle of stiffness c makes a plate of k = sqrt(3)/2 c). On other meshes stiffness depends on
the direction: that of `sheet` is 0.83 k along warp and weft and 1.33 k between them, once points have found their places.

Every Hessian comes in two forms: exact, and positive semi-definite, near it, for the steps of Newton's method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import casadi as ca

TINY = 1e-24
"""Square that is added under roots [m^2]."""


class Element(ABC):
    """A kind of element. Positions of its points are rows (k, 3)."""

    k: int
    """Number of points."""
    n_parameters: int
    """Numbers of material."""
    n_fixed: int
    """Numbers that `prepare` computes."""

    @abstractmethod
    def prepare(self, rest: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return what does not change in a roll-out, and the mass [kg] that each point gets (k). rest: (k, 3) [m]."""

    @abstractmethod
    def energy(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        """Return the energy [J]."""

    isotropic: bool = False
    """True if every block of the Hessian is a number times the identity: `near` and `exact` then return (k, k)."""

    @abstractmethod
    def near(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        """Return a positive semi-definite matrix (3 k, 3 k) near the Hessian, point by point."""

    def gradient(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        """Return the gradient of the energy (3 k), point by point [N]."""
        flat = ca.SX.sym("x", 3 * self.k)
        g = ca.gradient(self.energy(ca.reshape(flat, 3, self.k).T, fixed), flat)
        return ca.substitute(g, flat, ca.vec(x.T))

    def hessian(self, x: ca.SX, fixed: ca.SX, exact: ca.SX) -> ca.SX:
        """Return the Hessian (3 k, 3 k) if `exact` is 1, and `near` if it is 0."""
        near = self.near(x, fixed)
        if self.isotropic:
            return near
        flat = ca.SX.sym("x", 3 * self.k)
        H = ca.hessian(self.energy(ca.reshape(flat, 3, self.k).T, fixed), flat)[0]
        return near + exact * (ca.substitute(H, flat, ca.vec(x.T)) - near)


class Triangle(Element):
    """Stretch and shear. Parameters: stiffness along warp and weft [N/m], Poisson's ratio of warp, shear modulus [N/m], bending
    stiffness [N m], mass per area [kg/m^2], direction of the warp in the rest shape (3)."""

    k, n_parameters, n_fixed = 3, 9, 9

    def prepare(self, rest: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        a, b = rest[1, :].T - rest[0, :].T, rest[2, :].T - rest[0, :].T
        normal = ca.cross(a, b)
        double = ca.sqrt(ca.sumsqr(normal) + TINY**2)
        normal = normal / double
        warp = p[6:9] - ca.dot(p[6:9], normal) * normal
        u = warp / ca.sqrt(ca.sumsqr(warp) + TINY)
        v = ca.cross(normal, u)
        # inverse of the edges as columns of warp and weft
        inverse = ca.vertcat(ca.dot(b, v), -ca.dot(b, u), -ca.dot(a, v), ca.dot(a, u)) / double
        share = p[1] / p[0]
        scale = 1 - p[2] * p[2] * share
        C = ca.vertcat(p[0], p[2] * p[1], p[1], p[3] * scale) / scale
        mass = p[5] * double / 6
        return ca.vertcat(inverse, double / 2, C), ca.vertcat(mass, mass, mass)

    def strain(self, x: ca.SX, fixed: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the strain (warp, weft, twice the shear) and the deformed directions of warp and weft (3, 2)."""
        D = ca.horzcat(x[1, :].T - x[0, :].T, x[2, :].T - x[0, :].T)
        F = ca.mtimes(D, ca.reshape(fixed[:4], 2, 2).T)
        w, s = F[:, 0], F[:, 1]
        return ca.vertcat((ca.dot(w, w) - 1) / 2, (ca.dot(s, s) - 1) / 2, ca.dot(w, s)), F

    def stress(self, e: ca.SX, fixed: ca.SX) -> ca.SX:
        """Return the stress (warp, weft, shear) [N/m]."""
        C = fixed[5:9]
        return ca.vertcat(C[0] * e[0] + C[1] * e[1], C[1] * e[0] + C[2] * e[1], C[3] * e[2])

    def energy(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        e, _ = self.strain(x, fixed)
        return fixed[4] * ca.dot(e, self.stress(e, fixed)) / 2

    def gradient(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        e, F = self.strain(x, fixed)
        S = self.stress(e, fixed)
        P = ca.mtimes(F, ca.vertcat(ca.horzcat(S[0], S[2]), ca.horzcat(S[2], S[1])))
        H = fixed[4] * ca.mtimes(P, ca.reshape(fixed[:4], 2, 2))
        return ca.vertcat(-H[:, 0] - H[:, 1], H[:, 0], H[:, 1])

    def _hessian(self, F: ca.SX, S: ca.SX, fixed: ca.SX) -> ca.SX:
        G = ca.reshape(fixed[:4], 2, 2).T  # rows: points 1 and 2; columns: warp and weft
        g = ca.vertcat(-G[0, :] - G[1, :], G)
        w, s, C = F[:, 0].T, F[:, 1].T, fixed[5:9]
        B = ca.horzcat(*(ca.vertcat(g[a, 0] * w, g[a, 1] * s, g[a, 0] * s + g[a, 1] * w) for a in range(3)))
        CB = ca.vertcat(C[0] * B[0, :] + C[1] * B[1, :], C[1] * B[0, :] + C[2] * B[1, :], C[3] * B[2, :])
        stiff = ca.mtimes(g, ca.mtimes(ca.vertcat(ca.horzcat(S[0], S[2]), ca.horzcat(S[2], S[1])), g.T))
        return fixed[4] * (ca.mtimes(B.T, CB) + ca.kron(stiff, ca.SX.eye(3)))

    def hessian(self, x: ca.SX, fixed: ca.SX, exact: ca.SX) -> ca.SX:
        e, F = self.strain(x, fixed)
        S = self.stress(e, fixed)
        pulled = pulling(S)
        return self._hessian(F, pulled + exact * (S - pulled), fixed)

    def near(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        return self.hessian(x, fixed, ca.SX(0))


class Hinge(Element):
    """Bending between two triangles: an edge, and the points opposite to it. Parameters: bending stiffness of both triangles
    [N m]."""

    k, n_parameters, n_fixed = 4, 2, 6

    def __init__(self, curved: bool):
        self.curved = curved
        """True if the rest shape may be curved."""
        self.isotropic = not curved

    def prepare(self, rest: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        a, b, c, d = (rest[i, :].T for i in range(4))
        ab, area = _cotangents(a, b, c)
        cd, other = _cotangents(a, b, d)
        weights = ca.vertcat(ab[1] + cd[1], ab[0] + cd[0], -ab[0] - ab[1], -cd[0] - cd[1])
        stiffness = (p[0] + p[1]) / 2 / (area + other)
        bent = ca.SX(0)
        if self.curved:
            bent = ca.dot(ca.mtimes(rest.T, weights), _edge_normal(rest))
        return ca.vertcat(weights, stiffness, bent), ca.SX.zeros(4)

    def energy(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        c = ca.mtimes(x.T, fixed[:4])
        if not self.curved:
            return fixed[4] * ca.sumsqr(c) / 2
        return fixed[4] * (ca.sumsqr(c) / 2 - fixed[5] * ca.dot(c, _edge_normal(x)))

    def near(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        w = fixed[:4]
        one = fixed[4] * ca.mtimes(w, w.T)
        return ca.kron(one, ca.SX.eye(3)) if self.curved else one


class Segment(Element):
    """Stretch of a rope. Parameters: stiffness E A [N], bending stiffness E I [N m^2], mass per length [kg/m]."""

    k, n_parameters, n_fixed = 2, 3, 2

    def prepare(self, rest: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        length = ca.norm_2(rest[1, :] - rest[0, :])
        mass = p[2] * length / 2
        return ca.vertcat(length, p[0] / length), ca.vertcat(mass, mass)

    def energy(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        return fixed[1] * (self._length(x) - fixed[0]) ** 2 / 2

    def _length(self, x: ca.SX) -> ca.SX:
        return ca.sqrt(ca.sumsqr(x[1, :] - x[0, :]) + TINY)

    def near(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        l = self._length(x)
        d = (x[1, :] - x[0, :]).T / l
        side = ca.fmax(0, 1 - fixed[0] / l)
        one = fixed[1] * (side * ca.SX.eye(3) + (1 - side) * ca.mtimes(d, d.T))
        return ca.kron(ca.SX([[1, -1], [-1, 1]]), one)


class Seam(Element):
    """Two points that are sewn together. Parameter: stiffness [N/m]."""

    k, n_parameters, n_fixed = 2, 1, 1
    isotropic = True

    def prepare(self, rest: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        return p, ca.SX.zeros(2)

    def energy(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        return fixed[0] * ca.sumsqr(x[1, :] - x[0, :]) / 2

    def near(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        return fixed[0] * ca.SX([[1, -1], [-1, 1]])


class Bend(Element):
    """Bending of a rope at its middle point. Parameters: those of both segments."""

    k, n_parameters, n_fixed = 3, 6, 3
    isotropic = True

    def prepare(self, rest: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        a, b = ca.norm_2(rest[1, :] - rest[0, :]), ca.norm_2(rest[2, :] - rest[1, :])
        return ca.vertcat(1 / a, 1 / b, (p[1] + p[4]) / (a + b)), ca.SX.zeros(3)

    def energy(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        return fixed[2] * ca.sumsqr(fixed[0] * (x[1, :] - x[0, :]) - fixed[1] * (x[2, :] - x[1, :])) / 2

    def near(self, x: ca.SX, fixed: ca.SX) -> ca.SX:
        w = ca.vertcat(-fixed[0], fixed[0] + fixed[1], -fixed[1])
        return fixed[2] * ca.mtimes(w, w.T)


def pulling(S: ca.SX) -> ca.SX:
    """Return the positive part of a symmetric 2 x 2 matrix, given as (first, second, off the diagonal)."""
    mean, half = (S[0] + S[1]) / 2, (S[0] - S[1]) / 2
    radius = ca.sqrt(half * half + S[2] * S[2] + 1e-30)
    high, low = ca.fmax(mean + radius, 0), ca.fmax(mean - radius, 0)
    mid, spread = (high + low) / 2, (high - low) / (2 * radius)
    return ca.vertcat(mid + spread * half, mid - spread * half, spread * S[2])


def _cotangents(a: ca.SX, b: ca.SX, c: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the cotangents of the angles at a and b of a triangle, and its area."""
    double = ca.sqrt(ca.sumsqr(ca.cross(b - a, c - a)) + TINY**2)
    return ca.vertcat(ca.dot(b - a, c - a), ca.dot(a - b, c - b)) / double, double / 2


def _edge_normal(x: ca.SX) -> ca.SX:
    """Return the unit normal at the edge of a hinge, halfway between those of its triangles."""
    a, b, c, d = (x[i, :].T for i in range(4))
    n = _unit(ca.cross(b - a, c - a)) + _unit(ca.cross(d - a, b - a))
    return _unit(n)


def _unit(v: ca.SX) -> ca.SX:
    return v / ca.sqrt(ca.sumsqr(v) + TINY**2)
