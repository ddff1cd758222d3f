"""Contact of points with shapes, and friction.

A point nearer than the thickness d0 of the cloth is pushed away by the energy k B(d / d0),

    B(s) = -(s - 1)^2 log s        for s < 1, continued as a parabola below DEEP, so that points in a shape are pushed out of it.

Friction has an energy, too, of how far a point slides along the shape in a step: mu N f(|slip|) with the normal force N and the
tangent plane at the beginning of the step (as Li et al. do, Incremental Potential Contact, 2020). f grows as |slip| above `CREEP`
h, and smoothly below: what rests creeps, more slowly than that. Both are implicit: contact and friction are those of the end of a
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from costate.collision.kinds import solid_of
from costate.collision.shapes import Field as SampledSolid
from costate.collision.shapes import Solid
from costate.continuum.mpm.fill import distance_of
from costate.kernel.fields import TOTAL, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Var
from costate.model.shape import Shape

DEEP = 0.01
"""Share of the thickness below which the barrier is a parabola."""
CREEP = 1e-3
"""Speed [m/s] above which friction has its full force."""
TINY = 1e-24
SHARE = 0.9
"""Share of the distance to a shape that the solve of a step starts with."""
POSE = 12
"""Numbers of a pose: position [m], rotation row by row."""
TOUCH = 7
"""Numbers about friction with a shape: friction times normal force [N], normal (3), where the point would stick (3)."""


@dataclass(frozen=True, eq=False)
class Collider:
    """A shape that points touch."""

    shape: Shape | Solid
    """Shape in the world, or in its own frame if it moves."""
    friction: float = 0.5
    """Coefficient of Coulomb's friction."""
    moves: bool = False
    """True if it moves: its pose is then given in every step."""
    link: str = ""
    """Link of a world that it belongs to, as the world names it: `robot/link`."""
    name: str = "shape"

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", self.moves or bool(self.link))
        if not float(self.friction) >= 0:
            raise ValueError(f"friction of '{self.name}' is {self.friction}; expected a number of 0 or more")
        if isinstance(self.shape if isinstance(self.shape, Solid) else solid_of(self.shape), SampledSolid):
            raise ValueError(
                f"'{self.name}' is known by samples (a mesh or a height field); cloth touches shapes with a formula: use boxes, "
                "spheres, capsules, cylinders, ellipsoids, planes, or unions of them"
            )

    def distance(self, x: ca.SX, pose: ca.SX | None) -> ca.SX:
        """Return the signed distance [m] of a point of the world."""
        return distance_of(self.shape, x if pose is None else ca.mtimes(_rotation(pose).T, x - pose[:3]))


@dataclass(frozen=True, eq=False)
class Contacts:
    """Shapes around the points of a scene."""

    colliders: tuple[Collider, ...]
    points: Entities
    h: float
    thickness: float
    """Distance at which contact begins [m]."""
    push: float
    """Strength of contact [m/s^2]: about the acceleration at two thirds of the thickness."""

    @property
    def moving(self) -> int:
        """Number of shapes that move."""
        return sum(c.moves for c in self.colliders)

    def prepare(
        self, f: FieldBuilder, x: Field, own: Field, friction: Var, before: Sequence[Var], after: Sequence[Var]
    ) -> list:
        """Return what contact needs in a step: numbers of friction (7 per shape and point), and poses at the end.

        friction: coefficients of all shapes. before, after: poses (12) of the shapes that move.
        """
        if not self.colliders:
            return []
        n = self.moving

        def body(x: ca.SX, own: ca.SX, mu: ca.SX, *poses: ca.SX) -> ca.SX:
            rows = []
            for k, (c, was, now) in enumerate(self._each(poses[:n], poses[n:])):
                d, normal = self._distance(c, x, was)
                pressing = -own[0] * self.push * slope(d / self.thickness)
                if was is not None:
                    assert now is not None
                    turn = ca.mtimes(_rotation(now), _rotation(was).T)
                    normal, stuck = ca.mtimes(turn, normal), now[:3] + ca.mtimes(turn, x - was[:3])
                else:
                    stuck = x
                rows += [mu[k] * pressing, normal, stuck]
            return ca.vertcat(*rows)

        (touch,) = f.for_each(self.points, body, [x, own, friction, *before, *after])
        return [touch, *after]

    def start(self, f: FieldBuilder, x: Field, drift: Field, own: Field, contact: Sequence[Field | Var]) -> Field:
        """Return where the solve of a step starts: on the way to `drift`, before anything is touched."""
        if not contact:
            return drift

        def body(x: ca.SX, drift: ca.SX, own: ca.SX, touch: ca.SX, *poses: ca.SX) -> ca.SX:
            y = drift
            for k, (c, _, now) in enumerate(self._each(poses, poses)):
                stuck = touch[TOUCH * k + 4 : TOUCH * k + 7]
                way = y - stuck
                room = ca.fmax(c.distance(stuck, now), 0) * SHARE
                y = stuck + ca.fmin(1, room / ca.sqrt(ca.sumsqr(way) + TINY)) * way
            return own[1] * y + (1 - own[1]) * drift

        return f.for_each(self.points, body, [x, drift, own, *contact])[0]

    def gradient(self, g: FieldBuilder, y: Field, own: Field, contact: Sequence[Field | Var]) -> list[Field]:
        """Return the gradient of the energy of contact and friction."""
        if not contact:
            return []
        return g.for_each(self.points, lambda y, o, t, *p: sum(self.forces(y, o, t, p)), [y, own, *contact])

    def reactions(self, g: FieldBuilder, y: Field, own: Field, contact: Sequence[Field | Var]) -> list[Var]:
        """Return force [N] and torque [N m] on each shape that moves, about the origin of its pose."""
        if not contact or not self.moving:
            return []

        def body(y: ca.SX, o: ca.SX, t: ca.SX, *poses: ca.SX) -> tuple[ca.SX, ...]:
            forces = self.forces(y, o, t, poses)
            found = [f for f, c in zip(forces, self.colliders, strict=True) if c.moves]
            return tuple(o[1] * ca.vertcat(f, ca.cross(y - p[:3], f)) for f, p in zip(found, poses, strict=True))

        return g.for_each(self.points, body, [y, own, *contact], [TOTAL] * self.moving)

    def forces(self, y: ca.SX, own: ca.SX, touch: ca.SX, poses: Sequence[ca.SX]) -> list[ca.SX]:
        """Return the force [N] of a point on every shape: the gradient of the energy of contact and friction."""
        found = []
        for k, (c, _, now) in enumerate(self._each(poses, poses)):
            d, normal = self._distance(c, y, now)
            strength = own[0] * self.push
            grip, slip, amount = self._slip(touch, k, y)
            found.append(strength * slope(d / self.thickness) * normal + grip * rub(amount, self.h) * slip)
        return found

    def blocks(self, g: FieldBuilder, exact: Var, y: Field, own: Field, contact: Sequence[Field | Var]) -> list[Field]:
        """Return the Hessian of contact and friction (9) if `exact` is 1; if 0, one near it that is positive semi-definite."""
        if not contact:
            return []
        return g.for_each(self.points, lambda *a: ca.vec(self._blocks(*a)), [exact, y, own, *contact])

    def _blocks(self, a: ca.SX, y: ca.SX, own: ca.SX, touch: ca.SX, *poses: ca.SX) -> ca.SX:
        v = ca.SX.sym("y", 3)
        exact = ca.substitute(ca.jacobian(sum(self.forces(v, own, touch, poses)), v), v, y)
        near = self._near(y, own, touch, poses)
        return near + a * (exact - near)

    def _near(self, y: ca.SX, own: ca.SX, touch: ca.SX, poses: Sequence[ca.SX]) -> ca.SX:
        H = ca.SX.zeros(3, 3)
        for k, (c, _, now) in enumerate(self._each(poses, poses)):
            d, n = self._distance(c, y, now)
            H += own[0] * self.push / self.thickness * curvature(d / self.thickness) * ca.mtimes(n, n.T)
            grip, slip, amount = self._slip(touch, k, y)
            t = touch[TOUCH * k + 1 : TOUCH * k + 4]
            side = rub(amount, self.h)
            along = slip / amount
            H += grip * side * (ca.SX.eye(3) - ca.mtimes(t, t.T))
            H += grip * (rub_curvature(amount, self.h) - side) * ca.mtimes(along, along.T)
        return H

    def _slip(self, touch: ca.SX, k: int, y: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return friction times normal force, the slip along the shape, and its length."""
        grip, n, stuck = touch[TOUCH * k], touch[TOUCH * k + 1 : TOUCH * k + 4], touch[TOUCH * k + 4 : TOUCH * k + 7]
        moved = y - stuck
        slip = moved - ca.dot(moved, n) * n
        return grip, slip, ca.sqrt(ca.sumsqr(slip) + TINY)

    def _distance(self, c: Collider, x: ca.SX, pose: ca.SX | None) -> tuple[ca.SX, ca.SX]:
        p = ca.SX.sym("p", 3)
        d = c.distance(p, pose)
        d, n = ca.substitute([d, ca.gradient(d, p)], [p], [x])
        return d, n

    def _each(self, before: Sequence[ca.SX], after: Sequence[ca.SX]):
        """Yield every shape with its poses, None for those that do not move."""
        was, now = iter(before), iter(after)
        for c in self.colliders:
            yield (c, next(was), next(now)) if c.moves else (c, None, None)


def _rotation(pose: ca.SX) -> ca.SX:
    return ca.reshape(pose[3:12], 3, 3).T


def slope(s: ca.SX) -> ca.SX:
    """Return B'(s)."""
    t = ca.fmin(ca.fmax(s, DEEP), 1)
    return -2 * (t - 1) * ca.log(t) - (t - 1) ** 2 / t + ca.fmin(s - DEEP, 0) * _curvature(DEEP)


def curvature(s: ca.SX) -> ca.SX:
    """Return B''(s), which is never negative."""
    return ca.if_else(s < 1, _curvature(ca.fmax(s, DEEP)), 0)


def _curvature(t):
    return -2 * ca.log(t) - 4 * (t - 1) / t + (t - 1) ** 2 / t**2


def rub(amount: ca.SX, h: float) -> ca.SX:
    """Return f'(amount) / amount of the energy of friction."""
    e = CREEP * h
    return ca.if_else(amount < e, 2 / e - amount / e**2, 1 / amount)


def rub_curvature(amount: ca.SX, h: float) -> ca.SX:
    """Return f''(amount)."""
    e = CREEP * h
    return ca.if_else(amount < e, 2 / e - 2 * amount / e**2, 0)
