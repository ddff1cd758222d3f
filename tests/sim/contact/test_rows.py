"""Coulomb friction of a joint that is 0: its slope is that of any other value, so that a fit can start there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.model import Inertia, Joint, Link, Model

D = torch.float64
MASS, DT, STEPS = 2.0, 0.01, 20
CONTACTS = {
    "none": None,
    "compliant": cs.Compliant(),
    "hard": cs.Hard(),
    "hard, smooth": cs.Hard(joint_friction=False),
    "newton": cs.Newton(),
    "newton, smooth": cs.Newton(joint_friction=False),
}


def cart(contact: cs.ContactModel | None) -> cs.World:
    link = Link("cart", Inertia(MASS, np.zeros(3), np.eye(3)))
    rail = Joint("rail", "prismatic", "base", "cart", axis=np.array([1.0, 0.0, 0.0]))
    robot = cs.Robot(Model("cart", (Link("base"), link), (rail,)))
    return cs.World({"cart": robot}, contact=contact, parameters=["friction:cart/rail"], dt=DT)


@pytest.mark.parametrize("contact", CONTACTS)
def test_slope_at_no_friction(contact: str) -> None:
    """Sliding forwards, backwards, and pulled from rest: v = v0 + (F - f) t / m, x = n (n + 1) / 2 dt^2 (F - f) / m + v0 t, where
    f opposes the motion. Nothing moves at rest, and friction changes nothing there."""
    world = cart(CONTACTS[contact])
    speeds, pulls = torch.tensor([1.0, -1.0, 0.5, 0.0], dtype=D), torch.tensor([0.0, 0.0, 3.0, 0.0], dtype=D)
    state = torch.stack([torch.zeros(4, dtype=D), speeds], -1)
    sign = torch.tensor([1.0, -1.0, 1.0, 0.0], dtype=D)
    by_speed, by_place = -sign * STEPS * DT / MASS, -sign * STEPS * (STEPS + 1) / 2 * DT**2 / MASS
    for value in (0.0, 1e-3):
        friction = torch.full((4, 1), value, dtype=D, requires_grad=True)
        end = world.rollout(state, pulls[None, :, None].expand(STEPS, 4, 1), params={"friction:cart/rail": friction})[
            -1
        ]
        for k, expected in ((0, by_place), (1, by_speed)):
            (slope,) = torch.autograd.grad(end[:, k].sum(), friction, retain_graph=True)
            torch.testing.assert_close(slope[:, 0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("contact", ["none", "hard", "newton"])
def test_a_fit_starts_at_no_friction(contact: str) -> None:
    """One Newton step on a motion that is linear in the friction finds it."""
    world = cart(CONTACTS[contact])
    state, still = torch.tensor([0.0, 1.0], dtype=D), torch.zeros(STEPS, 1, dtype=D)
    record = world.rollout(state, still, params={"friction:cart/rail": torch.tensor([0.7], dtype=D)})[-1, 0]
    friction = torch.zeros(1, dtype=D, requires_grad=True)
    place = world.rollout(state, still, params={"friction:cart/rail": friction})[-1, 0]
    (slope,) = torch.autograd.grad(place, friction)
    found = friction + (record - place) / slope
    assert float(found) == pytest.approx(0.7, rel=1e-9)


def test_pulled_from_rest_without_friction() -> None:
    """A cart that stands, without friction, is as free as any: v' = F dt / m."""
    for contact in CONTACTS.values():
        world = cart(contact)
        pull = torch.zeros(1, dtype=D, requires_grad=True)
        after = world.step(torch.zeros(2, dtype=D), pull, {"friction:cart/rail": torch.zeros(1, dtype=D)})
        (slope,) = torch.autograd.grad(after[1], pull)
        assert float(slope) == pytest.approx(DT / MASS, rel=1e-9)
