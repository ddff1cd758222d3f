"""Linearisations, whose columns share factors and matrices, are the gradients of a step, which know nothing of that."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.model import Transform

D = torch.float64
MODELS = {"Hard": cs.Hard(friction=0.5), "Newton": cs.Newton(friction=0.5), "Compliant": cs.Compliant(friction=0.5)}


@pytest.mark.parametrize("contact", MODELS.values(), ids=MODELS.keys())
def test_a_linearisation_is_the_gradients_of_a_step(contact: cs.ContactModel) -> None:
    """A leg of two hinges in the air, on the floor, and sliding: its tangent space is that of its coordinates. Alone it has the
    bits of a batch; in float32 it agrees as far as that goes."""
    pose = {"leg": Transform(np.eye(3), np.array([0, 0, 1.98]))}
    world = cs.World(
        {"leg": cs.load_robot("pendulum2")}, scenery=[cs.Static("ground", cs.shapes.plane())], contact=contact, dt=2e-3,
        poses=pose, collide=[("leg/link_2", "ground")], check=False,
    )  # fmt: skip
    x = torch.tensor([[1.5, 0.3, 0.2, -0.4], [0.2, -0.3, 0, 0], [0.2, -0.35, 0.8, -0.5]], dtype=D)
    u = torch.tensor([[0.3, -0.2], [0.0, 0.1], [0.2, 0.0]], dtype=D)
    assert len({bool(g < 0) for g in world.gaps(x).amin(-1)}) == 2
    A, B = world.linearize(x, u)
    for k in range(3):
        rows = torch.autograd.functional.jacobian(world.step, (x[k], u[k]))
        for J, expected in zip((A, B), rows, strict=True):
            # What a foot that sticks leaves of torques is rounding of what they do elsewhere.
            torch.testing.assert_close(J[k], expected, rtol=1e-9, atol=1e-9 * float(J.abs().max()))
        alone = world.linearize(x[k], u[k])
        assert torch.equal(alone[0], A[k]) and torch.equal(alone[1], B[k])
    single = world.linearize(x.float(), u.float())
    for found, expected in zip(single, (A, B), strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-3 * float(expected.abs().max()))
