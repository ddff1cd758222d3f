"""All quantities of random robots against Pinocchio, in double precision."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
from casadi import SX
from hypothesis import assume, given, settings
from tests.physics.evaluate import call, evaluate
from tests.physics.strategies import SLOW, random_models, random_state

from costate.audit.pinocchio_model import Oracle, to_pinocchio
from costate.model.model import Model
from costate.physics import FUNCTIONS, Parameters
from costate.physics.dynamics.aba import aba
from costate.physics.dynamics.forward_dynamics import forward_dynamics_crba, prefers_crba

# Both sides round differently; forward dynamics multiplies that by the condition number of M, up to 1e7 on these trees.
TOLERANCE = 1e-9

WORLD = pin.LOCAL_WORLD_ALIGNED


def ours(model: Model, x: dict[str, np.ndarray], link: str, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Evaluate rows of the table, and forward dynamics also by the algorithm that the table does not choose."""
    params = Parameters.of(model)
    results: dict[str, np.ndarray] = {}
    for name in names:
        allowed = FUNCTIONS[name].options
        options = {key: value for key, value in {"link": link, "passive": None}.items() if key in allowed}
        outputs = call(model, name, x, params, **options)
        results.update({f"{name}.{key}": value for key, value in outputs.items()})
    q, v, tau = (SX.sym(name, x[name].size) for name in ("q", "v", "tau"))
    other = aba if prefers_crba(model) else forward_dynamics_crba
    expression = other(model, params, q, v, tau, passive=None)
    results["other_forward_dynamics"] = evaluate([q, v, tau], [expression], x["q"], x["v"], x["tau"])[0]
    return results


def theirs(oracle: Oracle, x: dict[str, np.ndarray], link: str) -> dict[str, np.ndarray]:
    m, d, order, back = oracle.model, oracle.data, oracle.order, oracle.back
    q, v, a, tau = oracle.configuration(x["q"]), x["v"][order], x["a"][order], x["tau"][order]
    frame = oracle.frame(link)
    pin.forwardKinematics(m, d, q, v, a)
    pin.computeJointJacobians(m, d, q)
    pin.updateFramePlacements(m, d)
    velocity = pin.getFrameVelocity(m, d, frame, WORLD)
    acceleration = pin.getFrameClassicalAcceleration(m, d, frame, WORLD)
    M = pin.crba(m, d, q)
    M = np.triu(M) + np.triu(M, 1).T
    result = {
        "forward_kinematics.position": d.oMf[frame].translation.copy(),
        "forward_kinematics.rotation": d.oMf[frame].rotation.copy(),
        "link_velocity.linear": velocity.linear,
        "link_velocity.angular": velocity.angular,
        "link_acceleration.linear": acceleration.linear,
        "link_acceleration.angular": acceleration.angular,
        "jacobian.J": back(pin.getFrameJacobian(m, d, frame, WORLD).reshape(6, -1)),
        "mass_matrix.M": back(back(M).T),
        "inverse_dynamics.tau": back(pin.rnea(m, d, q, v, a)),
        "bias_forces.h": back(pin.nonLinearEffects(m, d, q, v)),
        "gravity_torques.g": back(pin.computeGeneralizedGravity(m, d, q)),
        "forward_dynamics.a": back(pin.aba(m, d, q, v, tau)),
        "kinetic_energy.energy": np.array([v @ M @ v / 2]),
        "center_of_mass.com": pin.centerOfMass(m, d, q).copy(),
        "com_jacobian.J": back(pin.jacobianCenterOfMass(m, d, q).reshape(3, -1)),
        "potential_energy.energy": np.array([-pin.computeTotalMass(m) * oracle.source.gravity @ d.com[0]]),
        "momentum_matrix.A": back(pin.computeCentroidalMap(m, d, q).reshape(6, -1)),
        "momentum.momentum": pin.computeCentroidalMomentum(m, d, q, v).vector,
    }
    result["other_forward_dynamics"] = result["forward_dynamics.a"]
    return result


def frame_jacobian(oracle: Oracle, q_pin: np.ndarray, link: str) -> np.ndarray:
    J = pin.computeFrameJacobian(oracle.model, oracle.data, q_pin, oracle.frame(link), WORLD)
    return oracle.back(J.reshape(6, -1))


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(random_models(max_joints=8))
def test_every_quantity(model: Model) -> None:
    check_every_quantity(model)


@settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
@given(random_models(min_joints=9, max_joints=40))
def test_every_quantity_of_large_trees(model: Model) -> None:
    check_every_quantity(model)


def check_every_quantity(model: Model) -> None:
    assume(model.nv > 0)
    q, v, a = random_state(model)
    x = {"q": q, "v": v, "a": a, "tau": random_state(model, seed=1)[2]}
    oracle = to_pinocchio(model)
    link = model.links[-1].name
    expected = theirs(oracle, x, link)
    # A massless link between two joints that move alike makes M singular, and then there is no forward dynamics.
    assume(np.linalg.cond(expected["mass_matrix.M"]) < 1e12)
    got = ours(model, x, link, {name.partition(".")[0] for name in expected} - {"other_forward_dynamics"})
    for name, value in expected.items():
        scale = _scale(name, expected)
        error = np.abs(got[name].reshape(value.shape) - value).max(initial=0.0)
        assert error <= TOLERANCE * scale, f"{name}: {error:.1e} of {scale:.1e}"


def _scale(name: str, expected: dict[str, np.ndarray]) -> float:
    """Return the largest entry; for the momentum, which may be zero by itself, at least that of the mass matrix."""
    if name.startswith("momentum"):
        return max(np.abs(expected[name]).max(), np.abs(expected["mass_matrix.M"]).max())
    return max(np.abs(expected[name]).max(initial=0.0), 1e-3)


@settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
@given(random_models(max_joints=8))
def test_external_wrenches(model: Model) -> None:
    """External wrenches add J^T f, with Pinocchio's Jacobian."""
    assume(model.nv > 0)
    q, v, a = random_state(model)
    oracle = to_pinocchio(model)
    links = (model.links[-1].name, model.links[len(model.links) // 2].name)
    rng = np.random.default_rng(5)
    f = {f"wrench:{link}": rng.normal(size=6) for link in links}
    x = {"q": q, "v": v, "a": a, **f}
    with_them = call(model, "inverse_dynamics", x, wrenches=tuple(dict.fromkeys(links)))["tau"]
    without = call(model, "inverse_dynamics", x)["tau"]
    q_pin = oracle.configuration(q)
    pushed = sum(frame_jacobian(oracle, q_pin, link).T @ f[f"wrench:{link}"] for link in dict.fromkeys(links))
    assert np.abs(without - pushed - with_them).max() <= TOLERANCE * max(np.abs(without).max(), 1.0)
    tau = call(model, "forward_dynamics", x | {"tau": with_them}, wrenches=tuple(dict.fromkeys(links)))["a"]
    assert np.abs(tau - a).max() <= 1e-8 * max(np.abs(a).max(), 1.0)


@settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
@given(random_models(max_joints=10))
def test_jacobian_dot(model: Model) -> None:
    """J a + dJ/dt v is the acceleration of the link: with a = 0, Pinocchio's classical acceleration; and the
    derivative of Pinocchio's Jacobian along v, by central differences."""
    assume(model.nv > 0)
    q, v, _ = random_state(model)
    oracle = to_pinocchio(model)
    m, d, link = oracle.model, oracle.data, model.links[-1].name
    J_dot = call(model, "jacobian_dot", {"q": q, "v": v}, link=link)["J_dot"].reshape(6, -1)
    q_pin, v_pin = oracle.configuration(q), v[oracle.order]
    pin.forwardKinematics(m, d, q_pin, v_pin, np.zeros(m.nv))
    pin.updateFramePlacements(m, d)
    drift = pin.getFrameClassicalAcceleration(m, d, oracle.frame(link), WORLD).vector
    scale = max(np.abs(drift).max(), 1.0)
    assert np.abs(J_dot @ v - drift).max() <= TOLERANCE * scale
    h = 1e-6
    sides = [frame_jacobian(oracle, pin.integrate(m, q_pin, s * h * v_pin), link) for s in (1, -1)]
    # Central differences of a smooth function: h^2 and rounding / h, both near 1e-10 of the largest entry.
    difference = (sides[0] - sides[1]) / (2 * h)
    assert np.abs(J_dot - difference).max() <= 1e-7 * max(np.abs(difference).max(), 1.0)
