"""Forward dynamics: the articulated body algorithm (Featherstone, 1983), in body frames.

As in `rnea.py`, accelerations are those of points, so no linear velocity is needed. The velocities of a joint are
eliminated one after the other: a joint with several is treated as a chain of joints of zero length with one each.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import centrifugal, cross, skew, symmetric, zeros
from costate.physics.dynamics.passive import ALL_PASSIVE, Passive, armature, resistance
from costate.physics.dynamics.regroup import regroup
from costate.physics.dynamics.rnea import Wrenches
from costate.physics.kinematics import wrenches_in_bodies
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Body, Step, Tree


def aba(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> SX:
    """Return the joint accelerations for which `rnea` gives tau [rad/s^2 or m/s^2], shape (nv,). Not for mimic joints."""
    tree = Tree.of(model, params)
    if tree.has_mimics:
        raise ValueError(
            "the articulated body algorithm cannot couple joints: use forward_dynamics_crba for mimic joints"
        )
    external = wrenches_in_bodies(tree, q, f_ext or {})
    tau = tau - resistance(model, params, q, v, passive)
    return _accelerate(regroup(tree), q, v, tau, armature(model, params), external)


@dataclass(frozen=True, eq=False)
class _Elimination:
    """An acceleration of a joint, solved for in terms of the acceleration a of its body: qdd = (u - U^T a) / D."""

    direction: int
    """Index of the joint's direction in a spatial vector (linear, angular)."""
    U: SX
    """Column of the articulated inertia for that direction, shape (6,)."""
    u: SX
    """Torque that is left for the acceleration [N m or N]."""
    inverse: SX
    """Inverse of the inertia seen by the joint, 1 / D."""


def _accelerate(tree: Tree, q: SX, v: SX, tau: SX, rotors: SX, external: dict[int, tuple[SX, SX]]) -> SX:
    steps = tree.steps(q)
    omegas, biases = _velocity_terms(tree, steps, v)
    inertias = [_articulated(body.inertia) for body in tree.bodies]
    forces = [
        ca.vertcat(*body.inertia.wrench(zeros(), centrifugal(w))) for body, w in zip(tree.bodies, omegas, strict=True)
    ]
    for i, (force, moment) in external.items():
        forces[i] = forces[i] - ca.vertcat(force, moment)
    eliminations: list[list[_Elimination]] = [[] for _ in steps]
    for i in reversed(range(len(steps))):
        body = tree.bodies[i]
        eliminations[i], inertia, force = _eliminate(body, inertias[i], forces[i], tau, rotors)
        if body.parent != ROOT:
            inertias[body.parent] = inertias[body.parent] + _inertia_up(steps[i], inertia)
            forces[body.parent] = forces[body.parent] + _force_up(steps[i], force + inertia @ biases[i])
    return _outward(tree, steps, biases, eliminations)


def _velocity_terms(tree: Tree, steps: list[Step], v: SX) -> tuple[list[SX], list[SX]]:
    """Return the angular velocity (3,) and the velocity-dependent acceleration (6,) of every body, in its own axes."""
    omegas: list[SX] = []
    biases: list[SX] = []
    for body, step in zip(tree.bodies, steps, strict=True):
        omega_p = zeros() if body.parent == ROOT else omegas[body.parent]
        omega_parent = step.down(omega_p)
        slide, turn = body.rates(v)
        omega = omega_parent + turn
        point = step.down(centrifugal(omega_p) @ step.translation) + cross(omega_parent + omega, slide)
        omegas.append(omega)
        biases.append(ca.vertcat(point, cross(omega_parent, turn)))
    return omegas, biases


def _articulated(inertia: Inertia) -> SX:
    """Return the spatial inertia (linear, angular) of a rigid body, shape (6, 6)."""
    coupling = skew(inertia.first).T
    return ca.sparsify(
        ca.vertcat(
            ca.horzcat(inertia.mass * SX.eye(3), coupling),
            ca.horzcat(coupling.T, inertia.rotational()),
        )
    )


def _eliminate(body: Body, inertia: SX, force: SX, tau: SX, rotors: SX) -> tuple[list[_Elimination], SX, SX]:
    """Eliminate the accelerations of a body's joint; return also the inertia and the force that its parent feels."""
    eliminations = []
    for n, k in enumerate(body.kind.directions):
        rotor = rotors[body.v_start + n]
        U = inertia[:, k]
        u = tau[body.v_start + n] - force[k]
        inverse = 1 / (U[k] + rotor)
        eliminations.append(_Elimination(k, U, u, inverse))
        if rotor.nnz() == 0:
            # Without a rotor the joint transmits no inertia along k: that row cancels exactly.
            rest = SX.ones(6, 1)
            rest[k] = 0
            rest = ca.sparsify(rest)
            U, inertia, force = U * rest, inertia * (rest @ rest.T), force * rest
            force_along = SX(6, 1)
            force_along[k] = tau[body.v_start + n]
            force = force + ca.sparsify(force_along)
        inertia = symmetric(inertia - (U * inverse) @ U.T)
        force = force + U * (inverse * u)
    return eliminations, inertia, force


def _inertia_up(step: Step, inertia: SX) -> SX:
    """Express an articulated inertia in the parent's frame, shape (6, 6)."""
    M = step.matrix_up(inertia[:3, :3], is_symmetric=True)
    H = step.matrix_up(inertia[:3, 3:])
    A = step.matrix_up(inertia[3:, 3:], is_symmetric=True)
    P = skew(step.translation)
    H_shifted = H - M @ P
    A_shifted = symmetric(A - H.T @ P + P @ H_shifted)
    return ca.vertcat(ca.horzcat(M, H_shifted), ca.horzcat(H_shifted.T, A_shifted))


def _force_up(step: Step, wrench: SX) -> SX:
    force, moment = step.up(wrench[:3]), step.up(wrench[3:])
    return ca.vertcat(force, moment + cross(step.translation, force))


def _outward(tree: Tree, steps: list[Step], biases: list[SX], eliminations: list[list[_Elimination]]) -> SX:
    """Compute the joint accelerations from the root outwards, shape (nv,)."""
    root = ca.vertcat(-tree.gravity, SX(3, 1))
    accelerations: list[SX] = []
    result: list[SX] = [SX(0)] * tree.nv
    for i, (body, step) in enumerate(zip(tree.bodies, steps, strict=True)):
        a_p = root if body.parent == ROOT else accelerations[body.parent]
        point = step.down(a_p[:3] + cross(a_p[3:], step.translation))
        a = ca.vertcat(point, step.down(a_p[3:])) + biases[i]
        for n, e in reversed(list(enumerate(eliminations[i]))):
            qdd = (e.u - ca.dot(e.U, a)) * e.inverse
            result[body.v_start + n] = qdd
            along = SX(6, 1)
            along[e.direction] = qdd
            a = a + along
        accelerations.append(a)
    return ca.densify(ca.vertcat(*result)) if result else SX(0, 1)
