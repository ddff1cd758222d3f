"""The laser: how much of its power arrives, and when."""

from __future__ import annotations

import numpy as np
import pytest
from tests.continuum.heat import quadrature
from tests.continuum.heat.parts import INSULATED, PLAIN, box

from costate.continuum.heat.model import HeatModel
from costate.continuum.heat.process import Laser
from costate.continuum.toolpath import ToolPath


def absorbed(n: int, radius: float, at: tuple[float, float], factor: float = 2.0) -> float:
    """Return the share of a laser's power that a plate of n x n elements takes up in a step."""
    side = np.linspace(-6e-3, 6e-3, n + 1)
    mesh = box(side, side, np.array([-1e-3, 0.0]))
    spot = np.array([[*at, 0.0]] * 2)
    dt = 1e-3
    path = ToolPath(np.array([0.0, dt]), spot, np.array([False, True]))
    laser = Laser(radius=radius, factor=factor)
    model = HeatModel(mesh, path, PLAIN, dt=dt, laser=laser, surroundings=INSULATED, segment=1, absorptivity=0.35)
    h = model.run(1e4, 300.0).enthalpy.numpy()
    return float(quadrature.masses(mesh, PLAIN.density, 0.0) @ (h[1] - h[0])) / (1e4 * dt)


@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_a_flat_top_takes_up_the_power_times_the_absorptivity(factor: float) -> None:
    """The error is that of the quadrature: small once elements are no larger than the radius, and falling fast with their size."""
    errors = np.abs([absorbed(n, 2e-3, (0.31e-3, -0.17e-3), factor) / 0.35 - 1 for n in (4, 6, 9)])
    assert (errors[1:] < errors[:-1] / 5).all()
    assert errors[1] < 0.05 and errors[2] < 1e-3


def test_a_spot_on_the_edge_loses_half() -> None:
    assert absorbed(24, 1e-3, (6e-3, 0.0)) == pytest.approx(0.35 / 2, rel=1e-3)


def test_a_laser_that_is_on_for_a_part_of_a_step_gives_that_share() -> None:
    """It is on from 0.3 to 1.45 steps, then from 3.75 to 3.8, with the same energy whatever the length of the step."""
    side = np.linspace(-6e-3, 6e-3, 13)
    mesh = box(side, side, np.array([-1e-3, 0.0]))
    mass = quadrature.masses(mesh, PLAIN.density, 0.0)
    times = 1e-3 * np.array([0.0, 0.3, 1.45, 3.75, 3.8, 5.0])
    path = ToolPath(times, np.zeros((6, 3)), np.array([0, 0, 1, 0, 1, 0], bool))
    gained = []
    for dt in (1e-3, 0.25e-3):
        model = HeatModel(mesh, path, PLAIN, dt=dt, laser=Laser(radius=3e-3), surroundings=INSULATED, segment=1)
        h = model.run(1e4, 300.0).enthalpy.numpy()
        gained.append(np.diff(h @ mass))
    share = gained[0] / gained[0].sum() * 1.2
    assert np.abs(share - [0.7, 0.45, 0.0, 0.05, 0.0]).max() < 1e-9
    assert gained[1].sum() == pytest.approx(gained[0].sum(), rel=1e-9)
    assert gained[0].sum() == pytest.approx(1.2e-3 * 1e4, rel=1e-3)
