"""The smoothness report, on motions whose switches are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.audit.smoothness import Smoothness
from costate.audit.worlds import audit_world
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.robot import Robot

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


def test_zero_gradients_of_a_step_are_named_with_what_to_choose(hard: cs.World) -> None:
    """Shapes apart under hard contact, and a control beyond its limit; `costate gradcheck` says both."""
    audit = audit_world(hard, control=torch.tensor([50.0]), steps=2, search=2)
    zeros = audit.rows["step, at the start"].zeros
    assert any("contact was not checked" in note for note in audit.notes)
    assert audit.ok and "Compliant" in zeros["friction"] and "effort limit" in zeros["control"]


def linear(stiffness: float, damping: float, steps: int, dt: float = 0.05) -> tuple[Smoothness, np.ndarray]:
    """A unit mass on a spring, and its step as matrix: v' = v - dt (k q + d v), q' = q + dt v'."""
    joint = Joint("slide", "prismatic", "base", "mass", damping=damping, stiffness=stiffness)
    links = Link("base"), Link("mass", Inertia(1.0, np.zeros(3), np.eye(3)))
    world = cs.World([Robot(Model("spring", links, (joint,)))], contact=None, gravity=(0, 0, 0), dt=dt)
    row = np.array([-dt * stiffness, 1 - dt * damping])
    states = world.rollout(torch.tensor([1e-9, 0.0], dtype=D), torch.zeros(steps, 1, dtype=D))
    return cs.diagnose(world, states), np.array([[1.0, 0.0] + dt * row, row])


def test_an_unstable_system_explodes_at_the_rate_of_its_eigenvalue() -> None:
    found, A = linear(stiffness=-25.0, damping=0.0, steps=80)
    np.testing.assert_allclose(found.sensitivity[0], np.linalg.norm(np.linalg.matrix_power(A, 80), 2), rtol=1e-10)
    eigenvalue = max(np.abs(np.linalg.eigvals(A)))
    assert found.rate(0) == pytest.approx(eigenvalue, rel=0.03)
    (line,) = found.advice
    assert "explodes" in line and f"at most {int(np.log(1e3) / np.log(found.rate(0)))} steps" in line


def test_a_damped_system_vanishes_at_the_rate_of_its_eigenvalue() -> None:
    found, A = linear(stiffness=16.0, damping=8.0, steps=120)
    np.testing.assert_allclose(found.sensitivity[0], np.linalg.norm(np.linalg.matrix_power(A, 120), 2), rtol=1e-8)
    assert found.rate(0) == pytest.approx(max(np.abs(np.linalg.eigvals(A))), rel=0.05)
    (line,) = found.advice
    assert "vanishes" in line and "put a loss" in line
