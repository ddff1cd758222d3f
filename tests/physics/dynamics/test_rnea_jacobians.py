"""Jacobians of dynamics: against Pinocchio's, and against automatic differentiation of the functions themselves."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
import pytest
from casadi import SX
from hypothesis import assume, given, settings
from tests.physics.evaluate import evaluate
from tests.physics.strategies import SLOW, random_models, random_state, tree_of

from costate.audit.pinocchio_model import to_pinocchio
from costate.model.model import Model
from costate.physics import Parameters
from costate.physics.dynamics.forward_dynamics import forward_dynamics, forward_dynamics_jacobians
from costate.physics.dynamics.rnea import rnea
from costate.physics.dynamics.rnea_jacobians import rnea_jacobians
from costate.physics.integrate import integrate, velocity_map

few = settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
ROUNDING = 1e-11
"""Of inverse dynamics, relative to the largest entry: hundreds of operations."""
SOLVED = 1e-8
"""Of forward dynamics: the inverse of a mass matrix with a condition number of up to 1e6 enters twice."""


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    size = max(np.abs(expected).max(initial=0.0), 1.0)
    assert np.abs(found.reshape(expected.shape) - expected).max(initial=0.0) <= tolerance * size


@few
@given(random_models(max_joints=10))
def test_against_pinocchio(model: Model) -> None:
    """All kinds of joints, in the tangent space, without passive forces, which Pinocchio does not have."""
    assume(model.nv > 0)
    oracle = to_pinocchio(model)
    q, v, x = SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("x", model.nv)
    params, numbers = Parameters.of(model), random_state(model)
    inverse = rnea_jacobians(model, params, q, v, x, passive=None)
    forward = forward_dynamics_jacobians(model, params, q, v, x, passive=None)
    found = evaluate([q, v, x], [*map(ca.densify, (*inverse, *forward))], *numbers)
    m, d, order = oracle.model, oracle.data, oracle.order
    arguments = oracle.configuration(numbers[0]), numbers[1][order], numbers[2][order]
    id_q, id_v, M = pin.computeRNEADerivatives(m, d, *arguments)
    M = np.triu(M) + np.triu(M, 1).T
    wanted = [id_q.copy(), id_v.copy(), M, pin.aba(m, d, *arguments).copy()]
    pin.computeABADerivatives(m, d, *arguments)
    wanted += [d.ddq_dq.copy(), d.ddq_dv.copy(), np.triu(d.Minv) + np.triu(d.Minv, 1).T]
    n = model.nv
    for k, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        own = mine[order] if k == 3 else mine.reshape(n, n)[np.ix_(order, order)]
        assert_close(own, theirs, ROUNDING if k < 3 else SOLVED)


@settings(few, max_examples=6)
@given(random_models(max_joints=6, mimics=True))
def test_against_automatic_differentiation(model: Model) -> None:
    """With mimic joints, rotors, passive forces, a wrench on a link, symbolic parameters, and quaternions of any length."""
    assume(model.nv > 0)
    q, v, x = SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("x", model.nv)
    link = model.links[-1].name
    params, extra = Parameters.of(model).symbolic([("mass", link), ("com", link), ("gravity", "")])
    push = {link: SX.sym("f", 6)}
    inputs, N = [q, v, x, *push.values(), *extra.values()], velocity_map(model, q)
    tau, a = rnea(model, params, q, v, x, push), forward_dynamics(model, params, q, v, x, push)
    direct = [ca.jacobian(tau, q) @ N, ca.jacobian(tau, v), ca.jacobian(tau, x), a]
    direct += [ca.jacobian(a, q) @ N, ca.jacobian(a, v), ca.jacobian(a, x)]
    ours = [*rnea_jacobians(model, params, q, v, x, push), *forward_dynamics_jacobians(model, params, q, v, x, push)]
    rng = np.random.default_rng(1)
    q0, v0, x0 = random_state(model)
    numbers = 1.3 * q0, v0, x0, rng.normal(size=6), 1.7, rng.normal(size=3) * 0.1, rng.normal(size=3)
    found, wanted = (evaluate(inputs, [*map(ca.densify, each)], *numbers) for each in (ours, direct))
    for k, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        assert_close(mine, theirs, ROUNDING if k < 3 else SOLVED)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "planar", "spherical", "floating"])
def test_against_differences(kind: str) -> None:
    """Behind and before a joint of every kind, with springs, damping, friction and rotors."""
    model = tree_of("revolute", kind, "prismatic", "revolute")
    n, params = model.nv, Parameters.of(model)
    q, v, tau = SX.sym("q", model.nq), SX.sym("v", n), SX.sym("tau", n)
    J = ca.horzcat(*forward_dynamics_jacobians(model, params, q, v, tau)[1:])
    d = SX.sym("d", 3 * n)
    moved = forward_dynamics(model, params, integrate(model, q, d[:n]), v + d[n : 2 * n], tau + d[2 * n :])
    numbers = random_state(model)
    (found,) = evaluate([q, v, tau], [ca.densify(J)], *numbers)
    f = ca.Function("f", [q, v, tau, d], [moved])
    h = 1e-5
    columns = [(f(*numbers, h * e) - f(*numbers, -h * e)) / (2 * h) for e in np.eye(3 * n)]
    assert_close(found, np.hstack([np.array(c) for c in columns]), 1e-6)


def test_branches_do_not_touch() -> None:
    """Entries between branches are structural zeros, so that nobody computes with them."""
    model = tree_of("revolute", "revolute")
    joints = (model.joints[0], replace(model.joints[1], parent="link0"))
    branched = replace(model, joints=joints)
    q, v, a = SX.sym("q", 2), SX.sym("v", 2), SX.sym("a", 2)
    for J in rnea_jacobians(branched, Parameters.of(branched), q, v, a):
        assert not J.sparsity().has_nz(0, 1) and not J.sparsity().has_nz(1, 0)
