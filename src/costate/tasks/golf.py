"""Golf: a linkage of three joints hits a ball, which comes to rest at the target.

The linkage hangs from a stand above the ball: it turns about the vertical, swings at the shoulder, bends at the elbow, and
carries a flat, smooth head. Torques act for `swing` steps, then it coasts into the ball. The ball lies in long
grass, which holds its spin: it skids, and friction brings it to rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.model import Model, Transform
from costate.model.builtin.parts import (
    BLUE,
    DARK,
    GREY,
    ORANGE,
    X,
    Y,
    Z,
    box,
    capsule,
    joint,
    link,
    moments_of,
    robot,
    sphere,
)
from costate.robot import Robot
from costate.sim import ContactModel, Hard, Static, Torque, World
from costate.sim.scene.shapes import cylinder, plane
from costate.tasks.numbers import TARGET, normal
from costate.train.solve.problems import Problems, Solvable

RADIUS, MASS = 0.03, 0.1
"""Radius and mass of the ball [m, kg]."""
UPPER, LOWER = 0.5, 0.5
"""Lengths of the linkage [m]."""
ROLLING = 0.02
"""Largest torque with which the grass holds the ball's spin [N m]: more than friction can overcome, so that the ball skids."""
GRASS = 0.4
"""Friction between ball and ground."""
UNITS = (2.0, 5.0, 3.0)
"""Size of one unit of an unknown [N m]."""
HOME = (0.0, -1.0, -0.6)
"""The linkage drawn back [rad]."""


def linkage() -> Model:
    """Turn, shoulder, elbow, and a head with a flat face."""
    upper, lower = capsule(0.03, (0, 0, 0), (0, 0, -UPPER), BLUE), capsule(0.02, (0, 0, 0), (0, 0, -LOWER + 0.03), GREY)
    head = box((0.04, 0.12, 0.06), (0, 0, -LOWER), DARK, "head")
    links = [
        link("stand", shapes=[sphere(0.05)]),
        link("turn", 0.5, inertia=0.01),
        link("upper", 1.0, (0, 0, -UPPER / 2), moments_of([upper], 1.0), [upper]),
        link("lower", 0.5, (0, 0, -LOWER / 2), moments_of([lower], 0.5), [head], [lower, head]),
    ]
    swing = (0.0, -1.0, 0.0)  # positive angles carry the head along x
    joints = [
        joint("turn", "continuous", "stand", "turn", axis=Z, damping=0.3),
        joint("shoulder", "continuous", "turn", "upper", axis=swing, damping=0.05),
        joint("elbow", "continuous", "upper", "lower", (0, 0, -UPPER), axis=swing, damping=0.05),
    ]
    return robot("linkage", links, joints, "two rods and a head", HOME)


def rolling_ball(friction: float = ROLLING) -> Model:
    """Return a ball whose spin is resisted by a torque."""
    links = [link("ground"), link("along"), link("across"), link("up")]
    links.append(link("ball", MASS, inertia=0.4 * MASS * RADIUS**2, shapes=[sphere(RADIUS, color=ORANGE)]))
    joints = [
        joint(name, "prismatic", before.name, after.name, axis=axis)
        for name, axis, before, after in zip("xyz", (X, Y, Z), links, links[1:], strict=False)
    ]
    joints.append(joint("roll", "spherical", "up", "ball", friction=friction))
    return robot("ball", links, joints, "a solid ball", (0, 0, RADIUS, 0, 0, 0, 1))


@dataclass(frozen=True, eq=False)
class Golf(Solvable):
    """The task."""

    name: ClassVar[str] = "golf"
    summary: ClassVar[str] = "a linkage hits a ball that comes to rest at a target"
    unit: ClassVar[str] = "m"
    trails: ClassVar[tuple[str, ...]] = ("ball/ball", "linkage/lower")

    tolerance: float = 0.02
    """Distance from the target [m]."""
    goal: tuple[float, float] = (2.0, 0.3)
    """Place where the ball has to rest [m]."""
    swing: int = 30
    """Steps with torques."""
    steps: int = 220
    spread: float = 0.5
    """Standard deviation of the first torques, in `UNITS`."""
    contact: ContactModel = Hard(friction=0.0, restitution=0.4)  # noqa: RUF009  (frozen)
    home: tuple[float, float, float] = HOME

    @cached_property
    def world(self) -> World:
        return World(
            robots={"linkage": Robot(linkage()).double(), "ball": Robot(rolling_ball()).double()},
            scenery=[
                Static("ground", plane(), friction=GRASS),
                Static("target", cylinder(0.05, 0.01, (*self.goal, 0.0), color=TARGET)),
            ],
            actuators={"linkage": Torque(20.0)},
            contact=self.contact,
            collide=[("ball", "ground"), ("ball", "linkage/lower")],
            poses={"linkage": Transform(translation=np.array([-0.05, 0, UPPER + LOWER + 0.04]))},
            dt=0.01,
            substeps=10,
        )

    @cached_property
    def start(self) -> Tensor:
        """(nx,)."""
        state = self.world.initial_state()
        state[:3] = torch.tensor(self.home, dtype=state.dtype)
        return state

    def controls(self, x: Tensor) -> Tensor:
        """Return controls (T, B, 3) of unknowns (B, n)."""
        torques = x.unflatten(-1, (self.swing, 3)).movedim(-2, 0) * x.new_tensor(UNITS)
        return torch.cat([torques, x.new_zeros(self.steps - self.swing, *x.shape[:-1], 3)])

    def states(self, x: Tensor) -> Tensor:
        return self.world.rollout(self.start, self.controls(x))

    def residuals(self, x: Tensor) -> Tensor:
        """Return the way from the target to the ball at the end [m], (B, 2)."""
        q, _ = self.world.coordinates("ball")
        return self.states(x)[-1][..., q][..., :2] - x.new_tensor(self.goal)

    def error(self, x: Tensor) -> Tensor:
        """Return distance from the target; infinite if the ball still rolls, (B,)."""
        q, v = self.world.coordinates("ball")
        last = self.states(x)[-1]
        missed = (last[..., q][..., :2] - x.new_tensor(self.goal)).norm(dim=-1)
        rests = last[..., v].abs().amax(-1) < 1e-3
        return torch.where(rests, missed, torch.full_like(missed, torch.inf))

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        return Problems(
            x0=self.spread * normal(numbers, 3 * self.swing),
            residuals=self.residuals,
            states=self.states,
            error=self.error,
            target=self.tolerance**2 / 2,
            facts=self._facts,
        )

    def _facts(self, x: Tensor) -> dict[str, float]:
        states = self.states(x)
        v = self.world.coordinates("ball")[1].start
        speed = states[..., v : v + 2].norm(dim=-1)[:, 0]
        return {
            "unknowns": x.shape[-1],
            "hit after [s]": float((speed > 0.01).nonzero()[0]) * self.world.dt,
            "speed of the ball [m/s]": float(speed.max()),
        }
