"""Push: a round finger pushes a box over a table to a pose.

The finger slides and sticks on the box, the box sticks to the table until it is pushed hard enough. A finger that does not touch
has no influence, and its gradient is zero; so it starts at a side and pushes. Which contact leads to the goal is not a question for
a gradient: iLQR tries several side by side, and the best one counts; Gauss-Newton takes the next one if the first fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import Any, ClassVar

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.model import Model, Transform
from costate.model.builtin.parts import BLUE, GREY, ORANGE, X, Y, joint, link, robot
from costate.model.builtin.parts import sphere as ball
from costate.robot import Robot
from costate.sim import Body, Hard, Static, VelocityServo, World
from costate.sim.scene.shapes import box, plane, sphere
from costate.tasks.numbers import TARGET, interpolate, uniform
from costate.train.solve.problems import Motions, Problems, Solvable

SIZE, RADIUS = 0.2, 0.03
"""Sizes of the box and of the finger [m]."""
FOOT = 0.01
"""The box stands on four round feet in its corners [m]."""
HEIGHT = 0.05
"""Height of the finger above the table [m]."""
CONTACTS: tuple[tuple[int, float], ...] = ((0, 0.0), (0, 0.05), (0, -0.05), (1, 0.0))
"""First contacts to try: which side, counted from the one most directly opposite the goal, and how far from its middle [m]."""
SPEED = 0.5
"""Fastest command of the finger [m/s]."""
LEVER = 0.1
"""One radian counts as this many metres."""


def footed_box() -> Body:
    """Return a box of 1 kg; feet make its friction on the table that of four points, the same in every direction."""
    reach = SIZE / 2 - FOOT
    feet = [sphere(FOOT, (x, y, -reach), color=GREY) for x in (-reach, reach) for y in (-reach, reach)]
    return Body("box", [box((SIZE, SIZE, SIZE), color=ORANGE), *feet], 1.0)


def finger() -> Model:
    links = [link("table"), link("along"), link("tip", 1.0, inertia=0.001, shapes=[ball(RADIUS, color=BLUE)])]
    joints = [joint("x", "prismatic", "table", "along", axis=X), joint("y", "prismatic", "along", "tip", axis=Y)]
    return robot("finger", links, joints, "a ball on two slides")


@dataclass(frozen=True, eq=False)
class Push(Solvable):
    """The task. Controls are commanded velocities of the finger [m/s]."""

    name: ClassVar[str] = "push"
    summary: ClassVar[str] = "a finger pushes a box to a pose"
    unit: ClassVar[str] = "m"
    trails: ClassVar[tuple[str, ...]] = ("finger/tip",)
    attempts: ClassVar[int] = len(CONTACTS)

    tolerance: float = 0.005
    """Return distance of the box from its goal [m]; 0.05 rad count as 5 mm."""
    steps: int = 50
    knots: int = 20
    """Unknown velocities per direction for Gauss-Newton, interpolated."""
    distance: tuple[float, float] = (0.15, 0.35)
    """Distances of goals [m]."""
    turn: float = 0.3
    """Largest turn of the box [rad]."""
    effort: float = 0.5
    """Weight of the controls in iLQR."""
    precision: float = 100.0
    """Weight of the final pose in iLQR."""
    marks: tuple[Static, ...] = ()
    """Marks for pictures; nothing touches them."""

    @cached_property
    def world(self) -> World:
        return World(
            robots={"finger": Robot(finger()).double()},
            bodies=[footed_box()],
            scenery=[Static("table", plane(), friction=0.4), *self.marks],
            actuators={"finger": VelocityServo(gain=200.0)},
            contact=Hard(friction=0.3),
            collide=[("finger", "box/body/0"), *((f"box/body/{k}", "table") for k in range(1, 5))],
            poses={"finger": Transform(translation=np.array([0, 0, HEIGHT]))},
            dt=0.04,
            substeps=4,
        )

    def shown(self, number: int) -> World:
        """Return a world with a mark on the table where the box has to go."""
        x, y, turn = self._goals([number])[0].tolist()
        across = [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
        place = Transform(np.array(across), np.array([x, y, 0.0]))
        mark = Static("target", box((SIZE, SIZE, 0.004), color=TARGET), place)
        return replace(self, marks=(mark,)).world

    def _goals(self, numbers: Sequence[int]) -> Tensor:
        """Return x, y, angle of the box, (B, 3)."""
        near, far = self.distance
        r, way, turn = uniform(numbers, (near, -pi, -self.turn), (far, pi, self.turn)).unbind(-1)
        return torch.stack([r * way.cos(), r * way.sin(), turn], -1)

    def _contact(self, goals: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Return a first contact for each goal: states with the finger at a side (B, nx), and commands to push straight (B, 2)."""
        rank, offset = CONTACTS[number]
        ways = goals.new_tensor([[1, 0], [0, 1], [-1, 0], [0, -1]])
        facing = goals[:, :2] @ ways.T  # how far the goal is in the direction that each side is pushed in
        side = facing.argsort(-1, descending=True)[:, rank]
        way, far = ways[side], facing.gather(-1, side[:, None])
        state = self.world.initial_state(len(goals))
        state[:, :2] = -way * (SIZE / 2 + RADIUS) + offset * way.flip(-1)
        state[:, 4] = SIZE / 2
        return state, way * (far / (self.steps * self.world.dt)).clamp(0.02, SPEED / 2)

    def away(self, state: Tensor, goals: Tensor) -> Tensor:
        """Return the way from the goal to the box: x, y [m], angle [rad times LEVER], (..., 3)."""
        angle = 2 * torch.atan2(state[..., 7], state[..., 8])
        return torch.cat([state[..., 2:4] - goals[..., :2], LEVER * (angle - goals[..., 2])[..., None]], -1)

    def missed(self, states: Tensor, goals: Tensor) -> Tensor:
        """Return distance of the box from its goal [m] in the end, (B,)."""
        away = self.away(states[-1], goals)
        return torch.maximum(away[..., :2].norm(dim=-1), away[..., 2].abs())

    def motions(self, numbers: Sequence[int]) -> Motions:
        goals = self._goals(numbers)
        contacts = [self._contact(goals, k) for k in range(len(CONTACTS))]
        starts, commands = (torch.stack(x, 1).flatten(0, 1) for x in zip(*contacts, strict=True))
        goals = goals.repeat_interleave(len(CONTACTS), 0)

        def away(s: Any) -> ca.SX:
            angle = 2 * ca.atan2(s.q[7], s.q[8])
            return ca.vertcat(s.q[2:4] - s["goal"][:2], LEVER * (angle - s["goal"][2]))

        def stage(s: Any) -> ca.SX:
            return ca.vertcat(self.effort * s.u, 0.05 * away(s))

        def final(s: Any) -> ca.SX:
            return ca.vertcat(self.precision * away(s), 0.5 * s.v[2:5])

        return Motions(
            state0=starts,
            controls0=commands.expand(self.steps, -1, -1).clone(),
            stage=stage,
            final=final,
            inputs={"goal": goals},
            bounds=(-SPEED, SPEED),
            error=lambda states, controls: self.missed(states, goals),
            group=len(CONTACTS),
        )

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        """Return problems that start from the first contact of number `attempt`."""
        goals = self._goals(numbers)
        start, command = self._contact(goals, attempt % len(CONTACTS))

        def states(x: Tensor) -> Tensor:
            commands = interpolate(x.unflatten(-1, (self.knots, 2)).movedim(-2, 0), self.steps)
            return self.world.rollout(start, SPEED * torch.tanh(commands))

        def residuals(x: Tensor) -> Tensor:
            return self.away(states(x)[-1], goals)

        return Problems(
            x0=torch.atanh(command / SPEED)[:, None].expand(-1, self.knots, -1).flatten(1).clone(),
            residuals=residuals,
            states=states,
            error=lambda x: self.missed(states(x), goals),
            target=self.tolerance**2 / 2,
            facts=lambda x: {"goal x, y [m], turn [rad]": ", ".join(f"{v:.2f}" for v in goals[0].tolist())},
        )
