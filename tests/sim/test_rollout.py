"""Gradients of gradients of roll-outs: against differences of the first gradient, and against a loop of steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.gradients import Tolerances, check_gradients

import costate as cs
from costate.model import Transform
from costate.sim import World

D = torch.float64
CONTACTS = {
    "none": None,
    "compliant": cs.Compliant(stiffness=2e3, smoothing=5e-3),
    "newton": cs.Newton(),
    "rows": cs.Hard(tolerance=1e-12),
    "pairwise": cs.PGS(sweeps=30),
}
TOLERANCES = Tolerances(finite_difference=1e-5, noise=1e-8, second_order=1e-4, float32=math.inf)
"""Contact is stiff: differences over a few steps lose digits. A missing term is an error of order one."""


def sliding(contact: cs.ContactModel | None) -> World:
    """A ball that lies in the ground 0.7 mm deep, and slides and rolls."""
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], 0.5, pose=Transform(np.eye(3), np.array([0, 0, 0.0993])))
    ground = cs.Static("ground", cs.shapes.plane())
    steps = 1 if isinstance(contact, cs.PGS) else 2
    return World([], [ball], [ground], contact=contact, parameters=["mass:ball/body"], dt=4e-3, substeps=steps)


def start_of(world: World) -> torch.Tensor:
    state = world.initial_state()
    state[7:] = torch.tensor([0.8, 0.3, -0.2, 0.4, -0.3, 0.6])
    return state


@pytest.mark.parametrize("contact", CONTACTS)
def test_gradients_of_gradients(contact: str) -> None:
    """The derivative of the gradient of six steps, in position and velocity, wrench and mass."""
    world = sliding(CONTACTS[contact])
    start = start_of(world)
    push = torch.linspace(-0.3, 0.4, 36, dtype=D).reshape(6, 6)

    def final(delta: torch.Tensor, mass: torch.Tensor, push: torch.Tensor) -> torch.Tensor:
        turn = torch.zeros(4, dtype=delta.dtype)
        state = start.to(delta.dtype) + torch.cat([delta[:3], turn, delta[3:]])
        controls = torch.zeros(6, 0, dtype=delta.dtype)
        return world.rollout(state, controls, params={"mass:ball/body": mass}, wrenches={"ball": push})[-1]

    inputs = (torch.zeros(9, dtype=D), torch.tensor([0.5], dtype=D), push)
    check_gradients(final, inputs, step=1e-4, directions=1, second_order=True, float32=False, tolerances=TOLERANCES)


@pytest.mark.parametrize(("contact", "checkpoint"), [("none", 3), ("compliant", 1), ("newton", 1), ("rows", 1)])
def test_a_roll_out_is_a_loop_of_steps(contact: str, checkpoint: int) -> None:
    """First and second gradients of a batch that shares its mass, in float64 and float32."""
    world = sliding(CONTACTS[contact])
    found = []
    for dtype, as_loop in ((D, True), (D, False), (torch.float32, False)):
        states = torch.stack([start_of(world), 0.9 * start_of(world)]).to(dtype)
        states[1, 3:7] = states[0, 3:7]
        states.requires_grad_()
        mass = torch.tensor([0.5], dtype=dtype, requires_grad=True)
        params, controls = {"mass:ball/body": mass}, torch.zeros(6, 2, 0, dtype=dtype)
        policy = (lambda x, t, u=controls: u[t]) if as_loop else controls
        push = {"ball": torch.full((6, 6), 0.3, dtype=dtype)}
        ends = world.rollout(states, policy, 6, params, push, checkpoint)[1:]
        first = torch.autograd.grad(ends.square().sum(), (states, mass), create_graph=True)
        second = torch.autograd.grad(first[0].square().mean() + first[1].square().sum(), (states, mass))
        found.append([x.detach().double() for x in (*first, *second)])
    for loop, rows, narrow in zip(*found, strict=True):
        torch.testing.assert_close(rows, loop, rtol=1e-8, atol=1e-9 * float(loop.abs().max()))
        assert float((narrow - loop).abs().max()) < 2e-2 * float(loop.abs().max())


def test_states_of_integers_are_converted_with_a_note() -> None:
    world = World([cs.load_robot("two_link")], contact=None)
    whole = torch.tensor([1, 0, 0, 2])
    cases: list[dict[str, Any]] = [{"steps": 3}, {"controls": torch.zeros(3, 2, dtype=D)}]
    for more in cases:
        kind = D if "controls" in more else torch.get_default_dtype()
        with pytest.warns(UserWarning, match=rf"the state is of torch.int64 and computed in {kind}"):
            found = world.rollout(whole, **more)
        assert found.dtype == kind and torch.equal(found, world.rollout(whole.to(kind), **more))
    numbers: Any = [1, 0, 0, 2]  # of Python, without a type
    assert world.rollout(numbers, steps=1).dtype == torch.get_default_dtype()
