"""Jacobians of inverse dynamics in q, v and a, at a small multiple of the cost of their entries.

Spatial algebra instead of automatic differentiation (Singh, Russell & Wensing, "Efficient analytical derivatives of rigid-body
dynamics using spatial vector algebra", 2022). All vectors are in the frame of the subtree's first body, so that nothing is
transformed between the bodies of a pair, and a floating base costs least. With S_j the twist of one velocity, and v_p, a_p the
twist and acceleration of the parent of its body,

    D_j = v_p x S_j,   E_j = a_p x S_j + v_p x D_j,   G_j = D_j + v_j x S_j

are what a unit of q_j does to twists and accelerations of all bodies behind the joint, less v_i x D_j. For a body i behind j, with
inertia I and force f of i and all that it carries,

    dtau_i/dq_j = S_i . (B D_j + I E_j)                 dtau_i/dv_j = S_i . (B S_j + I G_j)                M_ij = S_i . I S_j
    dtau_j/dq_i = S_j . (B D_i + I E_i + S_i x* f)      dtau_j/dv_i = S_j . (B S_i + I G_i)

B u = (v x* I - I v x) u + u x* I v. Summed over mass points it is the force 2 dm mu x v(r) at r, where mu is the angular part of u:
its linear part cancels. So the momentum P = sum of dm v(r) and the matrix C = sum of dm v(r) r^T are all that is needed of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import centrifugal, cross, skew, zeros
from costate.physics.dynamics.passive import ALL_PASSIVE, Passive, armature, resistance
from costate.physics.dynamics.regroup import regroup
from costate.physics.dynamics.rnea import Wrenches, inward
from costate.physics.integrate import velocity_map
from costate.physics.kinematics import Twist, wrenches_in_bodies
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Body, Pose, Tree

Entries = dict[tuple[int, int], SX]
"""Entries of a matrix (nv, nv) by row and column."""


def rnea_jacobians(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    a: SX,
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> tuple[SX, SX, SX]:
    """Return d tau/d q in the tangent space (one column for each velocity), d tau/d v and d tau/d a = M, each of shape (nv, nv).

    Entries between different branches of the tree are structural zeros.
    """
    tree = Tree.of(model, params)
    dq, dv, M = _rigid(regroup(tree), q, v, a)
    own = resistance(model, params, q, v, passive)
    if f_ext:  # few and sparse: differentiated as they are
        external = wrenches_in_bodies(tree, q, f_ext)
        pushes = [external.get(i, (zeros(), zeros())) for i in range(len(tree.bodies))]
        own -= inward(tree, tree.steps(q), pushes)
    dq += ca.jacobian(own, q) @ velocity_map(model, q)
    dv += ca.jacobian(own, v)
    return dq, dv, M + ca.diag(armature(model, params))


@dataclass(frozen=True, eq=False)
class _Column:
    """One velocity of a joint: what moves along it, in the frame of the subtree."""

    index: int
    """Row and column of the matrices."""
    scale: float
    """Multiplier of a mimic joint."""
    S: Twist
    D: Twist
    E: Twist
    G: Twist


@dataclass(frozen=True, eq=False)
class _Carried:
    """Sums over a body, or over a body and all that it carries."""

    inertia: Inertia
    P: SX
    """Momentum [kg m/s], shape (3,)."""
    C: SX
    """Sum of dm v(r) r^T [kg m^2/s], shape (3, 3)."""
    force: SX
    moment: SX
    """Force [N] and moment [N m] that accelerate the mass, each of shape (3,)."""

    def __add__(self, other: _Carried) -> _Carried:
        inertia, P, C = self.inertia + other.inertia, self.P + other.P, self.C + other.C
        return _Carried(inertia, P, C, self.force + other.force, self.moment + other.moment)

    def gyrate(self, mu: SX) -> Twist:
        """Return B u for a twist with angular part mu."""
        return 2 * cross(mu, self.P), 2 * (ca.trace(self.C) * mu - self.C @ mu)

    def gyrated(self, u: Twist) -> SX:
        """Return the b with u . B w = b . (angular part of w), shape (3,)."""
        return 2 * (cross(self.P, u[0]) + ca.trace(self.C) * u[1] - self.C.T @ u[1])


def _rigid(tree: Tree, q: SX, v: SX, a: SX) -> tuple[SX, SX, SX]:
    columns, carried = _outward(tree, q, v, a)
    dq, dv, M = {}, {}, {}
    for i in reversed(range(len(tree.bodies))):
        parent = tree.bodies[i].parent
        if parent != ROOT:
            carried[parent] += carried[i]
        others = []
        while parent != ROOT:
            others += columns[parent]
            parent = tree.bodies[parent].parent
        for c in columns[i]:
            _own_row(c, carried[i], columns[i] + others, dq, dv, M)
            _rows_of_ancestors(c, carried[i], others, dq, dv, M)
    return _matrix(dq, tree.nv), _matrix(dv, tree.nv), _matrix(M, tree.nv)


def _outward(tree: Tree, q: SX, v: SX, a: SX) -> tuple[list[list[_Column]], list[_Carried]]:
    """Return the columns of every body, and the sums over it alone."""
    steps = tree.steps(q)
    poses: list[Pose] = []
    motions: list[tuple[Twist, Twist]] = []
    columns, carried = [], []
    for body, step in zip(tree.bodies, steps, strict=True):
        if body.parent == ROOT:
            pose = SX.eye(3), zeros()
            parent = (zeros(), zeros()), (step.down(-tree.gravity), zeros())
        else:
            R, p = poses[body.parent]
            pose = (R @ step.constant) @ step.joint, p + R @ step.translation
            parent = motions[body.parent]
        poses.append(pose)
        own, rate = _along(pose, body.rates(v)), _along(pose, body.rates(a))
        twist = _sum(parent[0], own)
        acceleration = _sum(_sum(parent[1], rate), _cross(parent[0], own))
        motions.append((twist, acceleration))
        columns.append(_columns(body, pose, parent, twist))
        carried.append(_alone(body.inertia.rotated(pose[0]).shifted(pose[1]), twist, acceleration))
    return columns, carried


def _columns(body: Body, pose: Pose, parent: tuple[Twist, Twist], twist: Twist) -> list[_Column]:
    found = []
    unit = SX.eye(3)
    linear = [(unit[:, k], zeros()) for k in body.kind.linear]
    for n, direction in enumerate(linear + [(zeros(), unit[:, k]) for k in body.kind.angular]):
        S = _along(pose, direction)
        D = _cross(parent[0], S)
        E = _sum(_cross(parent[1], S), _cross(parent[0], D))
        found.append(_Column(body.v_start + n, body.scale, S, D, E, _sum(D, _cross(twist, S))))
    return found


def _alone(inertia: Inertia, twist: Twist, acceleration: Twist) -> _Carried:
    (velocity, omega), (change, alpha) = twist, acceleration
    momentum = inertia.mass * velocity + cross(omega, inertia.first)
    moved = velocity @ inertia.first.T + skew(omega) @ inertia.second
    point = change + cross(omega, velocity)  # that of the mass at the origin
    return _Carried(inertia, momentum, moved, *inertia.wrench(point, skew(alpha) + centrifugal(omega)))


def _own_row(c: _Column, on: _Carried, others: list[_Column], dq: Entries, dv: Entries, M: Entries) -> None:
    """Add how the torque of a column depends on columns of its own body, or of one that carries it."""
    A, b = on.inertia.momentum(*c.S), on.gyrated(c.S)
    for other in others:
        at, scale = (c.index, other.index), c.scale * other.scale
        _add(M, at, scale, _dot(A, other.S))
        _add(dq, at, scale, ca.dot(b, other.D[1]) + _dot(A, other.E))
        _add(dv, at, scale, ca.dot(b, other.S[1]) + _dot(A, other.G))


def _rows_of_ancestors(c: _Column, on: _Carried, others: list[_Column], dq: Entries, dv: Entries, M: Entries) -> None:
    """Add how the torques of bodies that carry a column depend on it."""
    turned = cross(c.S[1], on.force), cross(c.S[1], on.moment) + cross(c.S[0], on.force)
    A = on.inertia.momentum(*c.S)
    by_q = _sum(_sum(on.gyrate(c.D[1]), on.inertia.momentum(*c.E)), turned)
    by_v = _sum(on.gyrate(c.S[1]), on.inertia.momentum(*c.G))
    for other in others:
        at, scale = (other.index, c.index), c.scale * other.scale
        _add(M, at, scale, _dot(A, other.S))
        _add(dq, at, scale, _dot(by_q, other.S))
        _add(dv, at, scale, _dot(by_v, other.S))


def _along(pose: Pose, direction: Twist) -> Twist:
    """Return a twist of a body, given in its own frame, in that of the subtree."""
    R, p = pose
    linear, angular = R @ direction[0], R @ direction[1]
    return linear + cross(p, angular), angular


def _sum(a: Twist, b: Twist) -> Twist:
    return a[0] + b[0], a[1] + b[1]


def _cross(a: Twist, b: Twist) -> Twist:
    """Return the cross product of twists."""
    return cross(a[1], b[0]) + cross(a[0], b[1]), cross(a[1], b[1])


def _dot(force: Twist, twist: Twist) -> SX:
    return ca.dot(force[0], twist[0]) + ca.dot(force[1], twist[1])


def _add(entries: Entries, at: tuple[int, int], scale: float, value: SX) -> None:
    entries[at] = entries.get(at, SX(1, 1)) + (value if scale == 1 else scale * value)


def _matrix(entries: Entries, n: int) -> SX:
    known = [(at, value) for at, value in entries.items() if value.nnz()]
    known.sort(key=lambda entry: (entry[0][1], entry[0][0]))  # CasADi goes column by column
    pattern = ca.Sparsity.triplet(n, n, [i for (i, _), _ in known], [j for (_, j), _ in known])
    return SX(pattern, ca.vertcat(*[value for _, value in known]))
