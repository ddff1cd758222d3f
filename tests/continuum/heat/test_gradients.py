"""Gradients of roll-outs of a part that grows and melts, against differences."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
import torch
from tests.continuum.heat.parts import BENT, small_wall
from tests.gradients import check_gradients
from torch import Tensor

from costate.audit.finite_difference import richardson
from costate.continuum.heat.model import HeatModel, History
from costate.continuum.heat.process import Laser, Surroundings
from costate.continuum.heat.step import PARAMETERS

SENSORS = [(0.0, 0.0, -0.0003), (0.0012, 0.0004, 0.0015)]
ON, WIDTH = 1400.0, 150.0
"""Settings of the observer: a temperature [K], and the width of the change there [K]."""


def warmth(T: ca.SX, settings: ca.SX) -> ca.SX:
    """Observe whether a node is hot, smoothly, and its temperature [kK]."""
    return ca.vertcat(1 / (1 + ca.exp(-(T - settings[0]) / settings[1])), T / 1000)


@cache
def model() -> HeatModel:
    """Return 75 steps of the wall, in segments of 30: two whole ones and a part."""
    part = small_wall()
    return HeatModel(
        part.mesh,
        part.path,
        BENT,
        dt=7.5e-3,
        laser=Laser(radius=1.5e-3),
        surroundings=Surroundings(convection=100.0),
        absorptivity=0.4,
        sensors=SENSORS,
        observe=(warmth, 2, 2),
        segment=30,
    )


def outputs(history: History) -> list[Tensor]:
    """Return everything that a roll-out gives, in numbers of order one."""
    return [
        history.T[..., 1:, :] / 1000,
        history.enthalpy[..., 1:, :] / 1e6,
        history.readings / 1000,
        history.integrals,
    ]


def powers() -> Tensor:
    """Return a power for every step [W]."""
    return 900 + 100 * torch.sin(torch.arange(model().steps) * 0.3)


def start() -> Tensor:
    """Return a temperature for every node to begin with [K]."""
    return 330 + 40 * torch.cos(torch.arange(len(model().mesh.nodes)) * 1.7)


def test_the_roll_out_melts_grows_and_glows() -> None:
    history = model().run(powers(), start(), settings=(ON, WIDTH))
    assert (history.T.max() > BENT.liquidus + 100) and model().steps == 75
    assert float(history.integrals[:, 0].max()) > 0.01


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter(name: str) -> None:
    value = model().parameters[name]

    def roll_out(x: Tensor) -> list[Tensor]:
        given = {name: value * (1.05 + x)}
        return outputs(model().run(900.0, 320.0, settings=(ON, WIDTH), dtype=x.dtype, **given))  # pyright: ignore

    report = check_gradients(roll_out, [torch.zeros(())], names=[name], step=1e-4, directions=1)
    assert not report.zeros


def test_power_temperatures_spots_and_settings() -> None:
    m = model()
    spots = torch.tensor(m.timeline.spots)

    def roll_out(power: Tensor, T0: Tensor, moved: Tensor, settings: Tensor) -> list[Tensor]:
        history = m.run(1000 * power, 300 * T0, spots=spots.to(moved.dtype) + 1e-3 * moved, settings=1000 * settings)
        return outputs(history)

    inputs = [powers() / 1000, start() / 300, torch.zeros_like(spots), torch.tensor([ON, WIDTH]) / 1000]
    names = ("power", "T0", "spots", "settings")
    report = check_gradients(roll_out, inputs, names=names, step=1e-4, directions=1)
    assert not report.zeros


def test_a_batch_of_problems_is_each_of_them() -> None:
    """Powers, temperatures and parameters of their own: values are the same bits, gradients those of a roll-out alone."""
    m = model()
    power = torch.stack([0.8 * powers(), powers()]).requires_grad_()
    T0 = torch.stack([start(), start() + 20]).requires_grad_()
    conductivity = torch.tensor([0.9, 1.0], requires_grad=True)
    inputs = (power, T0, conductivity)
    together = outputs(m.run(power, T0, settings=(ON, WIDTH), conductivity=conductivity))
    seeds = [torch.cos(torch.arange(x[0].numel()) * 0.7).reshape(x[0].shape) for x in together]
    slopes = torch.autograd.grad(together, inputs, [s.expand_as(x) for s, x in zip(seeds, together, strict=True)])
    for k in range(2):
        alone = outputs(m.run(power[k], T0[k], settings=(ON, WIDTH), conductivity=conductivity[k]))
        assert all(torch.equal(a, b[k]) for a, b in zip(alone, together, strict=True))
        for found, expected in zip(slopes, torch.autograd.grad(alone, inputs, seeds), strict=True):
            assert torch.equal(found[k], expected[k])


def thousand() -> tuple[HeatModel, list[Tensor], list[Tensor]]:
    """Return 1,000 steps of the wall, inputs of `long`, and a smooth direction in them."""
    m = model()
    fine = HeatModel(
        m.mesh,
        m.path,
        BENT,
        dt=m.path.duration / 1000,
        laser=m.laser,
        surroundings=m.surroundings,
        absorptivity=0.4,
        sensors=SENSORS,
        observe=(warmth, 2, 2),
        segment=30,
    )
    t = torch.as_tensor(fine.timeline.times) / m.path.duration
    z = torch.tensor(m.mesh.nodes[:, 2])
    inputs = [900 + 100 * torch.sin(6 * t), 330 + 1e4 * z, torch.tensor(list(m.parameters.values()))]
    along = [900 * (1 + torch.cos(3 * t)), 300 * torch.cos(1e3 * z), inputs[2] * torch.linspace(-1, 1, len(PARAMETERS))]
    return fine, inputs, along


def test_the_adjoint_of_1000_steps_with_births() -> None:
    fine, inputs, along = thousand()
    assert fine.steps == 1000 and len(np.unique(fine.timeline.alive)) > 5

    def long(power: Tensor, T0: Tensor, p: Tensor) -> list[Tensor]:
        given = dict(zip(PARAMETERS, p, strict=True))
        return outputs(fine.run(power, T0, settings=(ON, WIDTH), **given))

    leaves = [x.clone().requires_grad_() for x in inputs]
    found = long(*leaves)
    seeds = [torch.cos(torch.arange(y.numel()) * 0.7).reshape(y.shape) for y in found]
    adjoint = torch.autograd.grad(found, leaves, seeds)
    by_adjoint = float(sum((g * d).sum() for g, d in zip(adjoint, along, strict=True)))
    pushed = torch.func.jvp(lambda *x: tuple(long(*x)), tuple(inputs), tuple(along))[1]
    by_tangent = float(sum((u * y).sum() for u, y in zip(seeds, pushed, strict=True)))
    assert abs(by_adjoint - by_tangent) <= 1e-12 * abs(by_tangent)

    def line(t: float) -> list[Tensor]:
        values = long(*(x + t * d for x, d in zip(inputs, along, strict=True)))
        return [torch.stack([(u * y).sum() for u, y in zip(seeds, values, strict=True)]).sum()]

    # With larger ones, some node would begin or end to melt in another step than before, which is a kink. With these there
    # is nothing to extrapolate, and the rounding that remains is averaged out.
    slopes = [float(richardson(line, step, levels=1)[0][0]) for step in np.linspace(8e-7, 1.2e-6, 5)]
    assert abs(by_adjoint - np.mean(slopes)) <= 1e-8 * abs(by_adjoint)
