"""Pairs that may touch in the reference: their distance, the point and the normal, as closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from benchmarks.motion.bodies import Array, Part


@dataclass(frozen=True)
class Touch:
    """The place where two shapes are nearest."""

    gap: float | complex
    point: Array
    normal: Array
    """Unit normal, from the second shape to the first."""


class Pair(Protocol):
    """Two shapes that may touch."""

    @property
    def owners(self) -> tuple[tuple[int, int], ...]:
        """Return (part, link) of the first shape, and of the second unless it stands still."""
        ...

    def touch(self, parts: Sequence[Part], states: Sequence[Array]) -> Touch: ...


def length(x: Array) -> complex:
    """Return the length of a vector, as an analytic function of its entries."""
    return np.sqrt((x * x).sum())


@dataclass(frozen=True)
class OnPlane:
    """A point of a part with a ball around it, and a plane. A corner of a box is a ball of radius 0."""

    part: int
    local: tuple[float, float, float]
    radius: float
    normal: Array
    offset: float
    link: int = 0

    @property
    def owners(self) -> tuple[tuple[int, int], ...]:
        return ((self.part, self.link),)

    def touch(self, parts: Sequence[Part], states: Sequence[Array]) -> Touch:
        c = parts[self.part].place(states[self.part], np.array(self.local), self.link)
        return Touch(self.normal @ c - self.offset - self.radius, c - self.radius * self.normal, self.normal)


@dataclass(frozen=True)
class WithBall:
    """A ball, and what is around the nearest point of a box (possibly without extent): a ball, a capsule, a box."""

    ball: int
    radius: float
    other: int
    half: tuple[float, float, float]
    """Half edges of the box."""
    skin: float = 0.0
    """Distance of the surface from the box."""
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Centre of the box in its link."""
    link: int = 0

    @property
    def owners(self) -> tuple[tuple[int, int], ...]:
        return (self.ball, 0), (self.other, self.link)

    def touch(self, parts: Sequence[Part], states: Sequence[Array]) -> Touch:
        c = states[self.ball][:3]
        R, at = parts[self.other].frame(states[self.other], self.link)
        local, half = R.T @ (c - at) - self.centre, np.array(self.half)
        inside = np.where(np.abs(local.real) <= half, local, np.sign(local.real) * half)
        apart = R @ (local - inside)
        size = length(apart)
        normal = apart / size
        return Touch(size - self.radius - self.skin, c - self.radius * normal, normal)
