"""Gradients of weights by compiled code, against torch's."""

import pytest
import torch

from costate.train.dense.pull import pull_back
from costate.train.reinforce.actor import perceptron


@pytest.mark.parametrize(("inputs", "hidden", "outputs"), [(37, (128, 64, 32), 8), (5, (30, 17), 1), (3, (9,), 20)])
def test_gradients_of_weights_are_those_of_torch(inputs, hidden, outputs):
    random = torch.Generator().manual_seed(5)
    network = perceptron(inputs, hidden, outputs, random)
    x, bars = (torch.randn(301, n, generator=random, dtype=torch.float32) for n in (inputs, outputs))
    network(x).backward(bars)
    expected = [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in network.parameters()]
    pull_back(network, x, bars)
    for w, theirs in zip(network.parameters(), expected, strict=True):
        torch.testing.assert_close(w.grad, theirs, rtol=1e-4, atol=1e-6 * float(theirs.abs().max()) + 1e-5)
