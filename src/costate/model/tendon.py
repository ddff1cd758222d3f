"""Tendons over joints: lengths that are weighted sums of coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from costate.model.errors import ModelError
from costate.model.surface import Bounds


@dataclass(frozen=True, eq=False)
class FixedTendon:
    """A tendon whose length is the sum of coefficient * coordinate over some joints (MJCF fixed).

    Its spring pulls towards the rest length, and its force F acts on every joint as coefficient * F.
    """

    name: str
    joints: Mapping[str, float]
    """Coefficients by joint, each with one coordinate: [m/rad] where a cable runs over a pulley, or any other ratio."""
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
    bounds: Bounds | None = None
    """Softness of limits and friction (Newton); None: that of the contact model."""

    def __post_init__(self) -> None:
        if not self.joints:
            raise ModelError(f"tendon '{self.name}' runs over no joint: give it {{joint: coefficient}}")
        if not np.isfinite(list(self.joints.values())).all() or not any(self.joints.values()):
            raise ModelError(
                f"tendon '{self.name}': coefficients must be finite and not all zero, not {dict(self.joints)}"
            )
        if min(self.stiffness, self.damping, self.friction, self.max_effort) < 0:
            raise ModelError(f"tendon '{self.name}': stiffness, damping, friction and max_effort must not be negative")
        low, high = self.slack or (0.0, 0.0)
        if low > high or self.lower >= self.upper:
            raise ModelError(
                f"tendon '{self.name}': the lower of two lengths comes first; rest is {self.rest}, limits are "
                f"({self.lower}, {self.upper})"
            )

    @property
    def slack(self) -> tuple[float, float] | None:
        """Lengths between which the spring does not pull [m]; None: to be taken from home."""
        if self.rest is None or isinstance(self.rest, tuple):
            return self.rest
        return float(self.rest), float(self.rest)

    def renamed(self, prefix: str) -> FixedTendon:
        """Return the tendon with a prefix before its name and those of its joints."""
        return replace(self, name=prefix + self.name, joints={prefix + j: c for j, c in self.joints.items()})
