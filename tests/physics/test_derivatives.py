"""Derivatives of dynamics: against Pinocchio's analytic ones, each other, and finite differences in every parameter."""

from __future__ import annotations

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
from costate.physics import Parameters, Passive, build, build_vjp
from costate.physics.dynamics.forward_dynamics import forward_dynamics, forward_dynamics_vjp
from costate.physics.dynamics.rnea import rnea
from costate.physics.integrate import velocity_map
from costate.physics.params import KINDS

few = settings(max_examples=12, deadline=None, suppress_health_check=SLOW)


def close(x: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    return bool(np.abs(x - expected).max(initial=0.0) <= tolerance * max(np.abs(expected).max(initial=0.0), 1.0))


def symbols(model: Model) -> tuple[SX, SX, SX]:
    return SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("x", model.nv)


@few
@given(random_models(max_joints=10))
def test_against_pinocchio(model: Model) -> None:
    """d ID / d(q, v) and d FD / d(q, v, tau) in the tangent space, floating bases and quaternions included."""
    assume(model.nv > 0)
    oracle = to_pinocchio(model)
    m, d, order = oracle.model, oracle.data, oracle.order
    q, v, x = symbols(model)
    params, N = Parameters.of(model), velocity_map(model, q)
    tau = rnea(model, params, q, v, x, passive=None)
    a = forward_dynamics(model, params, q, v, x, passive=None)
    outputs = [
        ca.jacobian(tau, q) @ N,
        ca.jacobian(tau, v),
        ca.jacobian(a, q) @ N,
        ca.jacobian(a, v),
        ca.jacobian(a, x),
    ]
    numbers = random_state(model)
    ours = [J.reshape(model.nv, model.nv)[np.ix_(order, order)] for J in evaluate([q, v, x], outputs, *numbers)]
    arguments = oracle.configuration(numbers[0]), numbers[1][order], numbers[2][order]
    id_q, id_v, _ = pin.computeRNEADerivatives(m, d, *arguments)
    expected = [id_q.copy(), id_v.copy()]
    pin.computeABADerivatives(m, d, *arguments)
    M_inverse = np.triu(d.Minv) + np.triu(d.Minv, 1).T
    expected += [d.ddq_dq.copy(), d.ddq_dv.copy(), M_inverse]
    for mine, theirs in zip(ours, expected, strict=True):
        # The inverse mass matrix enters twice: the condition number (up to 1e6) times rounding.
        assert close(mine, theirs.reshape(mine.shape), 1e-8)


@settings(few, max_examples=8)
@given(random_models(max_joints=5, mimics=True))
def test_adjoint_of_forward_dynamics(model: Model) -> None:
    """The gradient through inverse dynamics equals that of differentiating forward dynamics itself."""
    assume(model.nv > 0)
    q, v, tau = symbols(model)
    wrench, a_bar = SX.sym("f", 6), SX.sym("a_bar", model.nv)
    link = model.links[-1].name
    params, mass = Parameters.of(model).symbolic([("mass", link), ("damping", model.joints[-1].name)])
    wrt = [q, v, tau, wrench, *mass.values()]
    forces = {link: wrench}
    a = forward_dynamics(model, params, q, v, tau, forces)
    adjoint = forward_dynamics_vjp(model, params, q, v, tau, a, a_bar, wrt, forces)
    direct = [ca.jtimes(a, x, a_bar, True) for x in wrt]
    rng = np.random.default_rng(3)
    numbers = *random_state(model), rng.normal(size=6), 1.3, 0.2, rng.normal(size=model.nv)
    mine = evaluate([*wrt, a_bar], adjoint, *numbers)
    for ours, expected in zip(mine, evaluate([*wrt, a_bar], direct, *numbers), strict=True):
        assert close(ours, expected, 1e-8)


def test_table_gives_the_adjoint() -> None:
    """build_vjp gives the gradients of all inputs from outputs that are already known."""
    model = tree_of("floating", "revolute", "prismatic", "spherical")
    params, extra = Parameters.of(model).symbolic([("mass", "link2"), ("gravity", "")])
    inputs, outputs = build(model, params, "forward_dynamics", wrenches=("link3",))
    vjp_inputs, gradients = build_vjp(model, params, "forward_dynamics", extra, wrenches=("link3",))
    q, v, tau = random_state(model)
    rng = np.random.default_rng(0)
    x = {
        "q": q,
        "v": v,
        "tau": tau,
        "wrench:link3": rng.normal(size=6),
        "mass:link2": 2.0,
        "gravity": rng.normal(size=3),
    }
    every = {**inputs, **extra}
    numbers = [x[key] for key in every]
    a = evaluate(list(every.values()), [outputs["a"]], *numbers)[0]
    x |= {"a": a, "bar:a": rng.normal(size=model.nv)}
    mine = evaluate(list(vjp_inputs.values()), list(gradients.values()), *[x[key] for key in vjp_inputs])
    bar = SX.sym("bar", model.nv)
    direct = [ca.jtimes(outputs["a"], s, bar, True) for s in every.values()]
    expected = evaluate([*every.values(), bar], direct, *numbers, x["bar:a"])
    assert list(gradients) == [f"bar:{key}" for key in every]
    for ours, theirs in zip(mine, expected, strict=True):
        assert close(ours, theirs, 1e-10)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "planar", "spherical", "floating"])
@pytest.mark.parametrize("parameter", list(KINDS))
def test_parameter_gradients(kind: str, parameter: str) -> None:
    """Gradient of forward dynamics in each kind of parameter against central differences."""
    model = tree_of("revolute", kind, "revolute")
    owner, shape = KINDS[parameter]
    name = {"link": "link2", "joint": "joint1", "model": ""}[owner]
    params, extra = Parameters.of(model).symbolic([(parameter, name)])
    q, v, tau = symbols(model)
    (theta,) = extra.values()
    a = forward_dynamics(model, params, q, v, tau, passive=Passive(friction_speed=1.0))
    state = random_state(model, seed=2)
    nominal = Parameters.of(model).number((parameter, name))
    f = ca.Function("f", [q, v, tau, theta], [a])
    J = np.array(ca.Function("J", [q, v, tau, theta], [ca.jacobian(a, ca.vec(theta))])(*state, nominal))
    h = 1e-6
    for k in range(shape[0] * shape[1]):
        step = np.zeros(shape[0] * shape[1])
        step[k] = h
        step = step.reshape(shape, order="F")
        sides = [np.array(f(*state, nominal + s * step))[:, 0] for s in (1, -1)]
        assert close(J[:, k], (sides[0] - sides[1]) / (2 * h), 1e-6), (parameter, k)
