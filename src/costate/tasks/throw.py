"""Throw: an arm with nine degrees of freedom throws a ball that its fingers hold by friction.

The arm is a Panda whose fingers move one by one: seven torques and two finger positions per step. The fingers let go after `swing`
steps; the ball then flies under gravity and must be at the target at the end. Unknowns are all controls until the release: nothing
tells the optimiser how to throw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.model import load_model
from costate.robot import Robot
from costate.sim import Body, Hard, PositionServo, Static, Torque, World
from costate.sim.scene.shapes import sphere
from costate.tasks.numbers import TARGET, interpolate, normal
from costate.train.solve.problems import Problems, Solvable

RADIUS, MASS = 0.03, 0.1
"""Radius and mass of the ball [m, kg]."""
FINGERS = ("panda_leftfinger", "panda_rightfinger")
GRIP_DEPTH = 0.0884
"""Distance from the hand's frame to the ball held [m]."""
HELD = RADIUS - 0.001
"""Finger position at which the pads touch the ball [m]."""
SQUEEZE, OPEN = HELD - 0.015, 0.04
"""Finger targets while holding (15 N) and after the release [m]."""
UNITS = (10.0, 10.0, 10.0, 10.0, 3.0, 3.0, 3.0, 0.001, 0.001)
"""Size of one unit of an unknown: torques [N m], finger positions [m]."""


@dataclass(frozen=True, eq=False)
class Throw(Solvable):
    """The task."""

    name: ClassVar[str] = "throw"
    summary: ClassVar[str] = "a 9-DoF arm throws a ball to a target"
    unit: ClassVar[str] = "m"
    trails: ClassVar[tuple[str, ...]] = ("ball/body",)

    tolerance: float = 0.01
    """Distance from the target [m]."""
    goal: tuple[float, float, float] = (1.2, 0.3, 0.1)
    """Place where the ball has to be in the end [m]."""
    swing: int = 40
    """Steps until the fingers open."""
    flight: int = 40
    """Steps after that."""
    knots: int | None = None
    """Unknowns per joint, interpolated over the swing; None: one per step, as in Qiao et al. (2021)."""
    spread: float = 0.3
    """Standard deviation of the first controls, in `UNITS`."""

    @cached_property
    def robot(self) -> Robot:
        """The Panda with fingers that move one by one, and motors: rotor inertia and damping keep light wrists calm."""
        model = load_model("panda")
        joints = [replace(j, mimic=None) for j in model.joints]
        joints = [replace(j, armature=0.05, damping=0.5) if j.kind == "revolute" else j for j in joints]
        home = np.array([0, -pi / 4, 0, -3 * pi / 4, 0, pi / 2, pi / 4, HELD, HELD])
        return Robot(replace(model, joints=tuple(joints), home=home)).double()

    @cached_property
    def world(self) -> World:
        servo = PositionServo(stiffness=1000.0, damping=20.0)
        return World(
            robots={"arm": self.robot},
            bodies=[Body("ball", [sphere(RADIUS, color=(0.95, 0.5, 0.15, 1.0))], MASS)],
            scenery=[Static("target", sphere(RADIUS, self.goal, color=TARGET))],
            actuators={"arm": Torque()} | {f"arm/panda_finger_joint{k}": servo for k in (1, 2)},
            contact=Hard(friction=1.0),
            collide=[("ball", f"arm/{finger}") for finger in FINGERS],
            dt=0.01,
            substeps=4,
        )

    @cached_property
    def start(self) -> Tensor:
        """The arm at home, the ball between its fingers, (nx,)."""
        state = self.world.initial_state()
        hand = self.robot.forward_kinematics(state[:9], "panda_hand")
        at = self.world.coordinates("ball")[0].start
        state[at : at + 3] = hand.position + GRIP_DEPTH * hand.rotation[:, 2]
        return state

    def controls(self, x: Tensor) -> Tensor:
        """Return controls (T, B, 9) of unknowns (B, n): torques around those that hold the arm, until the release."""
        held, free = (self._rest(at) for at in (SQUEEZE, OPEN))
        knots = x.unflatten(-1, (-1, 9)).movedim(-2, 0) * x.new_tensor(UNITS)
        moves = knots if self.knots is None else interpolate(knots, self.swing)
        return torch.cat([held + moves, free.expand(self.flight, *x.shape[:-1], 9)])

    def _rest(self, fingers: float) -> Tensor:
        hold = self.robot.gravity_torques(self.start[:9])
        return torch.cat([hold[:7], hold.new_full((2,), fingers)])

    def states(self, x: Tensor) -> Tensor:
        return self.world.rollout(self.start, self.controls(x))

    def residuals(self, x: Tensor) -> Tensor:
        """Return the way from the target to the ball at the end [m], (B, 3)."""
        q, _ = self.world.coordinates("ball")
        return self.states(x)[-1][..., q][..., :3] - x.new_tensor(self.goal)

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        return Problems(
            x0=self.spread * normal(numbers, 9 * (self.knots or self.swing)),
            residuals=self.residuals,
            states=self.states,
            error=lambda x: self.residuals(x).norm(dim=-1),
            target=self.tolerance**2 / 2,
            facts=self._facts,
        )

    def _facts(self, x: Tensor) -> dict[str, float]:
        u, states = self.controls(x), self.states(x)
        v = self.world.coordinates("ball")[1].start
        return {
            "unknowns": x.shape[-1],
            "speed at release [m/s]": float(states[self.swing + 2, 0, v : v + 3].norm()),
            "largest torque [N m]": float(u[..., :7].abs().max()),
        }
