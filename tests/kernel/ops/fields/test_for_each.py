"""Stages over fields: against loops in torch, against their own interpretation, with other widths, threads and batches."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import uniform
from torch import Tensor

from costate.kernel import Kernel
from costate.kernel.fields import GREATEST, OWN, TOTAL, FieldBuilder
from costate.kernel.ops.fields.blocks import BLOCK, from_blocks, to_blocks

NODES, BARS, CELLS = 37, 53, 90
RNG = np.random.default_rng(4)
ENDS = RNG.integers(0, NODES, (BARS, 3))
OFFSETS = (-1, 0, 1, 9)


def bar(T: ca.SX, x: ca.SX, own: ca.SX, k: ca.SX) -> tuple[ca.SX, ...]:
    """Three nodes with a number and two coordinates each: what they gain, five numbers, an energy."""
    pull = k[0] * ca.sin(T[0] - T[1] * T[2]) + own[1] * ca.dot(x[0, :], x[2, :])
    gain = ca.vertcat(pull, -pull * own[0], ca.cos(pull))
    many = ca.vertcat(*(T[i] * ca.vertcat(pull, x[i, 0], own, k[1] * pull) for i in range(3)))
    return gain, many, ca.vertcat(pull**2, own[0] * T[0])


def spread(values: ca.SX, at: ca.SX) -> ca.SX:
    """Weights around the index, each for a pair of numbers."""
    return ca.vertcat(*(ca.exp(-((at - o) ** 2) / 9) * values for o in range(len(OFFSETS))))


def program(steps: int = 0) -> Kernel:
    """Nodes, bars between them and a grid that nodes spread to and read back: one step, or several in a scan."""
    f = FieldBuilder("net")
    nodes, bars, grid = f.entities("nodes", NODES), f.entities("bars", BARS), f.entities("cells", CELLS)
    ends = f.table(bars, nodes, ENDS)
    T, x, own = f.field("T", nodes), f.field("x", nodes, 2), f.field("own", bars, 2)
    k, limits = f.input("k", 2), f.input("limits", 2)
    gain, many, energy = f.for_each(bars, bar, [T[ends], x[ends], own, k], [ends, ends, TOTAL], between=limits)
    (index,) = f.for_each(nodes, lambda x: ca.floor(40 + 20 * x[0]), [x], [OWN])
    around = f.around(grid, index, OFFSETS)
    pair, place = f.for_each(nodes, lambda T, g, m: (ca.vertcat(T * g, m[1] + m[4]), g), [T, gain, many], [OWN, OWN])
    (density,) = f.for_each(nodes, spread, [pair, place], [around])
    (back,) = f.for_each(nodes, lambda d, T: ca.sum1(d[:, 0] * d[:, 1]) + T, [density[around], T], [OWN])
    f.field_output("T", back)
    f.field_output("many", many)
    f.field_output("density", density)
    f.output("energy", energy)
    return f.kernel()


def net(T: Tensor, x: Tensor, own: Tensor, k: Tensor, limits: Tensor) -> tuple[Tensor, ...]:
    """The same in torch, for one sample."""
    ends = torch.tensor(ENDS)
    alive = (torch.arange(BARS) >= limits[0]) & (torch.arange(BARS) < limits[1])
    t, at = T[ends], x[ends]
    pull = k[0] * torch.sin(t[:, 0] - t[:, 1] * t[:, 2]) + own[:, 1] * (at[:, 0] * at[:, 2]).sum(-1)
    gains = torch.where(alive[:, None], torch.stack([pull, -pull * own[:, 0], torch.cos(pull)], -1), 0.0)
    five = torch.stack(
        [t[:, i, None] * torch.cat([pull[:, None], at[:, i, :1], own, (k[1] * pull)[:, None]], -1) for i in range(3)], 1
    )
    five = torch.where(alive[:, None, None], five, 0.0)
    gain = torch.zeros(NODES, dtype=T.dtype).index_add(0, ends.ravel(), gains.reshape(-1))
    many = torch.zeros(NODES, 5, dtype=T.dtype).index_add(0, ends.ravel(), five.reshape(-1, 5))
    energy = torch.where(alive[:, None], torch.stack([pull**2, own[:, 0] * t[:, 0]], -1), 0.0).sum(0)
    cells = torch.floor(40 + 20 * x[:, :1]).long() + torch.tensor(OFFSETS)
    pair = torch.stack([T * gain, many[:, 1] + many[:, 4]], -1)
    weights = torch.exp(-((gain[:, None] - torch.arange(len(OFFSETS))) ** 2) / 9)
    given = (weights[..., None] * pair[:, None]).reshape(-1, 2)
    density = torch.zeros(CELLS, 2, dtype=T.dtype).index_add(0, cells.ravel(), given)
    back = (density[cells][..., 0] * density[cells][..., 1]).sum(-1) + T
    return back, many, density, energy


def inputs(*batch: int) -> list[Tensor]:
    shapes = ((NODES,), (NODES, 2), (BARS, 2), (2,))
    return [uniform(-1, 1, *batch, *s, seed=i) for i, s in enumerate(shapes)]


@pytest.mark.parametrize("limits", [(0, BARS), (5, 41), (17, 17)])
def test_all_kinds_of_access(limits: tuple[int, int]) -> None:
    """Values against torch; first and second derivatives, forward and backward, against differences."""
    kernel = program()
    between = torch.tensor(limits, dtype=torch.float64)

    def compiled(*x: Tensor) -> tuple[Tensor, ...]:
        return tuple(kernel.apply([*x, between.to(x[0].dtype)]))

    x = inputs()
    check_gradients(
        compiled,
        x,
        reference=lambda T, x, own, k: net(T, x, own, k, between.to(T.dtype)),
        second_order=limits == (5, 41),
        directions=1,
    )


def test_as_interpreted() -> None:
    """The compiled program, its gradient and its tangent agree with what their stages say they mean."""
    kernel = program()
    given = [*inputs(), torch.tensor([5.0, 41.0], dtype=torch.float64)]
    back, forward = kernel.vjp(["T", "x", "own", "k"]), kernel.jvp(["T", "k"])
    seeds = [torch.ones_like(o) for o in kernel.apply(given)]
    for k, values in ((kernel, given), (back, [*given, *seeds]), (forward, [*given, given[0], given[3]])):
        columns = [np.repeat(v.numpy().reshape(-1, 1), BLOCK, axis=1) for v in values]
        expected = k.program.evaluate(*columns)
        for out, reference in zip(k.apply(values), expected, strict=True):
            np.testing.assert_allclose(out.numpy().ravel(), np.asarray(reference)[:, 0], rtol=1e-12, atol=1e-12)


def test_batch() -> None:
    """Samples one by one, and gradients of shared inputs as sums over them."""
    kernel = program()
    T, x, own, k = inputs(3)
    limits = torch.tensor([0.0, BARS], dtype=torch.float64)
    every = kernel.apply([T, x[0], own, k[0], limits])
    for i in range(3):
        one = kernel.apply([T[i], x[0], own[i], k[0], limits])
        assert all(torch.equal(a[i], b) for a, b in zip(every, one, strict=True))
    x0 = x[0].clone().requires_grad_()
    kernel.apply([T, x0, own, k[0], limits])[0].sum().backward()
    each = x[0].expand(3, NODES, 2).clone().requires_grad_()
    kernel.apply([T, each, own, k[0], limits])[0].sum().backward()
    assert x0.grad is not None and each.grad is not None
    torch.testing.assert_close(x0.grad, each.grad.sum(0), rtol=1e-13, atol=1e-13)


def test_blocks() -> None:
    values = RNG.normal(size=(37, 3))
    assert np.array_equal(from_blocks(to_blocks(values), 37), values)
    one = to_blocks(values[:, :1])
    assert np.array_equal(one.ravel()[:37], values[:, 0])  # one number per entity: a plain array
    assert not one.ravel()[37:].any()


@pytest.mark.parametrize("limits", [(0, BARS), (3, 20), (7, 7)])
def test_the_greatest_is_that_of_the_entities_in_range(limits: tuple[int, int]) -> None:
    f = FieldBuilder("greatest")
    bars = f.entities("bars", BARS)
    (most,) = f.for_each(
        bars, lambda x: ca.vertcat(x, -x), [f.field("x", bars)], [GREATEST], between=f.input("limits", 2)
    )
    f.output("most", most)
    x = torch.as_tensor(np.random.default_rng(0).uniform(-1, 0.8, BARS))
    given = {"x": x, "limits": torch.tensor(limits, dtype=x.dtype)}
    inside = x[limits[0] : limits[1]]
    expected = [max(0.0, float(s.max()) if len(s) else 0.0) for s in (inside, -inside)]
    assert f.kernel()(**given).most.tolist() == expected


def test_unfitting_fields_are_refused() -> None:
    f = FieldBuilder("net")
    nodes, bars = f.entities("nodes", 5), f.entities("bars", 4)
    T = f.field("T", nodes)
    with pytest.raises(ValueError, match="reads a field of nodes"):
        f.for_each(bars, lambda T: T, [T])
    with pytest.raises(ValueError, match="reaches from 0 to 5"):
        f.table(bars, nodes, np.array([[0, 1], [1, 2], [2, 3], [3, 5]]))
    back = f.table(nodes, bars, np.zeros((5, 2), int))
    with pytest.raises(ValueError, match="table of 4 bars"):
        T[back]
    with pytest.raises(ValueError, match="returned 3 numbers for 2 bars"):
        f.for_each(nodes, lambda T: ca.vertcat(T, T, T), [T], [back])
    with pytest.raises(ValueError, match="expected at least one"):
        f.entities("nodes", 0)
