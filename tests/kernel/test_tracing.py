"""Plain Python functions as stages: the same programs as with symbols written by hand."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np
import pytest
import torch
from casadi import SX
from tests.kernel.programs import same_bits

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import DYNAMIC, Program
from costate.kernel.ir.straight import Straight


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """Make new tensors float64 in these tests, and only in these."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def turn(a: SX, b: SX) -> SX:
    return ca.vertcat(a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0])


def written_out(fn, *sizes: int) -> ca.Function:
    """The same function with symbols written by hand."""
    symbols = [SX.sym(f"s{k}", n) for k, n in enumerate(sizes)]
    made = fn(*symbols)
    return ca.Function("f", symbols, [ca.densify(x) for x in (made if isinstance(made, tuple) else (made,))])


def ran(program: Program, *inputs: np.ndarray) -> list[list[float]]:
    return [r.ravel().tolist() for r in program.evaluate(*(np.atleast_2d(x).T for x in inputs))]


def test_a_traced_stage_computes_what_one_with_symbols_does_bit_for_bit():
    kernels = []
    for traced in (True, False):
        b = ProgramBuilder("twice")
        u, v = b.inputs(u=2, v=2)
        w = b.trace(turn, u, v) if traced else b.call(written_out(turn, 2, 2), u, v)[0]
        b.output("w", w)
        kernels.append(b.kernel())
    U, V = torch.randn(7, 2, requires_grad=True), torch.randn(7, 2)
    found = [k(u=U, v=V).w for k in kernels]
    assert same_bits(*found)
    assert same_bits(*(torch.autograd.grad(w.square().sum(), U)[0] for w in found))


def test_what_is_returned_has_the_form_fn_returns():
    b = ProgramBuilder()
    (u,) = b.inputs(3)
    one, several, single = b.trace(lambda x: x[0], u), b.trace(lambda x: (x, SX(2)), u), b.trace(lambda x: [x], u)
    assert one.size == 1
    assert [v.size for v in several] == [3, 1]
    assert isinstance(single, tuple) and len(single) == 1
    assert ran(b.program(one, *several), np.array([4.0, 5.0, 6.0])) == [[4], [4, 5, 6], [2]]


def test_symbols_have_the_names_of_parameters_and_stages_that_of_the_function():
    b = ProgramBuilder()
    names: list[str] = []

    def push(force, *others):
        names.extend(str(s) for s in (force, *others))
        return force

    b.trace(push, *b.inputs(1, 1, 1))
    b.trace(lambda x: x, b.inputs(1)[0])
    b.trace(lambda x: x, b.inputs(1)[0], name="given")
    assert names == ["force", "x1", "x2"]
    ops = [s.op for s in b.program().stages]
    assert [op.fn.name() for op in ops if isinstance(op, Straight)] == ["push", "traced", "given"]


def test_matrices_are_read_and_returned_row_by_row():
    b = ProgramBuilder()
    M, x = b.inputs(6, 3)
    y, T = b.trace(lambda M, x: (M @ x, M.T), (M, (2, 3)), x)
    numbers = np.arange(6.0).reshape(2, 3)
    product, transposed = ran(b.program(y, T), numbers.ravel(), np.array([1.0, 2.0, 3.0]))
    assert product == (numbers @ [1, 2, 3]).tolist()
    assert transposed == numbers.T.ravel().tolist()


def test_sparse_results_become_dense():
    b = ProgramBuilder()
    (x,) = b.inputs(1)
    assert ran(b.program(b.trace(lambda x: ca.vertcat(SX(2, 1), x), x)), np.array([5.0])) == [[0, 0, 5]]


def test_constants():
    b = ProgramBuilder()
    values = [b.constant(3), b.constant([1.0, 0.0, -2.0]), b.constant(np.arange(4).reshape(2, 2))]
    assert ran(b.program(*values)) == [[3], [1, 0, -2], [0, 1, 2, 3]]


def test_inputs_as_another_program_has_them():
    b = ProgramBuilder("inner")
    inner = b.program(b.trace(turn, *b.inputs(2, 2)))
    b = ProgramBuilder("outer")
    outer = b.program(*b.call(inner, *b.like(inner)))
    assert outer.in_sizes == (2, 2)
    assert ran(outer, np.array([0.0, 1.0]), np.array([0.0, 1.0])) == [[-1, 0]]


def test_unnamed_inputs_of_a_kernel_are_numbered():
    b = ProgramBuilder()
    x, y, z = b.inputs(2, 1, last=(3, 2))
    b.output("out", b.concat(x, y, z))
    assert [(s.name, s.shape) for s in b.kernel().signature.inputs] == [("i0", (2,)), ("i1", (1,)), ("last", (3, 2))]


@pytest.mark.parametrize("length", [5, DYNAMIC])
def test_bodies_of_scans(length):
    def swing(s, u, k):
        return ca.vertcat(s[0] + 0.1 * s[1], s[1] + u - k * s[0]), u**2

    kernels = []
    for body in (swing, written_out(swing, 2, 1, 1)):
        b = ProgramBuilder("swing")
        s, u, k = b.input("s", 2), b.input("u", (length, 1)), b.input("k", 1)
        (end,), (effort,), _ = b.scan(body, length, s, [u], [k])
        b.output("end", end)
        b.output("effort", effort, (length, 1))
        kernels.append(b.kernel().sized(5))
    S, U = torch.randn(3, 2), torch.randn(3, 5, 1)
    found = [k(s=S, u=U, k=torch.tensor([0.5])) for k in kernels]
    assert same_bits(found[0].end, found[1].end) and same_bits(found[0].effort, found[1].effort)
    assert found[0].end.abs().max() > 0


def test_bodies_of_loops_branches_maps_and_walks():
    table = np.array([[0, 1], [1, 2]])
    b = ProgramBuilder()
    x, flag = b.inputs(3, 1)
    (halved,), count = b.while_loop(lambda y, f: ca.sum1(y) > f, lambda y, f: y / 2, 10, x, [flag])
    (chosen,) = b.cond(flag, lambda y: y + 1, lambda y: -y, x)
    sums, rows = b.map(lambda pair: (pair, pair[0] * pair[1]), [(x, table)], [(3, table), None])
    (walked,), _, _ = b.walk(lambda pair: ca.vertcat(pair[0], pair[0] + pair[1]), b.constant([1, 1]), [(x, table)])
    program = b.program(halved, count, chosen, sums, rows, walked)
    found = ran(program, np.array([1.0, 2.0, 3.0]), np.array([1.0]))
    assert found == [[0.125, 0.25, 0.375], [3], [2, 3, 4], [1, 4, 3], [2, 6], [1, 3, 6]]


def test_bodies_with_a_given_derivative():
    b = ProgramBuilder("clip")
    (w,) = b.inputs(w=1)
    (y,) = b.custom(lambda w: ca.fmax(ca.fmin(w, 1), -1), w, adjoint=lambda w, y, bar: bar)
    b.output("y", y)
    W = torch.tensor([3.0], requires_grad=True)
    b.kernel()(w=W).y.backward()
    assert W.grad == 1


def test_a_symbol_from_outside_is_named():
    b = ProgramBuilder()
    foreign = SX.sym("foreign")
    with pytest.raises(ValueError, match="'shift' uses symbols that are not its arguments: foreign; pass"):
        b.trace(lambda x: x + foreign, b.inputs(1)[0], name="shift")


def test_a_result_that_is_no_expression_is_named():
    b = ProgramBuilder()
    with pytest.raises(TypeError, match="'traced' returned a NoneType, expected SX"):
        b.trace(lambda x: None, b.inputs(1)[0])  # type: ignore[arg-type]


def test_named_outputs_and_given_ones_do_not_mix():
    b = ProgramBuilder("both")
    (x,) = b.inputs(1)
    b.output("x", x)
    with pytest.raises(ValueError, match="'both' has named outputs"):
        b.program(x)
