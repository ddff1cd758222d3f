"""Forward dynamics: the accelerations that joint torques cause, and their derivative.

There are two algorithms. The mass matrix (`crba.py`) can be formed, factored and solved with, or the accelerations
follow directly from the articulated body algorithm (`aba.py`). The first takes fewer operations for shallow trees and
is the only one for mimic joints; `prefers_crba` decides, for each model.

The derivative differentiates neither. Inverse dynamics ID(q, v, a) = tau (`rnea.py`) is the same relation read the
other way, and it is much shorter. Differentiating ID(q, v, FD(q, v, tau)) = tau gives

    M dFD = dtau - dID,    dID at constant a

so a gradient takes one solve with M for the costate lambda = M^-1 a_bar, and the gradient of -dot(lambda, ID), and all Jacobians
take those of ID (`rnea_jacobians.py`) and one factorisation of M.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.ltl import factor
from costate.physics.dynamics.aba import aba
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.passive import ALL_PASSIVE, Passive
from costate.physics.dynamics.rnea import Wrenches, rnea
from costate.physics.dynamics.rnea_jacobians import rnea_jacobians
from costate.physics.params import Parameters

# With up to this many velocities between the root and a tip, the mass matrix and its factorisation take fewer operations
# than the articulated body algorithm: 591 against 669 for a UR5, 943 against 1,297 if its inertias are full, 3,461
# against 3,629 for a quadruped (9 deep), but 3,087 against 2,804 for a chain of 12.
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
    """Return the joint accelerations for which `rnea` gives tau [rad/s^2 or m/s^2], shape (nv,)."""
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
    """Return the joint accelerations M^-1 (tau - h) [rad/s^2 or m/s^2], shape (nv,), by a sparse factorisation of M."""
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
    """Return the gradients of dot(a_bar, forward dynamics) in the symbols wrt: q, v, tau, wrenches or parameters.

    With lambda = M^-1 a_bar the gradient in tau is lambda, and in anything else that of -dot(lambda, ID) at constant a.

    a: Accelerations from the forward pass, so that they need not be computed again.
    """
    held, costate = SX.sym("a", model.nv), SX.sym("lambda", model.nv)
    residual = ca.dot(costate, tau - rnea(model, params, q, v, held, f_ext, passive))
    gradients = [ca.gradient(residual, x) for x in wrt]
    return ca.substitute(gradients, [held, costate], [a, inverse_mass_times(model, params, q, a_bar)])


def forward_dynamics_jacobians(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    tau: SX,
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> tuple[SX, SX, SX, SX]:
    """Return the accelerations a, and d a/d q in the tangent space, d a/d v and d a/d tau = M^-1, each of shape (nv, nv).

    By the same relation: da = M^-1 (dtau - dID), with the Jacobians of inverse dynamics and one factorisation of M.
    """
    held = SX.sym("a", model.nv)
    dq, dv, M = rnea_jacobians(model, params, q, v, held, f_ext, passive)
    factors = factor(M)
    a = factors.solve(tau - rnea(model, params, q, v, SX(model.nv, 1), f_ext, passive))
    inverse = factors.inverse()
    by_q, by_v = ca.substitute([inverse.times(-dq), inverse.times(-dv)], [held], [a])
    return a, by_q, by_v, inverse.matrix()


def inverse_mass_times(model: Model, params: Parameters, q: SX, x: SX) -> SX:
    """Return M(q)^-1 x, shape (nv,)."""
    if prefers_crba(model):
        return factor(crba(model, params, q)).solve(x)
    weightless = params.replace({("gravity", ""): SX(3, 1)})
    return aba(model, weightless, q, SX(model.nv, 1), x, passive=None)


def prefers_crba(model: Model) -> bool:
    """Return True if the mass matrix is the cheaper way to the accelerations, or the only one (mimic joints)."""
    depth: dict[str, int] = {model.links[0].name: 0}
    for joint in model.joints:
        depth[joint.child] = depth[joint.parent] + joint.nv
    return max(depth.values()) <= SHALLOW or any(joint.mimic for joint in model.joints)
