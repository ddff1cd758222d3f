"""Networks by themselves: the same numbers in torch and as an expression, and what constraints promise."""

from __future__ import annotations

import casadi as ca
import pytest
import torch

from costate.augment.network import ACTIVATIONS, CONSTRAINTS, Network

NAMES = ("speed", "position", "velocity.x:leg")


def disturbed(seed: int = 1, **options) -> Network:
    network = Network(NAMES, seed=seed, **options).double()
    random = torch.Generator().manual_seed(seed)
    network.set_vector(network.vector().detach() + torch.randn(network.size, generator=random, dtype=torch.float64))
    return network


def points(n: int = 50) -> torch.Tensor:
    return 2 * torch.randn(n, len(NAMES), generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("constraints", [(), *CONSTRAINTS, ("odd", "monotone")], ids=str)
@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
def test_the_expression_is_what_torch_computes(activation: str, constraints, hidden) -> None:
    scales = {"velocity": 2.0, "speed": 3.0}
    network = disturbed(activation=activation, constraints=constraints, hidden=hidden, input_scales=scales, scale=-5.0)
    x, speed, w = ca.SX.sym("x", 3), ca.SX.sym("s", 1), ca.SX.sym("w", network.size)
    function = ca.Function("f", [w, x, speed], [network.symbolic(w, x, speed)])
    at, opposed = points(), points()[:, :1] - 0.3
    found = function(network.vector().detach().numpy(), at.numpy().T, opposed.numpy().T)
    expected = network(at, opposed).detach().numpy().T
    assert abs(found - expected).full().max() < 1e-12 * abs(expected).max()


def test_constraints_hold_for_any_weights() -> None:
    x, speed = points(), points()[:, :1]
    for seed in range(5):
        odd = disturbed(seed, constraints="odd", activation="elu")
        assert torch.allclose(odd(x), -odd(-x), atol=1e-12)
        monotone = disturbed(seed, constraints=("monotone", "odd"), hidden=(4, 4))
        grad = torch.autograd.functional.jacobian(lambda x, n=monotone: n(x).sum(0), x)[0]
        assert bool((grad >= 0).all()) and bool((grad > 0).any())
        assert bool((disturbed(seed, constraints="non_negative")(x) >= 0).all())
        power = disturbed(seed, constraints="dissipative")(x, speed) * speed
        assert bool((power <= 0).all()) and bool((power < 0).any())


@pytest.mark.parametrize("constraints", [(), *CONSTRAINTS], ids=str)
def test_zero_weights_are_silent_and_the_start_has_a_gradient(constraints) -> None:
    network = Network(NAMES, constraints=constraints).double()
    x, speed = points(), points()[:, :1]
    network(x, speed).square().sum().backward() if constraints and constraints != "odd" else network(x).sum().backward()
    assert any(bool((p.grad != 0).any()) for p in network.parameters() if p.grad is not None)
    silent = not any(CONSTRAINTS[c].starts_small for c in network.constraints)
    assert bool((network(x, speed) == 0).all()) == silent
    network.set_vector(torch.zeros(network.size, dtype=torch.float64))
    assert bool((network(x, speed) == 0).all())


def test_weights_as_a_vector_and_in_batches() -> None:
    network = disturbed(hidden=(4, 3))
    vectors = network.starts(6, seed=2)
    assert torch.equal(vectors, network.starts(6, seed=2)) and not torch.equal(vectors, network.starts(6, seed=3))
    x = points(6)
    each = []
    for vector in vectors:
        network.set_vector(vector)
        assert torch.equal(network.vector(), vector)
        each.append(network(x))
    together = network(x, vector=vectors[:, None])
    assert torch.allclose(together, torch.stack(each), atol=1e-13)


def test_importance_is_zero_for_an_input_that_does_not_count() -> None:
    network = disturbed()
    with torch.no_grad():
        network.weights[0][:, 1] = 0
    assert [x > 0 for x in network.importance().values()] == [True, False, True]
    x = points()
    assert torch.equal(network(x), network(x * torch.tensor([1.0, -7.0, 1.0], dtype=torch.float64)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": (4, 4, 4)}, "one or two hidden layers"),
        ({"hidden": ()}, "one or two hidden layers"),
        ({"activation": "tan"}, "did you mean 'tanh'"),
        ({"constraints": "odds"}, "did you mean 'odd'"),
        ({"constraints": ("odd", "non_negative")}, "cannot be 'odd' and 'non_negative' at once"),
        ({"scale": 0.0}, "must be a finite number that is not zero"),
        ({"input_scales": {"sped": 1.0}}, "did you mean 'speed'"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_mistakes(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Network(NAMES, **options)
