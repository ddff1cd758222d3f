"""Checkpoints: scans inside of scans have the same results and gradients as one scan, and take less memory."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch

from costate.kernel.fields import OWN, TOTAL, FieldBuilder
from costate.kernel.kernel import Kernel
from costate.kernel.ops.checkpoints import level_lengths

COUNT = 50


def rod(steps: int, memory: str | None, count: int = COUNT) -> Kernel:
    """Return a rod that is heated at its first node, with a law that is not linear, and its energy in every step."""
    g = FieldBuilder("step")
    nodes, bars = g.entities("nodes", count), g.entities("bars", count - 1)
    ends = g.table(bars, nodes, np.stack([np.arange(count - 1), np.arange(1, count)], 1))
    T, (power, k) = g.carried(nodes), g.inputs(1, 1)

    def flow(T: ca.SX, k: ca.SX) -> ca.SX:
        q = k * (1 + T[0] ** 2) * (T[1] - T[0])
        return ca.vertcat(q, -q)

    (heat,) = g.for_each(bars, flow, [T[ends], k], [ends])
    new, energy = g.for_each(nodes, lambda T, q, p: (T + q + 0.01 * p, T), [T, heat, power], [OWN, TOTAL])
    step = g.program(new.var, energy)
    f = FieldBuilder("rod")
    T0, p, k = f.field("T", nodes), f.input("power", (steps, 1)), f.input("k", 1)
    final, (energies,), _ = f.scan(step, steps, [T0.var], [p], [k], memory=memory)
    f.field_output("T", f.as_field(final[0], nodes))
    f.output("energy", energies, (steps, 1))
    return f.kernel()


@pytest.mark.parametrize(("steps", "memory"), [(100, "30 kB"), (97, "30 kB"), (103, "13 kB"), (3, "1 MB")])
def test_results_and_gradients_are_those_of_one_scan(steps: int, memory: str) -> None:
    random = torch.Generator().manual_seed(0)
    T = torch.rand(COUNT, dtype=torch.float64, generator=random)
    power = torch.rand(steps, 1, dtype=torch.float64, generator=random)
    weights = torch.rand(steps, 1, dtype=torch.float64, generator=random)
    found = []
    for kernel in (rod(steps, None), rod(steps, memory)):
        given = [x.clone().requires_grad_() for x in (T, power, torch.tensor([0.1], dtype=torch.float64))]
        out = kernel(T=given[0], power=given[1], k=given[2])
        loss = (out.T**2).sum() + (weights * out.energy).sum()
        found.append([out.T, out.energy, *torch.autograd.grad(loss, given)])
    for one, nested in zip(found[0][:4], found[1][:4], strict=True):
        assert torch.equal(one, nested)
    # What all steps share is summed in another order: a few roundings of about a hundred terms.
    torch.testing.assert_close(found[0][4], found[1][4], rtol=1e-13, atol=0.0)


def test_memory_is_kept_to() -> None:
    """Besides states, a step has six numbers in memory: power, energy and their gradients, each as wide as a block."""
    state, numbers = 50 * 16 * 8, 6 * 1000 * 16 * 8
    limits = (None, "900 kB", "250 kB")
    whole, two, three = (rod(1000, m, 800).vjp(["T"]).code("f64").workspace_bytes for m in limits)
    assert whole > 1000 * state
    assert two < 900e3 + numbers and three < 250e3 + numbers


def test_as_few_levels_as_fit() -> None:
    assert level_lengths(26_000, 148e3, 0, "4 GB") == (26_000,)
    assert level_lengths(26_000, 148e3, 0, "2 GB") == (162, 162)
    assert level_lengths(26_000, 148e3, 0, "20 MB") == (30, 30, 30)
    assert level_lengths(1, 8.0, 0, 1e3) == (1,)
    with pytest.raises(
        ValueError, match=r"memory is '1 MB', but the gradient of 26000 steps .* takes [\d.]+ MB at least"
    ):
        level_lengths(26_000, 148e3, 0, "1 MB")


def test_what_cannot_be_limited_is_refused() -> None:
    f = FieldBuilder("f")
    T = f.field("T", f.entities("nodes", 3))
    with pytest.raises(ValueError, match="whose body is a program"):
        f.scan(lambda x: x, 2, T.var, memory="1 MB")
    g = FieldBuilder("g")
    (x,) = g.inputs(T.var.size)
    with pytest.raises(ValueError, match="leave out keep and reverse"):
        f.scan(g.program(x), 2, T.var, keep=True, memory="1 MB")
    with pytest.raises(ValueError, match="memory is 'much'"):
        f.scan(g.program(x), 2, T.var, memory="much")
