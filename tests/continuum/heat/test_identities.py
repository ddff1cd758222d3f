"""Energy: what a part gains is what flows in, to rounding, while it melts and grows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.continuum.heat import quadrature
from tests.continuum.heat.parts import BENT, INSULATED, bent, box, small_wall, still
from torch import Tensor

from costate.continuum.heat.model import HeatModel
from costate.continuum.heat.process import Laser, Surroundings
from costate.continuum.mesh import EVER

ROUNDING = 1e-14
"""Largest error of an energy, relative to the sum of masses times sizes of enthalpies: some ten roundings."""


def growing_box(seed: int = 3) -> tuple[HeatModel, Tensor]:
    """Return 1,000 steps of 3 x 3 x 3 distorted elements, 18 of which are born during them, and temperatures to begin with."""
    line = np.linspace(0, 3e-3, 4)
    random = np.random.default_rng(seed)
    birth = np.concatenate([np.full(9, EVER), random.uniform(0, 1.8, 18)])
    mesh = bent(box(line, line, line, birth), 0.15)
    model = HeatModel(mesh, still(2.0), BENT, dt=2e-3, surroundings=INSULATED, segment=1)
    return model, torch.as_tensor(random.uniform(300, 2500, len(mesh.nodes)))


def test_an_insulated_part_keeps_its_energy_over_1000_steps_of_melting_and_growing() -> None:
    model, T0 = growing_box()
    history = model.run(0.0, T0, emissivity=0.0)
    h, T = history.enthalpy.numpy(), history.T.numpy()
    assert model.steps == 1000
    assert (np.ptp(BENT.liquid_share(T), axis=0) > 0.1).sum() > 10  # nodes that melt or freeze on the way
    born, brought = 0, 0.0
    mass = quadrature.masses(model.mesh, BENT.density, 0.0)
    begin = mass @ h[0]
    for k, time in enumerate(model.timeline.times):
        alive = int((model.mesh.birth <= time).sum())
        if alive > born:
            before, mass = mass, quadrature.masses(model.mesh, BENT.density, time)
            brought += (mass - before) @ h[k]
            born = alive
    assert born == len(model.mesh.elements)
    scale = mass @ np.abs(h[-1])
    assert brought > 0.1 * scale
    assert abs(mass @ h[-1] - begin - brought) <= ROUNDING * scale
    assert np.ptp(T[-1]) < 0.9 * np.ptp(T[0])


@pytest.mark.parametrize("shape", ["beam", "ball"])
def test_a_step_takes_up_what_faces_and_elements_give(shape: str) -> None:
    part = small_wall()
    laser, air = Laser(radius=1.3e-3, factor=2.5, shape=shape), Surroundings(ambient=310.0, convection=200.0)
    model = HeatModel(part.mesh, part.path, BENT, dt=2e-3, laser=laser, surroundings=air, segment=1, absorptivity=0.4)
    history = model.run(900.0, 320.0, emissivity=0.6, conductivity=1.1, density=0.9, radius=1.2e-3)
    h, T = history.enthalpy.numpy(), history.T.numpy()
    assert T.max() > BENT.liquidus
    for k in range(0, model.steps, 12 if shape == "beam" else 60):
        time = float(model.timeline.times[k])
        mass = quadrature.masses(part.mesh, 0.9 * BENT.density, time)
        power = 0.4 * 900.0 * float(model.timeline.on[k])
        sun = quadrature.Sun(model.timeline.spots[k], power, 1.2e-3, 2.5, 310.0, 200.0, 0.6, ball=shape == "ball")
        surface = sun.flow(part.mesh, T[k], time)
        flow = quadrature.conduction(part.mesh, BENT, T[k], time, 1.1) + surface
        gained = mass * (h[k + 1] - h[k])
        scale = mass @ np.abs(h[k])
        assert abs(gained.sum() - model.dt * surface.sum()) <= ROUNDING * scale
        assert np.abs(gained - model.dt * flow).max() <= ROUNDING * scale
        assert model.dt * np.abs(surface).sum() > 1e-6 * scale  # seven digits of what flows are compared
        assert (h[k + 1] == h[k])[mass == 0].all()


def test_a_held_base_is_the_only_one_that_breaks_the_balance() -> None:
    """Nodes of the base keep their enthalpy; the part gains what conduction draws out of them."""
    part = small_wall()
    air = Surroundings(convection=0.0, base=800.0)
    model = HeatModel(part.mesh, part.path, BENT, dt=2e-3, surroundings=air, segment=1)
    h = model.run(0.0, 300.0, emissivity=0.0).enthalpy.numpy()
    T = model.run(0.0, 300.0, emissivity=0.0).T.numpy()
    low = part.mesh.nodes[:, 2] == part.mesh.nodes[:, 2].min()
    assert (T[:, low] == T[0, 0]).all() and abs(T[0, 0] - 800) < 1e-9
    k = 30
    time = float(model.timeline.times[k])
    mass = quadrature.masses(part.mesh, BENT.density, time)
    drawn = -quadrature.conduction(part.mesh, BENT, T[k], time)[low].sum()
    gained = (mass * (h[k + 1] - h[k])).sum()
    assert drawn > 1
    assert abs(gained - model.dt * drawn) <= ROUNDING * (mass @ np.abs(h[k]))
