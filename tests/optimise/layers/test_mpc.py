"""Optimal controls as a layer: gradients against finite differences of the whole optimisation, and a closed form."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import pytest
import torch

import costate as cs
from costate.optimise import Cost
from costate.optimise.layers.mpc import TIGHT, mpc

STEPS = 12


@pytest.fixture(scope="module")
def problem():
    """Two links, the second mass a parameter of the world, move towards a goal at a price of torque that is an input."""
    robot = cs.load_robot("pendulum2")
    world = cs.World([robot], contact=None, dt=0.05, check=False, parameters=["mass:pendulum2/link_2"]).double()
    cost = Cost(
        world,
        lambda s: ca.vertcat(0.3 * (s.q - s["goal"]), 0.1 * s.v, s["price"] * s.u),
        lambda s: 3 * (s.q - s["goal"]),
        inputs={"goal": 2, "price": 1},
    )
    return world, cost


def given(world):
    g = torch.Generator().manual_seed(0)
    state = 0.3 * torch.randn(3, 4, generator=g, dtype=torch.float64)
    goal = 1 + 0.2 * torch.randn(3, 2, generator=g, dtype=torch.float64)
    price = torch.tensor([[0.05], [0.08], [0.1]], dtype=torch.float64)
    mass = torch.tensor([[1.0], [1.2], [0.8]], dtype=torch.float64)
    weights = torch.randn(STEPS, 3, 2, generator=g, dtype=torch.float64)
    return state, goal, price, mass, weights


def loss_of(world, cost, weights, options=TIGHT):
    (name,) = world.setup.parameters

    def loss(state, goal, price, mass):
        start = torch.zeros(STEPS, len(state), 2, dtype=torch.float64)
        found = mpc(world, cost, state, start, options, inputs={"goal": goal, "price": price}, params={name: mass})
        assert bool(found.solved.all())
        return (weights * found.controls).sum() + found.states[-1].square().sum()

    return loss


@pytest.mark.parametrize("bounds", [None, (-4.0, 4.0)], ids=["free", "bounded"])
def test_gradients_are_those_of_the_whole_optimisation(problem, bounds):
    """Central differences of whole optimisations."""
    world, cost = problem
    *theta, weights = given(world)
    loss = loss_of(world, cost, weights, replace(TIGHT, bounds=bounds))
    leaves = [t.clone().requires_grad_() for t in theta]
    gradients = torch.autograd.grad(loss(*leaves), leaves)
    for k, (t, gradient) in enumerate(zip(theta, gradients, strict=True)):
        by = torch.randn(t.shape, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
        ends = [loss(*(x + h * by if j == k else x for j, x in enumerate(theta))) for h in (1e-4, -1e-4)]
        expected = float((ends[0] - ends[1]).detach()) / 2e-4
        assert float((gradient * by).sum()) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_controls_at_their_limits_stay_there(problem):
    world, cost = problem
    state, goal, price, mass, _ = given(world)
    (name,) = world.setup.parameters
    goal.requires_grad_()
    start = torch.zeros(STEPS, 3, 2, dtype=torch.float64)
    options = replace(TIGHT, bounds=(-4.0, 4.0))
    found = mpc(world, cost, state, start, options, inputs={"goal": goal, "price": price}, params={name: mass})
    at_limit = (found.controls.detach().abs() == 4).nonzero()
    assert 0 < len(at_limit) < found.controls.numel()
    (gradient,) = torch.autograd.grad(found.controls[tuple(at_limit[0])], goal)
    assert not bool(gradient.any())
