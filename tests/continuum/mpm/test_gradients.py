"""Gradients of roll-outs against differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from tests.continuum.mpm.scenes import block, moving
from tests.gradients import check_gradients
from torch import Tensor

from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.state import MpmState
from costate.tasks.soft.actuation import WAVES
from costate.tasks.soft.walkers import WalkerTask

MATERIALS = ["corotated", "neo_hookean", "plasticine", "liquid"]


def pressed(model: MpmModel) -> MpmState:
    """Return the moving block, sand a little compressed: grains at rest are at a kink."""
    start = moving(model)
    if model.bodies[0].material != "sand":
        return start
    strain = start.laws[0].clone()
    strain[:, [0, 2] if model.grid.dim == 2 else [0, 3, 5]] *= 0.98
    return MpmState(start.x, start.v, start.C, (strain,))


def slope(model: MpmModel, steps: int, start: MpmState, eps: float) -> tuple[float, float]:
    """Return the derivative of a loss along a direction of positions and velocities: by the adjoint, by differences."""
    g = torch.Generator().manual_seed(5)
    w, dx, dv = (torch.randn(start.x.shape, generator=g, dtype=torch.float64) for _ in range(3))

    def loss(s: Tensor) -> Tensor:
        state = MpmState(start.x + s * 0.01 * dx, start.v + s * dv, start.C, start.laws)
        end = model.run(steps, state).final
        return (w * end.x).sum() + 0.01 * (w * end.v).sum()

    s = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(loss(s), s)
    with torch.no_grad():
        plus, minus = loss(torch.tensor(eps).double()), loss(torch.tensor(-eps).double())
    return float(exact), float((plus - minus) / (2 * eps))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("material", [*MATERIALS, "sand"])
def test_positions_and_velocities(material: str, dim: int) -> None:
    model = block(material, dim, dt=1e-3)
    exact, differences = slope(model, 5, pressed(model), 1e-6)
    assert abs(exact - differences) < 1e-6 * abs(exact)


def test_parameters_actuation_gravity() -> None:
    model = block("muscle", muscles=None, parameters={"E": 2e4})
    body = model.bodies[0]
    model = block("muscle", parameters={"E": 2e4}, muscles=(body.points[:, 0] > 0.45).astype(int), varying=("E",))
    start = moving(model)

    def ends(act: Tensor, gravity: Tensor, stiff: Tensor, nu: Tensor, strength: Tensor, density: Tensor) -> Tensor:
        numbers = {"E": 2e4 * stiff, "nu": nu, "body.strength": strength, "density": density}
        end = model.run(12, start, act=act, gravity=gravity, parameters=numbers).final
        return torch.cat([end.x[::17].flatten(), end.v[::17].flatten()])

    g = torch.Generator().manual_seed(0)
    act = torch.rand(12, 2, generator=g, dtype=torch.float64)
    stiff = 0.5 + torch.rand(model.particles, generator=g, dtype=torch.float64)
    numbers = [torch.tensor(v, dtype=torch.float64) for v in ([0.1, -9.81], 0.25, 900.0, 1100.0)]
    names = ("act", "gravity", "E", "nu", "strength", "density")
    check_gradients(ends, (act, numbers[0], stiff, *numbers[1:]), names=names, float32=False)


@pytest.mark.parametrize(("spline", "substeps", "segment"), [("quadratic", 2, 3), ("cubic", 1, 7)])
def test_substeps_and_segments(spline: str, substeps: int, segment: int) -> None:
    """However a roll-out is cut, the gradient is that of differences, and the motion the same."""
    model = block("neo_hookean", spline=spline, dt=1e-3 * substeps, substeps=substeps, segment=segment)
    exact, differences = slope(model, 8, moving(model), 1e-6)
    assert abs(exact - differences) < 1e-6 * abs(exact)
    whole = block("neo_hookean", spline=spline, dt=1e-3, substeps=1)
    assert torch.equal(model.run(8, moving(model)).final.x, whole.run(8 * substeps, moving(whole)).final.x)


@pytest.mark.parametrize("material", ["corotated", "neo_hookean"])
@pytest.mark.parametrize("steps", [200, pytest.param(1000, marks=pytest.mark.study)])
def test_many_steps_through_an_impact(material: str, steps: int) -> None:
    """The block hits the floor, slides, and takes off again."""
    model = block(material, dt=1e-3, segment=20)
    start = moving(model)
    height = model.run(steps, start).x[..., 1].mean(-1)
    assert height.argmin() not in (0, len(height) - 1)  # the impact is within
    exact, differences = slope(model, steps, start, 1e-6)
    assert abs(exact - differences) < 1e-6 * abs(exact)


def walker(floor: str | float) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor]:
    """Return the way of DiffTaichi's walker in 1,024 steps by the weights of its actuation, weights, and a direction of them."""
    task = WalkerTask()
    model = replace(task.model(), sides={"-y": floor})
    g = torch.Generator().manual_seed(0)
    weights, direction = (torch.randn(4, WAVES, generator=g, dtype=torch.float64) for _ in range(2))

    def way(w: Tensor) -> Tensor:
        return model.run(task.steps, act=task.actuation(w, w.new_zeros(4))).x[-1, :, 0].mean()

    return way, 0.1 * weights, direction


def differences(way: Callable[[Tensor], Tensor], w: Tensor, d: Tensor, eps: float) -> float:
    """Return the slope along a direction by two runs."""
    with torch.no_grad():
        return float(way(w + eps * d) - way(w - eps * d)) / (2 * eps)


@pytest.mark.study
def test_a_thousand_steps_of_a_walker() -> None:
    """With friction, feet begin and cease to slide: runs that are 1e-6 apart have kinks between them, runs that are 1e-8 apart have
    not, and there the gradient is that of differences. On a sticky floor the distance does not matter."""
    for floor, near, far in ((0.5, 1e-6, None), ("sticky", 1e-5, 1e-7)):
        way, w, d = walker(floor)
        w.requires_grad_()
        exact = float((torch.autograd.grad(way(w), w)[0] * d).sum())
        w = w.detach()
        forward = float(torch.func.jvp(way, (w,), (d,))[1])
        assert abs(forward / exact - 1) < 1e-12
        assert abs(differences(way, w, d, 1e-8) / exact - 1) < near
        off = abs(differences(way, w, d, 1e-6) / exact - 1)
        assert off < far if far else off > 1e-5
