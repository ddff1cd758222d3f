"""Heat problems with a solution on paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.continuum.heat.parts import INSULATED, PLAIN, box, column, still
from tests.continuum.moving_source import MovingSource
from tests.continuum.semi_infinite import SemiInfinite
from tests.continuum.slab import Slab
from tests.continuum.stefan import Stefan

from costate.continuum.heat.model import HeatModel
from costate.continuum.heat.process import Laser, Surroundings
from costate.continuum.materials import Material
from costate.continuum.toolpath import ToolPath

ALPHA = 5e-6
"""Diffusivity of PLAIN [m^2/s]; its other properties are those that the solutions have if no others are given."""


def second_order(errors: list[float]) -> None:
    """Errors of three runs, each with elements of half the size and steps of a quarter of the length, fall by 4."""
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.abs(orders - 2).max() < 0.1, f"errors {errors}"


def slab_error(n: int, biot: float) -> float:
    """Return the largest error of a cooled slab of n elements, over its thickness and five times, relative to start - ambient."""
    half = 5e-3
    slab = Slab(half, biot * 20.0 / half, start=1300.0)
    # So wide that the area of the sides, which are cooled as well, is four millionths of that of the faces.
    mesh = column(np.linspace(-half, half, n + 1), width=1e6 * half)
    dt = 0.2 * half**2 / ALPHA / n**2
    air = Surroundings(ambient=slab.ambient, convection=slab.coefficient)
    model = HeatModel(mesh, still(1.0), PLAIN, dt=dt, duration=n**2 * 5 * dt, surroundings=air, segment=n**2)
    history = model.run(0.0, slab.start)
    paper = [slab.temperature(mesh.nodes[:, 2], float(t)) for t in history.times[1:]]
    return float(np.abs(history.T.numpy()[1:] - paper).max() / (slab.start - slab.ambient))


@pytest.mark.parametrize("biot", [0.5, 5.0])
def test_a_slab_cooled_by_convection(biot: float) -> None:
    errors = [slab_error(n, biot) for n in (8, 16, 32)]
    assert errors[-1] < 3e-4
    second_order(errors)


def half_space_error(n: int) -> float:
    """Return the largest error of a thick column under a constant flux, relative to the rise of its surface."""
    depth, t, flux, radius = 0.02, 2.0, 1e6, 1e3
    mesh = column(np.linspace(-depth, 0, n + 1))
    power = flux * np.pi * radius**2 / 2  # a spot of a kilometre is a uniform flux on a column of a millimetre
    steps = n**2 // 4
    laser = Laser(radius=radius, factor=2.0)
    model = HeatModel(mesh, still(t, on=True), PLAIN, dt=t / steps, laser=laser, surroundings=INSULATED, segment=steps)
    T = model.run(power, 300.0).T[-1].numpy()
    paper = SemiInfinite().under_flux(-mesh.nodes[:, 2], t, flux)
    return float(np.abs(T - paper).max() / (paper.max() - 300))


def test_a_half_space_under_a_constant_flux() -> None:
    errors = [half_space_error(n) for n in (16, 32, 64)]
    assert errors[-1] < 1e-3
    second_order(errors)


DEPTH, END = 0.016, 0.8
"""Thickness [m] of the body that melts, and the time that is computed [s]: no heat reaches the far side until then."""
PROBLEMS = {
    "one phase": Stefan(1800.0, 1500.0, latent=250e3, conductivity=(20.0, 20.0), heat_capacity=(500.0, 500.0)),
    "two phases": Stefan(2000.0, 1500.0, 1200.0, latent=250e3, conductivity=(20.0, 32.0), heat_capacity=(500.0, 600.0)),
    "freezing": Stefan(800.0, 1500.0, 1700.0, latent=250e3, conductivity=(32.0, 20.0), heat_capacity=(600.0, 500.0)),
}


@dataclass(frozen=True)
class Melting:
    """What a model says about a Stefan problem, beside paper."""

    found: np.ndarray
    """Depths that have melted or frozen at 8 times (8,) [m]."""
    paper: np.ndarray
    """The same on paper (8,) [m]."""
    error: float
    """Largest error of the temperatures at the end, relative to the range of temperatures."""

    @property
    def front(self) -> float:
        """Error of the front, by its mean square over the times [m]."""
        return float(np.sqrt(np.mean((self.found - self.paper) ** 2)))


def metal(problem: Stefan, melts: bool) -> Material:
    """Return a material that melts within 0.5 K, with the properties of the phases on its two sides."""
    below, above = problem.melting - 0.25, problem.melting + 0.25
    k, c = problem.conductivity, problem.heat_capacity
    if melts:
        k, c = k[::-1], c[::-1]  # the phase at the wall is the liquid one
    heat, conductivity = (((below, v[0]), (above, v[1])) for v in (c, k))
    return Material("metal", problem.density, heat, conductivity, below, above, problem.latent, emissivity=0.0)


def stefan(problem: Stefan, n: int, latent: float = 1.0) -> Melting:
    """Return the front in a column of n elements whose lowest plane is held at the temperature of the wall."""
    melts = problem.wall > problem.melting
    material = metal(problem, melts)
    mesh = column(np.linspace(0, DEPTH, n + 1))
    steps = n**2 // 4
    air = Surroundings(convection=0.0, base=problem.wall)
    model = HeatModel(mesh, still(END), material, dt=END / steps, surroundings=air, segment=steps // 8)
    far = material.solidus if problem.start is None else problem.start
    history = model.run(0.0, far, latent_heat=latent)
    T, z = history.T.numpy()[1:], mesh.nodes[:, 2]
    share = material.liquid_share(T) if melts else 1 - material.liquid_share(T)
    thickness = np.where((z == 0) | (z == DEPTH), 0.5, 1.0) * DEPTH / n / 4  # of a node; each level has four
    error = np.abs(T[-1] - problem.temperature(z, END)).max() / abs(problem.wall - problem.far)
    return Melting(share @ thickness, problem.front(history.times.numpy()[1:]), float(error))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_front_of_a_stefan_problem(name: str) -> None:
    """The front moves from node to node: its error is a fraction of an element, and falls with its size."""
    runs = [stefan(PROBLEMS[name], n) for n in (32, 64, 128)]
    assert all(run.front < 0.15 * DEPTH / n for run, n in zip(runs, (32, 64, 128), strict=True))
    assert runs[-1].front < runs[0].front / 4
    assert runs[-1].error < 0.01


@pytest.mark.parametrize("name", PROBLEMS)
def test_without_latent_heat_the_front_would_be_far_off(name: str) -> None:
    run = stefan(PROBLEMS[name], 64, latent=0.0)
    assert run.found[-1] > 1.2 * run.paper[-1]


def graded(first: float, growth: float, n: int) -> np.ndarray:
    """Return n + 1 coordinates from 0 on whose distances grow by a factor [m]."""
    return np.concatenate([[0.0], np.cumsum(first * growth ** np.arange(n))])


def test_a_moving_spot_on_a_thick_block() -> None:
    """A Gaussian spot that began to move some time ago, everywhere, and Rosenthal's steady point source, away from the spot.

    The unit of length is diffusivity / speed = 1 mm, the spot is small against it, and has moved by ten of them.
    """
    speed, power, unit = 5e-3, 20.0, 1e-3
    spread, start, way = 0.2 * unit, 3 * unit, 10 * unit
    side = graded(0.12 * unit, 1.25, 12)
    mesh = box(np.arange(0, 17 * unit, 0.16 * unit), side, -side[::-1])  # y = 0 is a plane of symmetry
    t = way / speed
    path = ToolPath(np.array([0.0, t]), np.array([[start, 0, 0], [start + way, 0, 0]]), np.array([False, True]))
    laser = Laser(radius=2 * spread, factor=2.0)
    model = HeatModel(mesh, path, PLAIN, dt=t / 1600, laser=laser, surroundings=INSULATED, segment=1600)
    rise = model.run(power, 300.0).T[-1].numpy() - 300
    at = mesh.nodes - np.array([start + way, 0, 0])
    source = MovingSource(power, speed)
    moving = source.gaussian(at, spread, t) - 300
    r = np.linalg.norm(at, axis=1)
    assert np.abs(rise - moving).max() < 0.02 * moving.max()
    away = (r > 1.5 * unit) & (r < 2.5 * unit) & (at[:, 0] > -unit)
    relative = rise[away] / (source.rosenthal(at[away]) - 300) - 1
    # Rosenthal's source has no size and no beginning: on paper, these two alone make up to 5 % here.
    assert away.sum() > 500
    assert np.abs(relative).max() < 0.08
    assert np.sqrt(np.mean(relative**2)) < 0.04
