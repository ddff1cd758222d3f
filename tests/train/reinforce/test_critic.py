"""Critics fitted by compiled code: against torch's own gradients and its Adam."""

import copy

import pytest
import torch
from torch import nn

from costate.train.dense.pull import pull_back
from costate.train.dense.shape import Shape
from costate.train.reinforce.actor import perceptron
from costate.train.reinforce.critic import Critic

RATE, CLIP, PASSES, PARTS = 2e-3, 1.0, 8, 4
ROUNDING = 1e-6
"""Some units in the last place of weights of order one, after a hundred updates."""
SHAPES = [(37, (64, 64), nn.ELU), (5, (30, 17, 20), nn.ELU), (3, (9,), nn.SiLU), (11, (70, 40), nn.SiLU)]


def _data(inputs: int, number: int = 301) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(7)
    x = torch.randn(number, inputs, generator=random, dtype=torch.float32) * 2
    return x, 3 * x[:, 0].sin() + x[:, 1] * x[:, 2] + 5


def _fit(critic: Critic, seed: int, rate: float = RATE) -> float:
    random = torch.Generator().manual_seed(seed)
    return critic.fit(*_data(critic.shape.inputs), random, PASSES, PARTS, rate, CLIP)


@pytest.mark.parametrize(("inputs", "hidden", "activation"), SHAPES)
def test_fits_as_torch_does(inputs, hidden, activation):
    critic = Critic(inputs, hidden, torch.Generator().manual_seed(1), activation)
    reference = copy.deepcopy(critic.network).requires_grad_(True)
    adam = torch.optim.Adam(reference.parameters(), betas=(0.7, 0.95))
    x, y = _data(inputs)
    for seed, rate in enumerate((RATE, RATE / 2, RATE / 5)):
        error = _fit(critic, seed, rate)
        adam.param_groups[0]["lr"] = rate
        random = torch.Generator().manual_seed(seed)
        for _ in range(PASSES):
            for part in torch.randperm(len(x), generator=random).chunk(PARTS):
                adam.zero_grad()
                loss = (reference(x[part])[:, 0] - y[part]).square().mean()
                loss.backward()
                nn.utils.clip_grad_norm_(reference.parameters(), CLIP)
                adam.step()
        assert error == pytest.approx(loss.item(), rel=1e-4)
        for mine, theirs in zip(critic.network.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs.detach(), rtol=ROUNDING, atol=ROUNDING)


def test_goes_on_to_the_same_bits():
    one = Critic(5, (16, 8), torch.Generator().manual_seed(1))
    _fit(one, 0)
    one.follow(0.2)
    kept = {name: t.clone() for name, t in one.kept().items()}
    two = Critic(5, (16, 8))
    two.restore(kept)
    assert _fit(one, 1) == _fit(two, 1)
    for name, t in one.kept().items():
        assert torch.equal(t, two.kept()[name]), name


def test_the_target_follows():
    critic = Critic(5, (16, 8), torch.Generator().manual_seed(1))
    before = [w.clone() for w in critic.target.parameters()]
    _fit(critic, 0)
    assert all(torch.equal(a, b) for a, b in zip(before, critic.target.parameters(), strict=True))
    critic.follow(0.25)
    for old, new, target in zip(before, critic.network.parameters(), critic.target.parameters(), strict=True):
        torch.testing.assert_close(target, 0.25 * old + 0.75 * new)


def test_weights_come_from_a_perceptron():
    network = perceptron(5, (16, 8), 1, torch.Generator().manual_seed(3))
    critic = Critic(5, (16, 8))
    critic.network.load_state_dict(network.state_dict())
    flat = torch.zeros(critic.shape.size, dtype=torch.float32)
    critic.shape.pack(critic.network, flat)
    again = perceptron(5, (16, 8), 1)
    critic.shape.unpack(flat, again)
    for a, b in zip(network.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_network_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="has no compiled code; expected layers of Linear, ELU or SiLU, LayerNorm"):
        Shape.of(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))


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
