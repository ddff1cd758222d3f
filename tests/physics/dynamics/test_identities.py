"""Identities that hold for every mechanical system, whatever its numbers."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
from casadi import SX
from hypothesis import assume, given, settings
from tests.physics.evaluate import call, evaluate
from tests.physics.strategies import SLOW, random_models, random_rotation, random_state

from costate.model.model import Model
from costate.model.transform import Transform
from costate.physics import Parameters, Passive
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.energy import kinetic_energy, potential_energy
from costate.physics.dynamics.forward_dynamics import forward_dynamics
from costate.physics.dynamics.momentum import momentum
from costate.physics.dynamics.rnea import rnea
from costate.physics.integrate import velocity_map

few = settings(max_examples=10, deadline=None, suppress_health_check=SLOW)


def symbols(model: Model) -> tuple[SX, SX, SX]:
    return SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("x", model.nv)


def regular(model: Model) -> None:
    """Leave out models in which mimic joints leave a coordinate without inertia: its acceleration is undetermined."""
    assume(model.nv > 0)
    q, _, _ = random_state(model)
    assume(np.linalg.cond(call(model, "mass_matrix", {"q": q})["M"].reshape(model.nv, -1)) < 1e6)


@few
@given(random_models(max_joints=10, mimics=True))
def test_inverse_dynamics_undoes_forward_dynamics(model: Model) -> None:
    """ID(FD(tau)) = tau with damping, friction, springs, armature and mimic joints."""
    regular(model)
    q, v, tau = symbols(model)
    params = Parameters.of(model)
    back = rnea(model, params, q, v, forward_dynamics(model, params, q, v, tau))
    numbers = random_state(model)
    bias = call(model, "bias_forces", {"q": numbers[0], "v": numbers[1]})["h"]
    error = evaluate([q, v, tau], [back], *numbers)[0] - numbers[2]
    assert np.abs(error).max() <= 1e-9 * max(np.abs(bias).max(), 1.0)


@few
@given(random_models(max_joints=10, mimics=True))
def test_mass_matrix_is_what_inverse_dynamics_multiplies_with(model: Model) -> None:
    assume(model.nv > 0)
    q, v, a = symbols(model)
    params = Parameters.of(model)
    columns = ca.jacobian(rnea(model, params, q, v, a), a)
    ours, expected = evaluate(
        [q, v, a], [ca.densify(crba(model, params, q)), ca.densify(columns)], *random_state(model)
    )
    assert np.abs(ours - expected).max() <= 1e-12 * np.abs(expected).max()
    assert (ours.reshape(model.nv, -1) == ours.reshape(model.nv, -1).T).all()


@few
@given(random_models(max_joints=8, mimics=True))
def test_power_balance(model: Model) -> None:
    """The rate of kinetic and potential energy, springs included, is tau . v minus the losses by damping and friction."""
    regular(model)
    q, v, tau = symbols(model)
    params = Parameters.of(model)
    a = forward_dynamics(model, params, q, v, tau)
    energy = kinetic_energy(model, params, q, v) + potential_energy(model, params, q)
    rate = ca.jtimes(energy, q, velocity_map(model, q) @ v) + ca.jtimes(energy, v, a)
    without, losing = (
        rnea(model, params, q, v, SX(model.nv, 1), passive=p)
        for p in (Passive(damping=False, friction=False), Passive())
    )
    flow = ca.dot(tau, v) - ca.dot(losing - without, v)
    left, right, loss = evaluate([q, v, tau], [rate, flow, ca.dot(losing - without, v)], *random_state(model))
    assert abs(left - right)[0] <= 1e-9 * max(abs(right)[0], np.abs(a_scale(model)).max())
    assert loss[0] >= 0


def a_scale(model: Model) -> np.ndarray:
    """Return the size of the terms that cancel in the power balance, which are bias torques."""
    q, v, _ = random_state(model)
    return np.append(call(model, "bias_forces", {"q": q, "v": v})["h"], 1.0)


@few
@given(random_models(max_joints=8, floating=False, mimics=True))
def test_coriolis_matrix_is_skew_with_the_rate_of_the_mass_matrix(model: Model) -> None:
    """dM/dt = C + C^T, tested as v^T dM/dt v = 2 v^T C v: Coriolis forces do no work beyond the change of M."""
    assume(model.nv > 0)
    q, v, _ = symbols(model)
    weightless = Parameters.of(model).replace({("gravity", ""): np.zeros(3)})
    coriolis = rnea(model, weightless, q, v, SX(model.nv, 1), passive=None)
    M = ca.densify(crba(model, weightless, q))
    M_dot = ca.reshape(ca.jtimes(ca.vec(M), q, velocity_map(model, q) @ v), model.nv, model.nv)
    numbers = random_state(model)
    work, change, size = evaluate(
        [q, v], [2 * ca.dot(v, coriolis), ca.dot(v, M_dot @ v), ca.norm_1(coriolis)], *numbers[:2]
    )
    assert abs(work - change)[0] <= 1e-10 * max(size[0], 1e-3)


@few
@given(random_models(max_joints=8, floating=False))
def test_coriolis_matrix_of_christoffel_symbols(model: Model) -> None:
    """If every joint has one coordinate, h is the sum of Christoffel symbols of M times v_j v_k."""
    assume(model.nv == model.nq > 0 and all(j.kind != "planar" for j in model.joints))
    q, v, _ = symbols(model)
    weightless = Parameters.of(model).replace({("gravity", ""): np.zeros(3)})
    M = ca.densify(crba(model, weightless, q))
    M_dot = ca.reshape(ca.jtimes(ca.vec(M), q, v), model.nv, model.nv)
    expected = M_dot @ v - ca.gradient(ca.dot(v, M @ v), q) / 2
    coriolis = rnea(model, weightless, q, v, SX(model.nv, 1), passive=None)
    ours, theirs = evaluate([q, v], [coriolis, expected], *random_state(model)[:2])
    assert np.abs(ours - theirs).max() <= 1e-11 * max(np.abs(theirs).max(), 1e-3)


@few
@given(random_models(max_joints=8, floating=True))
def test_momentum_of_a_free_robot(model: Model) -> None:
    """Momentum is constant without external forces, whatever the joints do; gravity changes only its linear part."""
    q, v, tau = symbols(model)
    params = Parameters.of(model)
    inner = ca.vertcat(SX(6, 1), tau[6:])  # nothing pushes the base
    a = forward_dynamics(model, params, q, v, inner, passive=None)
    p = momentum(model, params, q, v)
    rate = ca.jtimes(p, q, velocity_map(model, q) @ v) + ca.jtimes(p, v, a)
    rotors = any(j.armature for j in model.joints)
    assume(not rotors)  # a rotor's inertia is seen by its joint alone: it has no momentum of its own
    numbers = random_state(model)
    got, size = evaluate([q, v, tau], [rate, ca.norm_1(a)], *numbers)
    mass = sum(link.inertia.mass for link in model.links)
    expected = np.concatenate([mass * model.gravity, np.zeros(3)])
    assert np.abs(got - expected).max() <= 1e-9 * max(mass * size[0], 1.0)


@settings(few, max_examples=8)
@given(random_models(max_joints=8))
def test_the_world_may_be_turned(model: Model) -> None:
    """Turning the first joints' origins and gravity together changes no torque and no energy of motion."""
    assume(model.nv > 0)
    rng = np.random.default_rng(11)
    R = random_rotation(rng)
    root = model.links[0].name
    turned = replace(
        model,
        gravity=R @ model.gravity,
        joints=tuple(
            replace(j, origin=Transform(R @ j.origin.rotation, R @ j.origin.translation)) if j.parent == root else j
            for j in model.joints
        ),
    )
    q, v, a = random_state(model)
    x = {"q": q, "v": v, "a": a, "tau": a}
    for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "kinetic_energy", "potential_energy"):
        (ours,), (theirs,) = (list(call(m, name, x).values()) for m in (turned, model))
        assert np.abs(ours - theirs).max() <= 1e-9 * max(np.abs(theirs).max(), 1.0), name
