"""Batches of any shape, layout and number type; inputs shared without copies; the NumPy ways to call."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
import pytest
import torch
from tests.kernel import programs
from tests.kernel.programs import same_bits, spring_inputs, spring_torch
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.calls import general
from costate.kernel.calls.descriptors import describe


@pytest.fixture(scope="module")
def spring() -> Kernel:
    return programs.spring()


@pytest.fixture(scope="module")
def rows() -> Kernel:
    """A kernel whose tensors are streamed row by row: a scan over (steps, 3) with results (steps, 2)."""
    x, u, a = ca.SX.sym("x", 2), ca.SX.sym("u", 3), ca.SX.sym("a", 2)
    b = ProgramBuilder("rows")
    body = ca.Function("body", [x, u, a], [x * a + u[:2], ca.vertcat(x[0] * u[2], x[1])])
    (end,), (y,), (states,) = b.scan(body, 6, b.input("x", 2), [b.input("u", (6, 3))], [b.input("a", 2)], keep=True)
    b.output("end", end)
    b.output("y", y, (6, 2))
    b.output("states", states, (7, 2))
    return b.kernel()


def rows_torch(x: Tensor, u: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    batch = torch.broadcast_shapes(x.shape[:-1], u.shape[:-2], a.shape[:-1])
    x, u, a = x.expand(*batch, 2), u.expand(*batch, 6, 3), a.expand(*batch, 2)
    ys, states = [], [x]
    for t in range(6):
        ys.append(torch.stack([x[..., 0] * u[..., t, 2], x[..., 1]], -1))
        x = x * a + u[..., t, :2]
        states.append(x)
    return x, torch.stack(ys, -2), torch.stack(states, -2)


def rows_inputs(*batches: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((2,), (6, 3), (2,))
    return [torch.rand(*b, *s, generator=generator, dtype=dtype) for b, s in zip(batches, shapes, strict=True)]


BATCHES = [
    ((), (), ()),
    ((1,), (1,), (1,)),
    ((13,), (13,), (13,)),
    ((13,), (), ()),
    ((), (13,), ()),
    ((2, 3), (2, 3), (2, 3)),
    ((5, 1), (1, 7), (7,)),
    ((2, 1, 3), (4, 1), (2, 1, 1)),
    ((2, 3, 1, 5), (4, 5), ()),
    ((70,), (1,), (70,)),
]
"""Leading dimensions of the three inputs. Strides of two levels, of more (which need a copy), and none."""


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("batches", BATCHES, ids=str)
def test_leading_dimensions_broadcast(spring: Kernel, rows: Kernel, batches: tuple, dtype: torch.dtype) -> None:
    tolerance = 1e-13 if dtype == torch.float64 else 1e-5
    inputs = [spring_inputs(*b)[k].to(dtype) for k, b in enumerate(batches)]
    torch.testing.assert_close(tuple(spring.apply(inputs)), spring_torch(*inputs), rtol=tolerance, atol=tolerance)
    streamed = rows_inputs(*batches, dtype=dtype)
    torch.testing.assert_close(tuple(rows.apply(streamed)), rows_torch(*streamed), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("batches", BATCHES, ids=str)
def test_gradients_have_the_shapes_of_their_inputs(spring: Kernel, rows: Kernel, batches: tuple) -> None:
    """Shared inputs' gradients are summed over what they were shared by."""
    for k, reference, inputs in (
        (spring, spring_torch, [spring_inputs(*b)[i] for i, b in enumerate(batches)]),
        (rows, rows_torch, rows_inputs(*batches)),
    ):
        grads = []
        for f in (k.apply, lambda t, f=reference: f(*t)):
            leaves = [t.clone().requires_grad_() for t in inputs]
            grads.append(torch.autograd.grad(sum((o**2).sum() for o in f(leaves)), leaves))  # type: ignore[arg-type]
        torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)


def views(t: Tensor, event: int) -> dict[str, Tensor]:
    """The same numbers in other layouts."""
    lead = t.dim() - event
    wide = torch.zeros(*t.shape[:-1], t.shape[-1] + 3, dtype=t.dtype)
    wide[..., 1:-2] = t
    spaced = torch.zeros(*t.shape[:-1], 2 * t.shape[-1], dtype=t.dtype)
    spaced[..., ::2] = t
    turned = t.permute(*range(lead, t.dim()), *range(lead)).contiguous()
    flipped = t.flip(0).contiguous()
    offset = torch.empty(t.numel() + 1, dtype=t.dtype)[1:].view(t.shape)
    offset.copy_(t)
    return {
        "a part of wider rows": wide[..., 1:-2],
        "every other number": spaced[..., ::2],
        "batch last": turned.permute(*range(event, t.dim()), *range(event)),
        "swapped batch": t.transpose(0, 1).contiguous().transpose(0, 1),
        "unaligned": offset,
        "copied": flipped.flip(0),
    }


@pytest.mark.parametrize("layout", views(torch.zeros(2, 3, 4), 1).keys())
def test_layouts(spring: Kernel, rows: Kernel, layout: str) -> None:
    """Results and gradients do not depend on how the inputs lie in memory."""
    for k, inputs in ((spring, spring_inputs(5, 4)), (rows, rows_inputs((5, 4), (5, 4), (5, 4)))):
        events = [len(s.shape) for s in k.signature.inputs]
        other = [views(t, e)[layout] for t, e in zip(inputs, events, strict=True)]
        for a, b in zip(inputs, other, strict=True):
            assert torch.equal(a, b)
        for a, b in zip(k.apply(inputs), k.apply(other), strict=True):
            assert same_bits(a, b)
        grads = []
        for chosen in (inputs, other):
            leaves = [t.detach().requires_grad_() for t in chosen]
            grads.append(torch.autograd.grad(k.apply(leaves)[0].sum(), leaves))
        for a, b in zip(*grads, strict=True):
            assert same_bits(a, b)


def test_strided_seeds(rows: Kernel) -> None:
    """Seeds come in any layout: expanded (from a sum), transposed, sliced."""
    inputs = [t.requires_grad_() for t in rows_inputs((5,), (5,), (5,))]
    y = rows.apply(inputs)[1]
    weights = torch.rand(2, 6, 5, dtype=torch.float64).permute(2, 1, 0)
    found = torch.autograd.grad((y * weights).sum() + y.sum() + y[:, ::2].sum(), inputs)
    reference = rows_torch(*inputs)[1]
    expected = torch.autograd.grad((reference * weights).sum() + reference.sum() + reference[:, ::2].sum(), inputs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_lazily_negated_tensors() -> None:
    """torch negates lazily: the imaginary part of a conjugate is a view of numbers with the other sign."""
    x = ca.SX.sym("x")
    k = Kernel("double", {"x": x}, {"y": 2 * x})
    for n in (1, 4):
        v = torch.rand(n, 1, dtype=torch.float64)
        lazy = torch.conj(torch.complex(v, -v)).imag
        assert lazy.is_neg() and torch.equal(lazy, v)
        assert torch.equal(k(x=lazy).y, 2 * v)
        assert torch.equal(k(x=lazy.expand(3, n, 1)).y[2], 2 * v)


# --- shared inputs ----------------------------------------------------------------------------------------------------


def test_shared_inputs_are_not_copied(spring: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine code is given is the caller's own memory: same address, stride zero where shared."""
    seen: list[tuple[int, Tensor]] = []

    def spy(t: Tensor, *rest):
        words, held = describe(t, *rest)
        seen.append((t.data_ptr(), held))
        return words, held

    monkeypatch.setattr(general, "describe", spy)
    x, p, M = spring_inputs(6, 5)[0], spring_inputs()[1], spring_inputs(5)[2]
    spring.run([x, p, M])
    for given, (address, held) in zip((x, p, M), seen, strict=False):
        assert address == held.data_ptr() == given.data_ptr()
    assert seen[1][1].stride()[:2] == (0, 0)
    assert describe(p, (6, 5), 1)[0][1:4] == (1 << 62, 0, 0)
    assert describe(M, (6, 5), 2)[0][1:4] == (5, 0, 48)
    assert describe(x[:, :1], (6, 5), 1)[0][1:4] == (5, 5 * 24, 0)
    assert describe(x.transpose(0, 1), (5, 6), 1)[0][1:4] == (6, 24, 5 * 24)


def test_a_shared_input_that_must_be_copied_is_copied_once() -> None:
    """A transposed matrix shared by a large batch: the copy has the size of the matrix, not of the batch."""
    matrix = torch.rand(3, 2, dtype=torch.float64).T
    _, held = describe(matrix, (100_000,), 2)
    assert held.untyped_storage().nbytes() <= matrix.numel() * 8
    _, held = describe(matrix.expand(100_000, 2, 3), (100_000,), 2)
    assert held.untyped_storage().nbytes() <= matrix.numel() * 8
    assert torch.equal(held[99_999], matrix)


@pytest.mark.parametrize("batch", [1, 3, 64, 65, 130, 1000])
def test_sums_have_a_fixed_order(batch: int) -> None:
    """The gradient of a shared input: groups of 64 samples, one after the other inside a group, then group by group."""
    x, s = ca.SX.sym("x", 3), ca.SX.sym("s", 3)
    k = Kernel("product", {"x": x, "s": s}, {"y": x * s})
    rng = np.random.default_rng(batch)
    for dtype in (torch.float64, torch.float32):
        terms = torch.from_numpy(rng.normal(size=(batch, 3)) * 10 ** rng.uniform(-6, 6, (batch, 3))).to(dtype)
        shared = torch.ones(3, dtype=dtype).requires_grad_()
        (found,) = torch.autograd.grad(k(x=terms, s=shared).y.sum(), shared)
        values = terms.numpy()
        partial = []
        for first in range(0, batch, 64):
            total = np.zeros(3, values.dtype)
            for row in values[first : first + 64]:
                total = total + row
            partial.append(total)
        expected = np.add.reduce(np.array(partial), axis=0)
        assert found.numpy().tobytes() == expected.tobytes()


# --- empty, small, odd ------------------------------------------------------------------------------------------------

EMPTY = [((0,), (0,), (0,)), ((0,), (), ()), ((0, 3), (3,), ()), ((3, 0), (3, 1), (1,)), ((2, 0, 3), (3,), (2, 1, 1))]


@pytest.mark.parametrize("batches", EMPTY, ids=str)
def test_empty_batches(spring: Kernel, rows: Kernel, batches: tuple) -> None:
    """Nothing in, nothing out; the gradients of what was shared are zero."""
    for k, reference, inputs in (
        (spring, spring_torch, [spring_inputs(*b)[i] for i, b in enumerate(batches)]),
        (rows, rows_torch, rows_inputs(*batches)),
    ):
        leaves = [t.requires_grad_() for t in inputs]
        outs = k.apply(leaves)
        for a, b in zip(outs, reference(*leaves), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
        for g, t in zip(torch.autograd.grad(outs[0].sum() + outs[1].sum(), leaves), leaves, strict=True):
            assert torch.equal(g, torch.zeros_like(t))


def test_vectors_of_no_elements() -> None:
    x, e = ca.SX.sym("x", 2), ca.SX.sym("e", 0)
    k = Kernel("empty", {"x": x, "e": e}, {"y": 2 * x, "none": ca.SX(0, 1)})
    X, E = (
        torch.rand(5, 2, dtype=torch.float64).requires_grad_(),
        torch.rand(5, 0, dtype=torch.float64).requires_grad_(),
    )
    out = k(x=X, e=E)
    assert torch.equal(out.y, 2 * X)
    assert out.none.shape == (5, 0)
    gx, ge = torch.autograd.grad(out.y.sum() + out.none.sum(), (X, E), allow_unused=True)
    assert torch.equal(gx, torch.full_like(X, 2))
    assert ge is None or ge.shape == (5, 0)


def test_a_kernel_of_constants() -> None:
    k = Kernel("constants", {}, {"c": ca.SX([1.0, 2.0])})
    assert k().c.tolist() == [1.0, 2.0]
    assert k().c.dtype == torch.get_default_dtype()


def test_matrices_are_row_major() -> None:
    """Shapes r x c, 1 x c and r x 1, and reshapes between them, as in torch."""
    M, r = ca.SX.sym("M", 2, 3), ca.SX.sym("r", 1, 3)
    k = Kernel("matrix", {"M": M, "r": r}, {"T": M.T, "MM": M @ M.T, "row": 2 * r, "col": r.T, "one": M[1, 2]})
    m, v = torch.arange(12.0).double().reshape(2, 2, 3), torch.arange(3.0).double().reshape(1, 3)
    out = k(M=m, r=v)
    assert torch.equal(out.T, m.mT)
    assert torch.equal(out.MM, m @ m.mT)
    assert torch.equal(out.row, (2 * v).expand(2, 1, 3))
    assert torch.equal(out.col, v[0].expand(2, 3))
    assert torch.equal(out.one, m[:, 1, 2:])


def test_wide_rows() -> None:
    """Rows longer than a vector, of every remainder."""
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33):
        x = ca.SX.sym("x", n)
        k = Kernel(f"wide {n}", {"x": x}, {"y": ca.cumsum(x)})
        for dtype in (torch.float64, torch.float32):
            X = torch.arange(11.0 * n).to(dtype).reshape(11, n)
            assert torch.equal(k(x=X).y, X.cumsum(-1))


def test_results_are_independent_of_later_calls(spring: Kernel) -> None:
    """Outputs are new tensors, not views of a buffer that the next call overwrites; inputs are left alone."""
    inputs = spring_inputs(9)
    before = [t.clone() for t in inputs]
    first = spring.apply(inputs)
    copies = [t.clone() for t in first]
    spring.apply(spring_inputs(9, seed=5))
    for a, b in zip([*first, *inputs], [*copies, *before], strict=True):
        assert same_bits(a, b)


# --- NumPy ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numpy_calls(spring: Kernel, dtype: type) -> None:
    """The same bits as through torch, for single samples (a quick path) and batches."""
    for batches in ((), ()), ((5,), (5,)), ((4, 3), ()):
        x = spring_inputs(*batches[0])[0].numpy().astype(dtype)
        p, M = (t.numpy().astype(dtype) for t in spring_inputs(*batches[1])[1:])
        for shift in (0, 1):  # the second call goes through buffers made by the first
            arrays = {"x": x + dtype(shift), "p": p, "M": M}
            out = spring.numpy(**arrays)
            expected = spring(**{n: torch.from_numpy(a) for n, a in arrays.items()})
            for a, b in zip(out, expected, strict=True):
                assert isinstance(a, np.ndarray) and a.dtype == dtype
                assert same_bits(torch.from_numpy(a), b)
    assert spring.numpy(x=x, p=p, M=M)._fields == ("f", "e", "G")


def test_numpy_results_are_the_callers(spring: Kernel) -> None:
    x, p, M = (t.numpy() for t in spring_inputs())
    first = spring.numpy(x=x, p=p, M=M)
    kept = [a.copy() for a in first]
    spring.numpy(x=x + 1, p=p, M=M)
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bound_arrays(spring: Kernel, dtype: type) -> None:
    """Arrays fixed once: each call reads what they hold now."""
    for batch in ((), (7,)):
        x, p, M = (t.numpy().astype(dtype) for t in spring_inputs(*batch))
        step = spring.bind(x=x, p=p, M=M)
        for shift in (0.0, 0.25):
            x += dtype(shift)
            step()
            expected = spring(x=torch.from_numpy(x.copy()), p=torch.from_numpy(p), M=torch.from_numpy(M))
            for a, b in zip(step.outputs, expected, strict=True):
                assert same_bits(torch.from_numpy(a.copy()), b)


@pytest.mark.parametrize("n", [1, 5, 64, 65, 100, 448, 449, 1000])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_of_shared_inputs_are_sums_with_the_same_bits_either_way(n: int, dtype: torch.dtype) -> None:
    """Contiguous tensors take the short way, others the long one; a shared input may be (), (1,) or (1, 1) for a number."""
    x, p, s = ca.SX.sym("x", 3), ca.SX.sym("p", 2, 3), ca.SX.sym("s")
    kernel = Kernel("shared", {"x": x, "p": p, "s": s}, {"y": ca.sin(p @ x) * s**2})
    random = torch.Generator().manual_seed(0)
    X = torch.randn(n, 3, generator=random, dtype=torch.float64).to(dtype)
    seed = torch.randn(n, 2, generator=random, dtype=torch.float64).to(dtype)
    spread = torch.stack([X, X], -1)[..., 0]  # not contiguous
    found = []
    for inputs, shape in ((X, ()), (spread, ()), (X, (1,)), (X, (1, 1))):
        P = torch.linspace(-1, 1, 6, dtype=dtype).reshape(2, 3).requires_grad_()
        S = torch.full(shape, 1.5, dtype=dtype, requires_grad=True)
        y = kernel(x=inputs, p=P, s=S).y
        found.append(torch.autograd.grad(y, (P, S), seed))
        assert found[-1][1].shape == shape
    assert all(torch.equal(g[0], found[0][0]) and float(g[1]) == float(found[0][1]) for g in found)
    P, S = (t.detach().double().requires_grad_() for t in (P, S.reshape(())))
    exact = torch.autograd.grad(torch.sin(X.double() @ P.T) * S**2, (P, S), seed.double())
    tolerance = 1e-12 if dtype == torch.float64 else 1e-4
    for a, b in zip(found[0], exact, strict=True):
        assert torch.allclose(a.double(), b, rtol=tolerance, atol=tolerance * n**0.5)


def squares(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.reshape(-1) for t in tensors]).square().sum()


def test_batched_seeds_of_one_backward_pass(spring: Kernel) -> None:
    """`torch.autograd.grad(is_grads_batched=True)` is as one call for each seed, to second order; x has a batch, p is shared."""
    x, p, *rest = spring_inputs(4)
    x, p = x.clone().requires_grad_(), p.reshape(-1, p.shape[-1])[0].clone().requires_grad_()
    out = spring.apply([x, p, *rest])[0]
    seeds = torch.randn(3, *out.shape, generator=torch.Generator().manual_seed(0))
    many, each = (), []
    for graph in (False, True):
        many = torch.autograd.grad(out, (x, p), seeds, is_grads_batched=True, retain_graph=True, create_graph=graph)
        each = [torch.autograd.grad(out, (x, p), s, retain_graph=True, create_graph=graph) for s in seeds]
        for a, b in zip(many, zip(*each, strict=True), strict=True):
            torch.testing.assert_close(a, torch.stack(b), rtol=1e-13, atol=1e-13)
    found = torch.autograd.grad(squares(many), (x, p), retain_graph=True)
    wanted = torch.autograd.grad(squares([g for row in each for g in row]), (x, p))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
