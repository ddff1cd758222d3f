"""Conjugate gradients over fields: against sparse direct solves, with derivatives of the solution."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import spsolve
from tests.gradients import check_gradients
from tests.kernel.programs import same_bits, uniform
from torch import Tensor

from costate.kernel import Kernel
from costate.kernel.fields import OWN, TOTAL, Field, FieldBuilder
from costate.kernel.ir.program import Var
from costate.kernel.ops.fields.blocks import BLOCK


def grid_edges(*shape: int) -> np.ndarray:
    """Pairs of neighbours of a regular grid of nodes."""
    number = np.arange(int(np.prod(shape))).reshape(shape)
    pairs = [
        np.stack([number.take(range(n - 1), a).ravel(), number.take(range(1, n), a).ravel()], 1)
        for a, n in enumerate(shape)
    ]
    return np.concatenate(pairs)


def poisson(shape: tuple[int, ...], jacobi: bool = True, **options: float) -> Kernel:
    """-div(k grad x) + m x = b on a grid: coefficients k of the edges, b of the nodes, one m."""
    edges = grid_edges(*shape)
    f = FieldBuilder("poisson")
    nodes, bars = f.entities("nodes", int(np.prod(shape))), f.entities("bars", len(edges))
    ends = f.table(bars, nodes, edges)
    k, b, m = f.field("k", bars), f.field("b", nodes), f.input("m", 1)

    def apply(g: FieldBuilder, x: Field, k: Field, m: Var) -> Field:
        (flow,) = g.for_each(bars, lambda x, k: k * ca.vertcat(x[0] - x[1], x[1] - x[0]), [x[ends], k], [ends])
        return g.for_each(nodes, lambda x, q, m: q + m * x, [x, flow, m])[0]

    diagonal = None
    if jacobi:
        (of_bars,) = f.for_each(bars, lambda k: ca.vertcat(k, k), [k], [ends])
        (diagonal,) = f.for_each(nodes, lambda d, m: d + m, [of_bars, m])
    found = f.cg(apply, b, [k, m], diagonal, **options)  # type: ignore[arg-type]
    f.field_output("x", found.value)
    f.output("status", found.status)
    return f.kernel()


def matrix(shape: tuple[int, ...], k: Tensor, m: Tensor) -> sp.csc_matrix:
    edges = grid_edges(*shape)
    n = int(np.prod(shape))
    i, j, v = edges[:, 0], edges[:, 1], k.double().numpy()
    rows, columns = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
    return sp.csc_matrix((np.concatenate([v, v, -v, -v]), (rows, columns)), (n, n)) + float(m) * sp.identity(
        n, format="csc"
    )


def given(shape: tuple[int, ...], seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    k = torch.exp(uniform(-2, 2, len(grid_edges(*shape)), seed=seed))
    return k, uniform(-1, 1, int(np.prod(shape)), seed=seed + 1), torch.tensor([0.1], dtype=torch.float64)


@pytest.mark.parametrize(("shape", "jacobi"), [((37,), True), ((12, 17), False), ((16,), False)])
def test_poisson(shape: tuple[int, ...], jacobi: bool) -> None:
    """Solutions as a sparse direct solver has them; one that fills its blocks, others that do not."""
    k, b, m = given(shape)
    out = poisson(shape, jacobi, tolerance=1e-13)(k=k, b=b, m=m)
    A = matrix(shape, k, m)
    converged, residual, iterations = out.status.tolist()
    assert converged == 1 and 0 < iterations <= 400
    left = np.linalg.norm(b.numpy() - A @ out.x.numpy()) / np.linalg.norm(b.numpy())
    np.testing.assert_allclose(residual, left, rtol=1e-6, atol=2e-15)
    np.testing.assert_allclose(out.x.numpy(), np.asarray(spsolve(A, b.numpy())), rtol=1e-10, atol=1e-11)


def test_derivatives() -> None:
    """Derivatives by coefficients, right-hand side and the shared number, of both orders."""
    shape = (5, 7)
    kernel = poisson(shape, tolerance=1e-13)
    k, b, m = given(shape)

    def dense(k: Tensor, b: Tensor, m: Tensor) -> Tensor:
        edges = torch.tensor(grid_edges(*shape))
        A = m * torch.eye(35, dtype=k.dtype)
        for (i, j), v in zip(edges.tolist(), k, strict=True):
            u = torch.zeros(35, dtype=k.dtype)
            u[i], u[j] = 1.0, -1.0
            A = A + v * torch.outer(u, u)
        return torch.linalg.solve(A, b)

    def parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x[: len(k)], x[len(k) : -1], x[-1:]

    check_gradients(
        lambda x: kernel.apply(parts(x))[0],
        (torch.cat([k, b, m]),),  # one input: fewer kernels to compile
        reference=lambda x: dense(*parts(x)),
        second_order=True,
    )


def test_as_interpreted() -> None:
    """The compiled solve and its gradient agree with what their stages say they mean."""
    kernel = poisson((37,), tolerance=1e-12)
    k, b, m = given((37,))
    seeds = [torch.ones(37).double(), torch.zeros(3).double()]
    for which, values in ((kernel, [k, b, m]), (kernel.vjp(["k", "b", "m"]), [k, b, m, *seeds])):
        columns = [np.repeat(v.numpy().reshape(-1, 1), BLOCK, axis=1) for v in values]
        for out, reference in zip(which.apply(values), which.program.evaluate(*columns), strict=True):
            np.testing.assert_allclose(out.numpy().ravel(), np.asarray(reference)[:, 0], rtol=1e-8, atol=1e-10)


def test_single_precision() -> None:
    """A tolerance below rounding is that of rounding: iterations do not go on for nothing."""
    shape = (12, 17)
    k, b, m = given(shape)
    kernel = poisson(shape)
    out = kernel(k=k.float(), b=b.float(), m=m.float())
    exact = np.asarray(spsolve(matrix(shape, k, m), b.numpy()))
    assert out.status[0] == 1 and out.status[1] < 1e-5
    assert out.status[2] < kernel(k=k, b=b, m=m).status[2]
    assert np.linalg.norm(out.x.numpy() - exact) < 1e-4 * np.linalg.norm(exact)


def test_batch() -> None:
    """Problems of a batch take as many iterations as each needs, with the same bits as alone."""
    shape = (12, 17)
    kernel = poisson(shape)
    k = torch.stack([given(shape)[0], torch.ones(len(grid_edges(*shape))).double(), given(shape, 5)[0]])
    b, m = uniform(-1, 1, 3, 204, seed=3), torch.tensor([[0.1], [10.0], [1e-3]], dtype=torch.float64)
    m.requires_grad_()
    out = kernel(k=k, b=b, m=m)
    (grad,) = torch.autograd.grad(out.x.square().sum(), m)
    assert len(set(out.status[:, 2].tolist())) == 3
    for i in range(3):
        alone = kernel(k=k[i], b=b[i], m=m[i])
        assert same_bits(alone.x, out.x[i]) and same_bits(alone.status, out.status[i])
        assert same_bits(torch.autograd.grad(alone.x.square().sum(), m)[0][i], grad[i])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_threads_have_the_same_bits(dtype: torch.dtype) -> None:
    """One thread and two: solution, number of iterations and gradients."""
    shape = (130, 131)
    k, b, m = (t.to(dtype) for t in given(shape))
    kernel = poisson(shape)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            x = [t.clone().requires_grad_() for t in (k, b, m)]
            out = kernel(k=x[0], b=x[1], m=x[2])
            out.x.square().sum().backward()
            found.append([*out, *(t.grad for t in x)])
    finally:
        torch.set_num_threads(before)
    assert all(same_bits(u, v) for u, v in zip(*found, strict=True))
    A = matrix(shape, k, m)
    assert np.linalg.norm(A @ found[0][0].detach().double().numpy() - b.double().numpy()) < 1e-4 * float(b.norm())


def test_breakdown_is_seen() -> None:
    """An operator that is not positive definite, too few iterations, numbers that are not finite, nothing to solve."""
    shape = (37,)
    k, b, m = given(shape)
    kernel = poisson(shape, jacobi=False)
    indefinite = kernel(k=k, b=b, m=torch.tensor([-1.0]).double()).status
    assert indefinite[0] == 0 and indefinite[1] > 1e-6
    short = poisson(shape, jacobi=False, limit=5)
    x = b.clone().requires_grad_()
    out = short(k=k, b=x, m=m)
    assert out.status[0] == 0 and out.status[1] > 1e-6 and out.status[2] == 5
    out.x[3].backward()
    assert x.grad is not None and x.grad.isnan().all()  # a gradient that cannot be trusted is none
    assert kernel(k=k, b=b * torch.nan, m=m).status[0] != 1
    rest = kernel(k=k, b=0 * b, m=m)
    assert rest.status.tolist() == [1, 0, 0] and not rest.x.any()


def test_several_numbers_per_entity() -> None:
    """A field of displacements: three numbers per node, springs between nodes that stand in all directions."""
    count, rng = 60, np.random.default_rng(1)
    pairs = np.concatenate([grid_edges(count), rng.integers(0, count, (200, 2))])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    axes = rng.normal(size=(len(pairs), 3))
    f = FieldBuilder("springs")
    nodes, springs = f.entities("nodes", count), f.entities("springs", len(pairs))
    ends = f.table(springs, nodes, pairs)
    load, axis, ground = f.field("load", nodes, 3), f.field("axis", springs, 3), f.input("ground", 3)

    def pull(u: ca.SX, a: ca.SX) -> ca.SX:
        force = a * ca.dot(a, (u[0, :] - u[1, :]).T)
        return ca.vertcat(force, -force)

    def apply(g: FieldBuilder, u: Field, axis: Field, ground: Var) -> Field:
        (forces,) = g.for_each(springs, pull, [u[ends], axis], [ends])
        return g.for_each(nodes, lambda u, q, c: q + c * u, [u, forces, ground])[0]

    found = f.cg(apply, load, [axis, ground], tolerance=1e-13)
    f.field_output("u", found.value)
    kernel = f.kernel()
    rest = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    loads = uniform(-1, 1, count, 3, seed=2)
    K = np.kron(np.eye(count), np.diag(rest.numpy()))
    for (i, j), a in zip(pairs, axes, strict=True):
        w = np.zeros(3 * count)
        w[3 * i : 3 * i + 3], w[3 * j : 3 * j + 3] = a, -a
        K += np.outer(w, w)
    u = kernel(load=loads, axis=torch.tensor(axes), ground=rest).u
    np.testing.assert_allclose(u.numpy().ravel(), np.linalg.solve(K, loads.numpy().ravel()), rtol=1e-9, atol=1e-11)
    check_gradients(
        lambda x: kernel(load=loads, axis=x[:-3].reshape(-1, 3), ground=x[-3:]).u,
        (torch.cat([torch.tensor(axes).ravel(), rest]),),
        float32=False,
    )


def test_in_a_scan() -> None:
    """Implicit steps of a chain, each a solve that starts from the one before, against dense algebra in torch."""
    n, steps, dt = 21, 4, 0.3
    f = FieldBuilder("step")
    nodes, bars = f.entities("nodes", n), f.entities("bars", n - 1)
    ends = f.table(bars, nodes, grid_edges(n))
    T = f.carried(nodes)
    (k,) = f.inputs(1)

    def apply(g: FieldBuilder, x: Field, k: Var) -> Field:
        (flow,) = g.for_each(bars, lambda x, k: k * ca.vertcat(x[0] - x[1], x[1] - x[0]), [x[ends], k], [ends])
        return g.for_each(nodes, lambda x, q: x + dt * q, [x, flow])[0]

    found = f.cg(apply, T, [k], tolerance=1e-13)
    (warmth,) = f.for_each(nodes, lambda T: T**2, [found.value], [TOTAL])
    body = f.program(found.value.var, warmth, found.status)
    g = FieldBuilder("chain")
    T, k = g.field("T", nodes), g.input("k", 1)
    (last,), (warmths, status), _ = g.scan(body, steps, T.var, [], [k])
    g.field_output("T", g.as_field(last, nodes))
    g.output("warmths", warmths, (steps, 1))
    g.output("status", status, (steps, 3))
    kernel = g.kernel()

    def dense(T: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        L = torch.tensor(matrix((n,), torch.ones(n - 1), torch.zeros(1)).todense()).to(T.dtype)
        sums = []
        for _ in range(steps):
            T = torch.linalg.solve(torch.eye(n, dtype=T.dtype) + dt * k * L, T)
            sums.append(T.square().sum())
        return T, torch.stack(sums)[:, None]

    T0, k0 = uniform(0, 1, n, seed=1), torch.tensor([1.5], dtype=torch.float64)
    assert kernel(T=T0, k=k0).status[:, 0].all()
    check_gradients(lambda T, k: tuple(kernel(T=T, k=k)[:2]), (T0, k0), reference=dense, directions=1)


def test_unfitting_operators_are_refused() -> None:
    f = FieldBuilder("wrong")
    nodes, bars = f.entities("nodes", 40), f.entities("bars", 100)
    b, k = f.field("b", nodes), f.field("k", bars)
    with pytest.raises(ValueError, match="expected it to take the field first"):
        f.cg(lambda g, x, k: g.for_each(bars, lambda k: k, [k], [OWN])[0], b, [k])
    with pytest.raises(ValueError, match="the residual takes"):
        f.solve(lambda g, x, k: g.for_each(bars, lambda k: k, [k], [OWN])[0], b, [k])


def two_level(shape: tuple[int, int], limit: int = 1000) -> Kernel:
    """The same with k = 1, preconditioned by sweeps on the grid and means over squares of 4 x 4 nodes; b and m are given."""
    edges, n = grid_edges(*shape), int(np.prod(shape))
    f = FieldBuilder("two levels")
    nodes, bars, squares = f.entities("nodes", n), f.entities("bars", len(edges)), f.entities("squares", n // 16)
    ends = f.table(bars, nodes, edges)
    i, j = np.divmod(np.arange(n), shape[1])
    home = f.table(nodes, squares, (i // 4 * (shape[1] // 4) + j // 4)[:, None])
    b, m = f.field("b", nodes), f.input("m", 1)

    def apply(g: FieldBuilder, x: Field, m: Var) -> Field:
        (flow,) = g.for_each(bars, lambda x: ca.vertcat(x[0] - x[1], x[1] - x[0]), [x[ends]], [ends])
        return g.for_each(nodes, lambda x, q, m: q + m * x, [x, flow, m])[0]

    def precondition(g: FieldBuilder, r: Field, weight: Var) -> Field:
        (sums,) = g.for_each(nodes, lambda r: r, [r], [home])
        return g.for_each(nodes, lambda r, s, w: r / 4 + w * s, [r, sums[home], weight])[0]

    found = f.cg(apply, b, [m], limit=limit, precondition=(precondition, [f.input("weight", 1)]))
    f.field_output("x", found.value)
    f.output("status", found.status)
    return f.kernel()


def test_a_program_preconditions() -> None:
    """The solution and its derivatives are those of the equations; the preconditioner changes the iterations only."""
    shape = (16, 16)
    kernel = two_level(shape)
    edges = torch.ones(len(grid_edges(*shape)), dtype=torch.float64)
    b, m = uniform(-1, 1, 256, seed=1), torch.tensor([0.01], dtype=torch.float64)
    exact = np.asarray(spsolve(matrix(shape, edges, m), b.numpy()))
    taken = []
    for weight in (0.0, 0.2):
        out = kernel(b=b, m=m, weight=torch.tensor([weight], dtype=torch.float64))
        assert out.status[0] == 1
        assert np.allclose(out.x.numpy(), exact, rtol=1e-7)
        taken.append(float(out.status[2]))
    assert taken[1] < taken[0]
    w = torch.tensor([0.2], dtype=torch.float64)
    check_gradients(lambda b, m: kernel(b=b, m=m, weight=w.to(b.dtype)).x, (b, m), names=("b", "m"))
    assert float(two_level(shape, limit=3)(b=b, m=m, weight=w).status[0]) == 0
