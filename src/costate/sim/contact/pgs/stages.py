"""The values that the stages of a substep hand on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from costate.kernel.ir.program import Var


@dataclass(frozen=True, eq=False)
class Carry:
    """Values that pieces hand on."""

    x: Var
    """Positions and velocities."""
    clock: Var
    """Time left [s], and number of pieces so far."""
    marks: Var
    """Marks of rows (targets.py)."""
    sums: Var
    """Impulses so far."""
    residual: Var
    start: Var
    """Forces of the last motion, to start from; of size 0 without warm start."""


@dataclass(frozen=True, eq=False)
class Given:
    """Values that are the same for all pieces. A storage adds its own."""

    inputs: tuple[Var, ...]
    """Activations of actuators, if there are some, then the further inputs of the step."""
    local: Var
    """Poses of shapes in their links."""
    sizes: Var
    boxes: Var
    friction: Var
    restitution: Var


@dataclass(frozen=True, eq=False)
class Placed:
    """A configuration. A storage adds what its contact points read of it."""

    poses: Var
    """Poses of shapes in the world."""
    now: Var
    """Velocities of the carriers, and of what does not move."""


@dataclass(frozen=True, eq=False)
class Free:
    """The motion without contact."""

    velocity: Var
    """Velocities of the carriers at its end."""
    drift: Var
    fastest: Var
    """Bound of the speed of shapes [m/s]."""


@dataclass(frozen=True, eq=False)
class Points:
    """Contact points of the groups within reach."""

    flags: Var
    """Flags of the groups within reach."""
    system: Var
    """Numbers that visits read of them."""
    gap: Var
    touches: Var
    """Flags of the points that touch."""
    touching: Var
    """Flags of the groups that have some."""
    strikes: Var
    """1 where some strike now."""


G = TypeVar("G", bound=Given)
P = TypeVar("P", bound=Placed)


@dataclass(frozen=True, eq=False)
class Piece(Generic[G, P]):
    """A piece of a substep, looked at."""

    carry: Carry
    given: G
    placed: P
    free: Free
    points: Points

    @property
    def clock(self) -> Var:
        return self.carry.clock


@dataclass(frozen=True, eq=False)
class Aims:
    """The aims of a motion."""

    waits: Var
    """Flags of the points that wait for an impact."""
    near: Var
    """Flags of the groups within reach in this motion."""
    waiting: Var
    """Flags of the groups that wait for an impact."""
    c: Var
    """Right-hand side of the sweeps: speeds without contact, less those to be reached."""
    sides: tuple[Var, ...]
    """Right-hand sides of split corrections, and of positions that move with the velocity of the start."""


@dataclass(frozen=True, eq=False)
class Motion(Generic[G, P]):
    """A motion over all the time that is left."""

    piece: Piece[G, P]
    aims: Aims
    waiting: tuple[Var, ...]
    """Flags of the pairs that wait for an impact, kind by kind."""
    after: Var
    """Velocities of the carriers at its end."""
    base: Var
    slope: Var
    """Its path: see the head of step.py."""
    impulses: Var
    residual: Var
