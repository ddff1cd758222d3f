"""Products with a matrix that all samples share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import assert_as_interpreted, positional, same_bits

from costate.kernel import Kernel, ProgramBuilder


def layer(rows: int, columns: int) -> Kernel:
    b = ProgramBuilder("layer")
    w, x = b.input("w", (rows, columns)), b.input("x", columns)
    b.output("y", b.dense(b.common(w), x))
    return b.kernel()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 3), (19, 5), (5, 33), (24, 16)])
def test_a_product_is_numpys(rows, columns):
    random = torch.Generator().manual_seed(rows)
    w, x = torch.randn(rows, columns, generator=random), torch.randn(37, columns, generator=random)
    kernel = layer(rows, columns)
    y = kernel(w=w, x=x).y
    np.testing.assert_allclose(y, x.numpy() @ w.numpy().T, rtol=1e-13, atol=1e-13)
    assert_as_interpreted(kernel, [w.expand(37, -1, -1), x])
    single = kernel(w=w.float(), x=x.float()).y
    torch.testing.assert_close(single.double(), y, rtol=1e-5, atol=1e-5)
    assert same_bits(kernel(w=w, x=x[5:6]).y, y[5:6])


def test_derivatives():
    random = torch.Generator().manual_seed(0)
    w, x = torch.randn(5, 3, generator=random), torch.randn(4, 3, generator=random)
    check_gradients(positional(layer(5, 3)), [w, x])


def test_samples_with_matrices_of_their_own_are_not_numbers():
    w = torch.ones(4, 3, 2)
    w[2, 1, 1] = 2
    assert layer(3, 2)(w=w, x=torch.ones(4, 2)).y.isnan().all()
    assert layer(3, 2).program.evaluate(w.reshape(4, -1).numpy().T, np.ones((2, 4)))[0].shape == (3, 4)
    assert np.isnan(layer(3, 2).program.evaluate(w.reshape(4, -1).numpy().T, np.ones((2, 4)))[0]).all()


def test_in_a_loop():
    """The matrix comes from outside of the loop; its gradient is summed over steps and samples."""
    b = ProgramBuilder("recurrent")
    w, x = b.input("w", (3, 3)), b.input("x", 3)
    body = ProgramBuilder("step")
    state, matrix = body.inputs(3, 9)
    program = body.program(body.trace(lambda v: v / (1 + v * v), body.dense(matrix, state)))
    (final,), _, _ = b.scan(program, 4, x, shared=[b.common(w)])
    b.output("y", final)
    kernel = b.kernel()
    random = torch.Generator().manual_seed(0)
    given = torch.randn(3, 3, generator=random), torch.randn(5, 3, generator=random)
    check_gradients(positional(kernel), given)
    y = given[1]
    for _ in range(4):
        y = y @ given[0].T
        y = y / (1 + y * y)
    torch.testing.assert_close(kernel(w=given[0], x=given[1]).y, y)
