"""Constraints besides the tree of joints, which close loops, couple joints and hold bodies together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from costate.core.constants import Constants
from costate.model.errors import ModelError
from costate.model.surface import Softness
from costate.model.transform import Transform, place

Rename = Callable[[str], str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Held(Constants):
    """A constraint, and how firmly it is kept."""

    time_constant: float | None = None
    """Time [s] in which a violation falls to 1/e of itself, at least one substep, where constraints are hard (all contact models
    but Newton); None: five substeps."""
    softness: Softness | None = None
    """Softness where constraints are soft (Newton); None: that of the contact model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.time_constant is not None and not self.time_constant > 0:
            raise ModelError(f"time_constant must be positive [s], not {self.time_constant}")


@dataclass(frozen=True, eq=False)
class Connect(Held):
    """A ball joint that closes a loop: a point of one link stays on a point of another."""

    link_a: str
    link_b: str
    """Second link; "world" for what does not move."""
    point_a: Sequence[float] = (0.0, 0.0, 0.0)
    """Point in the frame of its link [m]."""
    point_b: Sequence[float] | None = None
    """Point in the frame of its link [m]; None: where point_a is at home."""

    def renamed(self, link: Rename, joint: Rename) -> Connect:
        return replace(self, link_a=link(self.link_a), link_b=link(self.link_b))


@dataclass(frozen=True, eq=False)
class Distance(Held):
    """A massless rod with ball joints: two points stay at a distance."""

    link_a: str
    link_b: str
    point_a: Sequence[float] = (0.0, 0.0, 0.0)
    point_b: Sequence[float] = (0.0, 0.0, 0.0)
    length: float | None = None
    """Distance [m], positive; None: that at home."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length is not None and not self.length > 0:
            raise ModelError(
                f"Distance: length must be positive, not {self.length}; use Connect for a distance of zero"
            )

    def renamed(self, link: Rename, joint: Rename) -> Distance:
        return replace(self, link_a=link(self.link_a), link_b=link(self.link_b))


@dataclass(frozen=True, eq=False)
class Weld(Held):
    """A weld: one link keeps its pose in another."""

    link_a: str
    link_b: str
    pose: Transform | None = None
    """Pose of link b in link a; None: that at home."""
    anchor: Sequence[float] = (0.0, 0.0, 0.0)
    """Point of link b at which positions are compared, about which soft welds turn [m]."""
    torque_scale: float = 1.0
    """Weight of a soft weld's angles against its distances [m]."""

    def __post_init__(self) -> None:
        place(self, "pose", f"the pose of '{self.link_b}' in '{self.link_a}'")
        super().__post_init__()

    def renamed(self, link: Rename, joint: Rename) -> Weld:
        return replace(self, link_a=link(self.link_a), link_b=link(self.link_b))


@dataclass(frozen=True, eq=False)
class Couple(Held):
    """A gear: a joint follows another by q = p(q of the other), p(x) = c0 + c1 x + c2 x^2 + ...; or tendons by their lengths."""

    joint: str
    """Name of the joint or tendon that follows."""
    other: str | None = None
    """Name of the one that is followed; None: the joint stays at c0."""
    polynomial: Sequence[float] = (0.0, 1.0)
    """Coefficients c0, c1, ... [rad or m]: (0, -2) is a gear that turns back twice as fast."""
    reference: tuple[float, float] = field(default=(0.0, 0.0))
    """Zeros from which the coordinates of both joints are counted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.polynomial) < 1 or not np.all(np.isfinite(np.asarray(self.polynomial, float))):
            raise ModelError(
                f"Couple: the polynomial of '{self.joint}' must be finite numbers c0, c1, ...; got {self.polynomial}"
            )

    def renamed(self, link: Rename, joint: Rename) -> Couple:
        return replace(self, joint=joint(self.joint), other=None if self.other is None else joint(self.other))


Constraint = Connect | Distance | Weld | Couple
