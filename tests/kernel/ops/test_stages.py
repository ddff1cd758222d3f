"""Each kind of stage, against its definition (`Program.evaluate`), independent computations and differences."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import assert_as_interpreted, interpreted, positional, same_bits, uniform
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder

# --- scan -------------------------------------------------------------------------------------------------------------

STEPS = 7


def two_carries(reverse: bool) -> Kernel:
    """x' = A(p) x + u, s' = s + sin(x_0) w; results x_0 s and x'."""
    x, s, u, w, p = (ca.SX.sym(n, m) for n, m in (("x", 2), ("s", 1), ("u", 2), ("w", 1), ("p", 3)))
    new = ca.vertcat(p[0] * x[0] - p[1] * x[1], p[1] * x[0] + p[2] * ca.sin(x[1])) + u
    body = ca.Function("body", [x, s, u, w, p], [new, s + ca.sin(x[0]) * w, x[0] * s, ca.vertcat(new, w)])
    b = ProgramBuilder("two carries")
    X, S, U, W, P = (
        b.input("x", 2),
        b.input("s", 1),
        b.input("u", (STEPS, 2)),
        b.input("w", (STEPS, 1)),
        b.input("p", 3),
    )
    finals, results, states = b.scan(body, STEPS, [X, S], [U, W], [P], keep=True, reverse=reverse)
    b.output("x_end", finals[0])
    b.output("s_end", finals[1])
    b.output("y", results[0], (STEPS, 1))
    b.output("z", results[1], (STEPS, 3))
    b.output("x_all", states[0], (STEPS + 1, 2))
    b.output("s_all", states[1], (STEPS + 1, 1))
    return b.kernel()


def two_carries_torch(reverse: bool, x: Tensor, s: Tensor, u: Tensor, w: Tensor, p: Tensor) -> tuple[Tensor, ...]:
    xs, ss, ys, zs = [x], [s], [], []
    for t in reversed(range(STEPS)) if reverse else range(STEPS):
        new = torch.stack([p[:, 0] * x[:, 0] - p[:, 1] * x[:, 1], p[:, 1] * x[:, 0] + p[:, 2] * torch.sin(x[:, 1])], -1)
        new = new + u[:, t]
        ys.append(x[:, :1] * s)
        s = s + torch.sin(x[:, :1]) * w[:, t]
        x = new
        zs.append(torch.cat([x, w[:, t]], -1))
        xs.append(x)
        ss.append(s)
    rows = [torch.stack(r[::-1] if reverse else r, 1) for r in (ys, zs, xs, ss)]
    return x, s, *rows


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse: bool) -> None:
    k = two_carries(reverse)
    shapes = ((5, 2), (5, 1), (5, STEPS, 2), (5, STEPS, 1), (5, 3))
    inputs = [uniform(-0.8, 0.8, *s, seed=i) for i, s in enumerate(shapes)]
    assert_as_interpreted(k, inputs)
    check_gradients(positional(k), inputs, reference=lambda *x: two_carries_torch(reverse, *x), directions=1)


def test_scan_without_kept_states_has_the_same_gradients() -> None:
    """States that are no output are recomputed by the backward pass."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 1)
    body = ca.Function("body", [x, p], [ca.vertcat(x[1], ca.sin(x[0]) * p), x[0] * x[1]])
    grads = []
    for keep in (True, False):
        b = ProgramBuilder("kept")
        (end,), (rows,), states = b.scan(body, 9, b.input("x", 2), [], [b.input("p", 1)], keep=keep)
        b.output("end", end)
        b.output("rows", rows, (9, 1))
        if keep:
            b.output("states", states[0], (10, 2))
        k = b.kernel()
        assert k.given == ((2,) if keep else ())
        X, P = uniform(-1, 1, 6, 2).requires_grad_(), uniform(0.5, 2, 6, 1).requires_grad_()
        out = k(x=X, p=P)
        grads.append(torch.autograd.grad(out.end.sum() + (out.rows**2).sum(), (X, P)))
    assert same_bits(grads[0][0], grads[1][0])
    assert same_bits(grads[0][1], grads[1][1])


def test_scan_of_one_and_of_no_step() -> None:
    x = ca.SX.sym("x", 2)
    body = ca.Function("body", [x], [2 * x, ca.sum1(x)])
    for steps in (0, 1):
        b = ProgramBuilder("short")
        (end,), (rows,), (states,) = b.scan(body, steps, b.input("x", 2), keep=True)
        b.output("end", end)
        b.output("rows", rows, (steps, 1))
        b.output("states", states, (steps + 1, 2))
        X = uniform(-1, 1, 3, 2).requires_grad_()
        out = b.kernel()(x=X)
        assert torch.equal(out.end, X * 2**steps)
        assert out.rows.shape == (3, steps, 1)
        assert torch.equal(out.states, torch.stack([X * 2**t for t in range(steps + 1)], 1))
        (grad,) = torch.autograd.grad(out.end.sum() + out.states.sum(), X)
        assert torch.equal(grad, torch.full_like(X, 2**steps + sum(2**t for t in range(steps + 1))))


def test_nested_scans() -> None:
    """Time steps around solver sweeps around a polynomial: three loops, second derivatives included."""
    y, a = ca.SX.sym("y", 2), ca.SX.sym("a", 2)
    poly = ProgramBuilder("polynomial")
    Y, A = poly.input("y", 2), poly.input("a", 2)
    (value,), _, _ = poly.scan(ca.Function("horner", [y, a], [0.3 * y * a + 0.1]), 2, Y, [], [A])
    poly.output("y", value)
    solver = ProgramBuilder("solver")
    Y, A = solver.input("y", 2), solver.input("a", 2)
    (value,), _, _ = solver.scan(poly.program(), 3, Y, [], [A])
    (mixed,) = solver.call(ca.Function("mix", [y, a], [ca.vertcat(y[1] + a[0], ca.sin(y[0]))]), value, A)
    solver.output("y", mixed)
    b = ProgramBuilder("nested")
    X, A = b.input("x", 2), b.input("a", 2)
    (end,), _, _ = b.scan(solver.program(), 4, X, [], [A])
    b.output("end", end)
    k = b.kernel()

    def reference(x: Tensor, a: Tensor) -> Tensor:
        for _ in range(4):
            for _ in range(3):
                for _ in range(2):
                    x = 0.3 * x * a + 0.1
            x = torch.stack([x[:, 1] + a[:, 0], torch.sin(x[:, 0])], -1)
        return x

    inputs = [uniform(-1, 1, 5, 2), uniform(2, 4, 5, 2, seed=1)]
    assert_as_interpreted(k, inputs)
    check_gradients(positional(k), inputs, reference=reference, directions=1)
    leaves = tuple(x[:2].clone().requires_grad_() for x in inputs)
    assert torch.autograd.gradgradcheck(lambda *x: k.apply(x)[0], leaves)


def test_scan_body_must_return_its_carries() -> None:
    x = ca.SX.sym("x", 2)
    b = ProgramBuilder("wrong")
    with pytest.raises(ValueError, match=r"carries have sizes \(2,\), it returns \(1,\)"):
        b.scan(ca.Function("body", [x], [x[0]]), 3, b.input("x", 2))


# --- while ------------------------------------------------------------------------------------------------------------


def growth(limit: int = 40) -> Kernel:
    """x *= r until x_0 reaches 10."""
    x, r = ca.SX.sym("x", 2), ca.SX.sym("r", 1)
    b = ProgramBuilder("growth")
    X, R = b.input("x", 2), b.input("r", 1)
    (end,), count = b.while_loop(
        ca.Function("go", [x, r], [x[0] < 10]), ca.Function("grow", [x, r], [r * x]), limit, X, [R]
    )
    b.output("end", end)
    b.output("count", count)
    return b.kernel()


def growth_torch(x: Tensor, r: Tensor, limit: int = 40) -> tuple[Tensor, Tensor]:
    rows, counts = [], []
    for i in range(len(x)):
        y, n = x[i], 0
        while float(y[0]) < 10 and n < limit:
            y, n = r[i] * y, n + 1
        rows.append(y)
        counts.append([float(n)])
    return torch.stack(rows), torch.tensor(counts, dtype=x.dtype)


def test_while() -> None:
    """Every sample takes its own number of steps, some none, some all; derivatives follow the steps taken."""
    k = growth()
    x, r = uniform(0.5, 9, 13, 2), uniform(1.1, 1.9, 13, 1, seed=1)
    x[3, 0], r[5, 0] = 11.0, 1.001
    count = k(x=x, r=r).count[:, 0]
    assert count[3] == 0 and count[5] == 40
    assert len(set(count.tolist())) > 5
    assert_as_interpreted(k, (x, r))
    check_gradients(positional(k), (x, r), reference=growth_torch, step=1e-4)
    leaves = (x[:3].clone().requires_grad_(), r[:3].clone().requires_grad_())
    assert torch.autograd.gradgradcheck(lambda a, c: k(x=a, r=c).end, leaves)


def test_while_with_a_carry_nobody_reads() -> None:
    """It is left out of the body and of the condition."""
    x, last = ca.SX.sym("x"), ca.SX.sym("last")
    going_on, body = ca.Function("on", [x, last], [x > 1]), ca.Function("body", [x, last], [x / 2, x])
    b = ProgramBuilder("unread")
    (end, _), _ = b.while_loop(going_on, body, 50, [b.input("x", 1), b.input("last", 1)])
    b.output("end", end)
    assert b.kernel()(x=torch.tensor([5.0, 48.0])[:, None], last=torch.zeros(1)).end.flatten().tolist() == [0.625, 0.75]


def test_while_stops_at_nan() -> None:
    out = growth()(x=torch.tensor([[math.nan, 1.0], [1.0, math.nan]]).double(), r=torch.tensor([[2.0]]).double())
    assert out.count.tolist() == [[0.0], [4.0]]
    assert torch.isnan(out.end).tolist() == [[True, False], [False, True]]


# --- map --------------------------------------------------------------------------------------------------------------

ENDS = np.array([[0, 1], [1, 2], [3, 4], [4, 0], [2, 2]])
TARGETS = np.array([[0, 1], [1, 2], [0, 2], [2, 2], [1, 1]])


def test_map() -> None:
    """Gather with repeated elements, scatter onto each other, and stacked results."""
    u, v = ca.SX.sym("u", 2), ca.SX.sym("v", 1)
    body = ca.Function("body", [u, v], [u * ca.sin(v), ca.dot(u, u) * v])
    which = np.array([[0], [1], [2], [0], [1]])
    b = ProgramBuilder("elements")
    summed, stacked = b.map(body, [(b.input("x", 5), ENDS), (b.input("y", 3), which)], [(3, TARGETS), None])
    b.output("summed", summed)
    b.output("stacked", stacked, (5, 1))
    k = b.kernel()

    def reference(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        pairs, factors = x[:, ENDS], y[:, which]
        total = torch.zeros(len(x), 3, dtype=x.dtype)
        values = pairs * torch.sin(factors)
        for i, row in enumerate(TARGETS):
            for j, target in enumerate(row):
                total = total.index_add(1, torch.tensor([target]), values[:, i, j : j + 1])
        return total, (pairs**2).sum(-1, keepdim=True) * factors

    inputs = (uniform(-1, 1, 7, 5), uniform(-1, 1, 7, 3, seed=1))
    assert_as_interpreted(k, inputs)
    check_gradients(positional(k), inputs, reference=reference)
    assert torch.autograd.gradgradcheck(positional(k), tuple(x[:2].clone().requires_grad_() for x in inputs))


@pytest.mark.parametrize(
    ("gather", "scatter", "message"),
    [
        ([[0, 5]], None, "from 0 to 5, outside of a vector of 5 elements"),
        ([[0, -1]], None, "from -1 to 0, outside"),
        ([[0, 1, 2]], None, r"has shape \(1, 3\), expected \(1, 2\): instances x elements"),
        ([[0, 1]], (2, [[0, 2]]), "from 0 to 2, outside of a vector of 2"),
    ],
)
def test_map_tables_must_fit(gather: list, scatter: tuple | None, message: str) -> None:
    u = ca.SX.sym("u", 2)
    b = ProgramBuilder("wrong")
    tables = None if scatter is None else (scatter[0], np.array(scatter[1]))
    with pytest.raises(ValueError, match=message):
        b.map(ca.Function("body", [u], [u]), [(b.input("x", 5), np.array(gather))], [tables])


# --- cond -------------------------------------------------------------------------------------------------------------


def branches() -> Kernel:
    x = ca.SX.sym("x", 2)
    b = ProgramBuilder("branches")
    then = ca.Function("then", [x], [ca.sqrt(x), ca.sum1(x)])
    otherwise = ca.Function("otherwise", [x], [x * x[1], x[0] ** 3])
    chosen, total = b.cond(b.input("c", 1), then, otherwise, b.input("x", 2))
    b.output("chosen", chosen)
    b.output("total", total)
    return b.kernel()


def test_cond() -> None:
    k = branches()
    c = (uniform(-1, 1, 11, 1) > 0).double()
    x = uniform(0.2, 2, 11, 2, seed=1)
    assert 0 < c.sum() < 11

    def reference(x: Tensor) -> tuple[Tensor, Tensor]:
        chosen = torch.where(c != 0, torch.sqrt(x), x * x[:, 1:])
        return chosen, torch.where(c != 0, x.sum(-1, keepdim=True), x[:, :1] ** 3)

    assert_as_interpreted(k, (c, x))
    check_gradients(lambda x: k.apply((c.to(x.dtype), x)), (x,), reference=reference)
    assert torch.autograd.gradgradcheck(lambda x: tuple(k.apply((c[:4], x))), x[:4].clone().requires_grad_())


def test_cond_of_mixed_lanes() -> None:
    """A branch's NaN stays in its own lanes; a condition that is NaN shows; gradients do not leak either."""
    k = branches()
    c = torch.tensor([[1.0], [0.0], [math.nan], [2.0], [-0.0]], dtype=torch.float64)
    x = torch.tensor([[4.0, 9.0]] + [[-4.0, 2.0]] * 2 + [[1.0, 1.0], [-1.0, 3.0]], dtype=torch.float64).requires_grad_()
    out = k(c=c, x=x)
    expected = [[2.0, 3.0], [-8.0, 4.0], [math.nan, math.nan], [1.0, 1.0], [-3.0, 9.0]]
    np.testing.assert_array_equal(out.chosen.detach().numpy(), expected)
    (grad,) = torch.autograd.grad(out.chosen.sum(), x)
    assert torch.isnan(grad).any(-1).tolist() == [False, False, True, False, False]
    np.testing.assert_allclose(interpreted(k, (c, x))[0].numpy()[[0, 1, 3, 4]], np.array(expected)[[0, 1, 3, 4]])


def test_cond_branches_must_agree() -> None:
    x = ca.SX.sym("x", 2)
    b = ProgramBuilder("wrong")
    with pytest.raises(ValueError, match=r"both branches .* \(2,\) -> \(2,\) and \(2,\) -> \(1,\)"):
        b.cond(b.input("c", 1), ca.Function("a", [x], [x]), ca.Function("b", [x], [x[0]]), b.input("x", 2))


# --- given derivatives ------------------------------------------------------------------------------------------------


def test_custom_derivatives_are_used_as_given() -> None:
    """A stage whose derivatives are deliberately three and five times the true ones."""
    x, y, d = (ca.SX.sym(n, 2) for n in "xyd")
    b = ProgramBuilder("custom")
    body = ca.Function("body", [x], [ca.exp(x)])
    tangent = ca.Function("tangent", [x, y, d], [3 * y * d])
    adjoint = ca.Function("adjoint", [x, y, d], [5 * y * d])
    b.output("y", b.custom(body, b.input("x", 2), tangent=tangent, adjoint=adjoint)[0])
    k = b.kernel()
    X = uniform(-1, 1, 3, 2)
    assert_as_interpreted(k, (X,))
    torch.testing.assert_close(k(x=X).y, X.exp(), rtol=1e-15, atol=0)
    dot = torch.func.jvp(lambda x: k(x=x).y, (X,), (torch.ones_like(X),))[1]
    torch.testing.assert_close(dot, 3 * X.exp(), rtol=1e-14, atol=0)
    leaf = X.clone().requires_grad_()
    (grad,) = torch.autograd.grad(k(x=leaf).y.sum(), leaf)
    torch.testing.assert_close(grad, 5 * X.exp(), rtol=1e-14, atol=0)


def test_a_derivative_that_is_not_given_is_the_true_one() -> None:
    x, y, d = (ca.SX.sym(n, 1) for n in "xyd")
    b = ProgramBuilder("half")
    adjoint = ca.Function("adjoint", [x, y, d], [7 * d])
    b.output("y", b.custom(ca.Function("body", [x], [x**2]), b.input("x", 1), adjoint=adjoint)[0])
    k = b.kernel()
    X = torch.full((1,), 3.0, dtype=torch.float64)
    assert torch.func.jvp(lambda x: k(x=x).y, (X,), (X,))[1].item() == 18
    assert torch.func.vjp(lambda x: k(x=x).y, X)[1](X)[0].item() == 21
    with pytest.raises(ValueError, match=r"the adjoint of a custom stage must map sizes \(1, 1, 1\) to \(1,\)"):
        wrong = ca.Function("a", [x], [x])
        ProgramBuilder("wrong").custom(ca.Function("body", [x], [x]), b.input("z", 1), adjoint=wrong)


def test_implicit() -> None:
    """y with y + exp(y_0 y_1) / 10 = a, by a loop to a tolerance of 1e-14."""
    y, a = ca.SX.sym("y", 2), ca.SX.sym("a", 2)
    solver = ProgramBuilder("solver")
    A = solver.input("a", 2)
    (zero,) = solver.call(ca.Function("zero", [], [ca.SX.ones(2) * 0.1]))
    residual = lambda y, a: y + ca.exp(y[0] * y[1]) / 10 - a  # noqa: E731
    go = ca.Function("go", [y, a], [ca.norm_inf(residual(y, a)) > 1e-14])
    body = ca.Function("fixed_point", [y, a], [y - residual(y, a)])
    (solution,), _ = solver.while_loop(go, body, 200, zero, [A])
    solver.output("y", solution)
    b = ProgramBuilder("implicit")
    b.output("y", b.implicit(solver.program(), residual, b.input("a", 2)))
    k = b.kernel()
    A = uniform(-0.5, 0.8, 6, 2)
    out = k(a=A).y
    assert float((out + torch.exp(out[:, :1] * out[:, 1:]) / 10 - A).abs().max()) < 1e-13
    assert_as_interpreted(k, (A,))
    check_gradients(positional(k), (A,), step=1e-2)
    assert torch.autograd.gradgradcheck(lambda a: k(a=a).y, A[:2].clone().requires_grad_())


# --- straight-line bodies ---------------------------------------------------------------------------------------------


def test_slices_and_concatenation() -> None:
    b = ProgramBuilder("parts")
    X, Y = b.input("x", 5), b.input("y", 2)
    x = ca.SX.sym("x", 2)
    (middle,) = b.call(ca.Function("sin", [x], [ca.sin(x)]), b.slice(X, 1, 2))
    b.output("joined", b.concat(middle, Y, b.slice(X, 4, 1)))
    b.output("last", b.slice(X, 3, 2))
    k = b.kernel()
    inputs = (uniform(-1, 1, 6, 5), uniform(-1, 1, 6, 2))
    check_gradients(
        positional(k), inputs, reference=lambda x, y: (torch.cat([x[:, 1:3].sin(), y, x[:, 4:]], 1), x[:, 3:])
    )
    with pytest.raises(ValueError, match="slice 4:6 is outside of a vector of 5 elements"):
        b.slice(X, 4, 2)


def test_an_output_may_be_an_input_or_appear_twice() -> None:
    x = ca.SX.sym("x", 2)
    b = ProgramBuilder("twice")
    X = b.input("x", 2)
    (y,) = b.call(ca.Function("f", [x], [x**2]), X)
    for name, value in (("y", y), ("same", y), ("x_again", X), ("part", b.slice(y, 1, 1))):
        b.output(name, value)
    k = b.kernel()
    inputs = (uniform(0.5, 1, 5, 2),)
    check_gradients(positional(k), inputs, reference=lambda x: (x**2, x**2, x, x[:, 1:] ** 2))


def test_bodies_take_dense_columns() -> None:
    """A body of another shape would be read in the wrong order: it is refused."""
    M, s = ca.SX.sym("M", 2, 2), ca.SX.sym("s", ca.Sparsity.lower(2))
    for symbol in (M, s):
        b = ProgramBuilder("wrong")
        with pytest.raises(ValueError, match=r"body 'f': input 0 .* expected a dense column: pass"):
            b.call(ca.Function("f", [symbol], [symbol[0, 0]]), b.input("x", 4))
    x = ca.SX.sym("x", 2)
    with pytest.raises(ValueError, match=r"body 'f': output 0 .* is 1x2, expected a column: return casadi.vec"):
        b.call(ca.Function("f", [x], [x.T]), b.input("y", 2))


def test_a_body_may_be_an_mx_function_or_have_sparse_results() -> None:
    m, x = ca.MX.sym("m", 2), ca.SX.sym("x", 2)
    sparse = ca.SX(3, 1)
    sparse[1] = x[0] * x[1]
    b = ProgramBuilder("bodies")
    X = b.input("x", 2)
    b.output("mx", b.call(ca.Function("f", [m], [ca.sin(m)]), X)[0])
    b.output("sparse", b.call(ca.Function("g", [x], [sparse]), X)[0])
    inputs = (uniform(-1, 1, 5, 2),)
    zero = torch.zeros(5, 1, dtype=torch.float64)
    check_gradients(
        positional(b.kernel()),
        inputs,
        reference=lambda x: (x.sin(), torch.cat([zero, x[:, :1] * x[:, 1:], zero], 1)),
        float32=False,
    )


def test_sizes_of_arguments_and_outputs_are_checked() -> None:
    x = ca.SX.sym("x", 2)
    b = ProgramBuilder("wrong")
    X = b.input("x", 3)
    with pytest.raises(ValueError, match=r"takes inputs of sizes \(2,\), but was given \(3,\)"):
        b.call(ca.Function("f", [x], [x]), X)
    with pytest.raises(ValueError, match=r"output 'y' of shape \(2, 2\) has 4 elements, but the value has 3"):
        b.output("y", X, (2, 2))


@pytest.mark.parametrize(("dtype", "factor"), [(torch.float64, 3.0), (torch.float32, 5.0)])
def test_straight_code_can_tell_the_number_type(dtype: torch.dtype, factor: float) -> None:
    """Also in a derivative, and where it is fused with other code."""
    b = ProgramBuilder("typed")
    x = b.input("x", 2)
    b.output("y", b.trace(lambda e, x: ca.if_else(e < 1e-10, 3, 5) * x, b.epsilon(), x))
    b.output("spacing", b.epsilon())
    kernel, x = b.kernel(), torch.tensor([1.0, -2.0], dtype=dtype, requires_grad=True)
    found = kernel(x=x)
    assert torch.equal(found.y, factor * x) and found.spacing.item() == torch.finfo(dtype).eps
    (gradient,) = torch.autograd.grad(found.y.sum(), x)
    assert torch.equal(gradient, torch.full_like(x, factor))
