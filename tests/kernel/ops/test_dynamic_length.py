"""Scans whose length is only known when the kernel is called: one program, compiled once, for sequences of any length."""

from __future__ import annotations

import pickle

import casadi as ca
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import positional, same_bits
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder, link
from costate.kernel.ir.program import DYNAMIC

LENGTHS = (1, 2, 7, 40)


def rollout(steps: int) -> Kernel:
    """x' = (x_1 a, sin x_0) + u, with results x_0 u_1 and all states."""
    x, u, a = ca.SX.sym("x", 2), ca.SX.sym("u", 2), ca.SX.sym("a", 1)
    body = ca.Function("body", [x, u, a], [ca.vertcat(x[1] * a, ca.sin(x[0])) + u, x[0] * u[1]])
    b = ProgramBuilder("rollout")
    (end,), (y,), (states,) = b.scan(
        body, steps, b.input("x", 2), [b.input("u", (steps, 2))], [b.input("a", 1)], keep=True
    )
    b.output("end", end)
    b.output("y", y, (steps, 1))
    b.output("states", states, (steps + 1, 2))
    return b.kernel()


def rollout_torch(x: Tensor, u: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    ys, states = [], [x]
    for t in range(u.shape[-2]):
        ys.append(x[..., :1] * u[..., t, 1:])
        x = torch.stack([x[..., 1] * a[..., 0], x[..., 0].sin()], -1) + u[..., t, :]
        states.append(x)
    return x, torch.stack(ys, -2), torch.stack(states, -2)


def inputs_of(length: int, batch: int = 6) -> list[Tensor]:
    generator = torch.Generator().manual_seed(length)
    shapes = ((2,), (length, 2), (1,))
    return [torch.rand(batch, *s, generator=generator, dtype=torch.float64) - 0.5 for s in shapes]


@pytest.fixture(scope="module")
def dynamic() -> Kernel:
    return rollout(DYNAMIC)


@pytest.mark.parametrize("length", LENGTHS)
def test_values_and_gradients(dynamic: Kernel, length: int) -> None:
    kernel = dynamic.sized(length)
    assert [s.shape for s in kernel.signature.outputs] == [(2,), (length, 1), (length + 1, 2)]
    check_gradients(positional(kernel), inputs_of(length), names="xua", reference=rollout_torch, directions=1)


def test_the_same_bits_as_a_fixed_length(dynamic: Kernel) -> None:
    fixed, sized = rollout(7), dynamic.sized(7)
    results = []
    for k in (fixed, sized):
        leaves = [t.requires_grad_() for t in inputs_of(7)]
        outs = k.apply(leaves)
        results.append([*(o.detach() for o in outs), *torch.autograd.grad([o.sum() for o in outs], leaves)])
    for a, b in zip(*results, strict=True):
        assert same_bits(a, b)


def test_one_compilation_serves_all_lengths(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path))
    made: list[str] = []
    original = link.compile_program

    def spy(*arguments):
        made.append(arguments[-1])
        return original(*arguments)

    monkeypatch.setattr(link, "compile_program", spy)
    kernel = rollout(DYNAMIC)
    for length in LENGTHS:
        leaves = [t.requires_grad_() for t in inputs_of(length)]
        torch.autograd.grad(kernel.sized(length).apply(leaves)[0].sum(), leaves)
    assert made == ["f64", "f64"]  # the forward and the backward kernel
    assert kernel.sized(7) is kernel.sized(7)


def test_pickle_and_shapes(dynamic: Kernel) -> None:
    kernel = dynamic.sized(7)
    copy = pickle.loads(pickle.dumps(kernel))
    for a, b in zip(kernel.apply(inputs_of(7)), copy.apply(inputs_of(7)), strict=True):
        assert same_bits(a, b)
    with pytest.raises(ValueError, match=r"input 'u' has shape \(6, 8, 2\); expected u \(..., 7, 2\)"):
        kernel.apply([inputs_of(7)[0], inputs_of(8)[1], inputs_of(7)[2]])


def test_transforms(dynamic: Kernel) -> None:
    x, u, a = inputs_of(5, 3)
    kernel = dynamic.sized(5)
    found, expected = (
        torch.func.vmap(torch.func.jacrev(lambda x, u, a, f=f: f(x, u, a)[0], (0, 1, 2)))(x, u, a)
        for f in (positional(kernel), rollout_torch)
    )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    forward = [torch.func.jacfwd(lambda a, f=f: f(x, u, a)[2].sum(0))(a) for f in (positional(kernel), rollout_torch)]
    torch.testing.assert_close(*forward, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("length", [1, 5])
def test_gradients_of_gradients(dynamic: Kernel, length: int) -> None:
    """Up to the third order, in all inputs, with one input shared by the batch: as torch differentiates the same loop."""
    found = []
    for f in (positional(dynamic.sized(length)), rollout_torch):
        x, u, a = inputs_of(length, 3)
        leaves = [t.requires_grad_() for t in (x, u, a[0].clone())]
        total = torch.stack([(y * y).sum() for y in f(*leaves)]).sum()
        orders = []
        for _ in range(3):
            grads = torch.autograd.grad(total, leaves, create_graph=True)
            orders += [g.detach() for g in grads]
            total = torch.stack([(g * g.detach().cos()).sum() + (g * g).sum() for g in grads]).sum()
        found.append(orders)
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


def test_second_order_transforms(dynamic: Kernel) -> None:
    """Hessians by reverse over reverse, forward over reverse and reverse over forward."""
    x, u, a = inputs_of(4, 1)

    def energy(f, x: Tensor) -> Tensor:
        return f(x, u[0], a[0])[2].square().sum()

    func = torch.func
    ways = [(func.jacrev, func.jacrev), (func.jacfwd, func.jacrev), (func.jacrev, func.jacfwd)]
    expected = func.hessian(lambda x: energy(rollout_torch, x))(x[0])
    for outer, inner in ways:
        hessian = outer(inner(lambda x: energy(positional(dynamic.sized(4)), x)))(x[0])
        torch.testing.assert_close(hessian, expected, rtol=1e-10, atol=1e-12)


def test_where_a_dynamic_length_is_not_possible() -> None:
    """Inside another loop, or where the sequence would have to be held in the workspace."""
    x, u = ca.SX.sym("x", 1), ca.SX.sym("u", 1)
    inner = ProgramBuilder("inner")
    (end,), _, _ = inner.scan(ca.Function("body", [x], [2 * x]), DYNAMIC, inner.input("x", 1))
    inner.output("x", end)
    b = ProgramBuilder("outer")
    b.output("x", b.scan(inner.program(), 3, b.input("x", 1))[0][0])
    with pytest.raises(ValueError, match="dynamic length must be at the top level of a kernel"):
        b.kernel().sized(4)(x=torch.ones(1, dtype=torch.float64))
    b = ProgramBuilder("held")
    sequence = b.input("u", (DYNAMIC, 1))
    _, (y,), _ = b.scan(ca.Function("body", [x, u], [x, x * u]), DYNAMIC, b.input("x", 1), [sequence])
    (end,), _, _ = b.scan(ca.Function("sum", [x, u], [x + u]), DYNAMIC, b.input("s", 1), [y])
    b.output("end", end)
    with pytest.raises(ValueError, match="dynamic length can only be an input or output of a kernel's scans"):
        b.kernel().sized(4)(u=torch.ones(4, 1).double(), x=torch.ones(1).double(), s=torch.ones(1).double())


def nested(show: bool) -> Kernel:
    """A scan of scans; with `show` the states of the inner one are an output, which the backward pass is given."""
    inner = ProgramBuilder("inner")
    x, u = inner.inputs(2, 1)
    step = ca.Function(
        "step", [x_ := ca.SX.sym("x", 2), u_ := ca.SX.sym("u")], [x_ + 0.1 * ca.vertcat(x_[1], u_ - ca.sin(x_[0]))]
    )
    (end,), _, (within,) = inner.scan(step, 5, x, shared=[u], keep=True)
    body = inner.program(end, inner.trace(lambda x: x[0] ** 2, end), *([within] if show else []))
    b = ProgramBuilder("outer")
    _, (y, *shown), (states,) = b.scan(body, DYNAMIC, b.input("x", 2), [b.input("u", (DYNAMIC, 1))], keep=True)
    b.output("y", y, (DYNAMIC, 1))
    b.output("states", states, (DYNAMIC + 1, 2))
    for value in shown:
        b.output("within", value, (DYNAMIC, 12))
    return b.kernel()


def test_inner_states_that_are_given_are_not_computed_again() -> None:
    x, u = torch.rand(6, 2), torch.rand(6, 7, 1)
    found = []
    for show in (False, True):
        x_, u_ = x.clone().requires_grad_(), u.clone().requires_grad_()
        nested(show).sized(7)(x=x_, u=u_).y.square().sum().backward()
        found.append((x_.grad, u_.grad))
    for a, b in zip(*found, strict=True):
        assert same_bits(a, b)
    kernel = nested(True)
    assert [kernel.signature.outputs[k].name for k in kernel._recipe.given] == ["states", "within"]
    check_gradients(lambda x, u: nested(True).sized(7)(x=x, u=u).y, [x, u], names="xu", directions=1)
