"""A step against one in plain NumPy, and what a step must leave: no divergence, the same smoke, the same momentum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.continuum.fluid import reference
from tests.continuum.fluid.scenes import drawn, scene

from costate.continuum.fluid.grid import Grid, border
from costate.continuum.fluid.model import FluidModel


@pytest.mark.parametrize(
    ("kind", "d", "slip"),
    [("periodic", 2, False), ("closed", 2, True), ("open", 2, False), ("closed", 3, False), ("open", 3, True)],
)
def test_step_equals_that_of_numpy(kind: str, d: int, slip: bool) -> None:
    """Three steps: advection over several cells, forces, viscosity, walls that move, porous cells, smoke that enters."""
    grid, dt, steps = scene(kind, d), 0.1, 3
    u, s, source = drawn(grid, d, seed=1, size=2.0), drawn(grid, seed=2), drawn(grid, seed=3)
    force, resistance = drawn(grid, 1, d, seed=4), drawn(grid, seed=5).abs()
    walls = 0.1 * drawn(grid, d, seed=6) * torch.as_tensor(grid.inside)  # walls rub, and nothing comes out of them
    controls = torch.tensor([[0.5], [-1.0], [2.0]], dtype=torch.float64)
    lift = torch.linspace(-1, 2, d, dtype=torch.float64)
    model = FluidModel(grid, dt, steps, slip=slip, patterns=1, porous=True, tolerance=1e-13)
    got = model.run(
        u,
        s,
        source=source,
        given=walls,
        patterns=force,
        controls=controls,
        resistance=resistance,
        viscosity=0.01,
        buoyancy=lift,
    )
    v, q = reference.project(grid, u.numpy(), walls.numpy())[0], s.numpy()
    assert np.allclose(got.velocity[0].numpy(), v, atol=1e-10)
    for k in range(steps):
        fields = {"source": source.numpy(), "given": walls.numpy(), "resistance": resistance.numpy()}
        fields |= {"force": force[0].numpy() * controls[k].item(), "viscosity": 0.01, "buoyancy": lift.numpy()}
        v, q, p, drag = reference.step(grid, v, q, dt, slip, **fields)
        fluid = grid.fluid
        there = got.pressure[k].numpy()[fluid]
        assert np.allclose(got.velocity[k + 1].numpy(), v, atol=1e-10)
        assert np.allclose(got.smoke[k + 1].numpy(), q, atol=1e-12)
        shift = 0.0 if grid.open.any() else there.mean() - p[fluid].mean()
        assert np.allclose(there - shift, p[fluid], atol=1e-9)
        assert np.allclose(got.force[k].numpy(), drag, rtol=1e-12)


@pytest.mark.parametrize("kind", ["periodic", "closed", "open"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_divergence_is_left(kind: str, dtype: torch.dtype) -> None:
    """The divergence of fluid cells goes down to the tolerance."""
    grid = scene(kind, 3)
    u = drawn(grid, 3, seed=1).to(dtype)
    v = FluidModel(grid, 0.01, 1).run(u).velocity[-1]
    divergence = torch.stack([torch.roll(v[a], -1, a) - v[a] for a in range(3)]).sum(0)
    assert divergence[torch.as_tensor(grid.fluid)].abs().max() < (1e-9 if dtype == torch.float64 else 2e-5)
    assert torch.equal(v[~torch.as_tensor(grid.free)], torch.zeros(int((~grid.free).sum()), dtype=dtype))


@pytest.mark.parametrize("d", [2, 3])
def test_conserved_smoke(d: int) -> None:
    """Smoke that goes by fluxes is kept to rounding, in a box with an obstacle, for 50 steps; walls let none through."""
    grid = scene("closed", d)
    s = drawn(grid, seed=2).abs() * torch.as_tensor(grid.fluid)
    model = FluidModel(grid, 0.02, 50, conserve=True)
    smoke = model.run(drawn(grid, d, seed=1), s, buoyancy=[0.0] * (d - 1) + [0.5]).smoke
    sums = smoke.flatten(1).sum(1)
    assert (sums - sums[0]).abs().max() < 1e-13 * sums[0]
    assert (smoke[:, torch.as_tensor(grid.solid)] == 0).all()
    assert (smoke[-1] - smoke[0]).abs().max() > 0.1


def test_smoke_stays_between_its_bounds() -> None:
    """Both schemes interpolate, so nothing is above the greatest or below the least number; MacCormack keeps more of a peak."""
    grid = Grid((32, 32), 1 / 32)
    x = torch.as_tensor(grid.centres)
    puff = torch.exp(-((x - 0.5) ** 2).sum(-1) / 0.02)
    u = torch.ones(2, 32, 32, dtype=torch.float64)
    peaks = {}
    for scheme in ("semi_lagrangian", "maccormack"):
        smoke = FluidModel(grid, 0.3 / 32, 64, advection=scheme).run(u, puff).smoke
        assert smoke.min() >= -1e-15
        assert smoke.max() <= puff.max() + 1e-15
        peaks[scheme] = float(smoke[-1].max())
    assert peaks["maccormack"] > 0.85 > 0.5 > peaks["semi_lagrangian"], peaks


def test_a_uniform_stream_moves_a_field_by_whole_cells() -> None:
    """A stream of one cell per step shifts smoke exactly, around the ends of the grid."""
    grid = Grid((8, 6, 5), 0.5)
    s = drawn(grid, seed=2)
    u = torch.zeros(3, *grid.shape, dtype=torch.float64)
    u[0], u[2] = 0.5, -1.0
    smoke = FluidModel(grid, 1.0, 7).run(u, s).smoke
    assert torch.allclose(smoke[-1], torch.roll(s, (7, -14), (0, 2)), atol=1e-14)


@pytest.mark.parametrize("segment", [1, 3, 10])
def test_segments_do_not_change_results(segment: int) -> None:
    """Segments choose the frames that are kept, and change neither them nor gradients."""
    grid = scene("closed", 2)
    found = []
    for n in (10, segment):
        u = drawn(grid, 2, seed=1).requires_grad_()
        history = FluidModel(grid, 0.05, 10, segment=n).run(u, drawn(grid, seed=2))
        (grad,) = torch.autograd.grad(history.smoke[-1].square().sum(), u)
        found.append((history.smoke[-1].detach(), history.velocity[-1].detach(), grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert torch.allclose(found[0][2], found[1][2], atol=1e-12)


def test_memory_decides_on_segments() -> None:
    """A small limit makes longer segments; what is kept stays below it."""
    grid = Grid((64, 64), 1.0)
    assert FluidModel(grid, 1.0, 400).segment == 1
    tight = FluidModel(grid, 1.0, 400, memory="20 MB")
    assert 5 <= tight.segment <= 60
    with pytest.raises(ValueError, match="allow more"):
        FluidModel(grid, 1.0, 400, memory="1 MB")


def test_mirror() -> None:
    """A mirrored start has a mirrored end: no axis and no side is preferred."""
    grid = Grid((10, 10), 0.1, border((10, 10)))
    u, s = drawn(grid, 2, seed=1), drawn(grid, seed=2)
    u[0, 0] = u[1, :, 0] = 0.0
    model = FluidModel(grid, 0.05, 5, "maccormack")
    a = model.run(u, s, buoyancy=(0.3, 0.7), viscosity=0.01)
    swapped = torch.stack([u[1].T, u[0].T])
    b = model.run(swapped, s.T, buoyancy=(0.7, 0.3), viscosity=0.01)
    assert torch.allclose(b.smoke[-1], a.smoke[-1].T, atol=1e-10)
    back = torch.flip(u, (1,)).roll(1, 1) * torch.tensor([-1.0, 1.0])[:, None, None]
    back[1] = torch.flip(u[1], (0,))
    c = model.run(back, torch.flip(s, (0,)), buoyancy=(-0.3, 0.7), viscosity=0.01)
    assert torch.allclose(c.smoke[-1], torch.flip(a.smoke[-1], (0,)), atol=1e-10)


def test_batches() -> None:
    """Samples of a batch are computed as if alone."""
    grid = scene("closed", 2)
    u, s = drawn(grid, 3, 2, seed=1), drawn(grid, seed=2)
    model = FluidModel(grid, 0.05, 4)
    lift = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    every = model.run(u, s, buoyancy=lift)
    assert every.smoke.shape == (3, 5, *grid.shape)
    assert every.force.shape == (3, 4, 2)
    for k in range(3):
        one = model.run(u[k], s, buoyancy=lift[k])
        assert torch.equal(every.velocity[k], one.velocity)
        assert torch.equal(every.smoke[k], one.smoke)
