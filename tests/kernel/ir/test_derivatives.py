"""Derivatives through torch, all modes and orders, and the kernels' own; against the same function in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel import programs
from tests.kernel.programs import positional, same_bits, spring_inputs, spring_torch
from torch import Tensor
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.columns import Columns

TOLERANCE = 1e-12
"""Both sides are exact derivatives in float64; a few hundred roundings apart."""


@pytest.fixture(scope="module")
def spring() -> Kernel:
    return programs.spring()


def energy(f: Tensor, e: Tensor, G: Tensor) -> Tensor:
    """A scalar that depends on all outputs, not linearly."""
    return (f**2).sum() + (e.sin() * e).sum() + (G**3).sum()


def assert_close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def pair(spring: Kernel) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The kernel and torch, as functions of (x, p, M)."""
    return positional(spring), spring_torch


# --- autograd ---------------------------------------------------------------------------------------------------------

SHAPES = {
    "single": ((), (), ()),
    "batch": ((5,), (5,), (5,)),
    "shared parameter": ((5, 4), (), (4,)),
    "ones": ((5, 1), (1, 4), (1,)),
    "outer": ((3, 1, 1), (2, 1), (4,)),
}


@pytest.mark.parametrize("batches", SHAPES.values(), ids=SHAPES.keys())
def test_first_derivatives(spring: Kernel, batches: tuple[tuple[int, ...], ...]) -> None:
    inputs = [spring_inputs(*b)[k] for k, b in enumerate(batches)]
    check_gradients(positional(spring), inputs, names="xpM", reference=spring_torch, directions=1)


@pytest.mark.parametrize("batches", [SHAPES["single"], SHAPES["shared parameter"]])
def test_double_backward(spring: Kernel, batches: tuple[tuple[int, ...], ...]) -> None:
    leaves = tuple(spring_inputs(*b)[k].requires_grad_() for k, b in enumerate(batches))
    results = []
    for f in pair(spring):
        first = torch.autograd.grad(energy(*f(*leaves)), leaves, create_graph=True)
        second = torch.autograd.grad(torch.stack([(g**2).sum() for g in first]).sum(), leaves, create_graph=True)
        third = torch.autograd.grad(torch.stack([g.sum() for g in second]).sum(), leaves)
        results.append((first, second, third))
    assert_close(*results)
    small = tuple(
        x.detach().reshape(-1, *x.shape[x.dim() - n :])[:2].requires_grad_()
        for x, n in zip(leaves, (1, 1, 2), strict=True)
    )
    assert torch.autograd.gradgradcheck(positional(spring), small)


def test_fourth_derivative() -> None:
    x = ca.SX.sym("x")
    k = Kernel("sine", {"x": x}, {"y": ca.sin(2 * x)})
    value = torch.tensor([0.7], dtype=torch.float64).requires_grad_()
    y = k(x=value).y
    for _ in range(4):
        (y,) = torch.autograd.grad(y, value, create_graph=True)
    assert_close(y.detach(), 16 * torch.sin(2 * value.detach()))


def test_one_tensor_for_two_inputs() -> None:
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2)
    k = Kernel("product", {"x": x, "y": y}, {"z": x * y})
    t = torch.tensor([3.0, 5.0], dtype=torch.float64).requires_grad_()
    (g,) = torch.autograd.grad(k(x=t, y=t).z.sum(), t)
    assert g.tolist() == [6.0, 10.0]


def test_only_what_is_needed_is_computed() -> None:
    """requires_grad on a subset, and seeds on a subset, make the kernel of just those derivatives."""
    names = ("x", "p", "M")
    every = [s for k in range(1, 8) if (s := tuple(i for i in range(3) if k >> i & 1))]
    for wrt in every:
        k = programs.spring()
        inputs = [t.requires_grad_(i in wrt) for i, t in enumerate(spring_inputs(3))]
        out = k(**dict(zip(names, inputs, strict=True)))
        assert not k._derived
        (out.f.sum() + (out.e.sum() if 0 in wrt or 2 in wrt else 0)).backward()
        of = (0, 1) if 0 in wrt or 2 in wrt else (0,)
        (made,) = k._derived
        assert made[1:] == (wrt, of)
        derived = k._derived[made]
        assert [s.name for s in derived.signature.outputs] == [f"{names[i]}_bar" for i in wrt]
        for i, t in enumerate(inputs):
            assert (t.grad is not None) == (i in wrt)
        x, p, M = (t.detach().requires_grad_(i in wrt) for i, t in enumerate(inputs))
        f, e, _ = spring_torch(x, p, M)
        expected = torch.autograd.grad(f.sum() + e.sum(), [t for t in (x, p, M) if t.requires_grad], allow_unused=True)
        for i, g in zip(wrt, expected, strict=True):
            if g is not None:
                assert_close(inputs[i].grad, g)


def test_a_smaller_derivative_has_less_code() -> None:
    """The gradient of one input does not carry the code of the others along."""
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 3)
    big = ca.exp(ca.sin(x) * ca.cos(x) + ca.tanh(x) ** 3)
    k = Kernel("both", {"x": x, "y": y}, {"a": big, "b": 2 * y})
    everything, little = k.vjp(), k.vjp(wrt="y", of="b")
    assert little.code().n_ops <= 3 < everything.code().n_ops / 5


def test_no_gradient_no_graph(spring: Kernel) -> None:
    inputs = [t.requires_grad_() for t in spring_inputs(3)]
    with torch.no_grad():
        assert not any(o.requires_grad for o in spring.apply(inputs))
    assert all(o.requires_grad for o in spring.apply(inputs))
    assert not any(o.requires_grad for o in spring.apply([t.detach() for t in inputs]))


def test_parameters_and_changed_tensors(spring: Kernel) -> None:
    """nn.Parameter works; changing an input before the backward pass is noticed."""
    x, p, M = spring_inputs(4)
    weight = torch.nn.Parameter(p)
    energy(*spring(x=x, p=weight, M=M)).backward()
    assert weight.grad is not None and weight.grad.shape == p.shape
    moved = x.clone()
    out = spring(x=moved, p=weight, M=M)
    moved += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.f.sum().backward()


# --- torch.func -------------------------------------------------------------------------------------------------------


def test_jvp_and_vjp(spring: Kernel) -> None:
    inputs = (spring_inputs(4, 3)[0], spring_inputs()[1], spring_inputs(3)[2])
    tangents = tuple(t.sin() + 0.3 for t in inputs)
    results = []
    for f in pair(spring):
        value, pulled = vjp(f, *inputs)[:2]
        results.append((jvp(f, inputs, tangents)[:2], value, pulled(tuple(o.cos() for o in value))))
    assert_close(*results)


def test_jacobians_and_hessians(spring: Kernel) -> None:
    inputs = spring_inputs()
    for argnums in (0, 1, 2, (0, 2)):
        for transform in (jacrev, jacfwd):
            found, expected = (transform(lambda *a, f=f: f(*a)[0], argnums)(*inputs) for f in pair(spring))
            assert_close(found, expected)
    found, expected = (hessian(lambda *a, f=f: energy(*f(*a)), (0, 1, 2))(*inputs) for f in pair(spring))
    assert_close(found, expected)
    mixed = [jacrev(jacfwd(lambda x, f=f: energy(*f(x, *inputs[1:]))))(inputs[0]) for f in pair(spring)]
    assert_close(*mixed)


def test_jacobians_of_a_batch(spring: Kernel) -> None:
    """Jacobian of a batched call: zero between samples."""
    x, p, M = spring_inputs(3)
    found, expected = (jacrev(lambda x, f=f: f(x, p, M)[1])(x) for f in pair(spring))
    assert found.shape == (3, 2, 3, 3)
    assert_close(found, expected)
    shared, wanted = (jacfwd(lambda p, f=f: f(x, p, M)[0])(p[0]) for f in pair(spring))
    assert shared.shape == (3, 3, 2)
    assert_close(shared, wanted)


VMAPS = {
    "all first": ((0, 0, 0), ((6,), (6,), (6,))),
    "one only": ((0, None, None), ((6,), (), ())),
    "last": ((None, 1, 2), ((), (6,), (6,))),
    "inside a batch": ((0, 1, None), ((6, 2), (6, 2), (2,))),
    "different ranks": ((0, 0, None), ((6, 3, 2), (6, 2), ())),
    "unbatched is deeper": ((0, None, 0), ((6,), (4, 3), (6, 3))),
}
"""Where the mapped dimension is, and the leading dimensions of each input with the mapped one first."""


@pytest.mark.parametrize(("dims", "batches"), VMAPS.values(), ids=VMAPS.keys())
def test_vmap(spring: Kernel, dims: tuple, batches: tuple) -> None:
    ordered = [spring_inputs(*b)[k] for k, b in enumerate(batches)]
    inputs = [t.movedim(0, d).contiguous() if d else t for t, d in zip(ordered, dims, strict=True)]
    f, reference = pair(spring)
    assert_close(vmap(f, dims)(*inputs), vmap(reference, dims)(*inputs))
    gradients = [vmap(grad(lambda *a, h=h: energy(*h(*a)), (0, 1, 2)), dims)(*inputs) for h in (f, reference)]
    assert_close(*gradients)
    inside = lambda h: lambda *a: jvp(h, a, tuple(torch.cos(x) for x in a))[1]  # noqa: E731
    pushed = [vmap(inside(h), dims)(*inputs) for h in (f, reference)]
    assert_close(*pushed)


def test_vmap_out_dims_and_chunks(spring: Kernel) -> None:
    x, p, M = spring_inputs(7)
    f, reference = (vmap(h, out_dims=(1, 0, 2), chunk_size=3) for h in pair(spring))
    assert_close(f(x, p, M), reference(x, p, M))


def test_nested_vmap_with_mixed_ranks(spring: Kernel) -> None:
    """Maps over different inputs at each level, per-sample gradients of a shared parameter, and Hessians inside."""
    x, p, M = spring_inputs(4)[0], spring_inputs(3)[1], spring_inputs(3, 4)[2]

    def table(f: Callable[..., Any], x: Tensor, p: Tensor, M: Tensor) -> Any:
        inner = vmap(f, (0, None, 0))  # over 4: x and M
        return vmap(inner, (None, 0, 0))(x, p, M)  # over 3: p and M

    assert_close(*(table(f, x, p, M) for f in pair(spring)))
    slopes = (grad(lambda *a, f=f: energy(*f(*a)), (0, 1, 2)) for f in pair(spring))
    assert_close(*(table(g, x, p, M) for g in slopes))
    curved = (hessian(lambda *a, f=f: energy(*f(*a)), 1) for f in pair(spring))
    assert_close(*(table(h, x, p, M) for h in curved))
    outer = [grad(lambda p, f=f: energy(*table(f, x, p, M)))(p) for f in pair(spring)]
    assert_close(*outer)
    jacobians = [jacrev(lambda p, f=f: table(f, x, p, M)[0])(p) for f in pair(spring)]
    assert_close(*jacobians)


def test_vmap_of_a_batched_call_with_shared_gradients(spring: Kernel) -> None:
    """Per-model gradients: parameters (models, 2), every model sees the same batch (8, 3)."""
    x, _, M = spring_inputs(8)
    p = spring_inputs(5)[1]
    found, expected = (vmap(grad(lambda p, f=f: energy(*f(x, p, M[0]))), (0,))(p) for f in pair(spring))
    assert found.shape == (5, 2)
    assert_close(found, expected)


def test_dual_tensors(spring: Kernel) -> None:
    import torch.autograd.forward_ad as fwAD

    x, p, M = spring_inputs(3)
    with fwAD.dual_level():
        out = spring(x=fwAD.make_dual(x, torch.ones_like(x)), p=p, M=M)
        dot = fwAD.unpack_dual(out.f).tangent
        assert fwAD.unpack_dual(out.e).tangent is not None
    assert_close(dot, jvp(lambda x: spring_torch(x, p, M)[0], (x,), (torch.ones_like(x),))[1])


def test_transforms_of_a_scan() -> None:
    """The same through a loop whose states the backward pass takes from the forward pass."""
    k = programs.pendulum(6, 0.05)

    def reference(x: Tensor) -> Tensor:
        states = [x]
        for _ in range(6):
            columns = programs.pendulum_step(states[-1].unbind(-1), 0.05, torch)
            states.append(columns.movedim(0, -1))
        return torch.stack(states, -2)

    x = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1, (3, 4)))
    f = lambda x: k(x=x).states  # noqa: E731
    assert_close(f(x), reference(x))
    assert_close(vmap(jacrev(f))(x), vmap(jacrev(reference))(x))
    assert_close(vmap(jacfwd(f))(x), vmap(jacfwd(reference))(x))
    scalar = [lambda x, h=h: (h(x) ** 2).sum() for h in (f, reference)]
    assert_close(*(vmap(hessian(s))(x) for s in scalar))


# --- the kernels' own derivatives -------------------------------------------------------------------------------------


def test_kernel_vjp(spring: Kernel) -> None:
    inputs = dict(zip("xpM", spring_inputs(4), strict=True))
    back = spring.vjp(wrt=["M", "x"], of="e")
    assert [s.name for s in back.signature.inputs] == ["x", "p", "M", "e_bar"]
    seed = torch.ones(4, 2, dtype=torch.float64)
    out = back(**inputs, e_bar=seed)
    assert out._fields == ("x_bar", "M_bar")
    assert_close(out.x_bar, inputs["M"].sum(-2))
    assert_close(out.M_bar, inputs["x"][:, None].expand(4, 2, 3))
    assert spring.vjp(wrt=["x", "M"], of=["e"]) is back  # made once
    full = spring.vjp()
    assert [s.name for s in full.signature.outputs] == ["x_bar", "p_bar", "M_bar"]


def test_kernel_jvp(spring: Kernel) -> None:
    x, p, M = spring_inputs(4)
    out = spring.jvp("x")(x=x, p=p, M=M, x_dot=torch.ones_like(x))
    expected = jvp(lambda x: spring_torch(x, p, M), (x,), (torch.ones_like(x),))[1]
    assert_close(tuple(out), expected)
    assert out._fields == ("f_dot", "e_dot", "G_dot")


def test_kernel_hvp(spring: Kernel) -> None:
    x, p, M = spring_inputs(4)
    seed, direction = torch.rand(4, 3, dtype=torch.float64), torch.rand(4, 3, dtype=torch.float64)
    out = spring.hvp(wrt="x", of="f")(x=x, p=p, M=M, f_bar=seed, x_dot=direction)
    slope = grad(lambda x: (spring_torch(x, p, M)[0] * seed).sum())
    assert_close(out.x_bar_dot, jvp(slope, (x,), (direction,))[1])


def test_kernel_jacobian(spring: Kernel) -> None:
    x, p, M = spring_inputs(4)
    for of, wrt, k in (("f", "x", 0), ("e", "M", 1), ("G", "p", 2), ("f", "M", 0)):
        found = spring.jacobian(of, wrt)(x=x, p=p, M=M)
        which = "xpM".index(wrt)
        expected = vmap(jacrev(lambda *a, k=k: spring_torch(*a)[k].reshape(-1), which))(x, p, M).reshape(found.shape)
        assert_close(found, expected)
    assert spring.jacobian("f", "x")(x=x, p=p[0], M=M[0]).shape == (4, 3, 3)


def test_kernel_jacobian_is_differentiable(spring: Kernel) -> None:
    x, p, M = (t.requires_grad_() for t in spring_inputs(2))
    assert torch.autograd.gradcheck(lambda *a: spring.jacobian("f", "x")(**dict(zip("xpM", a, strict=True))), (x, p, M))


def test_kernel_jacobian_of_a_program() -> None:
    k = programs.every_kind()
    x, u, s = programs.every_kind_inputs(3)
    for of, wrt, shape in (("rooted", "x", (3, 4, 4)), ("states", "u", (3, 24, 10)), ("costs", "k", (3, 5, 1))):
        found = k.jacobian(of, wrt)(x=x, u=u, k=s)
        assert found.shape == shape
        position = "xuk".index(wrt)
        batched = jacrev(lambda *a, of=of: getattr(k(**dict(zip("xuk", a, strict=True))), of).sum(0), position)(x, u, s)
        n = batched.dim() - (3 if wrt == "u" else 2)  # (of, 3, wrt) -> (3, of, wrt)
        assert_close(found, batched.movedim(n, 0).reshape(shape))


@pytest.mark.parametrize("reverse", [False, True])
def test_kernel_jacobian_of_a_loop_with_a_short_result(reverse: bool) -> None:
    """More columns than results: its matrix is found backwards. Columns that move different things are treated apart."""
    s, row, w = ca.SX.sym("s", 2), ca.SX.sym("row"), ca.SX.sym("w", 4)
    body = ca.Function("body", [s, row, w], [ca.vertcat(s[0] + w[0] * ca.sin(s[1]), row * s[1] * w[1] + w[2] * s[0])])
    d = ca.SX.sym("d", 7)
    before = ca.Function("before", [d], [d[:2] ** 2, d[2:6] * d[2], ca.vertcat(d[6], d[6] ** 2, 1)])
    b = ProgramBuilder("loop")
    start, shared, rows = b.call(before, b.input("d", 7))
    (end,), _, _ = b.scan(body, 3, start, sequences=[rows], shared=[shared], reverse=reverse)
    b.output("end", end)
    k = b.kernel()
    at = torch.linspace(0.3, 1.2, 7, dtype=torch.float64)
    assert_close(k.jacobian("end", "d")(d=at), jacrev(lambda d: k(d=d).end)(at))


def jointed() -> Kernel:
    """Two chains of three on a base of two, whose loads meet in a solve: columns of a chain leave the other one alone."""

    def loads(d: ca.SX, p: ca.SX) -> ca.SX:
        base = ca.sin(d[0]) * d[1]
        chains = [ca.vertcat(*(ca.sin(ca.sum1(d[k : i + 1]) + base) * d[i] for i in range(k, k + 3))) for k in (2, 5)]
        rubbed = [c + sum(ca.cos(j * c * p[0]) / j for j in range(1, 25)) for c in chains]
        return ca.vertcat(base + ca.sum1(rubbed[0]) - ca.sum1(rubbed[1]), *rubbed)

    b = ProgramBuilder("jointed")
    d, p = b.inputs(d=8, p=1)
    # y^3 + y = load, with the derivative of the solution.
    y = b.implicit(
        lambda x: 2 * ca.sinh(ca.asinh(1.5 * 3**0.5 * x) / 3) / 3**0.5, lambda y, x: y**3 + y - x, b.trace(loads, d, p)
    )
    b.output("y", b.trace(lambda y, d: ca.vertcat(y * y[0], ca.sum1(y) - d[1]), y, d))
    return b.kernel()


def branching() -> Kernel:
    """A branch inside of a branch, taken by some samples, between straight-line code."""
    b = ProgramBuilder("branching")
    d, p = b.inputs(d=6, p=2)
    y = b.trace(lambda d, p: ca.vertcat(d[:3] * d[3:], ca.sin(d[3:]) * p[0]), d, p)
    then = ProgramBuilder("then")
    a, q = then.inputs(6, 2)
    r = then.trace(lambda a, q: a * ca.sumsqr(a) + q[1], a, q)
    inner = then.cond(then.trace(lambda a: a[1] > 0, a), lambda r: ca.cos(r), lambda r: r * r, r)
    (z,) = b.cond(b.trace(lambda y: y[0] > 0.3, y), then.program(*inner), lambda a, q: a + a[0] * q[0], y, p)
    b.output("y", b.trace(lambda z, d: ca.vertcat(z * z[0], d[0]), z, d))
    return b.kernel()


def turned(width: int, height: int) -> Kernel:
    """A stage with a long tangent from few numbers to few, between straight-line code."""

    def turn(r: ca.SX) -> ca.SX:
        s = ca.vertcat(r, *(r[0] for _ in range(height - width)))
        for _ in range(20):
            s = s + 0.1 * ca.sin(s[1:].T @ s[:-1] + ca.vertcat(s[1:], s[0]))
        return s[:height]

    b = ProgramBuilder("turned")
    d, p = b.inputs(d=9, p=1)
    r = b.trace(lambda d, p: ca.vertcat(*(ca.sin(d[k]) * ca.sum1(d[k:]) * p for k in range(width))), d, p)
    (z,) = b.custom(lambda r: turn(r), r, tangent=lambda r, z, dr: ca.jtimes(turn(r), r, dr))
    b.output("y", b.trace(lambda z, d: ca.vertcat(z * z[0], d[1] * z[0]), z, d))
    return b.kernel()


def widening() -> Kernel:
    return turned(2, 4)


def narrowing() -> Kernel:
    return turned(4, 2)


@pytest.mark.parametrize("make", [jointed, branching, widening, narrowing])
def test_kernel_jacobian_by_groups_of_columns(make: Callable[[], Kernel]) -> None:
    """Against forward mode; a single sample, whose columns are side by side, has the bits of a batch; it can be differentiated."""
    k = make()
    n, m = (s.size for s in k.signature.inputs)
    random = torch.Generator().manual_seed(0)
    d, p = (torch.randn(9, size, dtype=torch.float64, generator=random) for size in (n, m))
    jacobian = k.derivative("jacobian", (0,), (0,))
    J = k.jacobian("y", "d")(d=d, p=p)
    assert_close(J, torch.stack([jacfwd(lambda x, i=i: k(d=x, p=p[i]).y)(d[i]) for i in range(9)]))
    programs.assert_as_interpreted(jacobian, [d, p])
    for kind in (torch.float64, torch.float32):
        every = k.jacobian("y", "d")(d=d.to(kind), p=p.to(kind))
        alone = [k.jacobian("y", "d")(d=d[i].to(kind), p=p[i].to(kind)) for i in range(9)]
        assert same_bits(torch.stack(alone), every)
    given = d[:3].clone().requires_grad_(), p[:3].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda d, p: k.jacobian("y", "d")(d=d, p=p), given)


def test_groups_of_columns() -> None:
    """No group has columns of both chains, or of a chain and the base, and that of a chain does without the code of the other."""
    program = jointed().derivative("jacobian", (0,), (0,)).program
    (columns,) = (s.op for s in program.stages if isinstance(s.op, Columns))
    assert {2, 5} < set(np.cumsum(columns.widths))
    firsts = [g.stages[0].op for g in columns.groups]
    base, *chains = (op.fn.n_instructions() for op in firsts if isinstance(op, Straight))
    assert len(chains) == len(firsts) - 1
    assert max(chains) < 0.6 * base


@pytest.mark.parametrize("make", [widening, narrowing])
def test_long_ways_between_few_numbers_become_matrices(make: Callable[[], Kernel]) -> None:
    """Their matrix is found by as many runs as they have inputs or outputs, whichever are fewer."""
    program = make().derivative("jacobian", (0,), (0,)).program
    matrix, columns = (s.op for s in program.stages if isinstance(s.op, Columns))
    assert (matrix.columns, columns.columns) == (2, 9)


def test_derivatives_of_outputs_that_depend_on_nothing() -> None:
    """Constants, unused inputs and integer-valued functions have zero gradients, not errors."""
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2)
    k = Kernel("flat", {"x": x, "y": y}, {"c": ca.SX([1.0, 2.0]), "step": ca.floor(x), "x2": x**2})
    X, Y = (torch.full((3, 2), 1.5, dtype=torch.float64).requires_grad_() for _ in range(2))
    out = k(x=X, y=Y)
    gx, gy = torch.autograd.grad(out.c.sum() + out.step.sum(), (X, Y), allow_unused=True)
    for g in (gx, gy):
        assert g is None or torch.equal(g, torch.zeros(3, 2, dtype=torch.float64))
    assert torch.equal(k.jacobian("c", "x")(x=X, y=Y).detach(), torch.zeros(3, 2, 2, dtype=torch.float64))
    assert torch.equal(k.jacobian("x2", "x")(x=X, y=Y).detach(), torch.diag_embed(2 * X.detach()))


def test_gradient_of_a_loop_with_unused_parts() -> None:
    """Carries that do not reach the output are dropped from the backward loop, and the result is the same."""
    x, s = ca.SX.sym("x", 2), ca.SX.sym("s", 1)
    body = ca.Function("body", [x, s], [ca.sin(x), s + ca.sumsqr(x), ca.cos(s)])
    b = ProgramBuilder("parts")
    (x_end, s_end), (y,), _ = b.scan(body, 5, [b.input("x", 2), b.input("s", 1)])
    for name, value in (("x_end", x_end), ("s_end", s_end)):
        b.output(name, value)
    b.output("y", y, (5, 1))
    k = b.kernel()
    X, S = (
        torch.rand(4, 2, dtype=torch.float64).requires_grad_(),
        torch.rand(4, 1, dtype=torch.float64).requires_grad_(),
    )
    out = k(x=X, s=S)
    gx, gs = torch.autograd.grad(out.x_end.sum(), (X, S), retain_graph=True, allow_unused=True)
    assert gs is None or torch.equal(gs, torch.zeros_like(S))
    alone = k.vjp("x", "x_end")
    assert same_bits(gx, alone(x=X.detach(), s=S.detach(), x_end_bar=torch.ones(4, 2, dtype=torch.float64)).x_bar)
    assert alone.code().n_ops < k.vjp().code().n_ops
