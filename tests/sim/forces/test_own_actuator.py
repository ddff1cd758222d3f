"""Actuators that the package does not know: classes of this file, used in worlds like those of the package."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import pytest
import torch
from casadi import SX
from tests.gradients import check_gradients
from tests.sim.forces.test_actuators import INERTIA, wheel

import costate as cs
from costate.sim.forces.actuators import Explicit, Gains, Servo

D = torch.float64


@dataclass(frozen=True)
class Muscle(Explicit):
    """A pneumatic muscle (Chou and Hannaford, 1996): force = pressure * area * (a (1 - contraction)^2 - b) * lever."""

    area: float
    """Cross-section at rest [m^2]."""
    lever: float
    """Length it shortens by per radian of its joint [m/rad]."""
    rest: float = 0.2
    """Length at rest [m]."""
    a: float = 3.0
    b: float = 1.0
    friction: float = 0.0
    """Damping [N m s/rad]."""

    def torque(self, u: SX, x: SX, speed: SX) -> SX:
        contraction = x * self.lever / self.rest
        return u * self.area * (self.a * (1 - contraction) ** 2 - self.b) * self.lever - self.friction * speed

    def resistance(self, u: SX, x: SX, speed: SX) -> float:
        return self.friction


@dataclass(frozen=True)
class Sluggish(Servo):
    """A velocity servo that does not answer to small controls."""

    gain: float
    dead: float
    """Controls that are smaller do nothing [rad/s]."""
    limit: float | None = None

    def gains(self, inertia: Callable[[], float]) -> Gains:
        return 0.0, self.gain

    def pull(self, u: SX, x: SX, stiffness: float, damping: float) -> SX:
        return damping * (ca.fmax(u - self.dead, 0) + ca.fmin(u + self.dead, 0))


MUSCLE = Muscle(area=3e-4, lever=0.03, friction=0.02)


def test_a_muscle_pulls_less_the_shorter_it_is():
    world = wheel(MUSCLE)
    state = torch.tensor([[0.0, 0.0], [1.5, 0.3]], dtype=D)
    after = world.step(state, torch.full((2, 1), 2e5, dtype=D))
    torques = [2e5 * 3e-4 * (3 * (1 - q * 0.03 / 0.2) ** 2 - 1) * 0.03 - 0.02 * v for q, v in state.tolist()]
    torch.testing.assert_close(after[:, 1], state[:, 1] + 0.01 * torch.tensor(torques, dtype=D) / INERTIA)


def test_a_dead_zone_is_solved_implicitly():
    """v' = v + dt gain (target - v') / I, with the target zero within the dead zone."""
    world = wheel(Sluggish(gain=5.0, dead=0.2))
    for control, target in ((0.1, 0.0), (0.7, 0.5), (-0.7, -0.5)):
        after = world.step(torch.tensor([0.0, 1.0], dtype=D), torch.tensor([control], dtype=D))
        assert float(after[1]) == pytest.approx((INERTIA + 0.01 * 5 * target) / (INERTIA + 0.05), rel=1e-12)
    weak = wheel(Sluggish(gain=5.0, dead=0.2, limit=0.1))
    assert float(weak.step(torch.zeros(2, dtype=D), torch.tensor([9.0], dtype=D))[1]) == pytest.approx(0.05)


@pytest.mark.parametrize("actuator", [MUSCLE, Sluggish(gain=2.0, dead=0.1, limit=3.0)], ids=["muscle", "dead zone"])
@pytest.mark.parametrize("contact", [None, cs.Hard(), cs.Newton()], ids=["free", "hard", "newton"])
def test_own_actuators_have_gradients(actuator, contact):
    """On an arm, under every kind of contact model; with Newton also where the integrator is implicit."""
    integrator = "implicit" if isinstance(contact, cs.Newton) else "semi_implicit"
    ground = cs.Static("ground", cs.shapes.plane(position=(0, 0, -3)))
    world = cs.World(
        [cs.load_robot("two_link")], scenery=[ground], contact=contact, actuators=actuator, integrator=integrator
    )
    start = world.initial_state()
    start[: world.nq] = torch.tensor([0.3, -0.4], dtype=D)
    scale = 1e5 if isinstance(actuator, Muscle) else 1.0

    def end(x, u):
        return world.rollout(x, u * scale)[-1]

    check_gradients(end, [start, torch.tensor([[0.5, -0.8], [0.6, 0.7], [0.9, -0.4]], dtype=D)])
