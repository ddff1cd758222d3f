"""The smoothness report, on motions whose switches are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.audit.smoothness import Smoothness
from costate.model import Transform

D = torch.float64
GROUND = cs.Static("ground", cs.shapes.plane())


def pusher(contact) -> cs.World:
    """A ball on a rail, driven, and another one in its way."""
    at = [Transform(np.eye(3), np.array([x, 0.0, 0.0])) for x in (0.0, 0.25)]
    balls = [
        cs.Body(name, [cs.shapes.sphere(0.1)], 1.0, joint="prismatic", axis=(1, 0, 0), pose=pose)
        for name, pose in zip(("hand", "ball"), at, strict=True)
    ]
    return cs.World([], balls, actuators={"hand": cs.Torque(limit=10.0)}, contact=contact, gravity=(0, 0, 0), dt=0.01)


@pytest.fixture(scope="module")
def hard() -> cs.World:
    return pusher(cs.PGS())


def run(world: cs.World, force: float, steps: int = 40) -> Smoothness:
    u = torch.full((steps, 1), force, dtype=D)
    return cs.diagnose(world, world.rollout(world.initial_state(), u), u)


def test_a_touch_is_found_at_its_step(hard: cs.World) -> None:
    """5 N on 1 kg bridge 5 cm in 0.14 s."""
    found = run(hard, 5.0)
    (touch,) = [e for e in found.events if e.kind == "touches"]
    assert 12 <= touch.step <= 16
    assert not found.zeros


def test_zero_before_touching_is_named_with_what_to_choose(hard: cs.World) -> None:
    (line,) = run(hard, 5.0, steps=8).zeros
    assert "no control moves ball" in line and "Compliant" in line
    assert not run(pusher(cs.Compliant(smoothing=0.05)), 5.0, steps=8).zeros


def test_saturated_actuator_is_named(hard: cs.World) -> None:
    found = run(hard, 50.0, steps=8)
    assert "saturated" in {e.kind for e in found.events}
    assert any("effort limit" in line for line in found.zeros)


def test_sensitivities_are_those_of_the_rollout(hard: cs.World) -> None:
    """Against the Jacobian of the rollout by reverse mode."""
    u = torch.full((6, 1), 5.0, dtype=D)
    x = hard.initial_state()
    found = cs.diagnose(hard, hard.rollout(x, u), u)
    J = torch.func.jacrev(lambda s: hard.rollout(s, u)[-1])(x)
    assert torch.allclose(found.sensitivity[0], torch.linalg.matrix_norm(J, 2), rtol=1e-10)
    assert "step" in str(found)
    assert "<svg" in found.page().html()
