"""Equality constraints: how far they are violated, how that changes, and motion that keeps them.

    r(q) = 0,   dr/dt = J v,   J v' = -r / time constant

Hard constraints are eliminated, not swept: velocities are corrected by W (J W)^-1 (target - J v), W = M^-1 J^T, and contacts act on
what is left free. So closed loops are exact whatever the number of sweeps, and smooth worlds keep them in the same way.

The file has three parts, in the order in which a world uses them: `resolve` turns what a user or a file asks for (short names,
missing numbers) into complete constraints, once; `equations` writes them as rows r and J at a configuration; `tie` wraps a factored
mass matrix so that every velocity it gives keeps them. The Newton model takes the rows and keeps them softly instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from casadi import SX

from costate.model import Model, Transform
from costate.model.constraint import Connect, Constraint, Couple, Distance, Weld
from costate.physics import Parameters
from costate.physics.algebra.ltl import Factor, factor
from costate.physics.algebra.quaternion import from_rotation
from costate.physics.algebra.spatial import skew
from costate.physics.integrate import velocity_map
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses, link_pose, link_poses
from costate.physics.tree import ROOT
from costate.sim.forces.lengths import Length, Sum
from costate.sim.forces.tendons import Tendon
from costate.sim.integrate.advance import turning
from costate.sim.setup import Symbols

SUBSTEPS = 5
"""Time constant where none is given [substeps]."""
REGULARISATION = 1e-6
"""Regularisation of J M^-1 J^T, relative to its diagonal, by which redundant rows (the third one of a planar loop) share their
load. The velocity that is left is a millionth of what the constraint corrects in a step, and does not add up."""


@dataclass(frozen=True, eq=False)
class Equation:
    """Rows of one constraint that have one unit."""

    constraint: Constraint
    links: tuple[str, ...]
    """Links it acts on."""
    lengths: tuple[str, ...]
    """Joints or tendons it couples."""
    is_angular: bool
    r: SX
    """Violation [m or rad], (dim,)."""
    J: SX
    """Jacobian of r, (dim, nv)."""

    @property
    def dim(self) -> int:
        return self.r.numel()


# --- completing what was asked for --------------------------------------------------------------------------------------------


def resolve(model: Model, constraints: Iterable[Constraint], tendons: Sequence[Tendon] = ()) -> tuple[Constraint, ...]:
    """Return constraints with the full names of links, joints and tendons, and with the numbers they take from the home
    configuration."""
    return tuple(_resolve(model, c, [t.name for t in tendons]) for c in constraints)


def _resolve(model: Model, c: Constraint, tendons: Sequence[str]) -> Constraint:
    if not isinstance(c, Connect | Distance | Weld | Couple):
        raise TypeError(f"a constraint is a Weld, Connect, Couple or Distance, not {c!r}")
    c = c.renamed(lambda name: _link(model, name), lambda name: _joint(model, name, tendons))
    if isinstance(c, Couple):
        if c.joint == c.other:
            raise ValueError(f"Couple: joint '{c.joint}' cannot follow itself")
        return c
    if _carrier(model, c.link_a) == _carrier(model, c.link_b):
        raise ValueError(
            f"{type(c).__name__}: no joint moves '{c.link_a}' against '{c.link_b}': there is nothing to hold"
        )
    a, b = _at_home(model, (c.link_a, c.link_b))
    if isinstance(c, Weld):
        return c if c.pose is not None else replace(c, pose=a.inverse() @ b)
    point = a.rotation @ np.asarray(c.point_a, float) + a.translation
    if isinstance(c, Connect):
        return c if c.point_b is not None else replace(c, point_b=tuple(b.rotation.T @ (point - b.translation)))
    length = float(np.linalg.norm(point - b.rotation @ np.asarray(c.point_b, float) - b.translation))
    return c if c.length is not None else replace(c, length=length)


def _link(model: Model, name: str) -> str:
    names = [link.name for link in model.links]
    for full in (name, f"{name}/body"):
        if full in names:
            return full
    raise ValueError(f"no link '{name}' to constrain; links are {', '.join(names)}")


def _joint(model: Model, name: str, tendons: Sequence[str]) -> str:
    """Return the full name of a joint or tendon."""
    scalar = [*(j.name for j in model.joints if j.nv == 1), *tendons]
    found = [x for x in scalar if name in (x, x.partition("/")[2])]
    if len(found) != 1:
        why = "several robots have a" if found else "no"
        raise ValueError(f"{why} joint '{name}' with one coordinate to couple; there are {', '.join(scalar)}")
    return found[0]


def _carrier(model: Model, link: str) -> str:
    """Return the first link that a link is rigidly connected to."""
    joint = next((j for j in model.joints if j.child == link), None)
    return link if joint is None or joint.kind != "fixed" else _carrier(model, joint.parent)


def _at_home(model: Model, links: tuple[str, str]) -> tuple[Transform, Transform]:
    assert model.home is not None  # merged models have one
    q = SX.sym("q", model.nq)
    poses = link_poses(model, Parameters.of(model), q, list(dict.fromkeys(links)))
    found = []
    for name in links:
        R, p = ca.Function("pose", [q], [ca.densify(x) for x in poses[name]]).call([ca.DM(model.home)])
        found.append(Transform(np.array(R), np.array(p).ravel()))
    return found[0], found[1]


# --- rows ---------------------------------------------------------------------------------------------------------


def equations(s: Symbols, q: SX) -> list[Equation]:
    """Return all rows at a configuration, constraint after constraint."""
    bodies = body_poses(s.tree, q) if s.setup.constraints else []
    return [e for c in s.setup.constraints for e in _equations(s, q, bodies, c)]


def _equations(s: Symbols, q: SX, bodies: list, c: Constraint) -> list[Equation]:
    if isinstance(c, Couple):
        return [_couple(s, q, c)]
    links = (c.link_a, c.link_b)
    if isinstance(c, Weld):
        assert c.pose is not None
        at = (c.pose.rotation @ np.asarray(c.anchor, float) + c.pose.translation, c.anchor)
    else:
        assert c.point_b is not None
        at = (c.point_a, c.point_b)
    (pa, Ja, Ra), (pb, Jb, Rb) = (_point(s, bodies, name, x) for name, x in zip(links, at, strict=True))
    apart, J = pa - pb, ca.sparsify(Ja - Jb)
    if isinstance(c, Distance):
        assert c.length is not None
        length = ca.sqrt(ca.dot(apart, apart) + 1e-300)
        return [Equation(c, links, (), False, length - c.length, ca.sparsify((apart / length).T @ J[:3, :]))]
    rows = [Equation(c, links, (), False, apart, J[:3, :])]
    if isinstance(c, Weld):
        assert c.pose is not None
        # The vector part of the quaternion of what turns b to where it should be: half of small angles.
        error = _short(from_rotation(Rb.T @ (Ra @ SX(ca.sparsify(ca.DM(c.pose.rotation))))))
        rate = (error[3] * SX.eye(3) - skew(error[:3])) @ Rb.T / 2
        scale = c.torque_scale
        rows.append(Equation(c, links, (), True, scale * error[:3], ca.sparsify(scale * rate @ J[3:, :])))
    return rows


def _short(quaternion: SX) -> SX:
    """Return the one of two quaternions of a rotation that turns by less than half a turn."""
    return ca.if_else(quaternion[3] < 0, -1, 1) * quaternion


def _couple(s: Symbols, q: SX, c: Couple) -> Equation:
    x, at = _length(s, c.joint), s.at(q)
    powers = list(map(float, c.polynomial))
    r, J = x.of(at) - c.reference[0] - powers[0], x.row(at)
    if c.other is None:
        return Equation(c, (), (c.joint,), False, r, J)
    other = _length(s, c.other)
    y = other.of(at) - c.reference[1]
    r = r - sum((p * y**k for k, p in enumerate(powers) if k), SX(0))
    slope = sum((k * p * y ** (k - 1) for k, p in enumerate(powers) if k), SX(0))
    return Equation(c, (), (c.joint, c.other), False, r, ca.sparsify(J - slope * other.row(at)))


def _length(s: Symbols, name: str) -> Length:
    """Return the coordinate of a joint, or the length of a tendon."""
    model = s.setup.scene.model
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        if j.name == name:
            return Sum(((iq, iv, 1.0),))
    return next(t.length for t in s.setup.tendons if t.name == name)


def _point(s: Symbols, bodies: list, link: str, point: Sequence[float] | np.ndarray) -> tuple[SX, SX, SX]:
    """Return position and Jacobian (6, nv) of a point of a link, and the link's rotation."""
    R, p = link_pose(s.tree, bodies, link)
    at = p + R @ SX(ca.sparsify(ca.DM(np.asarray(point, float))))
    body = s.tree.links[link][0]
    return at, SX(6, s.setup.nv) if body == ROOT else point_jacobian(s.tree, bodies, body, at), R


# --- motion that keeps them -----------------------------------------------------------------------------------------


def drift(s: Symbols, J: SX) -> SX:
    """Return dJ/dt v of rows at the state of the symbols, for accelerations in axes that stand still (advance.py), (dim,)."""
    model = s.setup.scene.model
    return ca.jtimes(J @ s.v, s.q, velocity_map(model, s.q) @ s.v) - J @ turning(model, s.v)


@dataclass(frozen=True, eq=False)
class Tied:
    """A mass matrix whose motions keep the constraints."""

    free: Factor
    J: SX
    W: SX
    """M^-1 J^T, (nv, m)."""
    inner: Factor
    """Factor of J M^-1 J^T."""
    r: SX
    rates: SX
    """1 / time constant of every row [1/s], (m,)."""

    def solve(self, b: SX) -> SX:
        """Return the change of velocity by a generalised impulse, (nv,)."""
        x = self.free.solve(b)
        return x - self.W @ self.inner.solve(self.J @ x)

    def velocity(self, v: SX) -> SX:
        """Return the velocity nearest to v that undoes violations."""
        return v - self.W @ self.inner.solve(self.J @ v + self.rates * self.r)

    def acceleration(self, s: Symbols, q: SX, v: SX, a: SX) -> SX:
        """Return the acceleration nearest to a with d^2 r/dt^2 + 2 rate dr/dt + rate^2 r = 0."""
        speed = self.J @ v
        bend = ca.jtimes(speed, q, velocity_map(s.setup.scene.model, q) @ v)
        wanted = bend + 2 * self.rates * speed + self.rates**2 * self.r
        return a - self.W @ self.inner.solve(self.J @ a + wanted)


def tie(s: Symbols, q: SX, free: Factor) -> Tied | None:
    """Return a mass matrix whose motions keep all constraints; None where there are none."""
    rows = equations(s, q)
    if not rows:
        return None
    J = ca.vertcat(*(e.J for e in rows))
    W = ca.sparsify(ca.horzcat(*(free.solve(J[k, :].T) for k in range(J.shape[0]))))
    A = J @ W
    return Tied(free, J, W, factor(A + ca.diag(_soften(rows, A))), ca.vertcat(*(e.r for e in rows)), rates(s, rows))


def _soften(rows: Sequence[Equation], A: SX) -> SX:
    """Return the regularisation of every row, by the mean of the rows of one constraint and unit: some of them may have nothing to
    act on."""
    parts, at = [], 0
    for e in rows:
        mean = sum((A[k, k] for k in range(at, at + e.dim)), SX(0)) / e.dim
        parts += [REGULARISATION * mean + 1e-30] * e.dim
        at += e.dim
    return ca.vertcat(*parts)


def rates(s: Symbols, rows: Sequence[Equation]) -> SX:
    """Return 1 / time constant of every row [1/s], (m,)."""
    dt = s.setup.dt
    times = [e.constraint.time_constant or SUBSTEPS * dt for e in rows for _ in range(e.dim)]
    return SX(ca.DM([1 / max(t, dt) for t in times]))
