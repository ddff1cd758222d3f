"""Whole programs: a long rollout, a solver, all kinds of stages at once, and the report of what is not finite."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel import programs
from tests.kernel.programs import assert_as_interpreted, positional, same_bits
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.calls.native import workspace

STEPS, DT = 5000, 1e-3
START = (2.0, 2.5, 0.0, 0.0)


# --- 5,000 steps of a double pendulum ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rollout() -> Kernel:
    return programs.pendulum(STEPS, DT)


def complex_step_jacobian() -> np.ndarray:
    """d final / d start by complex steps: exact to rounding, no subtraction. Column k is perturbed along i 1e-30 e_k."""
    x = np.array(START)[:, None] + 1e-30j * np.eye(4)
    for _ in range(STEPS):
        x = programs.pendulum_step(x, DT, np)
    return x.imag / 1e-30


def test_pendulum_gradient_against_complex_step(rollout: Kernel) -> None:
    """Every entry of the Jacobian of the final state, through backward, to 1e-6 relative to the largest."""
    expected = complex_step_jacobian()
    x = torch.tensor([START] * 4, dtype=torch.float64).requires_grad_()
    out = rollout(x=x)
    (rows,) = torch.autograd.grad(out.final, x, torch.eye(4, dtype=torch.float64))
    assert np.abs(expected).max() > 10  # the motion is far from regular: errors would grow
    assert np.abs(rows.numpy() - expected).max() <= 1e-6 * np.abs(expected).max()
    forward = torch.func.jvp(lambda x: rollout(x=x).final, (x.detach(),), (torch.eye(4, dtype=torch.float64),))[1]
    assert np.abs(forward.numpy().T - expected).max() <= 1e-6 * np.abs(expected).max()


def test_pendulum_states_are_those_of_numpy(rollout: Kernel) -> None:
    states = rollout(x=torch.tensor(START, dtype=torch.float64)).states.numpy()
    x = np.array(START)
    for t in range(200):
        assert np.abs(states[t] - x).max() < 1e-12
        x = programs.pendulum_step(x, DT, np)


class _Allocations(TorchDispatchMode):
    """Bytes of all tensors made while it is on, by storage."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[int, torch.UntypedStorage] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = {s.data_ptr() for s in _storages((args, kwargs))}  # a view is no allocation
        for storage in _storages(result):
            if storage.data_ptr() not in given:
                self.storages[storage.data_ptr()] = storage  # kept, so that no address comes twice
        return result

    @property
    def bytes(self) -> int:
        return sum(s.nbytes() for s in self.storages.values())


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    return [t.untyped_storage() for t in tree_leaves(tree) if isinstance(t, torch.Tensor)]


def test_backward_needs_little_more_than_the_states(rollout: Kernel) -> None:
    """Forward: the states. Backward: within 10 % of their size on top.

    The measure: bytes of every tensor made during the pass, plus the peak of what Python and NumPy allocate (the
    workspace of the compiled code among it).
    """
    batch = 64
    own = (STEPS + 1) * 4 * 8 * batch
    x = torch.tensor([START], dtype=torch.float64).repeat(batch, 1).requires_grad_()
    out = rollout(x=x)  # compiles, so that what is measured is a run
    torch.autograd.grad(out.final.sum(), x)
    del out
    workspace.__globals__["_local"].__dict__.clear()  # forget the workspace: it is part of the measure

    with _Allocations() as forward:
        out = rollout(x=x)
    assert own <= forward.bytes <= 1.1 * own
    seed = torch.ones_like(out.final)
    tracemalloc.start()
    try:
        with _Allocations() as backward:
            (grad,) = torch.autograd.grad(out.final, x, seed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert grad.shape == (batch, 4)
    assert backward.bytes >= grad.nbytes  # the measure sees the pass
    assert backward.bytes + peak <= 0.1 * own, f"{backward.bytes} + {peak} bytes for states of {own}"


# --- Gauss-Seidel -----------------------------------------------------------------------------------------------------

N = 12


def systems(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Symmetric positive definite matrices of condition near 10, and right-hand sides."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.normal(size=(batch, N, N)))[0]
    A = Q @ (np.geomspace(1, 10, N)[:, None] * Q.transpose(0, 2, 1))
    return torch.from_numpy((A + A.transpose(0, 2, 1)) / 2), torch.from_numpy(rng.normal(size=(batch, N)))


def solver_kernel(sweeps: int) -> Kernel:
    b = ProgramBuilder("gauss-seidel")
    A, rhs = b.input("A", (N, N)), b.input("rhs", N)
    b.output("x", b.call(programs.gauss_seidel(N, sweeps), A, rhs)[0])
    return b.kernel()


def gradients(k: Kernel, A: torch.Tensor, rhs: torch.Tensor, seed: torch.Tensor) -> list[torch.Tensor]:
    leaves = A.clone().requires_grad_(), rhs.clone().requires_grad_()
    x = k(A=leaves[0], rhs=leaves[1]).x
    return [x.detach(), *torch.autograd.grad(x, leaves, seed)]


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


def test_gauss_seidel_adjoint_is_that_of_the_unrolled_sweeps() -> None:
    sweeps = 10
    x, A, rhs = ca.SX.zeros(N), ca.SX.sym("A", N, N), ca.SX.sym("rhs", N)
    for _ in range(sweeps):
        x = programs.gauss_seidel_sweep(x, ca.vec(A.T), rhs)
    unrolled = Kernel("unrolled", {"A": A, "rhs": rhs}, {"x": x})
    inputs = systems(5)
    seed = torch.from_numpy(np.random.default_rng(8).normal(size=(5, N)))
    looped = gradients(solver_kernel(sweeps), *inputs, seed)
    for a, b in zip(looped, gradients(unrolled, *inputs, seed), strict=True):
        assert relative(a, b) <= 1e-12
    exact = torch.linalg.solve(*inputs)
    assert relative(looped[0], exact) > 1e-8  # not converged: the derivative is that of the sweeps made


def test_gauss_seidel_adjoint_is_the_implicit_one_once_converged() -> None:
    """A x = b: the gradient of b is A^-T u, that of A is -(A^-T u) x^T. Also as a stage with that derivative given."""
    A, rhs = systems(5)
    seed = torch.from_numpy(np.random.default_rng(8).normal(size=(5, N)))
    x = torch.linalg.solve(A, rhs)
    w = torch.linalg.solve(A.mT, seed)
    expected = [x, -w[..., None] * x[..., None, :], w]
    for a, b in zip(gradients(solver_kernel(150), A, rhs, seed), expected, strict=True):
        assert relative(a, b) <= 1e-8
    for a, b in zip(gradients(given_derivative(150), A, rhs, seed), expected, strict=True):
        assert relative(a, b) <= 1e-8


def given_derivative(sweeps: int) -> Kernel:
    """The solver as a custom stage: its adjoint solves with the transpose, by the same sweeps."""
    a, x, u = ca.SX.sym("a", N * N), ca.SX.sym("x", N), ca.SX.sym("u", N)
    adjoint = ProgramBuilder("adjoint")
    A, _, X, U = (adjoint.input(n, s) for n, s in (("A", (N, N)), ("rhs", N), ("x", N), ("u", N)))
    (transposed,) = adjoint.call(ca.Function("transpose", [a], [ca.vec(ca.reshape(a, N, N).T)]), A)
    (w,) = adjoint.call(programs.gauss_seidel(N, sweeps), transposed, U)
    (outer,) = adjoint.call(ca.Function("outer", [u, x], [-ca.vec(x @ u.T)]), w, X)  # row-major
    adjoint.output("A", outer)
    adjoint.output("rhs", w)
    b = ProgramBuilder("given")
    A, rhs = b.input("A", (N, N)), b.input("rhs", N)
    b.output("x", b.custom(programs.gauss_seidel(N, sweeps), A, rhs, adjoint=adjoint.program())[0])
    return b.kernel()


# --- all kinds --------------------------------------------------------------------------------------------------------


def test_a_program_of_all_kinds() -> None:
    k = programs.every_kind()
    kinds = {type(s.op).__name__ for s in k.program.stages}
    kinds |= {type(s.op).__name__ for op in k.program.stages for body in op.op.bodies() for s in body.stages}
    assert kinds >= {"Scan", "Map", "Corners", "Cond", "Custom", "Straight"}
    inputs = programs.every_kind_inputs(6)
    assert len(set(k.apply(inputs)[3].flatten().tolist())) > 1  # samples differ in how long they loop
    assert_as_interpreted(k, inputs)
    check_gradients(positional(k), inputs, names="xuk", reference=programs.every_kind_torch, step=1e-3, directions=1)


@pytest.mark.slow
def test_second_derivatives_of_a_program_of_all_kinds() -> None:
    k = programs.every_kind()
    leaves = tuple(x.clone().requires_grad_() for x in programs.every_kind_inputs(2))
    assert torch.autograd.gradgradcheck(lambda *x: tuple(k.apply(x))[:3], leaves, eps=1e-6, atol=1e-5)


# --- not finite -------------------------------------------------------------------------------------------------------


def test_the_finite_flag_of_a_straight_line_kernel() -> None:
    x = ca.SX.sym("x", 2)
    k = Kernel("log", {"x": x}, {"y": ca.log(x), "z": x[0] * 2}, check_finite=True)
    x = torch.tensor([[1.0, 2.0], [1.0, 0.0], [-1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0], [3.0, 1.0]]).double()
    for dtype in (torch.float64, torch.float32):
        assert k(x=x.to(dtype)).finite[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert torch.equal(k(x=x[:2]).z, 2 * x[:2, :1])


def test_the_finite_flag_sees_what_happens_inside_loops() -> None:
    """An overflow in the middle of a scan that the end does not show: 1 / x is zero again."""
    x = ca.SX.sym("x", 1)
    b = ProgramBuilder("overflow")
    X = b.input("x", 1)
    (end,), _, _ = b.scan(ca.Function("square", [x], [x * x]), 6, X)
    b.output("y", b.call(ca.Function("inverse", [x], [1 / x]), end)[0])
    k = b.kernel(check_finite=True)
    out = k(x=torch.tensor([[2.0], [1e200], [0.5]], dtype=torch.float64))
    assert out.y[1].item() == 0.0
    assert out.finite[:, 0].tolist() == [1.0, 0.0, 1.0]


def test_the_finite_flag_of_all_kinds_leaves_results_and_gradients_as_they_are() -> None:
    plain, flagged = programs.every_kind(), programs.every_kind(check_finite=True)
    x, u, k = programs.every_kind_inputs(9)
    leaf = x.clone().requires_grad_()
    a, b = plain(x=leaf, u=u, k=k), flagged(x=leaf, u=u, k=k)
    for name in a._fields:
        assert same_bits(getattr(a, name), getattr(b, name)), name
    assert b.finite.flatten().tolist() == [1.0] * 9
    grads = [torch.autograd.grad(out.rooted.sum() + out.states.sum(), leaf)[0] for out in (a, b)]
    assert same_bits(*grads)
    x[4, 2] = math.nan
    assert flagged(x=x, u=u, k=k).finite.flatten().tolist() == [1.0] * 4 + [0.0] + [1.0] * 4
