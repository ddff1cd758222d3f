"""Integration and difference of configurations, against Pinocchio and against each other."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
from casadi import SX
from hypothesis import assume, given, settings
from tests.physics.evaluate import evaluate
from tests.physics.strategies import SLOW, random_models, random_state

from costate.audit.pinocchio_model import to_pinocchio
from costate.model.model import Model
from costate.physics.integrate import difference, integrate, neutral, velocity_map
from costate.physics.kinematics import link_poses
from costate.physics.params import Parameters

few = settings(max_examples=15, deadline=None, suppress_health_check=SLOW)


@few
@given(random_models(max_joints=8))
def test_against_pinocchio(model: Model) -> None:
    assume(model.nv > 0)
    oracle = to_pinocchio(model)
    q, v, _ = random_state(model)
    q1, _, _ = random_state(model, seed=1)
    symbols = SX.sym("q", model.nq), SX.sym("v", model.nv), SX.sym("q1", model.nq)
    moved, apart = evaluate(
        list(symbols), [integrate(model, *symbols[:2], 0.3), difference(model, symbols[0], symbols[2])], q, v, q1
    )
    q_pin, order = oracle.configuration(q), oracle.order
    expected = pin.integrate(oracle.model, q_pin, 0.3 * v[order])
    # Configurations may differ by the sign of quaternions: compare where the links are.
    assert np.abs(pin.difference(oracle.model, expected, oracle.configuration(moved))).max() < 1e-12
    assert (
        np.abs(
            _wrapped(model, apart - oracle.back(pin.difference(oracle.model, q_pin, oracle.configuration(q1))))
        ).max()
        < 1e-9
    )


def _wrapped(model: Model, x: np.ndarray) -> np.ndarray:
    """Wrap the angle of planar joints as Pinocchio does; here it is an ordinary number."""
    keep = np.ones(model.nv, bool)
    for joint, start in zip(model.joints, model.v_index, strict=True):
        if joint.kind == "planar":
            keep[start : start + 3] = False
    return x[keep] if keep.any() else np.zeros(1)


@few
@given(random_models(max_joints=8))
def test_difference_inverts_integrate(model: Model) -> None:
    assume(model.nv > 0)
    q, v, _ = random_state(model)
    s = SX.sym("q", model.nq), SX.sym("v", model.nv)
    back = evaluate(list(s), [difference(model, s[0], integrate(model, *s))], q, 0.5 * v)[0]
    np.testing.assert_allclose(back, 0.5 * v, atol=1e-12)


@few
@given(random_models(max_joints=8))
def test_velocity_map_is_the_derivative_of_integrate(model: Model) -> None:
    """Derivatives are finite and right at zero displacement, where series replace quotients."""
    assume(model.nv > 0)
    q, _, _ = random_state(model)
    s = SX.sym("q", model.nq), SX.sym("v", model.nv)
    J, N = evaluate(
        list(s),
        [ca.densify(ca.jacobian(integrate(model, *s), s[1])), ca.densify(velocity_map(model, s[0]))],
        q,
        np.zeros(model.nv),
    )
    np.testing.assert_allclose(J, N, atol=1e-14)


@few
@given(random_models(max_joints=8))
def test_neutral_configuration(model: Model) -> None:
    """Every link coincides with its joint's frame at the neutral configuration."""
    q = SX.sym("q", model.nq)
    poses = link_poses(model, Parameters.of(model), q)
    numbers = evaluate([q], [ca.densify(p) for _, p in poses.values()], neutral(model))
    at = {model.links[0].name: np.eye(4)}
    for joint in model.joints:
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = joint.origin.rotation, joint.origin.translation
        at[joint.child] = at[joint.parent] @ step
    for name, position in zip(poses, numbers, strict=True):
        np.testing.assert_allclose(position, at[name][:3, 3], atol=1e-13)
