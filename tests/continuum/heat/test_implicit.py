"""Implicit steps: against explicit ones, a closed form far beyond the explicit limit, energy, and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.continuum.slab import Slab
from tests.gradients import check_gradients
from torch import Tensor

from costate.continuum import INCONEL_718, HeatModel, HexMesh, Material, Surroundings, ToolPath, wall
from costate.continuum.heat.stable import stable_step
from costate.continuum.shapes import draw_up

PLAIN = Material(
    "plain", 8000.0, ((300, 500.0), (2000, 500.0)), ((300, 20.0), (2000, 20.0)), 3000.0, 3100.0, emissivity=0.0
)


def column(layers: int, height: float) -> HexMesh:
    """A column of cubes, one on the other, that is there from the beginning."""
    side = height / layers
    base = np.array([[0, 0], [side, 0], [side, side], [0, side]])
    nodes, elements = draw_up(base, np.array([[0, 1, 2, 3]]), np.linspace(0, height, layers + 1))
    return HexMesh.sorted(nodes, elements)


def still(duration: float) -> ToolPath:
    return ToolPath(np.array([0.0, duration]), np.zeros((2, 3)), np.zeros(2, bool))


@pytest.mark.parametrize("material", [PLAIN, INCONEL_718], ids=["plain", "melting"])
def test_short_steps_agree_with_explicit_ones(material: Material) -> None:
    """A column with one end hot, the other held: both kinds of steps converge to the same temperatures, with order one."""
    mesh = column(12, 0.012)
    limit = stable_step(mesh, material)
    z = torch.tensor(mesh.nodes[:, 2])
    T0 = 1200 + 600 * torch.sin(3 * z / 0.012)
    duration = 12 * limit
    found = {}
    for n in (24, 48):
        for implicit in (False, True):
            model = HeatModel(
                mesh,
                still(duration),
                material,
                dt=duration / n,
                implicit=implicit,
                surroundings=Surroundings(convection=0.0, base=1200.0),
            )
            found[n, implicit] = model.run(0.0, T0, emissivity=0.0).T[-1]
    apart = [float((found[n, True] - found[n, False]).abs().max()) for n in (24, 48)]
    moved = float((found[48, False] - T0).abs().max())
    assert moved > 50
    assert apart[1] < 0.62 * apart[0] and apart[1] < 0.05 * moved


def test_steps_far_beyond_the_explicit_limit() -> None:
    """A column whose base is suddenly cold, in steps 50 times as long as explicit ones may be, against the series."""
    height = 0.02
    mesh = column(20, height)
    duration = 60.0
    around = Surroundings(convection=0.0, base=300.0)
    T0 = torch.full((len(mesh.nodes),), 900.0, dtype=torch.float64)
    slab = Slab(half=height, coefficient=1e9, ambient=300.0, start=900.0)
    errors = []
    for n in (20, 40):
        model = HeatModel(mesh, still(duration), PLAIN, dt=duration / n, implicit=True, surroundings=around)
        assert model.dt > 10 * stable_step(mesh, PLAIN)
        T = model.run(0.0, T0, emissivity=0.0).T[-1].numpy()
        errors.append(np.abs(T - slab.temperature(height - mesh.nodes[:, 2], duration)).max())
    assert errors[1] < 0.6 * errors[0] and errors[1] < 8.0  # of 600 K; first order in time


def test_energy() -> None:
    """Heat of an insulated column stays while parts of it melt and others freeze, in long steps."""
    mesh = column(12, 0.012)
    model = HeatModel(mesh, still(3.0), INCONEL_718, implicit=True, dt=0.5, surroundings=Surroundings(convection=0.0))
    T0 = 1550 + 150 * torch.sin(torch.arange(len(mesh.nodes), dtype=torch.float64))
    h = model.run(0.0, T0, emissivity=0.0).enthalpy
    volumes = torch.tensor(model.step.shares[:, model.step.degree :].sum(1))
    heat = (volumes * h).sum(-1)
    assert float((heat / heat[0] - 1).abs().max()) < 1e-14
    assert float((h[-1] - h[0]).abs().max()) > 1e4


def test_gradients() -> None:
    """Gradients of power, conductivity and convection, with a base that is held and elements that are born."""
    part = wall(length=0.006, height=0.001, thickness=0.002)
    around = Surroundings(base=300.0)
    model = HeatModel(part.mesh, part.path, INCONEL_718, implicit=True, dt=0.1, duration=0.4, surroundings=around)

    def last(power: Tensor, k: Tensor, h: Tensor) -> Tensor:
        return model.run(power, conductivity=k, convection=h).T[-1]

    inputs = (torch.full((model.steps,), 40.0).double(), torch.tensor(1.1).double(), torch.tensor(60.0).double())
    check_gradients(last, inputs, names=("power", "conductivity", "convection"), directions=1, float32=False)


def test_a_step_that_is_not_solved_is_named() -> None:
    mesh = column(2, 0.002)
    model = HeatModel(mesh, still(3.0), PLAIN, implicit=True, dt=0.5)
    status = torch.tensor([[1.0, 1e-12, 9.0, 2.0], [0.0, 0.3, 500.0, 60.0]])
    with pytest.raises(
        FloatingPointError, match=r"step 1 of 6 was not solved: 0.3 of its residual is left after 60 Newton"
    ):
        model._check_solves(0, status)
    assert HeatModel(mesh, still(3.0), PLAIN, implicit=True).dt == pytest.approx(10 * stable_step(mesh, PLAIN))
