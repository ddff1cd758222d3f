"""Parts that a world was made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from costate.model import Transform
from costate.model.constraint import Constraint
from costate.model.tendon import Tendon
from costate.sim.forces.drives import Actuators
from costate.sim.scene.parts import Body, Static


@dataclass(frozen=True, eq=False)
class Parts:
    """The arguments of a world that it does not keep elsewhere."""

    bodies: Sequence[Body]
    scenery: Sequence[Static]
    actuators: Actuators
    poses: Mapping[str, Transform]
    self_collision: bool | tuple[str, ...]
    chosen: bool
    """True if a rule or a list said which pairs may touch."""
    constraints: Sequence[Constraint]
    tendons: Sequence[Tendon]


def self_collisions(given: bool | Iterable[str]) -> bool | tuple[str, ...]:
    """Return World(self_collision=given) as something that can be read twice."""
    return given if isinstance(given, bool) else tuple(given or ())
