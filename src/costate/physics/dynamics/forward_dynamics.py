"""Forward dynamics by whichever algorithm takes fewer operations, and its derivative without differentiating it."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.ltl import Factor, factor
from costate.physics.dynamics.aba import aba
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.passive import ALL_PASSIVE, Passive
from costate.physics.dynamics.rnea import Wrenches, rnea
from costate.physics.params import Parameters

# Up to this many velocities between the root and a tip the mass matrix and its factorisation take fewer operations than
# the articulated body algorithm: 591 to 669 for a UR5, 943 to 1,297 if its inertias are full, 3,461 to 3,629 for a
# quadruped (9 deep), but 3,087 to 2,804 for a chain of 12.
SHALLOW = 9


def forward_dynamics(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> SX:
    """Joint accelerations [rad/s^2 or m/s^2], shape (nv,): the a for which `rnea` gives tau."""
    algorithm = forward_dynamics_crba if prefers_crba(model) else aba
    return algorithm(model, params, q, v, tau, f_ext, passive)


def forward_dynamics_crba(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> SX:
    """Joint accelerations M^-1 (tau - h) [rad/s^2 or m/s^2], shape (nv,), by CRBA and a sparse factorisation."""
    bias = rnea(model, params, q, v, SX(model.nv, 1), f_ext, passive)
    return factor(crba(model, params, q)).solve(tau - bias)


def forward_dynamics_vjp(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    a: SX,
    a_bar: SX,
    wrt: Sequence[SX],
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> list[SX]:
    """Gradients of dot(a_bar, forward dynamics) in the symbols wrt: q, v, tau, those of wrenches or parameters.

    a: the accelerations that forward dynamics gave. Inverse dynamics ID(q, v, a) = tau holds identically, so with
    lambda = M^-1 a_bar the gradient in tau is lambda, and in anything else that of -dot(lambda, ID) at constant a. So
    only inverse dynamics is differentiated, and a that is kept from the forward pass need not be computed again.
    """
    held, costate = SX.sym("a", model.nv), SX.sym("lambda", model.nv)
    residual = ca.dot(costate, tau - rnea(model, params, q, v, held, f_ext, passive))
    gradients = [ca.gradient(residual, x) for x in wrt]
    return ca.substitute(gradients, [held, costate], [a, inverse_mass_times(model, params, q, a_bar)])


def forward_dynamics_jvp(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    a: SX,
    tangents: Sequence[tuple[SX, SX]],
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> SX:
    """Derivative of forward dynamics along tangents (symbol, rate), at its result a: M^-1 d(tau - ID), shape (nv,)."""
    held = SX.sym("a", model.nv)
    residual = tau - rnea(model, params, q, v, held, f_ext, passive)
    symbols = ca.vertcat(*[ca.vec(x) for x, _ in tangents])
    rates = ca.vertcat(*[ca.vec(rate) for _, rate in tangents])
    (change,) = ca.substitute([ca.jtimes(residual, symbols, rates)], [held], [a])
    return inverse_mass_times(model, params, q, change)


def forward_dynamics_jacobians(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    a: SX,
    wrt: Sequence[SX],
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> list[SX]:
    """da/dx of forward dynamics for symbols x, at its result a: -M^-1 d(ID - tau)/dx, each of shape (nv, size of x)."""
    held = SX.sym("a", model.nv)
    residual = tau - rnea(model, params, q, v, held, f_ext, passive)
    at_solution = ca.substitute([ca.jacobian(residual, ca.vec(x)) for x in wrt], [held], [a])
    factored = factor(crba(model, params, q))
    return [_solve_columns(factored, J) for J in at_solution]


def inverse_mass_times(model: Model, params: Parameters, q: SX, x: SX) -> SX:
    """M(q)^-1 x, shape (nv,)."""
    if prefers_crba(model):
        return factor(crba(model, params, q)).solve(x)
    weightless = params.replace({("gravity", ""): SX(3, 1)})
    return aba(model, weightless, q, SX(model.nv, 1), x, passive=None)


def prefers_crba(model: Model) -> bool:
    """Whether the mass matrix is the cheaper way, or the only one (mimic joints)."""
    depth: dict[str, int] = {model.links[0].name: 0}
    for joint in model.joints:
        depth[joint.child] = depth[joint.parent] + joint.nv
    return max(depth.values()) <= SHALLOW or any(joint.mimic for joint in model.joints)


def _solve_columns(factored: Factor, B: SX) -> SX:
    return ca.horzcat(*[factored.solve(B[:, k]) for k in range(B.shape[1])])
