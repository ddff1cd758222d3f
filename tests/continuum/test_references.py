"""What heat is held against: closed forms satisfy their equations, boundary conditions and limits; scikit-fem has our elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from tests.continuum.moving_source import MovingSource
from tests.continuum.semi_infinite import SemiInfinite
from tests.continuum.skfem_assembly import face_loads, heat_matrices
from tests.continuum.slab import Slab
from tests.continuum.stefan import Stefan

from benchmarks.heat_peers.reference import Quadrature
from benchmarks.heat_problem import wall

DIFFERENCES = 1e-6
"""Relative error of central differences of fourth order with the steps used here: rounding of the second ones."""


def slope(f: Callable[[float], np.ndarray], h: float) -> np.ndarray:
    """Return df/dx at 0 by central differences of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def bend(f: Callable[[float], np.ndarray], h: float) -> np.ndarray:
    """Return d2f/dx2 at 0 by central differences of fourth order."""
    return (16 * (f(h) + f(-h)) - (f(2 * h) + f(-2 * h)) - 30 * f(0.0)) / (12 * h * h)


def assert_conducts(T: Callable[[np.ndarray, float], np.ndarray], x: np.ndarray, t: float, diffusivity: float) -> None:
    """Check dT/dt = diffusivity d2T/dx2 at points x."""
    length = np.sqrt(diffusivity * t)
    rate = slope(lambda h: T(x, t + h), 1e-3 * t)
    assert np.abs(rate).max() > 0
    np.testing.assert_allclose(
        rate, diffusivity * bend(lambda h: T(x + h, t), 1e-2 * length), rtol=0, atol=DIFFERENCES * np.abs(rate).max()
    )


STEFANS = {
    "one phase, melts": Stefan(1900.0, 1571.0),
    "one phase, freezes": Stefan(300.0, 1571.0),
    "two phases, melts": Stefan(2200.0, 1571.0, 300.0, conductivity=(30.0, 25.0), heat_capacity=(720.0, 600.0)),
    "two phases, freezes": Stefan(300.0, 1571.0, 1800.0, conductivity=(12.0, 30.0), heat_capacity=(500.0, 720.0)),
}


@pytest.mark.parametrize("s", STEFANS.values(), ids=list(STEFANS))
def test_stefan(s: Stefan) -> None:
    t = 3.0
    front = float(s.front(t))
    assert_conducts(s.temperature, front * np.array([0.2, 0.5, 0.8]), t, s.diffusivity[0])
    if s.start is not None:
        assert_conducts(s.temperature, front * np.array([1.2, 1.5, 2.0]), t, s.diffusivity[1])
    ends = s.temperature(np.array([0.0, front * (1 - 1e-12), front * (1 + 1e-12), 1e3 * front]), t)
    np.testing.assert_allclose(ends, [s.wall, s.melting, s.melting, s.far], rtol=1e-9)
    sign, h = np.sign(s.wall - s.melting), 1e-4 * front
    near, beyond = (s.temperature(front + side * h * np.arange(1, 4), t) for side in (-1, 1))
    into = (
        s.conductivity[0] * edge_slope(near, s.melting, -h) * -1,
        s.conductivity[1] * edge_slope(beyond, s.melting, h) * -1,
    )
    speed = slope(lambda d: s.front(t + d), 1e-3 * t)
    assert into[0] - into[1] == pytest.approx(sign * s.density * s.latent * speed, rel=1e-6)


def edge_slope(values: np.ndarray, edge: float, h: float) -> float:
    """Return the slope at the edge of an interval from the value there and at h, 2 h, 3 h, to third order."""
    return float((-11 * edge + 18 * values[0] - 9 * values[1] + 2 * values[2]) / (6 * h))


@pytest.mark.parametrize("s", STEFANS.values(), ids=list(STEFANS))
def test_stefan_keeps_the_heat_that_passed_its_wall(s: Stefan) -> None:
    t = 3.0
    front, sign = float(s.front(t)), np.sign(s.wall - s.melting)
    c1, c2 = s.heat_capacity
    near = quad(lambda x: c1 * (float(s.temperature(np.array(x), t)) - s.melting), 0, front, epsrel=1e-12)[0]
    edges = (front, 60 * np.sqrt(s.diffusivity[1] * t))
    beyond = quad(lambda x: c2 * (float(s.temperature(np.array(x), t)) - s.far), *edges, epsrel=1e-12, limit=200)[0]
    fused = (sign * s.latent + c2 * (s.melting - s.far)) * front
    assert s.density * (near + beyond + fused) == pytest.approx(s.heat(t), rel=1e-9)


def test_stefan_known_answers() -> None:
    """Solve lambda exp(lambda^2) erf(lambda) = St / sqrt(pi): for small St lambda is sqrt(St / 2) (1 - St / 6)."""
    for number in (1e-4, 1e-2):
        s = Stefan(1000.0 + 270e3 / 700 * number, 1000.0)
        assert s.growth == pytest.approx(np.sqrt(number / 2) * (1 - number / 6), rel=number**2)
    alike = Stefan(1900.0, 1571.0), Stefan(1900.0, 1571.0, 1571.0 - 1e-9)
    assert alike[0].growth == pytest.approx(alike[1].growth, rel=1e-10)
    with pytest.raises(ValueError, match="between"):
        _ = Stefan(1900.0, 1571.0, 1800.0).growth


BODY = SemiInfinite()
DEPTHS = np.array([0.001, 0.003, 0.006])
HEATED: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "temperature": lambda x, t: BODY.under_temperature(x, t, 900.0),
    "flux": lambda x, t: BODY.under_flux(x, t, 2e5),
    "convection": lambda x, t: BODY.under_convection(x, t, 4000.0, 900.0),
}


@pytest.mark.parametrize("kind", HEATED)
def test_semi_infinite_body(kind: str) -> None:
    T, t = HEATED[kind], 2.0
    assert_conducts(T, DEPTHS, t, BODY.diffusivity)
    surface = float(T(np.array(0.0), t))
    h = 1e-6
    flux = -BODY.conductivity * edge_slope(T(h * np.arange(1, 4), t), surface, h)
    expected = {"flux": 2e5, "convection": 4000.0 * (900.0 - surface)}
    assert surface == 900.0 if kind == "temperature" else flux == pytest.approx(expected[kind], rel=1e-6)
    assert T(np.array(1.0), t) == BODY.start
    np.testing.assert_allclose(T(DEPTHS, 1e-4), BODY.start)


def test_strong_convection_holds_the_surface_and_weak_convection_is_a_flux() -> None:
    strong = BODY.under_convection(DEPTHS, 2.0, 1e9, 900.0)
    np.testing.assert_allclose(strong, BODY.under_temperature(DEPTHS, 2.0, 900.0), rtol=1e-5)
    weak = BODY.under_convection(DEPTHS, 2.0, 1e-3, 900.0) - BODY.start
    np.testing.assert_allclose(weak, BODY.under_flux(DEPTHS, 2.0, 0.6) - BODY.start, rtol=1e-5)


SOURCE = MovingSource()
AROUND = 1e-3 * np.array([[2.0, 1.0, -1.0], [-3.0, 0.5, -0.5], [0.5, -2.0, -1.5]])
AXES = np.eye(3)


def assert_steady(T: Callable[[np.ndarray], np.ndarray]) -> None:
    """Check -v dT/dx = diffusivity (d2T/dx2 + ...): what moves with the source does not change."""
    h = 2e-5
    carried = -SOURCE.speed * slope(lambda d: T(AROUND + d * AXES[0]), h)
    spread = SOURCE.diffusivity * sum(bend(lambda d, a=axis: T(AROUND + d * a), h) for axis in AXES)
    np.testing.assert_allclose(carried, spread, rtol=0, atol=10 * DIFFERENCES * np.abs(carried).max())


def test_rosenthal() -> None:
    assert_steady(SOURCE.rosenthal)
    r = 1e-8
    near = SOURCE.rosenthal(np.array([0.0, 0.0, -r])) - SOURCE.start
    assert near * 2 * np.pi * SOURCE.conductivity * r == pytest.approx(SOURCE.power, rel=1e-4)
    behind = np.array([-0.005, 0.0, 0.0])  # there it is that of a source at rest
    assert SOURCE.rosenthal(behind) - SOURCE.start == pytest.approx(
        SOURCE.power / (2 * np.pi * SOURCE.conductivity * 0.005)
    )


def test_gaussian_source() -> None:
    sigma = 1e-3 / np.sqrt(6)
    assert_steady(lambda x: SOURCE.gaussian(x, sigma))
    at = np.array([0.3e-3, 0.2e-3, 0.0])
    h = 1e-6
    below = at - h * np.arange(1, 4)[:, None] * AXES[2]
    flux = -SOURCE.conductivity * edge_slope(SOURCE.gaussian(below, sigma), float(SOURCE.gaussian(at, sigma)), h)
    given = SOURCE.power / (2 * np.pi * sigma**2) * np.exp(-(at @ at) / (2 * sigma**2))
    assert flux == pytest.approx(given, rel=1e-5)


def test_limits_of_the_gaussian_source() -> None:
    np.testing.assert_allclose(SOURCE.gaussian(AROUND, 1e-8), SOURCE.rosenthal(AROUND), rtol=1e-9)
    far = SOURCE.gaussian(AROUND, 2e-4, t=50.0)
    np.testing.assert_allclose(far, SOURCE.gaussian(AROUND, 2e-4), rtol=1e-9)
    still = MovingSource(speed=0.0)
    peak = still.power / (
        2 * np.sqrt(2 * np.pi) * still.conductivity * 2e-4
    )  # the integral of q / (2 pi k r) over the surface
    assert still.gaussian(np.zeros(3), 2e-4) - still.start == pytest.approx(peak, rel=1e-8)
    wide, t = 1.0, 2.0  # so wide that it heats like a flux everywhere
    flux = still.power / (2 * np.pi * wide**2)
    body = SemiInfinite(still.conductivity, still.density, still.heat_capacity, still.start)
    depths = np.stack([0 * DEPTHS, 0 * DEPTHS, -DEPTHS], -1)
    np.testing.assert_allclose(
        still.gaussian(depths, wide, t) - still.start, body.under_flux(DEPTHS, t, flux) - still.start, rtol=1e-4
    )


@pytest.mark.parametrize("coefficient", [5.0, 500.0, 5e5])
def test_slab(coefficient: float) -> None:
    slab = Slab(coefficient=coefficient)
    t = 0.2 * slab.half**2 / (20.0 / (8000.0 * 500.0))
    x = slab.half * np.array([0.0, 0.4, 0.8])
    assert_conducts(slab.temperature, x, t, 20.0 / (8000.0 * 500.0))
    wall_, h = float(slab.temperature(np.array(slab.half), t)), 1e-6
    out = slab.conductivity * edge_slope(slab.temperature(slab.half - h * np.arange(1, 4), t), wall_, h)
    assert out == pytest.approx(coefficient * (wall_ - slab.ambient), rel=1e-5)
    lost = slope(lambda d: np.array(slab.mean(t + d)), 1e-3 * t) * slab.density * slab.heat_capacity * slab.half
    assert lost == pytest.approx(-coefficient * (wall_ - slab.ambient), rel=1e-7)


def test_limits_of_the_slab() -> None:
    thin = Slab(coefficient=0.02)  # Bi = 1e-5: one temperature throughout
    t = 1e5
    decay = np.exp(-thin.coefficient * t / (thin.density * thin.heat_capacity * thin.half))
    assert thin.mean(t) - 300.0 == pytest.approx(700.0 * decay, rel=1e-5)
    early = Slab()
    t = 2e-3 * early.half**2 / (20.0 / (8000.0 * 500.0))
    depth = early.half * np.array([0.0, 0.02, 0.1])
    body = SemiInfinite(start=early.start)
    np.testing.assert_allclose(
        early.temperature(early.half - depth, t),
        body.under_convection(depth, t, early.coefficient, early.ambient),
        rtol=1e-12,
    )
    with pytest.raises(ValueError, match="Fourier"):
        early.temperature(depth, 1e-6)


def test_scikit_fem_assembles_the_same_elements() -> None:
    p = wall((4, 3, 2))
    laws = (lambda T: 8.9 + 0.0145 * T, lambda T: 4e6 + 300.0 * T)
    found = heat_matrices(p.nodes, p.elements, p.T, *laws)
    Q, local = Quadrature.of(p.nodes, p.elements), p.T[p.elements]
    t = local @ Q.N.T
    K = np.einsum("epcm,ep,epcn->emn", Q.B, laws[0](t) * Q.volume, Q.B)
    M = np.einsum("pm,ep,pn->emn", Q.N, laws[1](t) * Q.volume, Q.N)
    for matrix, parts in ((found.stiffness, K), (found.mass, M)):
        whole = np.zeros((len(p.nodes),) * 2)
        np.add.at(whole, (p.elements[:, :, None], p.elements[:, None, :]), parts)
        np.testing.assert_allclose(matrix.toarray(), whole, rtol=0, atol=1e-13 * np.abs(whole).max())
    unit = heat_matrices(p.nodes, p.elements)
    volume = Q.volume.sum()
    linear = p.nodes @ np.array([1.0, 2.0, 2.0])
    assert unit.lumped.sum() == pytest.approx(volume, rel=1e-13)
    assert linear @ unit.stiffness @ linear == pytest.approx(9 * volume, rel=1e-12)
    assert np.abs(unit.stiffness @ np.ones(len(linear))).max() < 1e-14 * np.abs(unit.stiffness.toarray()).max()


def test_scikit_fem_loads_faces() -> None:
    p = wall((4, 3, 2))
    top = p.elements[12:, 4:]  # upper faces of the upper layer, made flat
    p.nodes[np.unique(top), 2] = 2e-3
    a, b, c, d = (p.nodes[top[:, n]] for n in range(4))
    area = np.cross(c - a, d - b)[:, 2].sum() / 2
    load = face_loads(p.nodes, p.elements, top, lambda T, x: 3.0 + 0 * T, p.T)
    assert load.sum() == pytest.approx(3.0 * area, rel=1e-13)
    assert load[np.unique(top)].min() > 0.01 * load.max()
    assert np.abs(np.delete(load, np.unique(top))).max() < 1e-15 * load.max()
    for field in (lambda T, x: T, lambda T, x: x[0]):  # the same linear field, given at nodes and by position
        moment = face_loads(p.nodes, p.elements, top, field, p.nodes[:, 0])
        assert moment.sum() == pytest.approx(p.nodes[:, 0] @ load / 3.0, rel=1e-13)
