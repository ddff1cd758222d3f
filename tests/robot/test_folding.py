"""Parametrisations folded into kernels give what their modules give, and the same gradients."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn

import costate as cs
from costate.compat.differentiable_robot_model import rigid_body_params as original
from costate.compat.differentiable_robot_model.bodies import rotation_of
from costate.robot.folding import is_foldable

INERTIA = torch.tensor([[0.3, 0.01, 0.02], [0.01, 0.25, -0.03], [0.02, -0.03, 0.2]]).double()
ANGLES = torch.tensor([[0.2, -0.4, 1.1]]).double()

# Name -> owner, parameter, module.
CASES: dict[str, tuple[str, str, Any]] = {
    "Unconstrained": ("link_2", "com", lambda: cs.params.Unconstrained()),
    "Positive": ("link_2", "mass", lambda: cs.params.Positive(minimum=0.1)),
    "PositiveDefinite": ("link_2", "inertia", lambda: cs.params.PositiveDefinite(init=INERTIA)),
    "PhysicalInertia": ("link_2", "inertial", lambda: cs.params.PhysicalInertia(init=(1.2, ANGLES[0], INERTIA))),
    "RollPitchYaw": ("link_2", "rotation", lambda: cs.params.RollPitchYaw()),
    "UnconstrainedScalar": ("link_2", "damping", lambda: original.UnconstrainedScalar(torch.tensor([0.3]).double())),
    "PositiveScalar": ("link_2", "mass", lambda: original.PositiveScalar(0.1, init_param=torch.tensor(2.0).double())),
    "UnconstrainedTensor": ("link_2", "translation", lambda: original.UnconstrainedTensor(1, 3, init_tensor=ANGLES)),
    "rot_angles": ("link_2", "rotation", lambda: rotation_of(original.UnconstrainedTensor(1, 3, init_tensor=ANGLES))),
    "SymmPosDef": ("link_2", "inertia", lambda: original.SymmPosDef3DInertiaMatrixNet(init_param=INERTIA[None])),
    "Cov": ("link_2", "inertia", lambda: original.CovParameterized3DInertiaMatrixNet(init_param=INERTIA[None])),
    "Symm": ("link_2", "inertia", lambda: original.Symm3DInertiaMatrixNet(init_param=INERTIA[None])),
}


class Opaque(nn.Module):
    """A module of which the kernels know nothing."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self) -> Any:
        return self.module()


def gradients(robot: cs.Robot, function: str, dtype: torch.dtype) -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    q, v, x = torch.randn(3, 5, robot.nv, generator=random, dtype=torch.float64).to(dtype).unbind(0)
    out = getattr(robot, function)(q, v, x)
    found = torch.autograd.grad((out**2).sum(), list(robot.parameters()))
    return [out.detach(), *found]


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", CASES)
def test_folded_is_the_same(name: str, function: str) -> None:
    owner, parameter, make = CASES[name]
    folded, opaque = cs.load_robot("pendulum2"), cs.load_robot("pendulum2")
    module = folded.learn(owner, parameter, make())
    assert is_foldable(module)
    opaque.learn(owner, parameter, Opaque(deepcopy(module)))
    for a, b in zip(
        gradients(folded, function, torch.float64), gradients(opaque, function, torch.float64), strict=True
    ):
        assert a.shape == b.shape
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_the_module_stays_in_charge() -> None:
    """Parameters are read at every call; what a subclass or a hook changes is not folded away."""
    robot = cs.load_robot("pendulum2")
    module = cs.params.Positive()
    robot.learn("link_2", "mass", module)
    q = torch.randn(4, 2, dtype=torch.float64)
    before = robot.gravity_torques(q)
    module.set([5.0])
    assert not torch.allclose(robot.gravity_torques(q), before)
    module.raw = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    robot.unlearn("link_2", "mass")

    class Doubled(cs.params.Positive):
        def value(self, raw: torch.Tensor) -> torch.Tensor:
            return 2 * super().value(raw)

    assert not is_foldable(Doubled(init=[1.0]))
    hooked = cs.params.Positive(init=[1.0])
    hooked.register_forward_hook(lambda *given: 2 * given[2])  # type: ignore[operator]
    assert not is_foldable(hooked)


def test_float32_states_with_float64_parameters() -> None:
    robot = cs.load_robot("pendulum2")
    robot.learn("link_2", "inertial", cs.params.PhysicalInertia())
    double, single = (gradients(robot, "inverse_dynamics", t) for t in (torch.float64, torch.float32))
    assert single[0].dtype == single[1].dtype == torch.float64  # promoted: only the states were rounded
    assert torch.allclose(single[1], double[1], rtol=1e-5, atol=1e-5)


def test_second_derivatives_and_transforms() -> None:
    robot = cs.load_robot("pendulum2")
    module = original.PositiveScalar(init_param=torch.tensor(2.0).double())
    robot.learn("link_2", "mass", module)
    q, v, a = torch.randn(3, 3, 2, dtype=torch.float64).unbind(0)

    def energy(l: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(robot, {"learnt.mass:link_2.l": l}, (q, v, a)).square().sum()

    robot.forward = robot.inverse_dynamics  # type: ignore[method-assign]
    l = module.l.detach().clone().requires_grad_()
    assert torch.autograd.gradgradcheck(energy, (l,))
    exact = torch.autograd.grad(energy(l), l)[0]
    assert torch.allclose(torch.func.grad(energy)(l.detach()), exact)
    batch = torch.stack([l.detach(), l.detach() + 1])
    assert torch.allclose(torch.func.vmap(torch.func.grad(energy))(batch)[0], exact)
