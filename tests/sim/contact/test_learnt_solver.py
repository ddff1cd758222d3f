"""A network in place of a solver: impulses that push and stay in the cone, gradients, and that they can be learnt."""

from __future__ import annotations

import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.augment.network import Network
from costate.sim.contact.learnt_solver import LearntSolver, inputs_of


def ball(contact: cs.ContactModel, parameters: tuple[str, ...] = ()) -> cs.World:
    body = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
    ground = cs.Static("ground", cs.shapes.plane())
    return cs.World(bodies=[body], scenery=[ground], contact=contact, dt=0.005, parameters=list(parameters))


def states(world: cs.World, n: int, seed: int = 0) -> torch.Tensor:
    """Return balls that fall on the ground, or lie on it, and move and spin."""
    random = torch.Generator().manual_seed(seed)
    state = world.initial_state(n, dtype=torch.float64)
    state[:, 2] = 0.1 + 0.01 * torch.rand(n, generator=random, dtype=torch.float64)
    state[:, 3:7] = torch.nn.functional.normalize(torch.randn(n, 4, generator=random, dtype=torch.float64), dim=-1)
    state[:, 7:] = torch.randn(n, 6, generator=random, dtype=torch.float64)
    return state


@pytest.fixture(scope="module")
def network() -> Network:
    names = inputs_of(ball(LearntSolver()).setup)
    assert names == ["opening.0", "ahead.0", "aside.0", "up.x", "up.y", "up.z"]
    return Network(names, 3, hidden=(8,)).double()


@pytest.fixture(scope="module")
def world(network: Network) -> cs.World:
    return ball(LearntSolver(network=network), ("weights", "friction"))


def test_impulses_push_and_stay_in_the_cone(world: cs.World, network: Network) -> None:
    x = states(world, 200)
    weights = 2 * torch.randn(network.size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    seen = world.contacts(x, params={"weights": weights, "friction": 0.3})
    normal, sliding = seen.forces[..., 0], seen.friction[..., 0, :].norm(dim=-1)
    assert bool((normal >= 0).all()) and bool((normal > 0).any()) and bool((normal == 0).any())
    assert bool((sliding <= 0.3 * normal * (1 + 1e-12)).all())
    assert bool((sliding > 0.29 * normal)[normal > 0].any())  # some are at the bound
    after = world.step(x, params={"weights": torch.zeros_like(weights)})
    assert torch.allclose(after, cs.World(bodies=world._parts.bodies, contact=None, dt=0.005).step(x), atol=1e-12)


def test_gradients(world: cs.World, network: Network) -> None:
    x = states(world, 3, seed=5)
    weights = torch.randn(network.size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    check_gradients(
        lambda w, v: world.step(torch.cat([x[:, :7].to(v.dtype), v], -1), params={"weights": w}),
        (weights, x[:, 7:]),
        names=("weights", "velocity"),
    )


def test_the_impulses_of_a_solver_are_learnt(world: cs.World, network: Network) -> None:
    exact = ball(cs.PGS(impacts=0))
    x, unseen = states(world, 2000), states(world, 500, seed=9)
    target = exact.step(x)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(300):
        loss = ((world.step(x, params={"weights": network.vector()}) - target)[:, 7:] ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = exact.step(unseen)[:, 7:]
    miss = world.step(unseen, params={"weights": network.vector().detach()})[:, 7:] - after
    free = cs.World(bodies=world._parts.bodies, contact=None, dt=0.005).step(unseen)[:, 7:] - after
    assert float(miss.square().mean()) < 0.1 * float(free.square().mean())


def test_mistakes(network: Network) -> None:
    wrong = ball(LearntSolver(network=Network(("a", "b"), 3)))
    with pytest.raises(ValueError, match="has 2 inputs and 3 outputs; expected 6 and 3"):
        wrong.step(wrong.initial_state())
    arm = cs.World(
        [cs.load_robot("two_link")], scenery=[cs.Static("ground", cs.shapes.plane())], contact=LearntSolver()
    )
    if arm.setup.scene.pairs:
        with pytest.raises(ValueError, match="floating base"):
            arm.step(arm.initial_state())
