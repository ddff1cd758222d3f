"""Kronecker products as preconditioner: exact where they are the curvature, of use where they are near it."""

import pytest
import torch

from costate.optimise import GaussNewtonOptions, gauss_newton
from costate.optimise.conjugate import conjugate_gradients
from costate.optimise.kronecker import Kronecker

DOUBLE = torch.float64


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


@pytest.fixture(scope="module")
def layer():
    """Return inputs of a layer y = W x + b in 50 samples, and the matrix of residuals C y, the same in all of them."""
    return random(50, 4) @ torch.diag(torch.tensor([100.0, 1.0, 0.1, 3.0], dtype=DOUBLE)), random(9, 6, seed=1)


def test_one_layer_with_the_same_residuals_in_every_sample_is_exact(layer):
    """J^T J is then a Kronecker product: the inverse solves the damped system, and Gauss-Newton takes one CG iteration."""
    x, C = layer
    probes = random(20000, 9, seed=2)
    probes = (
        probes @ torch.linalg.inv(torch.linalg.cholesky(probes.T @ probes / len(probes))).T
    )  # whose mean square is exactly 1
    adjoints = (probes @ C)[:, None].expand(-1, len(x), -1)
    inverse = Kronecker([x], [adjoints], floor=0.5)
    b, damping = random(2, 6 * 5, seed=3), torch.tensor([0.1, 7.0], dtype=DOUBLE)
    found = inverse(b, damping)
    W, bias = found[:, :24].view(2, 6, 4), found[:, 24:]
    y = torch.einsum("bij,kj->bki", W, x) + bias[:, None]  # J v, up to C
    back = torch.einsum("bki,ij->bkj", y, C.T @ C)
    product = torch.cat([torch.einsum("bki,kj->bij", back, x).flatten(1), back.sum(1)], 1)
    torch.testing.assert_close(product + (0.5 + damping[:, None]) * found, b, rtol=1e-8, atol=1e-8)

    target = random(50, 9, seed=4)
    options = {"damping": 1e-3, "adaptive": False, "iterations": 1, "cg_tolerance": 1e-6}
    weights = {"W": torch.zeros(6, 4, dtype=DOUBLE), "b": torch.zeros(6, dtype=DOUBLE)}

    def solved(**more):
        return gauss_newton(
            lambda w: {"fit": (x @ w["W"].T + w["b"]) @ C.T - target}, weights, GaussNewtonOptions(**options, **more)
        )

    exact = solved(precondition=Kronecker([x], [adjoints]))
    plain = solved()
    assert exact.history[-1].detail["cg_iterations"] == 1 < plain.history[-1].detail["cg_iterations"]
    torch.testing.assert_close(exact.x["W"], plain.x["W"], rtol=1e-3, atol=1e-3)


def test_preconditioned_conjugate_gradients_solve_the_same_systems():
    """With half of the truth as preconditioner, in fewer iterations; systems of a batch do not mix."""
    scales = torch.logspace(0, 4, 40, dtype=DOUBLE)
    more = random(40, 40, seed=5)
    A = torch.diag(scales) + more @ more.T / 40
    b = random(3, 40, seed=6)
    x, rest, count = conjugate_gradients(lambda v: v @ A, b, 500, 1e-10, lambda r: r / scales)
    torch.testing.assert_close(x, torch.linalg.solve(A, b.T).T, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(rest, b - x @ A, rtol=0, atol=1e-9)
    assert count < conjugate_gradients(lambda v: v @ A, b, 500, 1e-10)[2] / 2
    alone = conjugate_gradients(lambda v: v @ A, b[1:2], 500, 1e-10, lambda r: r / scales)[0]
    torch.testing.assert_close(alone[0], x[1], rtol=1e-7, atol=1e-9)


def test_a_guess_is_where_conjugate_gradients_begin():
    """At the solution nothing is left to do; from anywhere else they find the same one, and the residual is that of the result."""
    more = random(30, 30, seed=7)
    A, b = torch.eye(30, dtype=DOUBLE) + more @ more.T, random(2, 30, seed=8)
    exact = torch.linalg.solve(A, b.T).T
    assert conjugate_gradients(lambda v: v @ A, b, 30, 1e-8, guess=exact)[2] == 0
    x, rest, _ = conjugate_gradients(lambda v: v @ A, b, 60, 1e-10, guess=torch.cat([b[:1], 0 * b[:1]]))
    torch.testing.assert_close(x, exact, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(rest, b - x @ A, rtol=0, atol=1e-9)


def test_moments_of_several_draws_are_their_weighted_mean():
    """With a memory of 1/2, three estimates have the weights 1/4, 1/2 and 1."""
    draws = [(random(50, 4, seed=k), random(2, 50, 6, seed=10 + k)) for k in range(3)]
    alone = [Kronecker([x], [y]).moments for x, y in draws]
    found = Kronecker([draws[0][0]], [draws[0][1]], memory=0.5)
    for x, y in draws[1:]:
        found = Kronecker([x], [y], earlier=found.moments, memory=0.5)
    *factors, weight = found.moments
    assert float(weight) == 1.75
    for k, factor in enumerate(factors):
        torch.testing.assert_close(factor, (alone[0][k] / 4 + alone[1][k] / 2 + alone[2][k]) / 1.75)
