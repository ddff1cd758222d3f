"""Tendons: lengths over joints or through space, along which springs, dampers, limits and actuators act."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from costate.core.constants import Constants
from costate.model.errors import ModelError
from costate.model.surface import Bounds
from costate.model.transform import Transform, place

Rename = Callable[[str], str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Elastic(Constants):
    """A tendon of any kind, which may have a spring, a damper, friction and limits. Its force F acts on the joints as J^T F, where
    J is the derivative of its length."""

    stiffness: float = 0.0
    """Stiffness of its spring [N/m], if the length is in metres."""
    rest: float | tuple[float, float] | None = None
    """Length without force [m], or the two lengths between which the tendon is slack; None: the length at home."""
    damping: float = 0.0
    """Damping [N s/m]."""
    friction: float = 0.0
    """Coulomb friction [N]."""
    lower: float = -np.inf
    """Least length [m]."""
    upper: float = np.inf
    """Greatest length [m]."""
    max_effort: float = np.inf
    """Largest force of an actuator [N]."""
    efforts: tuple[float, float] | None = None
    """Range of the force of all actuators of a file together [N] (MJCF actuatorfrcrange); None: that of max_effort."""
    bounds: Bounds | None = None
    """Softness of limits and friction (Newton); None: that of the contact model."""

    def _check(self, name: str) -> None:
        if min(self.stiffness, self.damping, self.friction, self.max_effort) < 0:
            raise ModelError(f"tendon '{name}': stiffness, damping, friction and max_effort must not be negative")
        low, high = self.slack or (0.0, 0.0)
        if low > high or self.lower >= self.upper:
            raise ModelError(
                f"tendon '{name}': the lower of two lengths comes first; rest is {self.rest}, limits are "
                f"({self.lower}, {self.upper})"
            )

    @property
    def slack(self) -> tuple[float, float] | None:
        """Lengths between which the spring does not pull [m]; None: to be taken from home."""
        if self.rest is None or isinstance(self.rest, tuple):
            return self.rest
        return float(self.rest), float(self.rest)


@dataclass(frozen=True, eq=False)
class FixedTendon(Elastic):
    """A tendon whose length is the sum of coefficient * coordinate over some joints (MJCF fixed).

    Its spring pulls towards the rest length, and its force F acts on every joint as coefficient * F.
    """

    name: str
    joints: Mapping[str, float]
    """Coefficients by joint, each with one coordinate: [m/rad] where a cable runs over a pulley, or any other ratio."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.joints:
            raise ModelError(f"tendon '{self.name}' runs over no joint: give it {{joint: coefficient}}")
        if not np.isfinite(list(self.joints.values())).all() or not any(self.joints.values()):
            raise ModelError(
                f"tendon '{self.name}': coefficients must be finite and not all zero, not {dict(self.joints)}"
            )
        self._check(self.name)

    def renamed(self, name: Rename, link: Rename) -> FixedTendon:
        """Return the tendon with other names of itself and its joints."""
        return replace(self, name=name(self.name), joints={name(j): c for j, c in self.joints.items()})


@dataclass(frozen=True, eq=False)
class Via(Constants):
    """A point of a link through which a tendon runs."""

    link: str
    point: Sequence[float] = (0.0, 0.0, 0.0)
    """Point in the frame of the link [m]."""

    def renamed(self, link: Rename) -> Via:
        return replace(self, link=link(self.link))


@dataclass(frozen=True, eq=False)
class Wrap(Constants):
    """A sphere or an endless cylinder around which a tendon runs, between the points before and after it."""

    link: str
    radius: float
    """Radius [m]."""
    kind: Literal["sphere", "cylinder"] = "sphere"
    pose: Transform = field(default_factory=Transform)
    """Pose of its centre in the frame of the link; the axis of a cylinder is z."""
    side: Via | None = None
    """Point on the side on which the tendon passes; one inside of the shape makes the tendon pass through it. None: the shorter
    way."""

    def __post_init__(self) -> None:
        place(self, "pose", f"the pose of a {self.kind} in '{self.link}'")
        super().__post_init__()

    def renamed(self, link: Rename) -> Wrap:
        return replace(self, link=link(self.link), side=None if self.side is None else self.side.renamed(link))


@dataclass(frozen=True, eq=False)
class Pulley(Constants):
    """A pulley that divides the force of a tendon: the path goes on elsewhere, and its length counts 1 / divisor from there on."""

    divisor: float = 2.0

    def renamed(self, link: Rename) -> Pulley:
        return self


@dataclass(frozen=True, eq=False)
class SpatialTendon(Elastic):
    """A cable through space, which runs straight from point to point, and around spheres and cylinders (MJCF spatial)."""

    name: str
    path: Sequence[Via | Wrap | Pulley]
    """Points, shapes to wrap around (each between two points) and pulleys (each after a point), in their order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        path = self.path
        for a, b in zip([None, *path], [*path, None], strict=True):
            if not isinstance(a, Via) and not isinstance(b, Via) and not (a is None and isinstance(b, Pulley)):
                raise ModelError(
                    f"tendon '{self.name}' must begin and end at a Via, with one before and after every Wrap and after every Pulley"
                )
        if not any(isinstance(a, Via) and not isinstance(b, Pulley) for a, b in pairwise(path)):
            raise ModelError(f"tendon '{self.name}' needs at least two points: Via(link, point)")
        for part in path:
            if isinstance(part, Wrap) and (part.kind not in ("sphere", "cylinder") or not part.radius > 0):
                raise ModelError(
                    f"tendon '{self.name}': a Wrap is a sphere or a cylinder of positive radius, not {part.kind} of {part.radius}"
                )
            if isinstance(part, Pulley) and not part.divisor > 0:
                raise ModelError(f"tendon '{self.name}': the divisor of a pulley must be positive, not {part.divisor}")
        self._check(self.name)

    def renamed(self, name: Rename, link: Rename) -> SpatialTendon:
        """Return the tendon with other names of itself and its links."""
        return replace(self, name=name(self.name), path=tuple(part.renamed(link) for part in self.path))


Tendon = FixedTendon | SpatialTendon
