"""Pendulum: n links swing up from hanging and balance upright, with motors too weak to hold them level.

Joint k can give `strength` of the torque that holds everything below it stretched out level. Below 2 / pi = 0.64 a single link
has to swing to and fro: a constant torque cannot do the work of lifting it in half a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.model.builtin.pendulum import LENGTH, MASS
from costate.robot import Robot, load_robot
from costate.sim import World
from costate.tasks.numbers import interpolate, normal
from costate.train.solve.problems import Motions, Problems, Solvable


@dataclass(frozen=True, eq=False)
class Pendulum(Solvable):
    """The task. Problems start near hanging, at rest, with small random torques."""

    name: ClassVar[str] = "pendulum"
    summary: ClassVar[str] = "n links swing up and balance"
    unit: ClassVar[str] = "rad"

    links: int = 1
    tolerance: float = 0.05
    """Largest angle of a link against upright during the last `balance` steps [rad]."""
    steps: int = 150
    balance: int = 25
    strength: float = 0.8
    spread: float = 0.1
    """Standard deviation of the first angles [rad], and of the first torques against the strongest."""
    knots: int = 20
    """Torques per joint for search, interpolated."""
    drawn: bool = True
    """True: the guess is a drawing of the motion, the first joint turned evenly, which torques do not follow yet (multiple
    shooting); else it is what the first torques do, from which long chains end in local minima."""

    @property
    def trails(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"{self.robot.name}/tip",)

    @cached_property
    def robot(self) -> Robot:
        return load_robot(f"pendulum{self.links}").double()

    @cached_property
    def world(self) -> World:
        return World([self.robot], contact=None, integrator="rk4", dt=0.02, substeps=2)

    @property
    def strongest(self) -> Tensor:
        """Largest torques [N m], (n,)."""
        below = torch.arange(self.links, 0, -1, dtype=torch.float64)  # links that a joint carries, the nearest included
        return self.strength * MASS * 9.81 * LENGTH * below.square() / 2

    def angles(self, states: Tensor) -> Tensor:
        """Return the angles of the links against upright [rad], between -pi and pi, (..., n)."""
        absolute = states[..., : self.links].cumsum(-1)
        return torch.atan2(-absolute.sin(), -absolute.cos())

    def missed(self, states: Tensor) -> Tensor:
        """Return largest angle against upright while balancing [rad], (B,)."""
        return self.angles(states[-self.balance :]).abs().amax((0, -1))

    def motions(self, numbers: Sequence[int]) -> Motions:
        n, strongest = self.links, self.strongest
        drawn = self.spread * normal(numbers, self.steps + 1, n)
        state0 = torch.cat([drawn[:, 0], torch.zeros_like(drawn[:, 0])], -1)
        stands = torch.zeros(self.steps + 1, len(numbers), 1, dtype=torch.float64)
        stands[-self.balance :] = 1.0

        def upright(s: Any) -> ca.SX:
            """Return residuals, zero for links that stand, without slope where they hang exactly, which random starts never do."""
            absolute = ca.cumsum(s.q)
            return ca.vertcat(ca.sin(absolute), 1 + ca.cos(absolute))

        def stage(s: Any) -> ca.SX:
            stands = s["stands"]
            effort = 0.05 * s.u / ca.DM(strongest.tolist())
            return ca.vertcat((0.05 + 2 * stands) * upright(s), (0.02 + 0.3 * stands) * s.v, effort)

        def final(s: Any) -> ca.SX:
            return ca.vertcat(20 * upright(s), 4 * s.v)

        return Motions(
            state0=state0,
            controls0=drawn[:, 1:].movedim(1, 0) * strongest,
            stage=stage,
            final=final,
            inputs={"stands": stands},
            states0=self._drawing(state0) if self.drawn else None,
            bounds=(-strongest, strongest),
            error=lambda states, controls: self.missed(states),
        )

    def _drawing(self, state0: Tensor) -> Tensor:
        """Return a guess: the chain straightens while its first joint turns by half a turn, (T + 1, B, nx)."""
        n, moving = self.links, self.steps + 1 - self.balance
        part = torch.cat(
            [
                (1 - torch.linspace(0, torch.pi, moving, dtype=torch.float64).cos()) / 2,
                torch.ones(self.balance, dtype=torch.float64),
            ]
        )
        start, goal = state0[:, :n], torch.zeros_like(state0[:, :n])
        goal[:, 0] = torch.pi
        q = start + part[:, None, None] * (goal - start)
        v = torch.cat([q.diff(dim=0) / self.world.dt, torch.zeros_like(q[:1])])
        v[0] = 0.0
        return torch.cat([q, v], -1)

    def problems(self, numbers: Sequence[int], attempt: int = 0) -> Problems:
        """Return problems for search: torques between knots, and nothing but the balance in the end to tell how good they are."""
        drawn = self.spread * normal(numbers, self.knots + 1, self.links)
        state0 = torch.cat([drawn[:, 0], torch.zeros_like(drawn[:, 0])], -1)

        def states(x: Tensor) -> Tensor:
            torques = interpolate(x.unflatten(-1, (self.knots, self.links)).movedim(-2, 0), self.steps)
            return self.world.rollout(state0, self.strongest * torch.tanh(torques))

        def residuals(x: Tensor) -> Tensor:
            last = states(x)[-self.balance :]
            absolute = last[..., : self.links].cumsum(-1)
            found = torch.cat([absolute.sin(), 1 + absolute.cos(), 0.1 * last[..., self.links :]], -1)
            return found.movedim(1, 0).flatten(1)

        return Problems(
            x0=drawn[:, 1:].flatten(1),
            residuals=residuals,
            states=states,
            error=lambda x: self.missed(states(x)),
            target=self.tolerance**2 / 2,  # then no angle is larger than the tolerance
        )
