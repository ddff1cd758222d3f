"""Loops over time of fields, threads that share a field, and long rows."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import same_bits, uniform
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.fields import OWN, TOTAL, FieldBuilder


def chain(count: int, steps: int) -> Kernel:
    """Heat along a chain, with a source at its first node; what is lost in each step, and the last temperatures."""
    f = FieldBuilder("step")
    nodes, bars = f.entities("nodes", count), f.entities("bars", count - 1)
    ends = f.table(bars, nodes, np.stack([np.arange(count - 1), np.arange(1, count)], 1))
    T = f.carried(nodes)
    (power,) = f.inputs(1)
    first = f.carried(nodes)
    (k,) = f.inputs(2)
    (heat,) = f.for_each(bars, lambda T, k: k[0] * ca.vertcat(T[1] - T[0], T[0] - T[1]), [T[ends], k], [ends])

    def update(T: ca.SX, heat: ca.SX, first: ca.SX, power: ca.SX, k: ca.SX) -> tuple[ca.SX, ca.SX]:
        loss = k[1] * T**4
        return T + heat + first * power - loss, loss

    new, loss = f.for_each(nodes, update, [T, heat, first, power, k], [OWN, TOTAL])
    body = f.program(new.var, loss)
    g = FieldBuilder("chain")
    T, first = g.field("T", nodes), g.field("first", nodes)
    power, k = g.input("power", (steps, 1)), g.input("k", 2)
    (last,), (losses,), _ = g.scan(body, steps, T.var, [power], [first.var, k])
    g.field_output("T", g.as_field(last, nodes))
    g.output("losses", losses, (steps, 1))
    return g.kernel()


def plain_chain(T: Tensor, power: Tensor, first: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    losses = []
    for p in power:
        flow = k[0] * (T[1:] - T[:-1])
        heat = torch.nn.functional.pad(flow, (0, 1)) - torch.nn.functional.pad(flow, (1, 0))
        loss = k[1] * T**4
        T = T + heat + first * p - loss
        losses.append(loss.sum())
    return T, torch.stack(losses)[:, None]


def test_scan() -> None:
    """Several steps against torch, with derivatives of both modes and of second order."""
    kernel = chain(50, 6)
    T, power, k = uniform(0.5, 1.5, 50, seed=1), uniform(0, 1, 6, 1, seed=2), torch.tensor([0.2, 0.01]).double()
    first = torch.zeros(50).double()
    first[0] = 1

    def run(T: Tensor, power: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        return tuple(kernel(T=T, power=power, first=first.to(T.dtype), k=k))

    check_gradients(
        run,
        (T, power, k),
        reference=lambda T, power, k: plain_chain(T, power, first.to(T.dtype), k),
        second_order=True,
        directions=1,
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_threads_have_the_same_bits(dtype: torch.dtype) -> None:
    """One thread, two, three: values and gradients, totals included."""
    count, steps = 20_011, 20
    kernel = chain(count, steps)
    T, power = uniform(0.5, 1.5, count, seed=1).to(dtype), uniform(0, 1, steps, 1, seed=2).to(dtype)
    first = uniform(0, 1, count, seed=3).to(dtype)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            x = [t.clone().requires_grad_() for t in (T, power, first, torch.tensor([0.2, 0.01], dtype=dtype))]
            out = kernel(T=x[0], power=x[1], first=x[2], k=x[3])
            (out.T.square().sum() + out.losses.sum()).backward()
            found.append([*out, *(t.grad for t in x)])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(same_bits(a, b) for a, b in zip(found[0], other, strict=True))
    reference = plain_chain(T.double(), power.double(), first.double(), torch.tensor([0.2, 0.01]).double())
    tolerance = 1e-11 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(found[0][0].double(), reference[0], rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(found[0][1].double(), reference[1], rtol=tolerance, atol=tolerance)


def test_long_rows() -> None:
    """A vector of 40,000 numbers as an input and an output of a kernel: rows are moved by a loop, not by code for each number."""
    n = 40_000
    b = ProgramBuilder("long")
    x = b.input("x", n)
    (y,) = b.map(lambda x: 2 * x + 1, [(x, np.arange(n)[:, None])], [None])
    b.output("y", y)
    kernel = b.kernel()
    given = uniform(-1, 1, 3, n, seed=0)
    assert torch.equal(kernel(x=given).y, 2 * given + 1)
    grown = given.clone().requires_grad_()
    kernel(x=grown).y.sum().backward()
    assert torch.equal(grown.grad, torch.full_like(given, 2.0))  # type: ignore[arg-type]


def test_report() -> None:
    """A kernel over fields is measured with one sample: operations of all entities and steps, and a share of the peak."""
    report = chain(20_011, 20).report("f32")
    assert report.lanes == 0 and 0 < report.efficiency < 1
    assert report.traffic == 4 * (3 * 20_011 + 20 + 2 + 20)
    assert "entities in the lanes" in str(report)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_finite_flag(dtype: torch.dtype) -> None:
    """One flag per sample, whichever entity is not finite; what lies behind the last entity does not count."""
    f = FieldBuilder("inverse")
    nodes = f.entities("nodes", 40)
    (inverse,) = f.for_each(nodes, lambda a: 1 / a, [f.field("a", nodes)])
    f.field_output("inverse", inverse)
    kernel = f.kernel(check_finite=True)
    a = torch.ones(3, 40, dtype=dtype)
    a[1, 33] = 0
    assert kernel(a=a).finite[:, 0].tolist() == [1, 0, 1]
