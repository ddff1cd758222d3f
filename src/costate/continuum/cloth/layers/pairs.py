"""Contact of cloth and ropes with themselves: pairs of a point and a triangle, or of two edges.

The points of both come nearest to each other where weights w of four points say, D = sum w_i x_i. Their energy is that of contact
with shapes (`contact.py`), k B(|D| / thickness), and so is friction: the normal force, the normal and the weights are those of the
beginning of a step. Which pairs there are is found outside of kernels (`nearby.py`): numbers of points are inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from costate.continuum.cloth.contact import curvature, rub, rub_curvature, slope
from costate.kernel.fields import OWN, Around, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Var

TINY = 1e-24
NUMBERS = 2
"""Numbers of a pair: 1 (0 for places that hold none), and 0 for a point and a triangle or 1 for two edges."""
FIELDS = 8
"""Fields of pairs: numbers of their four points, numbers of the pairs, the first and the one behind the last; how far points may
go; friction."""
RUB = 8
"""Numbers of friction of a pair: coefficient times normal force [N], normal (3), weights (4)."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Places for pairs of a scene."""

    capacity: int
    points: Entities
    h: float
    thickness: float
    push: float

    @property
    def entities(self) -> Entities:
        """The pairs as a set."""
        return Entities("pairs", self.capacity)

    def inputs(self) -> list[tuple[str, Entities | None, int]]:
        """Return the fields that say which pairs there are, and how far points may go from where (`room.py`)."""
        points: list[tuple[str, Entities | None, int]] = [(f"pair{k}", self.entities, 1) for k in range(4)]
        return [*points, ("pairs", self.entities, NUMBERS), ("span", None, 2), ("ball", self.points, 4)]

    def around(self, g: FieldBuilder, fields: Sequence[Field | Var]) -> list[Around]:
        return [g.around(self.points, f, (0,)) for f in fields[:4] if isinstance(f, Field)]

    def prepare(self, f: FieldBuilder, x: Field, own: Field, friction: Var, fields: list[Any]) -> list[Field]:
        """Return all fields of pairs (`inputs`), with friction as it is at the beginning of a step."""
        at = self.around(f, fields)

        def body(numbers: ca.SX, mu: ca.SX, *read: ca.SX) -> ca.SX:
            X, mass = rows_of(read[:4]), _mass(read[4:])
            n, d, w = nearest(X, numbers)
            pressing = -numbers[0] * mass * self.push * slope(d / self.thickness)
            return ca.vertcat(mu * pressing, n, w)

        reads = [fields[4], friction, *(x[a] for a in at), *(own[a] for a in at)]
        return [*fields, *f.for_each(self.entities, body, reads, between=fields[5])]

    def gradient(self, g: FieldBuilder, y: Field, x: Field, own: Field, fields: list[Any]) -> list[Field]:
        """Return the gradient of the energy of all pairs. x: positions at the beginning of the step."""
        at = self.around(g, fields)

        def body(numbers: ca.SX, rubbing: ca.SX, *read: ca.SX) -> tuple[ca.SX, ...]:
            return tuple(self._forces(rows_of(read[:4]), rows_of(read[4:8]), _mass(read[8:]), numbers, rubbing))

        reads = [fields[4], fields[7], *(y[a] for a in at), *(x[a] for a in at), *(own[a] for a in at)]
        return g.for_each(self.entities, body, reads, list(at), between=fields[5])

    def _forces(self, Y: ca.SX, X: ca.SX, mass: ca.SX, numbers: ca.SX, rubbing: ca.SX) -> list[ca.SX]:
        n, d, w = nearest(Y, numbers)
        push = numbers[0] * mass * self.push * slope(d / self.thickness) * n
        slip, amount = _slip(Y, X, rubbing)
        drag = rubbing[0] * rub(amount, self.h) * slip
        return [w[i] * push + rubbing[4 + i] * drag for i in range(4)]

    def matrix(self, g: FieldBuilder, exact: Var, y: Field, x: Field, own: Field, fields: list[Any]):
        """Return the Hessian of every pair (144 numbers), and its diagonal blocks, positive semi-definite, at points."""
        at = self.around(g, fields)

        def body(exact: ca.SX, numbers: ca.SX, rubbing: ca.SX, *read: ca.SX) -> tuple[ca.SX, ...]:
            X, mass, free = rows_of(read[4:8]), _mass(read[8:]), [r[1] for r in read[8:]]
            flat = ca.SX.sym("y", 12)
            forces = ca.vertcat(*self._forces(ca.reshape(flat, 3, 4).T, X, mass, numbers, rubbing))
            Y = rows_of(read[:4])
            H = ca.substitute(ca.jacobian(forces, flat), flat, ca.vec(Y.T))
            near = self._near(Y, X, mass, numbers, rubbing)
            H = near + exact * ((H + H.T) / 2 - near)
            mask = ca.vertcat(*(ca.SX.ones(3) * f for f in free))
            H = H * ca.mtimes(mask, mask.T)
            own_blocks = [ca.vec(near[3 * i : 3 * i + 3, 3 * i : 3 * i + 3]) * free[i] for i in range(4)]
            return ca.vec(H), *own_blocks

        reads = [exact, fields[4], fields[7], *(y[a] for a in at), *(x[a] for a in at), *(own[a] for a in at)]
        H, *blocks = g.for_each(self.entities, body, reads, [OWN, *at], between=fields[5])
        return H, blocks

    def _near(self, Y: ca.SX, X: ca.SX, mass: ca.SX, numbers: ca.SX, rubbing: ca.SX) -> ca.SX:
        n, d, w = nearest(Y, numbers)
        stiff = numbers[0] * mass * self.push / self.thickness * curvature(d / self.thickness)
        one = stiff * ca.mtimes(n, n.T)
        slip, amount = _slip(Y, X, rubbing)
        t, side, along = rubbing[1:4], rub(amount, self.h), slip / amount
        drag = rubbing[0] * side * (ca.SX.eye(3) - ca.mtimes(t, t.T))
        drag += rubbing[0] * (rub_curvature(amount, self.h) - side) * ca.mtimes(along, along.T)
        v = rubbing[4:8]
        return ca.kron(ca.mtimes(w, w.T), one) + ca.kron(ca.mtimes(v, v.T), drag)

    def product(self, g: FieldBuilder, p: Field, H: Field, fields: Sequence[Field | Var], span: Var) -> list[Field]:
        """Return the products of the Hessians of pairs with p, at points."""
        at = self.around(g, fields)

        def body(H: ca.SX, *read: ca.SX) -> tuple[ca.SX, ...]:
            q = ca.mtimes(ca.reshape(H, 12, 12), ca.vec(rows_of(read).T))
            return tuple(q[3 * i : 3 * i + 3] for i in range(4))

        return g.for_each(self.entities, body, [H, *(p[a] for a in at)], list(at), between=span)


def rows_of(read) -> ca.SX:
    """Return four points as rows (4, 3)."""
    return ca.vertcat(*(ca.reshape(r, 1, 3) for r in read))


def _mass(read) -> ca.SX:
    masses = [ca.vec(r)[0] for r in read]
    return sum(masses[1:], masses[0]) / 4


def _slip(Y: ca.SX, X: ca.SX, rubbing: ca.SX) -> tuple[ca.SX, ca.SX]:
    n = rubbing[1:4]
    moved = ca.mtimes((Y - X).T, rubbing[4:8])
    slip = moved - ca.dot(moved, n) * n
    return slip, ca.sqrt(ca.sumsqr(slip) + TINY)


def nearest(X: ca.SX, numbers: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the direction between the nearest points of a pair (3), their distance [m], and the weights of its four points."""
    w = ca.if_else(numbers[1] > 0, _edges(X), _triangle(X))
    D = ca.mtimes(X.T, w)
    d = ca.sqrt(ca.sumsqr(D) + TINY)
    return D / d, d, w


def _segment(p: ca.SX, a: ca.SX, b: ca.SX) -> ca.SX:
    """Return where on a segment the point nearest to p is, from 0 to 1."""
    e = b - a
    return ca.fmin(ca.fmax(ca.dot(p - a, e) / (ca.sumsqr(e) + TINY), 0), 1)


def _triangle(X: ca.SX) -> ca.SX:
    """Return the weights of a point (first row) and the corners of a triangle."""
    p, corners = X[0, :], [X[i, :] for i in (1, 2, 3)]
    a, b, c = corners
    u, v, q = b - a, c - a, p - a
    uu, uv, vv, qu, qv = ca.dot(u, u), ca.dot(u, v), ca.dot(v, v), ca.dot(q, u), ca.dot(q, v)
    det = uu * vv - uv * uv + TINY
    s, t = (vv * qu - uv * qv) / det, (uu * qv - uv * qu) / det
    best = ca.vertcat(1 - s - t, s, t)
    inside = ca.fmin(ca.fmin(s, t), 1 - s - t) >= 0
    least = ca.if_else(inside, 0, 1e30)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        r = _segment(p, corners[i], corners[j])
        far = ca.sumsqr(p - (1 - r) * corners[i] - r * corners[j])
        w = ca.SX.zeros(3)
        w[i], w[j] = 1 - r, r
        nearer = ca.logic_and(far < least, ca.logic_not(inside))
        best, least = ca.if_else(nearer, w, best), ca.if_else(nearer, far, least)
    return ca.vertcat(1, -best)


def _edges(X: ca.SX) -> ca.SX:
    """Return the weights of the ends of two edges."""
    a, b, c, d = (X[i, :] for i in range(4))
    u, v, r = b - a, d - c, a - c
    uu, uv, vv, ur, vr = ca.dot(u, u), ca.dot(u, v), ca.dot(v, v), ca.dot(u, r), ca.dot(v, r)
    det = uu * vv - uv * uv
    s = ca.fmin(ca.fmax((uv * vr - ur * vv) / (det + 1e-9 * uu * vv + TINY**2), 0), 1)
    t = (uv * s + vr) / (vv + TINY)
    s = ca.if_else(t < 0, _segment(c, a, b), ca.if_else(t > 1, _segment(d, a, b), s))
    t = ca.fmin(ca.fmax(t, 0), 1)
    return ca.vertcat(1 - s, s, t - 1, -t)
