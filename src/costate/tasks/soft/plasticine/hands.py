"""Hands of a task: an action of numbers from -1 to 1 in every control step becomes poses and velocities of tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.collision.shapes import Solid
from costate.collision.shapes.solid import length
from costate.continuum.mpm.robots import Tool, tool_rows

UP = 2


@dataclass(frozen=True, eq=False)
class Torus(Solid):
    """A ring in the plane z = 0."""

    large: float
    small: float

    def distance(self, p: ca.SX) -> ca.SX:
        return length(ca.vertcat(length(p[:2]) - self.large, p[2])) - self.small


@dataclass(frozen=True)
class Form:
    """A tool that is a ball, a stick with round ends along its z axis, or a ring."""

    radius: float
    length: float = 0.0
    """Length of a stick without its ends."""
    ring: float = 0.0
    """Radius of the middle of a ring; 0: it is none."""

    def tool(self, friction: float) -> Tool:
        """Return it as a tool."""
        if self.ring:
            return Tool(Torus(self.ring, self.radius), friction)
        shape = cs.shapes.capsule(self.radius, self.length) if self.length else cs.shapes.sphere(self.radius)
        return Tool(shape, friction)

    def gap(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return the distance (..., particles) [m] of particles (..., particles, 3) to it, at rows (..., 18); 0 inside."""
        R = rows[..., 3:12].unflatten(-1, (3, 3))
        q = (x - rows[..., None, :3]) @ R
        if self.ring:
            across = torch.linalg.vector_norm(q[..., :2], dim=-1) - self.ring
            return (torch.sqrt(across**2 + q[..., 2] ** 2 + 1e-12) - self.radius).clamp(min=0)
        along = q[..., 2] - q[..., 2].clamp(-self.length / 2, self.length / 2)
        return (torch.sqrt(q[..., 0] ** 2 + q[..., 1] ** 2 + along**2 + 1e-12) - self.radius).clamp(min=0)


class Hand(ABC):
    """Tools that are moved together."""

    forms: Sequence[Form]
    friction: float

    @property
    @abstractmethod
    def count(self) -> int:
        """Numbers of an action."""

    @abstractmethod
    def rows(self, actions: Tensor, substeps: int, dt: float, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the rows of the tools (steps * substeps, tools, 18) and the state of the hand after them.

        Args:
            actions: Actions (steps, count), from -1 to 1.
            substeps: Substeps of a control step.
            dt: Length of a substep [s].
            state: State of the hand to begin with; None: as it is at the beginning.
        """

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [form.tool(self.friction) for form in self.forms]

    def gaps(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return the distance (..., tools) of each tool to the nearest of the particles x (..., particles, 3)."""
        return torch.stack([f.gap(rows[..., k, :], x).amin(-1) for k, f in enumerate(self.forms)], -1)


def spread(actions: Tensor, scale: Tensor, substeps: int) -> Tensor:
    """Return what is moved in every substep (steps * substeps, n)."""
    return (actions * (scale / substeps)).repeat_interleave(substeps, -2)


def path(start: Tensor, moves: Tensor) -> Tensor:
    """Return where something is between moves (steps + 1, ...)."""
    return torch.cat([start[None], start + moves.cumsum(0)])


@dataclass(frozen=True, eq=False)
class Fingers(Hand):
    """Tools that do not turn, each with three numbers in an action: what it moves along x, y and z."""

    forms: Sequence[Form]
    starts: Sequence[Sequence[float]]
    scale: Sequence[float]
    """Longest way of a finger in a control step, along x, y and z [m] (3)."""
    friction: float = 0.9
    low: float = 0.0
    """Least height of their middles [m]."""

    @property
    def count(self) -> int:
        return 3 * len(self.forms)

    def rows(self, actions: Tensor, substeps: int, dt: float, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        start = torch.as_tensor(np.array(self.starts), dtype=actions.dtype) if state is None else state
        scale = torch.tensor(self.scale, dtype=actions.dtype).repeat(len(self.forms))
        free = path(start, spread(actions, scale, substeps).unflatten(-1, (-1, 3)))
        p = torch.cat([free[..., :UP], free[..., UP:].clamp(min=self.low)], -1)
        return tool_rows(p.movedim(-2, 0), dt).movedim(0, -2), p[-1]


@dataclass(frozen=True, eq=False)
class RollingPin(Hand):
    """A pin that rolls without slip across its axis, turns about the vertical, and goes up and down."""

    radius: float
    length: float
    start: Sequence[float]
    scale: Sequence[float]
    """Largest roll [rad], turn [rad] and rise [m] of a control step."""
    friction: float = 0.9
    low: float = 0.0

    @property
    def forms(self) -> Sequence[Form]:  # type: ignore[override]
        return [Form(self.radius, self.length)]

    @property
    def count(self) -> int:
        return 3

    def rows(self, actions: Tensor, substeps: int, dt: float, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        start = torch.tensor([*self.start, 0.0], dtype=actions.dtype) if state is None else state
        moves = spread(actions, torch.tensor(self.scale, dtype=actions.dtype), substeps)
        yaw = path(start[3], moves[:, 1])
        c, s = torch.cos(yaw[:-1]), torch.sin(yaw[:-1])
        roll, zero, one = moves[:, 0], torch.zeros_like(c), torch.ones_like(c)
        way = torch.stack([self.radius * roll * c, self.radius * roll * s, moves[:, 2]], -1)
        free = path(start[:3], way)
        p = torch.cat([free[:, :UP], free[:, UP:].clamp(min=self.low)], -1)
        # The axis of the pin, its own z, is level and at right angles to the way (c, s).
        R = torch.stack([zero, c, -s, zero, s, c, one, zero, zero], -1).unflatten(-1, (3, 3))
        w = torch.stack([-s * roll, c * roll, moves[:, 1]], -1) / dt
        return tool_rows(p, dt, R, w)[:, None], torch.cat([p[-1], yaw[-1:]])


@dataclass(frozen=True, eq=False)
class Chopsticks(Hand):
    """Two upright sticks that move, turn about the vertical, and open and close."""

    radius: float
    length: float
    start: Sequence[float]
    gap: float
    """Distance of the sticks' axes at the beginning [m]."""
    scale: Sequence[float]
    """Largest ways along x, y and z [m], turn [rad] and opening [m] of a control step."""
    friction: float = 10.0
    low: float = 0.0

    @property
    def forms(self) -> Sequence[Form]:  # type: ignore[override]
        return [Form(self.radius, self.length)] * 2

    @property
    def count(self) -> int:
        return 5

    def rows(self, actions: Tensor, substeps: int, dt: float, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        start = torch.tensor([*self.start, 0.0, self.gap], dtype=actions.dtype) if state is None else state
        free = path(start, spread(actions, torch.tensor(self.scale, dtype=actions.dtype), substeps))
        yaw, gap = free[:, 3], free[:, 4].clamp(min=2 * self.radius)
        height = free[:, UP : UP + 1].clamp(min=self.low)
        side = 0.5 * gap[:, None] * torch.stack([torch.cos(yaw), torch.sin(yaw), torch.zeros_like(yaw)], -1)
        p = torch.cat([free[:, :UP], height], -1)
        zero = torch.zeros_like(yaw[1:])
        w = torch.stack([zero, zero, torch.diff(yaw) / dt], -1)
        rows = [tool_rows(p + sign * side, dt, None, w) for sign in (-1, 1)]
        return torch.stack(rows, -2), torch.cat([p[-1], yaw[-1:], gap[-1:]])
