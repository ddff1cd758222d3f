"""Derivatives of compiled robots: the gradient check on every function, and Pinocchio's analytic derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
import pytest
import torch
from tests.gradients import check_gradients
from tests.robot.reference import random_states, relative_error

import costate as cs
from costate.audit.pinocchio_model import to_pinocchio
from costate.model import Model

TOLERANCE = 1e-9


@pytest.fixture(scope="module", params=["iiwa7", "ant"])  # a fixed and a floating base
def robot(request: pytest.FixtureRequest) -> cs.Robot:
    return cs.load_robot(request.param)


def tip(robot: cs.Robot) -> str:
    return robot.link_names[-1]


def smooth_states(robot: cs.Robot, batch: int = 2) -> dict[str, torch.Tensor]:
    """Speeds far above those at which friction sets in: finite differences need a smooth function."""
    x = random_states(robot.model, batch, seed=4)
    return x | {"v": x["v"] + 1.5 * x["v"].sign()}


FUNCTIONS = {
    "forward_kinematics": ("q", lambda r, q: tuple(r.forward_kinematics(q, tip(r)))),
    "all_poses": ("q", lambda r, q: [x for pose in list(r.forward_kinematics(q).values())[1:] for x in pose]),
    "quaternion": ("q", lambda r, q: r.forward_kinematics(q, tip(r)).quaternion),
    "jacobian": ("q", lambda r, q: r.jacobian(q, tip(r))),
    "jacobian_dot": ("q v", lambda r, q, v: r.jacobian_dot(q, v, tip(r))),
    "link_velocity": ("q v", lambda r, q, v: r.link_velocity(q, v, tip(r))),
    "link_acceleration": ("q v a", lambda r, q, v, a: r.link_acceleration(q, v, a, tip(r))),
    "mass_matrix": ("q", lambda r, q: r.mass_matrix(q)),
    "inverse_dynamics": ("q v a", lambda r, q, v, a: r.inverse_dynamics(q, v, a)),
    "inverse_dynamics_pushed": ("q v a wrench", lambda r, q, v, a, f: r.inverse_dynamics(q, v, a, {tip(r): f})),
    "forward_dynamics": ("q v tau", lambda r, q, v, tau: r.forward_dynamics(q, v, tau)),
    "forward_dynamics_pushed": ("q v tau wrench", lambda r, q, v, tau, f: r.forward_dynamics(q, v, tau, {tip(r): f})),
    "bias_forces": ("q v", lambda r, q, v: r.bias_forces(q, v)),
    "gravity_torques": ("q", lambda r, q: r.gravity_torques(q)),
    "center_of_mass": ("q", lambda r, q: r.center_of_mass(q)),
    "com_jacobian": ("q", lambda r, q: r.com_jacobian(q)),
    "kinetic_energy": ("q v", lambda r, q, v: r.kinetic_energy(q, v)),
    "potential_energy": ("q", lambda r, q: r.potential_energy(q)),
    "momentum": ("q v", lambda r, q, v: r.momentum(q, v)),
    "momentum_matrix": ("q", lambda r, q: r.momentum_matrix(q)),
    "integrate": ("q v", lambda r, q, v: r.integrate(q, v, 0.2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(robot: cs.Robot, name: str) -> None:
    """Value, JVP, VJP, duality, finite differences, float32. Quaternions are taken as four free numbers."""
    inputs, fn = FUNCTIONS[name]
    x = smooth_states(robot)
    names = inputs.split()
    check_gradients(lambda *args: fn(robot, *args), [x[k] for k in names], names=names, step=1e-2, directions=1)


def test_difference_and_step_length(robot: cs.Robot) -> None:
    x = smooth_states(robot)
    dt = torch.tensor([0.1, 0.3], dtype=torch.float64)
    check_gradients(robot.integrate, [x["q"], x["v"], dt], names=("q", "v", "dt"), step=1e-2, directions=1)
    near = robot.integrate(x["q"], x["v"], 0.1)
    check_gradients(robot.difference, [x["q"], near], names=("q0", "q1"), step=1e-2, directions=1)


def tangent_jacobian(robot: cs.Robot, fn, q: torch.Tensor) -> torch.Tensor:
    """d fn(q + N(q) dv) / d dv, (n, nv)."""
    still = torch.zeros(robot.nv, dtype=torch.float64)
    return torch.func.jacrev(lambda dv: fn(robot.integrate(q, dv)))(still)


def test_accelerations_against_pinocchio(robot: cs.Robot) -> None:
    """da/dq (in the tangent space), da/dv, da/dtau of computeABADerivatives."""
    free = cs.Robot(without_passive_forces(robot.model))
    oracle = to_pinocchio(free.model)
    x = {k: value[0] for k, value in random_states(free.model, 1, seed=6).items()}
    order = oracle.order
    dq, dv, dtau = pin.computeABADerivatives(
        oracle.model, oracle.data, oracle.configuration(x["q"].numpy()), *(x[k].numpy()[order] for k in ("v", "tau"))
    )
    found = [
        tangent_jacobian(free, lambda q: free.forward_dynamics(q, x["v"], x["tau"]), x["q"]),
        torch.func.jacrev(lambda v: free.forward_dynamics(x["q"], v, x["tau"]))(x["v"]),
        torch.func.jacfwd(lambda tau: free.forward_dynamics(x["q"], x["v"], tau))(x["tau"]),
    ]
    dtau = np.triu(dtau) + np.triu(dtau, 1).T  # the inverse mass matrix, of which Pinocchio fills one half
    for ours, theirs in zip(found, (dq, dv, dtau), strict=True):
        expected = oracle.back(oracle.back(theirs).T).T
        assert relative_error(ours, expected) <= TOLERANCE


def test_torques_against_pinocchio(robot: cs.Robot) -> None:
    """dtau/dq, dtau/dv, dtau/da of computeRNEADerivatives."""
    free = cs.Robot(without_passive_forces(robot.model))
    oracle = to_pinocchio(free.model)
    x = {k: value[0] for k, value in random_states(free.model, 1, seed=7).items()}
    order = oracle.order
    dq, dv, da = pin.computeRNEADerivatives(
        oracle.model, oracle.data, oracle.configuration(x["q"].numpy()), *(x[k].numpy()[order] for k in ("v", "a"))
    )
    found = [
        tangent_jacobian(free, lambda q: free.inverse_dynamics(q, x["v"], x["a"]), x["q"]),
        torch.func.jacrev(lambda v: free.inverse_dynamics(x["q"], v, x["a"]))(x["v"]),
        torch.func.jacfwd(lambda a: free.inverse_dynamics(x["q"], x["v"], a))(x["a"]),
    ]
    da = np.triu(da) + np.triu(da, 1).T
    for ours, theirs in zip(found, (dq, dv, da), strict=True):
        expected = oracle.back(oracle.back(theirs).T).T
        assert relative_error(ours, expected) <= TOLERANCE


def without_passive_forces(model: Model) -> Model:
    return replace(model, joints=tuple(replace(j, damping=0, friction=0, stiffness=0) for j in model.joints))


def test_second_derivatives() -> None:
    """The Hessian of the kinetic energy in v is the mass matrix, and that of the potential energy in q the derivative of the
    gravity torques; forward dynamics passes torch's own check of second derivatives."""
    robot = cs.load_robot("two_link")
    x = {k: value[0] for k, value in smooth_states(robot).items()}
    by_v = torch.func.hessian(lambda v: robot.kinetic_energy(x["q"], v))(x["v"])
    torch.testing.assert_close(by_v, robot.mass_matrix(x["q"]), rtol=1e-12, atol=1e-14)
    by_q = torch.func.hessian(robot.potential_energy)(x["q"])
    torch.testing.assert_close(by_q, torch.func.jacfwd(robot.gravity_torques)(x["q"]), rtol=1e-12, atol=1e-12)
    inputs = [x[k].requires_grad_() for k in ("q", "v", "tau")]
    assert torch.autograd.gradgradcheck(robot.forward_dynamics, inputs, atol=1e-5)


def test_gradients_are_summed_over_what_is_shared() -> None:
    """One velocity for a batch of configurations gets the sum of the samples' gradients."""
    robot = cs.load_robot("two_link")
    x = smooth_states(robot, 5)
    shared = x["v"][0].clone().requires_grad_()
    robot.forward_dynamics(x["q"], shared, x["tau"]).square().sum().backward()
    apart = x["v"][:1].expand(5, -1).clone().requires_grad_()
    robot.forward_dynamics(x["q"], apart, x["tau"]).square().sum().backward()
    assert shared.grad is not None and apart.grad is not None
    torch.testing.assert_close(shared.grad, apart.grad.sum(0), rtol=1e-12, atol=0)


def test_jacobian_kernel_of_forward_dynamics() -> None:
    """Kernel.jacobian, vjp and jvp from NumPy agree with autograd."""
    robot = cs.load_robot("iiwa7")
    x = smooth_states(robot, 3)
    q, v, tau = (x[k] for k in ("q", "v", "tau"))
    kernel = robot.kernel("forward_dynamics")
    J = kernel.jacobian("a", "q")(q=q, v=v, tau=tau)
    expected = torch.func.vmap(torch.func.jacrev(robot.forward_dynamics))(q, v, tau)
    torch.testing.assert_close(J, expected, rtol=1e-10, atol=1e-10)
    bar = torch.randn(3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    back = kernel.vjp().numpy(q=q.numpy(), v=v.numpy(), tau=tau.numpy(), a_bar=bar.numpy())
    np.testing.assert_allclose(back.q_bar, (bar[:, None] @ J)[:, 0], rtol=1e-10, atol=1e-10)
    push = kernel.jvp("q").numpy(q=q.numpy(), v=v.numpy(), tau=tau.numpy(), q_dot=bar.numpy())
    np.testing.assert_allclose(push.a_dot, (J @ bar[..., None])[..., 0], rtol=1e-10, atol=1e-10)
