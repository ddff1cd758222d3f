"""Racecar: which friction between wheels and ground makes a braking car stop at the target?

The MIT racecar slides with locked wheels from `speed`. It stops after speed^2 / (2 mu g), so the answer is known: 0.255 for
2 m/s and 0.8 m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.robot import Robot, load_robot
from costate.sim import Hard, PositionServo, Static, VelocityServo, World
from costate.sim.scene.shapes import box, plane
from costate.tasks.numbers import TARGET, uniform
from costate.train.solve.problems import Problems, Solvable

BRAKE = VelocityServo(gain=10.0, gravity_compensation=False)
STEERING = PositionServo(stiffness=100.0, damping=2.0, gravity_compensation=False)


@dataclass(frozen=True, eq=False)
class Racecar(Solvable):
    """The task. The unknown is log mu, so that friction stays positive."""

    name: ClassVar[str] = "racecar"
    summary: ClassVar[str] = "find the friction with which a braking car stops at a target"
    unit: ClassVar[str] = "m"
    trails: ClassVar[tuple[str, ...]] = ("racecar/chassis",)

    tolerance: float = 0.001
    """Distance from the target [m]."""
    goal: float = 0.8
    """Place where the car has to stop [m]."""
    speed: float = 2.0
    """Speed at the start [m/s]."""
    steps: int = 200
    guesses: tuple[float, float] = (0.03, 0.8)
    """First guesses of the friction are between these, evenly on a logarithmic scale."""

    @cached_property
    def robot(self) -> Robot:
        return load_robot("racecar").double()

    @cached_property
    def world(self) -> World:
        wheels = [link for link in self.robot.link_names if link.endswith("_wheel")]
        return World(
            robots=[self.robot],
            scenery=[
                Static("ground", plane()),
                Static("target", box((0.02, 0.4, 0.002), (self.goal, 0, 0), color=TARGET)),
            ],
            actuators={
                f"racecar/{name}": STEERING if "steering" in name else BRAKE for name in self.robot.joint_names[1:]
            },
            contact=Hard(joint_limits=False),
            collide=[(f"racecar/{wheel}", "ground") for wheel in wheels],
            parameters=["friction"],
            dt=0.01,
            substeps=4,
        )

    @cached_property
    def start(self) -> Tensor:
        state = self.world.initial_state()
        state[self.world.coordinates("racecar")[1].start] = self.speed
        return state

    def states(self, x: Tensor) -> Tensor:
        """Return the motion under friction exp(x), x (B, 1)."""
        controls = x.new_zeros(self.steps, *x.shape[:-1], self.world.nu)
        return self.world.rollout(self.start, controls, params={"friction": x.exp()})

    def residuals(self, x: Tensor) -> Tensor:
        """Return how far behind the target the car stops [m], (B, 1)."""
        return self.states(x)[-1][..., :1] - self.goal

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        low, high = (torch.tensor([g], dtype=torch.float64).log().tolist() for g in self.guesses)
        return Problems(
            x0=uniform(numbers, low, high),
            residuals=self.residuals,
            states=self.states,
            error=lambda x: self.residuals(x).abs().squeeze(-1),
            target=self.tolerance**2 / 2,
            facts=lambda x: {
                "friction": float(x.exp()),
                "v^2 / (2 g s)": self.speed**2 / (2 * 9.81 * self.goal),
            },
        )

    def landscape(self, frictions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss [m^2] and its derivative by friction for frictions (n,): each (n,)."""
        mu = frictions.detach().clone().requires_grad_()
        loss = self.residuals(mu.log()[:, None]).square().sum(-1) / 2
        (slope,) = torch.autograd.grad(loss.sum(), mu)
        return loss.detach(), slope
