"""Discovery of inputs: the lasso's step, the choice of a set, and a law that is found again."""

from __future__ import annotations

import pytest
import torch

import costate as cs
from costate.augment.network import Network
from costate.optimise.discovery import DiscoverOptions, Motions, discover, motion_loss
from costate.optimise.discovery.candidates import Candidates

QUICK = DiscoverOptions(iterations=60, starts=2, hops=1, penalties=(3e-3, 3e-2), lr=0.05)


def regression(seed: int, noise: float):
    """Return the losses of a network on y = sin(2 a) - b of inputs a, b, c, d, to fit and held out."""
    network = Network(("a", "b", "c", "d"), hidden=(6,))
    random = torch.Generator().manual_seed(seed)

    def loss():
        x = torch.randn(80, 4, generator=random, dtype=torch.float64)
        y = torch.sin(2 * x[:, :1]) - x[:, 1:2] + noise * torch.randn(80, 1, generator=random, dtype=torch.float64)
        return lambda w: ((network(x, vector=w["network"][:, None]) - y) ** 2)[..., 0]

    return network, loss(), loss()


def test_inputs_of_a_function_are_found() -> None:
    network, fit, held_out = regression(0, 0.05)
    found = discover(network, fit, held_out, QUICK)
    assert found.inputs == {"network": ["a", "b"]}
    assert found.loss < 0.1
    assert [x > 0 for x in network.importance().values()] == [True, True, False, False]  # the weights are taken over
    assert float(held_out({"network": network.vector().detach().double()[None]}).mean()) < 0.1
    text = found.report()
    assert "a  " in text and "used" in text and "% of that without networks" in text


def test_columns_get_shorter_by_the_penalty_and_no_more() -> None:
    layout = Candidates({"one": Network(("a", "b")), "two": Network(("c",), hidden=(4, 4))})
    rows = layout.starts(3, seed=0)
    before, by = layout.lengths(rows), torch.tensor([[0.1], [0.5], [1e3]], dtype=torch.float64)
    shrunk = layout.shrunk(rows, by)
    assert torch.allclose(layout.lengths(shrunk), (before - by).clamp_min(0), atol=1e-12)
    elsewhere = torch.ones(layout.size, dtype=torch.bool)
    for places in layout.groups.values():
        elsewhere[places] = False
    assert torch.equal(shrunk[:, elsewhere], rows[:, elsewhere])
    mask = layout.masked(rows, [frozenset({("one", "a")})] * 3)
    assert layout.support((rows * mask)[0], 0.02) == {("one", "a")}


def test_a_law_of_friction_is_found_in_motions() -> None:
    """Damping of a joint, from noisy motions of a double pendulum that has it."""
    random = torch.Generator().manual_seed(0)
    name = "damping:pendulum2/joint_1"
    true = cs.World([cs.load_robot("pendulum2")], contact=None, dt=0.01, parameters=[name])
    start = 2 * torch.randn(24, 4, generator=random, dtype=torch.float64)
    controls = torch.randn(10, 24, 2, generator=random, dtype=torch.float64)
    states = true.rollout(start, controls, params={name: 0.5})
    states = states + 1e-3 * torch.randn(states.shape, generator=random, dtype=torch.float64)
    motions = Motions(states, controls).windows(5)
    assert motions.states.shape == (6, 48, 4) and torch.equal(motions.states[0, 24:], states[5])
    world = cs.World([cs.load_robot("pendulum2")], contact=None, dt=0.01)
    inputs = ["speed", "position", "speed:joint_2"]
    world.augment("joint_torque", on="joint_1", inputs=inputs, hidden=(4,), name="rub", input_scales={"speed": 2.0})
    fit, held_out = (motion_loss(world, motions.part(torch.arange(48) % 2 == k)) for k in (0, 1))
    found = discover(world.networks, fit, held_out, QUICK)
    assert found.inputs == {"rub": ["speed"]}
    x = torch.tensor([[1.0, 0.3, 0.0], [-2.0, 0.0, 1.0]], dtype=torch.float64)
    expected = -0.5 * x[:, 0]
    assert torch.allclose(world.networks["rub"].double()(x)[:, 0], expected, rtol=0.25)


def test_mistakes() -> None:
    network, fit, _ = regression(0, 0.0)
    with pytest.raises(ValueError, match="no network to fit"):
        discover({}, fit)
    with pytest.raises(ValueError, match="expected at least one of each"):
        discover(network, fit, options=DiscoverOptions(starts=0))
    with pytest.raises(ValueError, match="there is nothing to explain"):
        discover(network, lambda w: 0 * w["network"].sum(-1))
    with pytest.raises(ValueError, match="expected \\(1,\\) or \\(1, samples\\)"):
        discover(network, lambda w: w["network"].sum())
    with pytest.raises(ValueError, match="no input survives"):
        discover(network, fit, options=DiscoverOptions(iterations=30, penalties=(1e3,), starts=1, hops=0))
    with pytest.raises(ValueError, match="a window of 9 does not fit"):
        Motions(torch.zeros(5, 2, 4), torch.zeros(4, 2, 2)).windows(9)
