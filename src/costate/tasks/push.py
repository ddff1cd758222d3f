"""Push: a round finger pushes a box over a table to a pose, from one of its four sides.

The finger slides and sticks on the box, the box sticks to the table until it is pushed hard enough. A finger that does not touch
has no influence, and its gradient is zero; so it starts at a side. iLQR tries all four sides side by side, and the best one
counts; Gauss-Newton starts at the side that faces the goal, and tries the others if that fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import Any, ClassVar

import casadi as ca
import numpy as np
import torch

from costate.model import Model, Transform
from costate.model.builtin.parts import BLUE, GREY, ORANGE, X, Y, joint, link, robot
from costate.model.builtin.parts import sphere as ball
from costate.robot import Robot
from costate.sim import PGS, Body, Static, VelocityServo, World
from costate.sim.shapes import box, plane, sphere
from costate.tasks.task import Motions, Problems, Task, interpolate, uniform

Tensor = torch.Tensor

SIZE, RADIUS = 0.2, 0.03
"""Of the box and of the finger [m]."""
FOOT = 0.01
"""The box stands on four round feet in its corners [m]."""
HEIGHT = 0.05
"""Of the finger above the table [m]."""
SIDES = 4
SPEED = 0.5
"""Fastest command of the finger [m/s]."""
LEVER = 0.1
"""One radian counts as this many metres."""


def footed_box() -> Body:
    """A box of 1 kg; feet make its friction on the table that of four points, the same in every direction."""
    reach = SIZE / 2 - FOOT
    feet = [sphere(FOOT, (x, y, -reach), color=GREY) for x in (-reach, reach) for y in (-reach, reach)]
    return Body("box", [box((SIZE, SIZE, SIZE), color=ORANGE), *feet], 1.0)


def finger() -> Model:
    links = [link("table"), link("along"), link("tip", 1.0, inertia=0.001, shapes=[ball(RADIUS, color=BLUE)])]
    joints = [joint("x", "prismatic", "table", "along", axis=X), joint("y", "prismatic", "along", "tip", axis=Y)]
    return robot("finger", links, joints, "a ball on two slides")


@dataclass(frozen=True, eq=False)
class Push(Task):
    """The task. Controls are commanded velocities of the finger [m/s]."""

    name: ClassVar[str] = "push"
    summary: ClassVar[str] = "a finger pushes a box to a pose"
    unit: ClassVar[str] = "m"
    trails: ClassVar[tuple[str, ...]] = ("finger/tip",)
    attempts: ClassVar[int] = SIDES

    tolerance: float = 0.005
    """Distance of the box from its goal [m]; 0.05 rad count as 5 mm."""
    steps: int = 100
    knots: int = 20
    """Unknown velocities per direction for Gauss-Newton, interpolated."""
    distance: tuple[float, float] = (0.15, 0.35)
    """How far goals are [m]."""
    turn: float = 0.3
    """How much the box must turn at most [rad]."""
    effort: float = 0.02
    """Weight of the controls."""

    @cached_property
    def world(self) -> World:
        return World(
            robots={"finger": Robot(finger())},
            bodies=[footed_box()],
            scenery=[Static("table", plane(), friction=0.4)],
            actuators={"finger": VelocityServo(gain=200.0)},
            contact=PGS(sweeps=30, friction=0.3, cone="cone"),
            collide=[("finger", "box/body/0"), *((f"box/body/{k}", "table") for k in range(1, 5))],
            poses={"finger": Transform(translation=np.array([0, 0, HEIGHT]))},
            dt=0.02,
            substeps=4,
        )

    def _goals(self, numbers: Sequence[int]) -> Tensor:
        """x, y, angle of the box, (B, 3)."""
        near, far = self.distance
        r, way, turn = uniform(numbers, (near, -pi, -self.turn), (far, pi, self.turn)).unbind(-1)
        return torch.stack([r * way.cos(), r * way.sin(), turn], -1)

    def _start(self, side: int) -> tuple[Tensor, Tensor]:
        """State with the finger at the middle of a side (nx,), and the direction it pushes in (2,)."""
        way = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)[side]
        state = self.world.initial_state()
        state[:2] = -way * (SIZE / 2 + RADIUS)
        state[4] = SIZE / 2
        return state, way

    def _tries(self, numbers: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Starts (4 B, nx), directions (4 B, 2) and goals (4 B, 3): every problem from all sides."""
        starts, ways = zip(*(self._start(k) for k in range(SIDES)), strict=True)
        count = len(numbers)
        return (
            torch.stack(starts).repeat(count, 1),
            torch.stack(ways).repeat(count, 1),
            self._goals(numbers).repeat_interleave(SIDES, 0),
        )

    def away(self, state: Tensor, goals: Tensor) -> Tensor:
        """From the goal to the box: x, y [m], angle [rad times LEVER], (..., 3)."""
        angle = 2 * torch.atan2(state[..., 7], state[..., 8])
        return torch.cat([state[..., 2:4] - goals[..., :2], LEVER * (angle - goals[..., 2])[..., None]], -1)

    def missed(self, states: Tensor, goals: Tensor) -> Tensor:
        """Distance of the box from its goal [m] in the end, (B,)."""
        away = self.away(states[-1], goals)
        return torch.maximum(away[..., :2].norm(dim=-1), away[..., 2].abs())

    def motions(self, numbers: Sequence[int]) -> Motions:
        starts, ways, goals = self._tries(numbers)

        def away(s: Any) -> ca.SX:
            angle = 2 * ca.atan2(s.q[7], s.q[8])
            return ca.vertcat(s.q[2:4] - s["goal"][:2], LEVER * (angle - s["goal"][2]))

        def stage(s: Any) -> ca.SX:
            return ca.vertcat(self.effort * s.u, 0.05 * away(s))

        def final(s: Any) -> ca.SX:
            return ca.vertcat(30 * away(s), 0.5 * s.v[2:5])

        return Motions(
            state0=starts,
            controls0=(0.15 * ways).expand(self.steps, -1, -1).clone(),
            stage=stage,
            final=final,
            inputs={"goal": goals},
            bounds=(-SPEED, SPEED),
            error=lambda states, controls: self.missed(states, goals),
            group=SIDES,
        )

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        """From one side: that of `attempt`, counted from the one that pushes most directly towards the goal."""
        goals = self._goals(numbers)
        starts, ways = (torch.stack(x) for x in zip(*(self._start(k) for k in range(SIDES)), strict=True))
        order = (goals[:, :2] @ ways.T).argsort(-1, descending=True)[:, attempt % SIDES]
        start, way = starts[order], ways[order]

        def states(x: Tensor) -> Tensor:
            commands = interpolate(x.unflatten(-1, (self.knots, 2)).movedim(-2, 0), self.steps)
            return self.world.rollout(start, SPEED * torch.tanh(commands))

        def residuals(x: Tensor) -> Tensor:
            return self.away(states(x)[-1], goals)

        return Problems(
            x0=(0.3 * way)[:, None].expand(-1, self.knots, -1).flatten(1).clone(),
            residuals=residuals,
            states=states,
            error=lambda x: self.missed(states(x), goals),
            target=self.tolerance**2 / 2,
            facts=lambda x: {"goal x, y [m], turn [rad]": ", ".join(f"{v:.2f}" for v in goals[0].tolist())},
        )
